"""A changelog that is lost, and made anew from the other topics: the worker goes on exactly."""

import asyncio
import json

import pytest

from processor.demo.transcripts import transcripts
from processor.kafka.topics import create_topics
from tests.e2e import asking
from tests.e2e.producing import Line, ends_of, lines_of

PARTITIONS = 2


def mixed(count, seed):
    """Records, ends, ends after ends, ends of sessions that never were, records without one."""
    lines = lines_of(transcripts(count, seed, sessions=12, max_line_bytes=8_000))
    lines[count // 2 : count // 2] = ends_of(lines[:8])
    lines += ends_of(lines[:3]) * 2
    lines += [Line(b"never-%d" % seed, None)]
    for at in range(0, len(lines), 40):
        lines.insert(at, Line((None, b"", b"\xff\xfe")[at % 3], b"stray %d" % at, at % PARTITIONS))
    return lines


@pytest.fixture
def stopped(deploy):
    """An app that has made chunks and dead letters, holds open records, and does not run."""
    app = deploy(partitions=PARTITIONS, idle_s=0)
    worker = app.start()
    app.send(mixed(1_200, 41))
    verdict = app.judged()
    assert worker.terminate() == 0
    assert verdict.open > 0
    assert verdict.dead_letters > 20
    return app


def lose_changelog(app):
    """Delete the changelog and create it again."""

    async def recreate():
        topic = app.topics.changelog_topic
        await asking.delete_topic(app.bootstrap, topic)
        # A deleted topic takes a moment to go.
        async with asyncio.timeout(30):
            while topic not in await create_topics(app.topics, replication=1):  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    asyncio.run(recreate())


def shown(app):
    done = app.run("state", "show", "--output", "json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def rebuilt(app, *args):
    done = app.run("state", "rebuild", "--all", "--output", "json", *args)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def goes_on(app):
    """Start a worker, send more to the sessions there and to new ones, and have all judged."""
    app.start()
    app.send(mixed(1_200, 41)[:900])
    app.send(mixed(400, 42))
    return app.judged()


def test_worker_goes_on_exactly_once_from_a_rebuilt_changelog(stopped):
    before = shown(stopped)
    lose_changelog(stopped)
    worker = stopped.start()
    assert worker.exit_code(within_s=40) == 70
    assert "`processor state rebuild`" in worker.output().splitlines()[-1]

    rebuilt(stopped)
    after = shown(stopped)
    for one, other in zip(before, after, strict=True):
        # Counts of sessions may differ: one whose only messages are ignored ends has no chunk.
        assert one == other | {"sessions": one["sessions"]}
        assert other["problem"] is None
    verdict = goes_on(stopped)
    assert (
        verdict.records == 1_200 + len([it for it in mixed(1_200, 41)[:900] if is_record(it)]) + 400
    )


def is_record(line):
    return line.value is not None and line.key not in {None, b"", b"\xff\xfe"}


def test_rebuilding_without_the_groups_offset_sets_no_record_aside_twice(stopped):
    """The group was deleted too: what is processed shows in chunks and dead letters alone."""
    lose_changelog(stopped)

    asyncio.run(asking.delete_group(stopped.bootstrap, stopped.topics.app_id))
    assert all(row["committed"] is None for row in rebuilt(stopped))
    goes_on(stopped)


def test_dry_run_writes_nothing_and_shows_what_a_run_writes(stopped):
    lose_changelog(stopped)
    said = rebuilt(stopped, "--dry-run")
    assert all(row["low"] is None for row in shown(stopped))
    written = rebuilt(stopped)
    assert [row | {"written": False} for row in written] == said
    assert all(row["open_records"] > 0 for row in written)
    text = stopped.run("state", "rebuild", "--all", "--force", "--dry-run").stdout
    assert f"{stopped.records}[0]: " in text
    assert text.splitlines()[0].endswith("; nothing is written")


def test_state_that_is_readable_is_not_overwritten_unless_forced(stopped):
    before = shown(stopped)
    done = stopped.run("state", "rebuild", "--all")
    assert done.returncode == 70
    assert "all of it is readable" in done.stderr
    assert "--force" in done.stderr
    rebuilt(stopped, "--force")
    assert [it["low"] for it in shown(stopped)] == [it["low"] for it in before]
    goes_on(stopped)


def test_rebuilding_is_refused_while_the_group_has_members(stopped):
    stopped.start()
    stopped.wait_for_members(1)
    done = stopped.run("state", "rebuild", "--all", "--force")
    assert done.returncode == 1
    assert "has 1 members" in done.stderr


def test_rebuilding_is_refused_where_records_are_deleted_unless_accepted(stopped):
    lose_changelog(stopped)
    at = asking.partitions_named(stopped.records, PARTITIONS)
    asyncio.run(asking.delete_before(stopped.bootstrap, dict.fromkeys(at, 5)))
    done = stopped.run("state", "rebuild", "--all")
    assert done.returncode == 70
    assert "retention has deleted the records before offset 5" in done.stderr
    assert all(row["low"] is None for row in shown(stopped))
    rebuilt(stopped, "--accept-deleted")
    worker = stopped.start()
    stopped.send(mixed(400, 42))
    stopped.wait_until_caught_up()
    assert worker.terminate() == 0
    assert [it["problem"] for it in shown(stopped)] == [None] * PARTITIONS
