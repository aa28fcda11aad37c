"""What there is to see of a chunk and of a session, as documents and as text."""

from collections.abc import Mapping
from typing import Any, Final

import click

from processor.cli.shown import moment, printable
from processor.proof.explain import Came, Closer, Closing, Mark, ruler
from processor.proof.rules import Logged
from processor.proof.seen import Seen
from processor.wire_models import WireChunk

_WIDTH: Final = 40
_EDGES: Final = {"idle": "last", "age": "first"}
_REASON_COLOURS: Final = {"tokens": "green", "oversize": "red", "end": "blue"}


def document_of(seen: Seen, why: Closing, excerpt: int) -> dict[str, Any]:
    """Return a chunk, record by record, and what closed it; as much of each record as asked."""
    chunk, source = seen.chunk, seen.chunk.source
    return {
        **_about(seen),
        "records": [
            {
                "topic": source.topic,
                "partition": source.partition,
                "offset": it.offset,
                "timestamp_ms": it.timestamp_ms,
                "token_count": it.token_count,
                "running_tokens": it.running_tokens,
                "bytes": it.size_bytes,
                **({"excerpt": _excerpt(it, excerpt)} if excerpt else {}),
            }
            for it in ruler(seen)
        ],
        "closed_by": {
            "reason": why.reason,
            "closer": why.closer,
            "unit": why.unit,
            "limit": why.limit,
            "reached": why.reached,
            "excess": why.excess,
            "message": None if why.came is None else _place(chunk, why.came),
        },
        "previous_digest": chunk.previous_digest,
        "digest": chunk.digest,
    }


def row_of(seen: Seen, before: Seen | None) -> dict[str, Any]:
    """Return a chunk as a row of a time line.

    Args:
        seen: The chunk.
        before: The chunk with records before it, to tell the pause between the two.
    """
    records = seen.chunk.records
    first_ms = records[0].timestamp_ms if records else None
    last_ms = records[-1].timestamp_ms if records else None
    ended_ms = before.chunk.records[-1].timestamp_ms if before and before.chunk.records else None
    return {
        **_about(seen),
        "record_count": len(records),
        "first_offset": seen.chunk.source.first_offset,
        "last_offset": seen.chunk.source.last_offset,
        "first_timestamp_ms": first_ms,
        "last_timestamp_ms": last_ms,
        "pause_ms": None if first_ms is None or ended_ms is None else first_ms - ended_ms,
    }


def open_row(session: str, topic: str, partition: int, first: Logged, count: int) -> dict[str, Any]:
    """Return what is open behind a session's last chunk as a row: ``count`` from ``first`` on."""
    return {
        "session": session,
        "topic": topic,
        "partition": partition,
        "open_record_count": count,
        "first_offset": first.offset,
        "first_timestamp_ms": first.timestamp_ms,
    }


def ruler_text(document: Mapping[str, Any]) -> str:
    """Return a chunk's document as text, with colours for a terminal."""
    records, budget = document["records"], document["flush_tokens"]
    lines = [
        click.style(printable(document["session"]), bold=True)
        + f"  t={document['t']}  {len(records):,} records of {_log(document)}"
        + f"  (chunk at offset {document['chunk_offset']})"
    ]
    place_width = max((len(f"{it['offset']}") for it in records), default=0)
    for it in records:
        at = "-" if it["timestamp_ms"] is None else moment(it["timestamp_ms"])
        bar = _span(it["running_tokens"] - it["token_count"], it["running_tokens"], budget)
        line = f"  @{it['offset']:<{place_width}}  {at:24}  {it['bytes']:>9,} bytes  "
        line += f"{it['token_count']:>7,} {it['running_tokens']:>8,}  {bar}"
        lines.append(line + (f"  {it['excerpt'] or '-'}" if "excerpt" in it else ""))
    lines.append(f"  {_totals(document)}")
    lines.append(f"  closed: {_reason(document)}: {_told(document)}")
    return "\n".join(lines)


def row_text(row: Mapping[str, Any]) -> str:
    """Return a row of a time line as a line, with colours for a terminal."""
    first_ms, last_ms = row["first_timestamp_ms"], row["last_timestamp_ms"]
    parts = [f"t={row['t']:<5}", "-" * 24 if first_ms is None else moment(first_ms)]
    took = "" if first_ms is None or last_ms is None else f"+{(last_ms - first_ms) / 1000:,.1f} s"
    parts += [f"{took:>11}", f"{row['record_count']:>6,} records", _totals(row), _reason(row)]
    is_empty = row["first_offset"] is None
    offsets = "" if is_empty else f"@{row['first_offset']}-{row['last_offset']}"
    parts.append(_log(row) + offsets)
    if row["pause_ms"] is not None:
        parts.append(f"{row['pause_ms'] / 1000:,.1f} s after the one before")
    return "  ".join(parts)


