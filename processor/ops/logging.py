"""The log: one line an event on stderr, for a person or for a collector.

What an event is about travels as fields: ``log.info("opened", extra={"partition": 3})``. Record
content is never logged, and no secret: the libraries, which at debug level write both, are heard
from warnings on, and each of their messages once in a while.
"""

import json
import logging
import math
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from processor.settings import Settings

# aiokafka, faust and mode describe every fetch and task at debug level: 11% of a worker's CPU.
# Faust's services log their coming and going under the name of the module that defines them.
_QUIET: Final = (
    "aiokafka",
    "faust",
    "mode",
    "processor.app",
    "processor.kafka.recovery",
    "processor.kafka.table",
    "processor.kafka.transport",
)
_LIBRARIES: Final = ("aiokafka", "faust", "mode")
#: A broker that is down has each client of aiokafka say so ten times a second.
_REPEAT_AFTER_S: Final = 10.0
_OF_EVERY_EVENT: Final = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}
_COLOURS: Final = {"WARNING": "\033[33m", "ERROR": "\033[31m", "CRITICAL": "\033[31m"}


def configure_logging(settings: Settings) -> None:
    """Send all logs to stderr in the format and from the level of ``settings``."""
    handler = logging.StreamHandler(sys.stderr)
    if settings.log_format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(ConsoleFormatter(_COLOURS if sys.stderr.isatty() else {}))
    handler.addFilter(Repeats())
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def add_field(name: str, value: Callable[[], object]) -> None:
    """Give every event from now on a field with what ``value`` returns at the time."""

    def with_field(record: logging.LogRecord) -> bool:
        setattr(record, name, value())
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(with_field)


class Repeats:
    """Lets a message of a library pass once in a while, with how often it was held back since."""

    def __init__(self) -> None:
        self._passed_at: dict[str, float] = {}
        self._held_back: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the event is to be logged."""
        if record.name.partition(".")[0] not in _LIBRARIES:
            return True
        kind = f"{record.name}: {record.msg}"  # without the arguments
        if record.created - self._passed_at.get(kind, -math.inf) < _REPEAT_AFTER_S:
            self._held_back[kind] += 1
            return False
        self._passed_at[kind] = record.created
        if count := self._held_back.pop(kind, 0):
            record.held_back = count
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the event with its fields beside the fixed keys, which win."""
        event = _fields(record) | {
            "time": _time(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False, default=str)


class ConsoleFormatter(logging.Formatter):
    """Time, level, message and fields; a traceback, which a person needs, comes below."""

    def __init__(self, colours: dict[str, str]) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Return the event as a line to read, in local time."""
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        time = _time(record).astimezone().strftime("%H:%M:%S")
        line = f"{time} {record.levelname:7} {record.name}: {record.getMessage()}{fields}"
        line = line.replace("\r", "\\r").replace("\n", "\\n")
        if colour := self._colours.get(record.levelname):
            line = f"{colour}{line}\033[0m"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _OF_EVERY_EVENT}


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, tz=UTC)
