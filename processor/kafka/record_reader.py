"""aiokafka's reading of fetched records, made total: a header's name may be any bytes.

Kafka calls the name a string, but neither brokers nor librdkafka look. aiokafka raises
``UnicodeDecodeError`` for one that is not UTF-8, at every attempt: a single such record would hold
its partition up for ever. Here the batch is read once more, by aiokafka's own slower reader, with
U+FFFD in that name; keys, values and all other headers are the bytes that they were.

And a batch that is damaged raises one error: aiokafka's codecs raise theirs as they come, which
nobody takes for what it is.
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import aiokafka.consumer.fetcher
import cramjam
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from aiokafka.record.memory_records import _MemoryRecordsPy

#: What aiokafka and the codecs of its batches raise for bytes that are none.
_DAMAGED: Final = (
    AssertionError,
    EOFError,
    IndexError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    cramjam.DecompressionError,
    struct.error,
    zlib.error,
)


@contextmanager
def _one_error() -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        message = f"a batch of records is damaged: {error!r}"
        raise CorruptRecordException(message) from error


class TotalRecords(_MemoryRecordsPy):  # type: ignore[misc]  # aiokafka is untyped
    """The batches of one answer of a broker."""

    def next_batch(self, *_: int) -> Any:  # noqa: ANN401
        """Return the next batch, ``None`` after the last.

        Raises:
            CorruptRecordException: It is damaged.
        """
        data = self._next_slice
        with _one_error():
            batch = super().next_batch()
        return _Batch(data, batch) if isinstance(batch, DefaultRecordBatch) else batch


class _Batch:
    """A batch whose records can be read whatever their headers are called."""

    def __init__(self, data: memoryview, batch: Any) -> None:  # noqa: ANN401
        self._data = data
        self._batch = batch

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._batch, name)

    def __next__(self) -> Any:  # noqa: ANN401
        with _one_error():
            return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        with _one_error():
            return iter(self._records())

    def _records(self) -> list[Any]:
        try:
            return list(self._batch)
        except UnicodeDecodeError:
            again = _DefaultRecordBatchPy(self._data)
            again._maybe_uncompress()  # noqa: SLF001
            again._buffer = _AnyText(again._buffer)  # noqa: SLF001
            return list(again)


class _AnyText(bytearray):
    """Bytes whose parts can all be decoded; aiokafka decodes headers' names alone."""

    def __getitem__(self, where: Any) -> Any:  # noqa: ANN401
        part = super().__getitem__(where)
        return _AnyText(part) if isinstance(part, bytearray) else part

    def decode(self, encoding: str = "utf-8", errors: str = "replace") -> str:
        return super().decode(encoding, errors)


def install() -> None:
    """Have every consumer of this process read records so."""
    aiokafka.consumer.fetcher.MemoryRecords = TotalRecords
