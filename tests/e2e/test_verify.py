import json

from processor.cli.verify_position import Position
from processor.proof.report import Report
from tests.e2e.histories import PARTITIONS, run_history, send
from tests.e2e.verbs import run_verb


def verify(settings, *args):
    return run_verb(settings, "verify", *args)


def test_right_chunks_are_verified(settings):
    run_history(settings)
    done = verify(settings, "--app-id", settings.app_id)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("verified: 981 records in 14 sessions -> ")
    assert "; 0 missing, 0 repeated, 0 out of order, " in last
    assert last.endswith(" open")
    assert "beside: 10 ends of session" in done.stdout
    assert "beside: 9 records without a session" in done.stdout
    assert done.stderr == ""


def test_nothing_at_all_is_verified(settings):
    done = verify(settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "verified: 0 records in 0 sessions -> 0 chunks; 0 missing, 0 repeated, 0 out of order\n"
    )


def test_spoiled_chunks_are_told_with_their_place(settings):
    def spoil(chunks):
        altered = chunks[5]._replace(value=chunks[5].value.replace(b"xxx", b"xxy", 1))
        return [*chunks[:3], *chunks[4:5], altered, chunks[6], *chunks[6:]]

    run_history(settings, spoil=spoil)
    done = verify(settings)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith("NOT verified: 981 records")
    assert f"altered: {settings.chunks_topic}[0]@" in done.stdout
    found = json.loads(verify(settings, "--output", "json").stdout)
    assert found["ok"] is False
    assert found["faults"]["altered"] == PARTITIONS
    assert found["faults"]["missing"] > 0
    assert found["faults"]["repeated"] > 0
    assert found["unaccounted_count"] == 0


def test_key_on_two_partitions_is_a_warning(settings):
    rows = [(partition, b"same", b"x", ()) for partition in range(PARTITIONS)]
    send(settings, settings.records_topic, rows)
    done = verify(settings)
    assert done.returncode == 0
    assert done.stdout.startswith("warning: 1 keys are on several partitions")


def summary(settings, *args):
    done = verify(settings, *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(verify(settings, *args, "--output", "json").stdout)


def test_part_of_the_topics_is_verified(settings):
    run_history(settings)
    whole = summary(settings)
    one = summary(settings, "--session", "s1-1")
    assert one["session_count"] == 1
    assert 0 < one["record_count"] < whole["record_count"]
    alone = summary(settings, "--chunks-only")
    assert alone["chunk_count"] == whole["chunk_count"]
    assert alone["record_count"] == whole["chunked_count"]
    assert summary(settings, "--since", "1h")["chunk_count"] == whole["chunk_count"]
    assert summary(settings, "--since", "2100-01-01")["message_count"] == 0


def test_verification_goes_on_behind_the_partitions_that_are_done(settings, tmp_path):
    run_history(settings)
    whole = summary(settings, "--resume", str(tmp_path / "position"))
    assert not (tmp_path / "position").exists()
    about = {
        "topics": [settings.records_topic, settings.chunks_topic, settings.dead_letter_topic],
        "partitions": PARTITIONS,
        "session": None,
        "since_ms": None,
        "is_recomputed": False,
        "is_chunks_only": False,
    }
    position = Position(tmp_path / "position", about)
    for partition in range(PARTITIONS - 1):
        position.keep(partition, Report(chunk_count=1_000_000), b"")
    done = json.loads(
        verify(settings, "--resume", str(tmp_path / "position"), "--output", "json").stdout
    )
    assert 1_000_000 < done["chunk_count"] < 1_000_000 + whole["chunk_count"]
    assert not (tmp_path / "position").exists()


def test_missing_topic_is_named_not_created(settings):
    nowhere = settings.model_copy(update={"chunks_topic": f"{settings.app_id}.none"})
    for _ in range(2):
        done = verify(nowhere)
        assert done.returncode == 78
        assert f"{settings.app_id}.none; create with" in done.stderr
