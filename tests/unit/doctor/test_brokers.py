import dataclasses

import pytest

from processor.doctor.brokers import broker_findings, release_of
from processor.doctor.finding import Level
from tests.unit.doctor.facts import SETTINGS, VERSIONS, bad, broker, only

THREE = [broker(it) for it in (1, 2, 3)]


def test_brokers_that_are_right_have_their_release_named():
    found = broker_findings(SETTINGS, THREE)
    assert bad(found) == []
    assert (found[0].where, found[0].what) == (
        "broker 1",
        "speaks as Apache Kafka 4.1 or newer does",
    )


@pytest.mark.parametrize(("fetch", "release"), [(18, "4.1"), (99, "4.1"), (14, "3.1"), (7, "0.11")])
def test_release_is_the_oldest_that_speaks_so(fetch, release):
    assert release_of(broker(versions={1: fetch})) == release


@pytest.mark.parametrize(
    ("configs", "level", "remedy"),
    [
        ({"transaction_max_timeout_ms": 29_999}, Level.BREAKS, "transaction.max.timeout.ms=900000"),
        ({"transactional_id_expiration_ms": 60_000}, Level.WARN, "expiration.ms=604800000"),
        ({"transaction_state_log_min_isr": 1}, Level.WARN, "transaction.state.log.min.isr=2"),
        ({"transaction_state_log_min_isr": 4}, Level.BREAKS, "transaction.state.log.min.isr=2"),
        (
            {"group_min_session_timeout_ms": 10_001},
            Level.BREAKS,
            "raise PROCESSOR_SESSION_TIMEOUT_S",
        ),
        (
            {"group_max_session_timeout_ms": 9_999},
            Level.BREAKS,
            "lower PROCESSOR_SESSION_TIMEOUT_S",
        ),
        ({"socket_request_max_bytes": 900_000}, Level.BREAKS, "lower PROCESSOR_MAX_CHUNK_BYTES"),
        ({"auto_create_topics_enable": "true"}, Level.NOTE, "auto.create.topics.enable=false"),
    ],
)
def test_setting_that_hurts_is_named_with_its_remedy(configs, level, remedy):
    finding = only(broker_findings(SETTINGS, [broker(1, **configs), *THREE[1:]]))
    [(key, value)] = configs.items()
    assert finding.what.startswith(f"{key.replace('_', '.')}={value}: ")
    assert (finding.level, finding.where) == (level, "broker 1")
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("configs", "count"),
    [
        ({"transaction_max_timeout_ms": 30_000}, 3),
        ({"group_min_session_timeout_ms": 10_000, "group_max_session_timeout_ms": 10_000}, 3),
        ({"transaction_state_log_min_isr": 1}, 1),
    ],
)
def test_setting_that_is_just_enough_is_right(configs, count):
    brokers = [broker(it, **configs) for it in range(count)]
    assert bad(broker_findings(SETTINGS, brokers)) == []


@pytest.mark.parametrize(
    ("versions", "changes", "what", "level"),
    [
        ({0: 6}, {}, "takes no zstd", Level.BREAKS),
        ({12: 2}, {"group_instance_id": "w0"}, "knows no static members", Level.BREAKS),
        ({3: 7}, {}, "tells nobody's rights", Level.NOTE),
    ],
)
def test_feature_that_an_old_broker_lacks_is_named(versions, changes, what, level):
    old, settings = broker(versions=versions), SETTINGS.model_copy(update=changes)
    finding = only(broker_findings(settings, [old, *THREE[1:]]))
    assert finding.what.startswith(what)
    assert finding.level is level


def test_feature_that_is_not_used_may_be_missing():
    old, plain = broker(versions={0: 6, 12: 2}), SETTINGS.model_copy(update={"compression": "lz4"})
    assert bad(broker_findings(plain, [old, *THREE[1:]])) == []


def test_broker_without_transactions_is_no_place_for_us():
    less = {key: value for key, value in VERSIONS.items() if key != 22}
    old = dataclasses.replace(broker(), versions=less)
    assert only(broker_findings(SETTINGS, [old, *THREE[1:]])).what == "knows no transactions"


def test_cluster_that_is_being_upgraded_is_noted():
    finding = only(broker_findings(SETTINGS, [*THREE, broker(4, versions={1: 17})]))
    assert finding.level is Level.NOTE
    assert "3.9, 4.1" in finding.what


def test_settings_that_are_hidden_are_no_fault_but_said_with_the_right_that_shows_them():
    finding = only(broker_findings(SETTINGS, [broker(hidden="not authorized")]))
    assert finding.level is Level.NOTE
    assert finding.remedy.endswith("--operation DescribeConfigs --cluster")
