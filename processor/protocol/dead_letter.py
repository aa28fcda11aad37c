"""A record without a session, set aside whole with its reason and origin."""

from processor.core.errors import NoSessionError, RecordError, SessionKeyError
from processor.protocol.port import LogRecord, Message


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
        "__connect.errors.topic": topic,
        "__connect.errors.partition": str(partition),
        "__connect.errors.offset": str(record.offset),
        "__connect.errors.stage": "KEY_CONVERTER",
        "__connect.errors.exception.class.name": type(error).__name__,
        "__connect.errors.exception.message": str(error),
        "processor-reason": error.reason,
    }
    there = {name for name, _ in record.headers}
    added = [(name, text.encode()) for name, text in about.items() if name not in there]
    return Message(record.key, record.value, [*record.headers, *added], record.timestamp)
