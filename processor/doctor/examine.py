"""The examination: gathers facts part by part, and has each judged."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from aiokafka.admin import AIOKafkaAdminClient

from processor.clock import Clock
from processor.core.errors import ConfigError, StateError, UnreachableError
from processor.doctor.brokers import broker_findings
from processor.doctor.facts import BrokerFacts, Sample, Topic
from processor.doctor.finding import Finding, Level, gravest_first, or_ok
from processor.doctor.gather import (
    ReplicasOf,
    all_brokers,
    all_replicas,
    fill_sample,
    input_partitions,
    topics_named,
)
from processor.doctor.log import group_findings, offset_findings, sample_findings
from processor.doctor.safety import INTERNAL, safety_findings
from processor.doctor.topics import fault_findings, retention_findings, time_findings
from processor.kafka.connection import admin_client
from processor.kafka.flow import Flow, chunking, routing, routing_remedies
from processor.kafka.granted import missing_rights
from processor.kafka.groups import described_group
from processor.kafka.rights import flow_rights, grant_command, principal, right_errors
from processor.kafka.topic_checks import (
    find_faults,
    find_route_faults,
    route_topic_names,
    topic_names,
)
from processor.protocol.job import Remedies
from processor.protocol.start_checks import SESSION_REMEDIES
from processor.settings import Settings


async def examine(settings: Settings, sample_size: int, clock: Clock) -> list[Finding]:
    """Look at all that an app depends on, and change nothing.

    What a router of the app has is looked at too, where its changelog is there.

    Args:
        settings: Of the worker.
        sample_size: Newest records to read, about; 0 for none.
        clock: Ours.

    Returns:
        Findings, the gravest first.

    Raises:
        ConfigError: The settings can't be used, or the broker refuses our login.
        UnreachableError: No broker answers.
    """
    async with admin_client(settings, "Describe") as admin:
        examination = Examination(settings, clock, admin)
        await examination.look(sample_size)
    return gravest_first(examination.findings)


class Examination:
    """Findings of one look at a cluster.

    Args:
        settings: Of the worker.
        clock: Ours.
        admin: A client that has started.
    """

    def __init__(self, settings: Settings, clock: Clock, admin: AIOKafkaAdminClient) -> None:
        self._settings = settings
        self._clock = clock
        self._admin = admin
        self.findings: list[Finding] = []

    async def look(self, sample_size: int) -> None:
        """Look at brokers and topics, then at each app."""
        settings = self._settings
        replicas = await all_replicas(self._admin)
        brokers = await all_brokers(self._admin)
        self.findings += broker_findings(settings, brokers)
        routed = settings.routes_changelog_topic in replicas
        names = dict.fromkeys([*topic_names(settings), *(route_topic_names(settings) * routed)])
        topics: Mapping[str, Topic] = {}
        with noted(self.findings, settings, "topics"):
            topics = await topics_named(self._admin, names, replicas)
            self._judge_topics(topics, replicas, brokers, is_routed=routed)
        await self._look_at(chunking(settings), topics, SESSION_REMEDIES, sample_size)
        if routed:
            flow = routing(settings)
            await self._look_at(flow, topics, routing_remedies(flow), 0)

    def _judge_topics(
        self,
        topics: Mapping[str, Topic],
        replicas: ReplicasOf,
        brokers: list[BrokerFacts],
        *,
        is_routed: bool,
    ) -> None:
        settings = self._settings
        facts = {name: topic.facts for name, topic in topics.items()}
        faults = find_faults(settings, facts)
        if is_routed:
            # Of a topic that both have, the same would be said twice.
            faults += [it for it in find_route_faults(settings, facts) if it not in faults]
        internal = {name: replicas[name] for name in INTERNAL if name in replicas}
        self.findings += fault_findings(faults)
        self.findings += time_findings(settings, topics)
        self.findings += safety_findings(settings, topics, internal, brokers)

    async def _look_at(
        self, flow: Flow, topics: Mapping[str, Topic], remedies: Remedies, sample_size: int
    ) -> None:
        settings, name = self._settings, flow.input_topic
        with noted(self.findings, settings, "rights"):
            missing = await missing_rights(self._admin, flow_rights(flow))
            who = principal(settings)
            lacking = [
                Finding(Level.BREAKS, who, f"lacks {it}", f"run:\n  {grant_command(settings, it)}")
                for it in missing
            ]
            self.findings += or_ok(who, f"has every right that {flow.group} needs", lacking)
        if name not in topics:
            return
        self.findings += retention_findings(settings, name, topics)
        count = topics[name].facts.partition_count
        with noted(self.findings, settings, f"group {flow.group}"):
            numbers = _led(topics[name])
            changelog = topics.get(flow.changelog_topic)
            if changelog is not None:
                numbers = [it for it in numbers if it in _led(changelog)]
            partitions = await input_partitions(
                settings, flow, numbers, () if changelog is None else numbers
            )
            self.findings += offset_findings(flow, partitions, remedies)
            group = await described_group(settings, flow.group)
            lag = sum(it.lag for it in partitions)
            self.findings += group_findings(flow, group, count, lag)
            if sample_size:
                sample = Sample(name, count)
                await fill_sample(settings, sample, partitions, sample_size)
                # After it: no record of it can be younger.
                sample.asked_at_ms = self._clock.now_ms()
                self.findings += sample_findings(settings, sample)


@contextmanager
def noted(findings: list[Finding], settings: Settings, where: str) -> Iterator[None]:
    """Have what keeps us from looking at something be a finding, and go on."""
    try:
        with right_errors(settings, "Describe"):
            yield
    # Brokers have answered before: what is away now is a part of them.
    except (ConfigError, StateError, UnreachableError) as error:
        what, _, remedy = str(error).partition("; ")
        findings.append(Finding(Level.BREAKS, where, what, remedy))
    except NotImplementedError:
        what = "not looked at: the brokers are older than Apache Kafka 2.4"
        findings.append(Finding(Level.NOTE, where, what))


def _led(topic: Topic) -> list[int]:
    """Return the partitions that have a leader: of others nobody tells anything."""
    return [it.partition for it in topic.replicas if it.leader >= 0]
