"""Records that a producer sends twice come out once, whatever happens to the workers."""

import json

import pytest

from tests.e2e.producing import Line

WINDOW = 200


def record(number, *, name=None):
    headers = () if name is None else (("record-id", b"%d" % name),)
    return Line(b"s%d" % (number % 5), b'{"n":%d,"text":"%b"}' % (number, b"x" * 500), 0, headers)


def sent_twice(count):
    """Records of which every third is sent again soon, and some much later, or without an id."""
    lines = []
    for number in range(count):
        lines.append(record(number, name=number))
        if number % 3 == 0 and number >= 10:
            lines.append(record(number - 10, name=number - 10))
        if number % 50 == 7:
            lines.append(record(number))
        if number % 100 == 99 and number > 300:
            lines.append(record(number - 290, name=number - 290))
    return lines


def expected_of(records):
    """What comes out of a log, naively: offset and value of each."""
    latest, kept = {}, []
    for message in records:
        if message.value is None:
            continue
        at = (message.key, dict(message.headers).get("record-id"))
        if at[1] is None or message.offset - latest.get(at, -WINDOW - 1) > WINDOW:
            kept.append((message.offset, json.loads(message.value)["n"]))
        if at[1] is not None:
            latest[at] = message.offset
    return kept


def chunked(app):
    return sorted(
        (record["offset"], record["value"]["n"])
        for message in app.read(app.chunks)
        for record in json.loads(message.value)["records"]
    )


@pytest.mark.needs("eviction")
def test_records_sent_twice_come_out_once_and_the_proof_knows_why(deploy):
    app = deploy(
        partitions=1,
        idle_s=0,
        max_tokens=1_000,
        max_replay_records=50,
        deduplicate_records=WINDOW,
    )
    worker = app.start()
    lines = sent_twice(1_000)
    with app.flow(lines, per_s=250) as flow:
        for share in (0.2, 0.4, 0.6):
            flow.wait_for(share)
            app.kill(worker)
            worker = app.start()
        flow.wait_for(0.8)
        app.start()
        app.wait_for_members(2)
    app.wait_until_caught_up()
    row = json.loads(app.run("state", "show", "--output", "json").stdout)
    assert row["problem"] is None
    assert row["records"] == row["chunked"] + row["open_records"] + row["duplicates"]
    app.send([Line(b"s%d" % number, None, 0) for number in range(5)])
    app.wait_until_caught_up()
    records = app.read(app.records)
    expected = expected_of(records)
    assert chunked(app) == expected
    count = len(lines) - len(expected)
    assert count > 300
    done = app.run("verify", "--recompute")
    assert done.returncode == 0, done.stdout
    assert f"beside: {count:,} duplicates left out, by record-id" in done.stdout
    assert "recomputed, 0 different" in done.stdout

    for one in app.workers:
        one.kill()
    app.clear_group()
    rebuilt = app.run("state", "rebuild", "--all", "--force", "--output", "json")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert json.loads(rebuilt.stdout)["duplicates"] == count
    assert app.start(deduplicate_records=0).exit_code(within_s=40) == 78
    app.start()
    more = [record(number, name=number) for number in range(990, 1_100)]
    app.send([*more, *[Line(b"s%d" % number, None, 0) for number in range(5)]])
    app.wait_until_caught_up()
    assert chunked(app) == expected_of(app.read(app.records))
    done = app.run("verify", "--recompute")
    assert done.returncode == 0, done.stdout
