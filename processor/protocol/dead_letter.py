"""A record without a session, set aside whole with its reason and origin."""

from typing import Final

from processor.core.errors import NoSessionError, RecordError, SessionKeyError
from processor.protocol.port import LogRecord, Message

TOPIC: Final = "__connect.errors.topic"
PARTITION: Final = "__connect.errors.partition"
OFFSET: Final = "__connect.errors.offset"
STAGE: Final = "__connect.errors.stage"
ERROR_CLASS: Final = "__connect.errors.exception.class.name"
ERROR_MESSAGE: Final = "__connect.errors.exception.message"
REASON: Final = "processor-reason"
#: The headers that a dead letter has beside the record's own, in their order.
ADDED: Final = (TOPIC, PARTITION, OFFSET, STAGE, ERROR_CLASS, ERROR_MESSAGE, REASON)


def session_of(key: bytes | None) -> str:
    """Return the session that a record's key names.

    Raises:
        NoSessionError: There is no key, or an empty one.
        SessionKeyError: The key is not UTF-8.
    """
    if not key:
        message = "no session: the record has no key; set the session id as its key"
        raise NoSessionError(message)
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        message = f"no session: the key is not UTF-8 ({error.reason}); set the session id as key"
        raise SessionKeyError(message) from error


def dead_letter(record: LogRecord, topic: str, partition: int, error: RecordError) -> Message:
    """Return ``record`` as a message of the dead-letter topic.

    Bytes, key, timestamp and headers stay as they were; beside them stand why and from where.
    The names are Kafka Connect's, whose values are text; a header that is there is kept.
    """
    about = {
        TOPIC: topic,
        PARTITION: str(partition),
        OFFSET: str(record.offset),
        STAGE: "KEY_CONVERTER",
        ERROR_CLASS: type(error).__name__,
        ERROR_MESSAGE: str(error),
        REASON: error.reason,
    }
    there = {name for name, _ in record.headers}
    added = [(name, text.encode()) for name, text in about.items() if name not in there]
    return Message(record.key, record.value, [*record.headers, *added], record.timestamp)
