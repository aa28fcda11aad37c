"""For readers of chunks: each chunk of each session once, in order, checked."""

from processor.client.chunk import Chunk, Message, Position, Record
from processor.client.reading import read_chunks
from processor.client.threaded import read_chunks_sync
from processor.core.errors import ChainError, DigestError, GapError, RepeatError
from processor.settings import Settings
from processor.settings_loading import load_settings

__all__ = [
    "ChainError",
    "Chunk",
    "DigestError",
    "GapError",
    "Message",
    "Position",
    "Record",
    "RepeatError",
    "Settings",
    "load_settings",
    "read_chunks",
    "read_chunks_sync",
]
