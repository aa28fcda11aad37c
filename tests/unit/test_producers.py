"""The shippers' configurations are right for our settings, and what they send becomes records."""

from pathlib import Path

import pytest
import yaml

from processor.settings import Settings
from tests.unit.formats.samples import sample
from tests.unit.formats.telemetry import as_json, as_protobuf, call, log, logs_of, spans_of
from tests.unit.protocol.routers import Router, raw

ROOT = Path(__file__).parents[2]
TOPIC = Settings.model_fields["telemetry_topic"].default


def configuration(name):
    return yaml.safe_load((ROOT / "deploy" / "producers" / name).read_text())


@pytest.fixture
def collector():
    return configuration("otel-collector.yaml")


@pytest.fixture
def vector():
    return configuration("vector.yaml")


@pytest.fixture
def fluent_bit():
    return configuration("fluent-bit.yaml")["pipeline"]


def test_collector_sends_what_a_format_reads_to_the_topic_that_is_routed(collector):
    kafka = collector["exporters"]["kafka"]
    for signal in ("logs", "traces"):
        assert kafka[signal]["topic"] == TOPIC
        assert kafka[signal]["encoding"] in ("otlp_proto", "otlp_json")
        pipeline = collector["service"]["pipelines"][signal]
        assert pipeline["exporters"] == ["kafka"]
        assert set(pipeline["receivers"]) <= set(collector["receivers"])


def test_collector_sends_in_order_and_drops_nothing(collector):
    kafka = collector["exporters"]["kafka"]
    assert kafka["sending_queue"] == {"num_consumers": 1, "block_on_overflow": True}
    assert kafka["producer"]["required_acks"] == -1
    assert kafka["retry_on_failure"]["max_elapsed_time"] == "0s"
    assert not [name for name in kafka if name.startswith("partition_")]
    assert not [name for name in kafka["traces"] if "key" in name]


def test_vector_sends_the_line_itself_keyed_by_its_file(vector):
    source, sink = vector["sources"]["transcripts"], vector["sinks"]["telemetry"]
    assert (sink["type"], sink["topic"], sink["inputs"]) == ("kafka", TOPIC, ["transcripts"])
    assert sink["encoding"] == {"codec": "text"}
    assert sink["key_field"] == source["file_key"]
    assert source["fingerprint"]["strategy"] == "device_and_inode"
    assert source["max_line_bytes"] > int(sink["librdkafka_options"]["message.max.bytes"])
    # librdkafka takes texts alone, and Vector passes them on.
    assert sink["librdkafka_options"]["enable.idempotence"] == "true"


def test_fluent_bit_sends_the_line_itself_keyed_by_its_file(fluent_bit):
    (source,), (sink,) = fluent_bit["inputs"], fluent_bit["outputs"]
    assert (sink["name"], sink["topics"], sink["format"]) == ("kafka", TOPIC, "raw")
    assert sink["raw_log_key"] == source["key"]
    assert sink["message_key_field"] == source["path_key"]
    assert sink["rdkafka.enable.idempotence"] is True
    assert source["skip_long_lines"] is False


def routed(*messages, **changes):
    """Return the sessions and values of what is routed of (key, value), and the dead letters."""
    it = Router(**changes)
    it.feed(*(raw(offset, value, key) for offset, (key, value) in enumerate(messages)))
    it.commit()
    return it.records, [letter.value for letter in it.dead_letters]


@pytest.mark.parametrize("tool", ["claude", "codex", "pi"])
def test_lines_of_a_file_as_vector_and_fluent_bit_send_them_are_its_records(tool):
    lines, stem = sample(f"{tool}/[!a]*.jsonl" if tool == "claude" else f"{tool}/*.jsonl")
    key = f"/home/a/{stem}.jsonl".encode()
    records, letters = routed(*((key, line) for line in lines))
    assert [value for _, value in records] == lines
    assert not letters
    session = stem.rsplit("_", 1)[-1] if tool == "pi" else stem
    assert {name for name, _ in records[:1]} <= {session, stem[-36:]}


@pytest.mark.parametrize("encode", [as_protobuf, as_json])
def test_exports_of_the_collector_are_records_of_the_sessions_in_them(encode):
    logs = logs_of(log({"session.id": "s1", "n": 1}), log({"session.id": "s2"}), log({"n": 2}))
    first, second = (spans_of(call(said, session="s3")) for said in (["a"], ["a", "B", "c"]))
    records, letters = routed(*((None, encode(it)) for it in (logs, first, second)))
    assert [session for session, _ in records] == ["s1", "s2", "s3", "s3", "s3"]
    assert len(letters) == 1


def test_call_that_was_told_before_a_crash_is_not_told_again():
    it = Router()
    it.feed(raw(0, as_protobuf(spans_of(call(["a"])))))
    it.commit()
    it.reopen()
    it.feed(raw(1, as_protobuf(spans_of(call(["a", "B"], number=2)))))
    it.commit()
    assert len(it.records) == 2
    assert b'"B"' in it.records[1][1]
