import pytest

from processor.kafka.topic_checks import TopicFacts, find_faults, find_route_faults, missing_fault
from processor.settings import Settings

SETTINGS = Settings(app_id="app", bootstrap_servers="broker:1")
CHANGELOG = "app-sessions-changelog"


def topics(**changes):
    """Return four topics that are right, but for the changes."""
    facts = {
        "records": {"limit": 1_000_000},
        "chunks": {"limit": 2_000_000},
        "changelog": {"limit": 1_000_001, "policies": {"compact"}},
        "dead_letter": {"limit": 1_000_000},
    }
    names = {"changelog": CHANGELOG, "dead_letter": "records.dead-letter"}
    found = {}
    for key, given in facts.items():
        if changes.get(key, {}) is not None:
            fact = {"count": 4, "policies": {"delete"}} | given | changes.get(key, {})
            found[names.get(key, key)] = TopicFacts(
                fact["count"], frozenset(fact["policies"]), fact["limit"], 604_800_000
            )
    return found


def only_fault(**changes):
    (fault,) = find_faults(SETTINGS, topics(**changes))
    return str(fault)


def test_topics_that_are_right_have_no_fault():
    assert find_faults(SETTINGS, topics()) == []


def test_missing_topics_are_named_with_the_command_that_creates_them():
    fault = only_fault(chunks=None, changelog=None)
    assert f"chunks, {CHANGELOG};" in fault
    assert "\n  processor topics create --app-id app --bootstrap-servers broker:1" in fault


def test_command_that_creates_names_the_topics_that_were_named():
    settings = Settings(app_id="app", records_topic="r")
    (fault,) = find_faults(settings, {})
    assert str(fault).endswith("processor topics create --app-id app --records-topic r")


def test_missing_changelog_of_an_app_that_has_run_can_be_rebuilt():
    assert only_fault(changelog=None).endswith("anew with:\n  processor state rebuild --all")
    for other in ("chunks", "records"):
        assert (
            "rebuild"
            not in find_faults(SETTINGS, topics(**{"changelog": None, other: None}))[0].remedy
        )


def test_topic_of_fewer_partitions_is_named_with_the_command_that_adds_them():
    fault = only_fault(chunks={"count": 3})
    assert fault.startswith("chunks has 3 partitions, records has 4")
    assert "kafka-topics.sh --bootstrap-server broker:1 --topic chunks --alter --partitions 4" in (
        fault
    )


def test_topic_of_more_partitions_can_only_be_made_anew():
    fault = only_fault(dead_letter={"count": 5})
    assert "--topic records.dead-letter --delete\n  processor topics create" in fault


def test_partitions_added_to_records_concern_the_three_others():
    faults = find_faults(SETTINGS, topics(records={"count": 5}))
    assert len(faults) == 3
    assert all("its sessions have moved" in fault.remedy for fault in faults)


@pytest.mark.parametrize("policies", [{"delete"}, {"compact", "delete"}])
def test_changelog_that_is_not_only_compacted_is_a_fault(policies):
    fault = only_fault(changelog={"policies": policies})
    assert f"--entity-name {CHANGELOG} --add-config cleanup.policy=compact" in fault


@pytest.mark.parametrize("policies", [{"compact"}, {"compact", "delete"}])
@pytest.mark.parametrize(
    ("topic", "name"),
    [("records", "records"), ("chunks", "chunks"), ("dead_letter", "records.dead-letter")],
)
def test_compacted_topic_is_a_fault(topic, name, policies):
    fault = only_fault(**{topic: {"policies": policies}})
    assert f"--entity-name {name} --add-config cleanup.policy=delete" in fault


