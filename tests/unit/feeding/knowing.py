"""A transcript format for one test alone."""

from processor.feeding import choice
from processor.formats import format_named


def know(monkeypatch, made, is_like):
    """Have a format beside the others, found by the first lines of a file."""

    def named(name, options, memory):
        return made(options, memory) if name == "told" else format_named(name, options, memory)

    monkeypatch.setattr(choice, "format_named", named)
    monkeypatch.setattr(choice, "detect_format", lambda it: "told" if is_like(it) else "jsonl")
