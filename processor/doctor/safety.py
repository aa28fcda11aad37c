"""Rules about copies: what a lost disk or a broker that is away costs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from processor.doctor.facts import BrokerFacts, Replicas, Topic
from processor.doctor.finding import Finding, Level, or_ok
from processor.kafka.topic_checks import configs_tool
from processor.settings import Settings

#: Topics of the brokers' own that commits depend on, and what says how many copies they get.
INTERNAL: Final = {
    "__transaction_state": "transaction.state.log.replication.factor",
    "__consumer_offsets": "offsets.topic.replication.factor",
}
_SAFE_COPIES: Final = 3


def safety_findings(
    settings: Settings,
    topics: Mapping[str, Topic],
    internal: Mapping[str, Sequence[Replicas]],
    brokers: Sequence[BrokerFacts],
) -> list[Finding]:
    """Judge what a lost broker costs.

    Args:
        settings: Name the brokers.
        topics: Ours that there are.
        internal: Those of ``INTERNAL`` that there are, and that we see.
        brokers: All of them.
    """
    broker_count = len(brokers)
    found = [
        finding
        for name, topic in topics.items()
        for finding in (
            *_replica_findings(name, topic.replicas, _least_in_sync(topic)),
            *_copy_findings(settings, name, topic, broker_count),
        )
    ]
    for name, factor in INTERNAL.items():
        if name in internal:
            found += _replica_findings(name, internal[name])
            copies = min((it.copies for it in internal[name]), default=0)
            found += _factor_findings(name, copies, broker_count)
        else:
            for number in {it.number(factor) for it in brokers}:
                if number is not None:
                    found += _unborn_findings(name, factor, number, broker_count)
    if broker_count == 1:
        what = "there is one broker: a lost disk is a loss of all that is on it"
        found.append(Finding(Level.NOTE, "brokers", what, "run three, with 3 copies of each topic"))
    return or_ok("topics", "a lost broker costs nothing that was acknowledged", found)


def _replica_findings(name: str, replicas: Iterable[Replicas], least: int = 1) -> Iterator[Finding]:
    for number, leader, count, in_sync in replicas:
        where = f"{name}[{number}]"
        if leader < 0:
            what = "has no leader: nobody can read or write it"
            yield Finding(Level.BREAKS, where, what, "bring back the brokers that hold it")
        elif in_sync < least:
            what = (
                f"{in_sync} copies are in sync, {least} are needed to write (min.insync.replicas)"
            )
            yield Finding(Level.BREAKS, where, what, "bring back the brokers that hold it")
        elif in_sync < count:
            what = f"{in_sync} of {count} copies are in sync"
            yield Finding(Level.WARN, where, what, "see to the brokers that hold the others")


def _copy_findings(
    settings: Settings, name: str, topic: Topic, broker_count: int
) -> Iterator[Finding]:
    copies = min((it.copies for it in topic.replicas), default=0)
    if topic.configs.get("unclean.leader.election.enable") == "true":
        remedy = configs_tool(settings, name, "unclean.leader.election.enable=false")
        what = (
            "unclean.leader.election.enable=true: a copy that lacks records may become the leader, "
            "and what was acknowledged is gone"
        )
        yield Finding(Level.BREAKS, name, what, f"correct it with:\n  {remedy}")
    if copies == 1 and broker_count > 1:
        what = f"one copy on {broker_count} brokers: a lost disk is a loss, a broker away a stop"
        remedy = "raise the replication factor with kafka-reassign-partitions.sh"
        yield Finding(Level.WARN, name, what, remedy)
    elif copies > 1 and _least_in_sync(topic) == 1:
        remedy = configs_tool(settings, name, "min.insync.replicas=2")
        what = "min.insync.replicas=1: what only the leader had is acknowledged, and lost with it"
        yield Finding(Level.WARN, name, what, f"correct it with:\n  {remedy}")


def _factor_findings(name: str, copies: int, broker_count: int) -> Iterator[Finding]:
    wanted = min(_SAFE_COPIES, broker_count)
    if copies < wanted:
        what = f"{copies} copies on {broker_count} brokers: one that is away may stop all commits"
        remedy = f"give it {wanted} with kafka-reassign-partitions.sh"
        yield Finding(Level.WARN, name, what, remedy)


def _unborn_findings(name: str, key: str, factor: int, broker_count: int) -> Iterator[Finding]:
    wanted = min(_SAFE_COPIES, broker_count)
    remedy = f"set {key}={wanted} in server.properties"
    if factor > broker_count:
        what = (
            f"isn't there yet, and {key}={factor} can't be had of {broker_count} brokers: the "
            "first commit would wait for ever"
        )
        yield Finding(Level.BREAKS, name, what, remedy)
    elif factor < wanted:
        what = f"isn't there yet, and will have {key}={factor} on {broker_count} brokers"
        yield Finding(Level.WARN, name, what, remedy)


def _least_in_sync(topic: Topic) -> int:
    return int(topic.configs.get("min.insync.replicas", 1))
