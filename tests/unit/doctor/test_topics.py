import pytest

from processor.doctor.finding import Level
from processor.doctor.topics import fault_findings, retention_findings, time_findings
from processor.kafka.topic_checks import Fault
from tests.unit.doctor.facts import SETTINGS, bad, only, records, topic


def retention(settings=SETTINGS, **configs):
    return retention_findings(settings, "records", records(**configs))


def test_fault_of_topics_breaks_and_none_is_said_too():
    assert fault_findings([Fault("chunks", "what", "remedy")]) == [
        (Level.BREAKS, "chunks", "what", "remedy")
    ]
    [finding] = fault_findings([])
    assert finding.level is Level.OK


def test_time_of_the_broker_for_records_and_of_the_record_for_dead_letters_is_right():
    topics = records() | {"records.dead-letter": topic()}
    assert bad(time_findings(SETTINGS, topics)) == []
    assert time_findings(SETTINGS, {}) == []


def test_time_of_producers_is_warned_of():
    finding = only(time_findings(SETTINGS, records(message_timestamp_type="CreateTime")))
    assert finding.level is Level.WARN
    assert "--entity-name records --add-config message.timestamp.type=LogAppendTime" in (
        finding.remedy
    )


def test_dead_letters_that_lose_their_record_s_time_break_a_promise():
    letters = topic(message_timestamp_type="LogAppendTime")
    finding = only(time_findings(SETTINGS, records() | {"records.dead-letter": letters}))
    assert (finding.level, finding.where) == (Level.BREAKS, "records.dead-letter")
    assert "message.timestamp.type=CreateTime" in finding.remedy


@pytest.mark.parametrize(("retention_ms", "kept"), [(604_800_000, "7 d"), (-1, "ever")])
def test_retention_that_is_long_enough_is_told(retention_ms, kept):
    [finding] = retention(retention_ms=retention_ms)
    assert finding.level is Level.OK
    assert finding.what.endswith(f"is kept for {kept}")


@pytest.mark.parametrize(
    ("retention_ms", "level"),
    # 120 s of standing still, 10 s of session, 15 s of rebalance: three quarters of 193,333 ms.
    [(193_000, Level.BREAKS), (194_000, Level.WARN), (115_199_000, Level.WARN)],
)
def test_retention_has_to_outlast_a_worker_that_hangs(retention_ms, level):
    found = bad(retention(SETTINGS.model_copy(update={"idle_s": 1}), retention_ms=retention_ms))
    assert [it.level for it in found] == [level]
    assert "workers that are away for" in found[0].what
    assert "retention.ms=604800000" in found[0].remedy


def test_day_without_workers_costs_nothing():
    assert bad(retention(retention_ms=115_200_000)) == []


def test_records_that_stay_open_past_their_share_of_retention_are_written_twice():
    patient = SETTINGS.model_copy(update={"idle_s": 200_000})
    assert "written to the changelog as well" in only(retention(patient)).what
    assert bad(retention(SETTINGS.model_copy(update={"idle_s": 151_200}))) == []


def test_retention_by_size_is_warned_of():
    finding = only(retention(retention_bytes=1_000_000))
    assert finding.level is Level.WARN
    assert "retention.bytes=-1" in finding.remedy


def test_topic_that_is_missing_has_no_retention():
    assert retention_findings(SETTINGS, "records", {}) == []
