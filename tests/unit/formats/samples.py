"""The short transcripts of tests/data."""

from pathlib import Path

from processor.formats import format_named
from processor.formats.format import FormatOptions

DATA = Path(__file__).parents[2] / "data"


def lines_of(path):
    return path.read_bytes().removesuffix(b"\n").split(b"\n")


def sample(name):
    """Lines of the one file, under tests/data, whose path ends so; and its stem."""
    (path,) = DATA.glob(name)
    return lines_of(path), path.stem


def read_all(name, lines, session=None, memory=None, **options):
    options = FormatOptions(session=session, **options)
    reader = format_named(name, options, {} if memory is None else memory)
    return [record for line in lines for record in reader.read(line)]


def sessions_of(records):
    return [it.session for it in records]