@pytest.mark.parametrize(
    ("topic", "limit", "is_fault"),
    [
        ("chunks", 1_000_000, True),
        ("chunks", 1_000_001, False),
        ("changelog", 1_000_000, True),
        ("changelog", 1_000_001, False),
        ("dead_letter", 999_999, True),
        ("dead_letter", 1_000_000, False),
    ],
)
def test_topic_needs_room_for_the_largest_record(topic, limit, is_fault):
    faults = find_faults(SETTINGS, topics(**{topic: {"limit": limit}}))
    assert ["max.message.bytes=2000000" in fault.remedy for fault in faults] == [True] * is_fault


@pytest.mark.parametrize("topic", ["chunks", "changelog", "dead_letter"])
@pytest.mark.parametrize(("limit", "is_fault"), [(900_000, True), (900_001, False)])
def test_a_batch_as_large_as_a_chunk_fits_every_topic_that_is_written(topic, limit, is_fault):
    """A topic judges whole batches, and ours go up to the size of a chunk."""
    faults = find_faults(SETTINGS, topics(records={"limit": 1000}, **{topic: {"limit": limit}}))
    assert ["PROCESSOR_MAX_CHUNK_BYTES=900000" in fault.what for fault in faults] == [
        True
    ] * is_fault


def test_all_faults_are_found_at_once():
    wrong = {"chunks": None, "changelog": {"policies": {"delete"}, "count": 1, "limit": 1}}
    assert len(find_faults(SETTINGS, topics(**wrong))) == 5


def test_missing_topic_is_named_to_someone_who_runs_no_app():
    """Symptom: `processor verify` without an app asked for PROCESSOR_APP_ID, not for the topic."""
    fault = missing_fault(Settings(), ["chunks"])
    assert "chunks; create with:" in str(fault)


def route_topics(**changes):
    """Return a router's topics that are right, but for the changes to their facts."""
    facts = {
        "telemetry": (2, {"delete"}, 1_000_000),
        "records": (4, {"delete"}, 1_000_000),
        "records.dead-letter": (4, {"delete"}, 2_000_000),
        "app-routes-changelog": (2, {"compact"}, 2_000_000),
    }
    names = {"dead_letter": "records.dead-letter", "changelog": "app-routes-changelog"}
    changed = {names.get(key, key): value for key, value in changes.items()}
    return {
        name: TopicFacts(count, frozenset(policies), limit, 604_800_000)
        for name, (count, policies, limit) in (facts | changed).items()
    }


def only_route_fault(**changes):
    (fault,) = find_route_faults(SETTINGS, route_topics(**changes))
    return str(fault)


def test_topics_of_a_router_that_are_right_have_no_fault():
    assert find_route_faults(SETTINGS, route_topics()) == []


def test_missing_topics_of_a_router_are_created_by_a_command_of_their_own():
    settings = Settings(app_id="app", telemetry_topic="t")
    fault = str(*find_route_faults(settings, {}))
    assert fault.startswith("missing, or hidden from this user: t, records, records.dead-letter, ")
    assert fault.endswith("processor topics create --telemetry --app-id app --telemetry-topic t")


@pytest.mark.parametrize("name", ["telemetry", "records", "dead_letter"])
def test_router_does_not_read_or_write_what_compaction_eats(name):
    count, limit = (2, 1_000_000) if name == "telemetry" else (4, 2_000_000)
    assert "has cleanup.policy=compact" in only_route_fault(**{name: (count, {"compact"}, limit)})


def test_router_s_changelog_that_is_not_compacted_is_named():
    fault = only_route_fault(changelog=(2, {"delete"}, 2_000_000))
    assert "--entity-name app-routes-changelog --add-config cleanup.policy=compact" in fault


def test_telemetry_that_has_grown_is_refused():
    fault = only_route_fault(telemetry=(3, {"delete"}, 1_000_000))
    assert fault.startswith("app-routes-changelog has 2 partitions, telemetry has 3")


@pytest.mark.parametrize("name", ["records", "dead_letter"])
def test_message_that_comes_in_has_to_fit_where_it_goes(name):
    fault = only_route_fault(**{name: (4, {"delete"}, 999_999)})
    assert fault.endswith("--add-config max.message.bytes=1000000")
