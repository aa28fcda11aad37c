"""What there is to see of a diff of chunks, as documents and as text."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import click

from processor.cli.shown import printable
from processor.proof.diff import Change, Diff, Side
from processor.proof.rechunk import Other


def change_row(change: Change, partition: int) -> dict[str, Any]:
    """Return a chunk that goes or comes as a document."""
    span = change.span
    is_empty = not span.record_count
    return {
        "change": "added" if change.is_added else "removed",
        "session": change.session,
        "partition": partition,
        **span._asdict(),
        "first_offset": None if is_empty else span.first_offset,
        "last_offset": None if is_empty else span.last_offset,
    }


def change_text(row: Mapping[str, Any]) -> str:
    """Return ``change_row`` as a line of a diff, coloured for a terminal."""
    is_added = row["change"] == "added"
    offsets = "" if row["first_offset"] is None else f"@{row['first_offset']}-{row['last_offset']}"
    share = row["token_count"] / row["max_tokens"]
    line = (
        f"{'+' if is_added else '-'} {printable(row['session'])}  t={row['t']}"
        f"  [{row['partition']}]{offsets}  {row['record_count']:,} records"
        f"  {row['token_count']:,} of {row['max_tokens']:,} tokens {share:.0%}  {row['flush']}"
    )
    return click.style(line, fg="green" if is_added else "red")


def summary_row(diff: Diff, other: Other) -> dict[str, Any]:
    """Return the sums of a diff as a document."""
    return {
        "old": _side_row(diff.old),
        "new": _side_row(diff.new),
        "boundaries": {
            "kept": diff.kept_count,
            "removed": diff.removed_count,
            "added": diff.added_count,
        },
        "unchanged_chunk_count": diff.unchanged_count,
        "tokens_as_given_count": diff.as_given_count,
        "times": "recomputed" if other.is_by_time else "as given",
    }


def summary_text(row: Mapping[str, Any]) -> str:
    """Return ``summary_row`` as lines."""
    old, new, boundaries = row["old"], row["new"], row["boundaries"]
    change = new["chunk_count"] - old["chunk_count"]
    kept, gone, come = (f"{boundaries[it]:,}" for it in ("kept", "removed", "added"))
    lines = [
        f"chunks:      {old['chunk_count']:,} -> {new['chunk_count']:,} ({change:+,})",
        f"tokens:      {old['token_count']:,} -> {new['token_count']:,}",
        f"fill ratio:  {_ratio(old)} -> {_ratio(new)}",
        f"over budget: {old['over_budget_count']:,} -> {new['over_budget_count']:,}",
        f"boundaries:  {kept} kept, {gone} gone, {come} new",
        f"unchanged:   {row['unchanged_chunk_count']:,} chunks",
        f"times:       {_TIMES[row['times']]}",
    ]
    if row["tokens_as_given_count"]:
        lines.append(f"{row['tokens_as_given_count']:,} records without bytes keep their tokens")
    return "\n".join(lines)


_TIMES: Final = {
    "as given": "what closed by time or by the clock closes there again",
    "recomputed": "computed from the records' timestamps; the clock's closings are left aside",
}


def _side_row(side: Side) -> dict[str, Any]:
    sums = {name: at for name, at in asdict(side).items() if not name.startswith("_")}
    ratio = side.fill_ratio
    return {**sums, "fill_ratio": None if ratio is None else round(ratio, 4)}


def _ratio(side: Mapping[str, Any]) -> str:
    return "-" if side["fill_ratio"] is None else f"{side['fill_ratio']:.3f}"