def open_text(row: Mapping[str, Any]) -> str:
    """Return ``open_row`` as a line."""
    return (
        f"open     {moment(row['first_timestamp_ms'])}  {row['open_record_count']:,} records in no "
        f"chunk yet, from {_log(row)}@{row['first_offset']} on"
    )


def _about(seen: Seen) -> dict[str, Any]:
    chunk = seen.chunk
    return {
        "session": chunk.session,
        "t": chunk.t,
        "topic": chunk.source.topic,
        "partition": chunk.source.partition,
        "chunk_offset": seen.message.offset,
        "token_count": chunk.token_count,
        "token_counter": chunk.token_counter,
        "max_tokens": chunk.max_tokens,
        "flush_tokens": chunk.policy.flush_tokens,
        "over_budget": chunk.over_budget,
        "flush": chunk.flush,
        "clock": chunk.clock,
        "final": chunk.final,
    }


def _place(chunk: WireChunk, came: Came) -> dict[str, Any]:
    record = came.record
    return {
        "topic": chunk.source.topic,
        "partition": chunk.source.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "token_count": record.token_count or None,
        "is_end": came.is_end,
    }


def _excerpt(mark: Mark, length: int) -> str | None:
    if mark.value is None:
        return None
    # A character takes four bytes at most; the rest of a long record need not be decoded.
    return printable(mark.value[: 4 * length].decode("utf-8", "replace")[:length])


def _log(row: Mapping[str, Any]) -> str:
    return f"{row['topic']}[{row['partition']}]"


def _span(before: int, after: int, budget: int) -> str:
    """Return where on a ruler of the budget's length a record lies."""
    start = min(before * _WIDTH // budget, _WIDTH - 1)
    stop = max(min(-(-after * _WIDTH // budget), _WIDTH), start + 1)
    bar = click.style("█" * (stop - start), fg="red" if after > budget else "green")
    return "·" * start + bar + "·" * (_WIDTH - stop)


def _totals(row: Mapping[str, Any]) -> str:
    tokens, budget = row["token_count"], row["flush_tokens"]
    text = f"{tokens:>7,} of {budget:,} tokens {tokens / budget:>4.0%}"
    return click.style(text, fg="red") if row["over_budget"] else text


def _reason(row: Mapping[str, Any]) -> str:
    marks = [row["flush"], *(name for name in ("clock", "final") if row[name])]
    colour = _REASON_COLOURS.get(row["flush"], "yellow")
    return click.style(", ".join(marks), fg=colour)


def _told(document: Mapping[str, Any]) -> str:
    """Return what closed a chunk as a sentence."""
    why = document["closed_by"]
    if why["closer"] == Closer.CLOCK:
        edge = _EDGES[why["reason"]]
        return f"the clock was {_number(why['limit'], 'ms')} past its {edge} record"
    if why["closer"] == Closer.ITSELF:
        return f"its one record alone has {_measured(why)}"
    came = why["message"]
    if came is None:
        what = "what came next" if why["unit"] else "an end of session, which"
        return f"{what} is not to be seen: retention deleted it, or it is not committed yet"
    place = f"{_log(came)}@{came['offset']}"
    message = f"the end of session at {place}" if came["is_end"] else f"the record at {place}"
    return f"{message} {_misfit(why, came['token_count'])}"


def _misfit(why: Mapping[str, Any], tokens: int | None) -> str:
    """Return how the message that came did not fit."""
    if why["unit"] is None:
        return "ended it"
    if why["reached"] is None:
        return "came next; by how much it did not fit is not known here"
    if why["unit"] == "ms":
        edge = _EDGES[why["reason"]]
        return f"came {_number(why['reached'], 'ms')} after its {edge} record, {_by(why)}"
    size = f"of {tokens:,} tokens " if why["unit"] == "tokens" else ""
    return f"{size}would make it {_measured(why)}"


def _measured(why: Mapping[str, Any]) -> str:
    return f"{_number(why['reached'], why['unit'])}, {_by(why)}"


def _by(why: Mapping[str, Any]) -> str:
    limit = _number(why["limit"], why["unit"])
    if why["excess"] > 0:
        return f"{_number(why['excess'], why['unit'])} above {limit}"
    return f"not above {limit}: see processor verify --recompute"


def _number(count: int, unit: str) -> str:
    return f"{count / 1000:,.3f} s" if unit == "ms" else f"{count:,} {unit}"
