"""Every error this package raises, as one tree.

The branch says what the caller does next::

    ProcessorError
      RecordError       a record has no session  -> dead letter, go on
        NoSessionError      no key, or an empty one
        SessionKeyError     a key that is not UTF-8
        FormatError         a value that can't be read, so that it names none
        TooLargeRecordError telemetry whose records their topic refuses
      OwnershipError    perhaps no longer ours   -> drop state, reopen if the group says so
        FencedError         the broker refused an older producer epoch
        StaleGenerationError the group has moved on since
        ResentCommitError   a commit was asked for more than once (protocol/port.py)
      StateError        state and log disagree   -> stop the partition, say what to do
        RecordOrderError    an offset that is not above the last one
        ChangelogError      an entry that can't be read
        ChainError          a chunk that does not follow the one before it in its session
          GapError            chunks are missing before it
          RepeatError         its `t` was there before
          DigestError         a digest is not that of the bytes
      ConfigError       cannot start like this   -> exit 78, name the setting
      UnreachableError  no answer from a broker  -> retry, or exit 69
      TooLargeError     what became of a record  -> open again, leave it out (protocol/port.py)
      RefusedError      a batch, as too large    -> name what is in it (kafka/producing.py)
      OutgoingTooLargeError a ledger's message   -> name it, stop (kafka/ledger.py)
      NotSentError      a line of a file         -> stop behind those before (feeding/sending.py)
"""


class ProcessorError(Exception):
    """Root of the tree; never raised itself."""


class RecordError(ProcessorError):
    """A record has no session: it becomes a dead letter.

    Attributes:
        reason: Short code for the dead letter's headers, such as ``no-key``.
    """

    reason = "record"


class NoSessionError(RecordError):
    """The record has no key, or an empty one."""

    reason = "no-key"


class SessionKeyError(RecordError):
    """The record's key is not UTF-8."""

    reason = "key-not-utf8"


class FormatError(RecordError):
    """The value is not what its format reads, so no session can be found in it."""

    reason = "format"


class TooLargeRecordError(RecordError):
    """The records topic refuses what a telemetry message holds."""

    reason = "too-large"


class OwnershipError(ProcessorError):
    """The partition is perhaps no longer ours."""


class FencedError(OwnershipError):
    """The broker refused our producer: a newer epoch exists."""


class StaleGenerationError(OwnershipError):
    """The group has rebalanced since this work began."""


class StateError(ProcessorError):
    """State and log disagree; a person decides, nothing guesses."""


class RecordOrderError(StateError):
    """A record's offset is not above the last one accepted."""


class ChangelogError(StateError):
    """A changelog entry can't be read."""


class ChainError(StateError):
    """A chunk does not follow the one before it in its session.

    Attributes:
        session: The session.
        t: Index of the chunk.
        partition: Where it stands in the topic of chunks.
        offset: Likewise.
    """

    def __init__(self, message: str, session: str, t: int, place: tuple[int, int]) -> None:
        super().__init__(message)
        self.session = session
        self.t = t
        self.partition, self.offset = place


class GapError(ChainError):
    """Chunks are missing before it."""


class RepeatError(ChainError):
    """There was a chunk of the same session and `t` before."""


class DigestError(ChainError):
    """Its digest is not that of its records, or it names another previous one."""


class ConfigError(ProcessorError):
    """The worker can't start with these settings, topics or versions."""


class UnreachableError(ProcessorError):
    """A broker did not answer in time."""
