from dataclasses import replace

import pytest
from aiokafka import TopicPartition

from processor.core.errors import ConfigError
from processor.kafka.flow import chunking, routing, routing_remedies
from processor.settings import Settings

SETTINGS = Settings(app_id="app")


def test_worker_and_router_of_one_app_share_no_group_lock_or_changelog():
    flows = chunking(SETTINGS), routing(SETTINGS)
    for field in ("group", "changelog_topic", "input_topic", "output_topic"):
        assert len({getattr(flow, field) for flow in flows}) == 2, field
    assert [flow.transactional_id(3) for flow in flows] == ["app-records-3", "app-telemetry-3"]
    assert [flow.owns_output for flow in flows] == [True, False]


def test_dead_letters_of_more_partitions_than_their_topic_has_share_them():
    assert chunking(SETTINGS).dead_letters_of(5) == TopicPartition("records.dead-letter", 5)
    shared = replace(routing(SETTINGS), dead_letter_partitions=4)
    assert shared.dead_letters_of(5) == TopicPartition("records.dead-letter", 1)


@pytest.mark.parametrize(
    "topic", ["records", "chunks", "records.dead-letter", "app-routes-changelog"]
)
def test_telemetry_from_a_topic_that_the_app_writes_is_refused(topic):
    with pytest.raises(ConfigError, match=f"PROCESSOR_TELEMETRY_TOPIC={topic} is a topic"):
        routing(Settings(app_id="app", telemetry_topic=topic))


def test_app_needs_a_name():
    for flow in (chunking, routing):
        with pytest.raises(ConfigError, match="PROCESSOR_APP_ID isn't set"):
            flow(Settings())


def test_every_remedy_of_a_router_names_its_group_and_its_changelog():
    for remedy in routing_remedies(routing(SETTINGS)):
        assert "--group app-router" in remedy
        assert "--topic app-routes-changelog" in remedy
