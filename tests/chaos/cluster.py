"""Apache Kafka on the JVM, one node or several, with a listener of its own for each proxied client.

A broker tells clients where to go on by the listener on which they ask. So whoever asks through a
proxy is sent on to proxies, of the same slot, in front of each broker.
"""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from processor.demo.kafka_jvm import fetch_jars, start_jvm
from processor.demo.local_broker import HOST, LocalBroker, free_ports

_COPIES_NEEDED: Final = 2


@dataclass(frozen=True, slots=True)
class Node:
    """The ports of a broker that is still to be started."""

    port: int
    controller_port: int
    slot_ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Running brokers; as a broker of ``tests.e2e.workers.Deployment``, all of them."""

    brokers: list[LocalBroker]
    name: str = "jvm"
    evicts_members: bool = True

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)


def plan_nodes(count: int, *, slots: int) -> list[Node]:
    """Choose free ports for brokers with a listener for each slot."""
    ports = iter(free_ports(count * (2 + slots)))
    return [
        Node(next(ports), next(ports), tuple(next(ports) for _ in range(slots)))
        for _ in range(count)
    ]


@contextlib.contextmanager
def running(
    nodes: Sequence[Node], advertised: Sequence[Sequence[int]], folder: Path
) -> Iterator[Cluster]:
    """Start the brokers, each in a folder of its own inside ``folder``; stop them in the end.

    Args:
        nodes: Where they listen.
        advertised: For each node, the proxies' ports, one for each slot.
        folder: Keeps their data and logs, also afterwards.
    """
    fetch_jars()  # once, not by each at the same time
    starts = []
    with ThreadPoolExecutor(len(nodes)) as pool:
        for at, node in enumerate(nodes):
            overrides = _overrides(at, nodes, advertised[at])
            # Together: the first answers only when the second is there.
            starts.append(pool.submit(start_jvm, folder / f"broker-{at}", node.port, overrides))
    with contextlib.ExitStack() as stack:
        for start in starts:
            if start.exception() is None:
                stack.callback(start.result().stop)
        yield Cluster([start.result() for start in starts])


def _overrides(at: int, nodes: Sequence[Node], advertised: Sequence[int]) -> dict[str, str]:
    node = nodes[at]
    slots = {f"SLOT{slot}": port for slot, port in enumerate(node.slot_ports)}
    clients = {"PLAINTEXT": node.port} | slots
    told = {"PLAINTEXT": node.port} | dict(zip(slots, advertised, strict=True))
    listeners = clients | {"CONTROLLER": node.controller_port}
    voters = (f"{number}@{HOST}:{it.controller_port}" for number, it in enumerate(nodes, 1))
    overrides = {
        "node.id": str(at + 1),
        "controller.quorum.voters": ",".join(voters),
        "listeners": _addresses(listeners),
        "advertised.listeners": _addresses(told),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
    }
    if len(nodes) > _COPIES_NEEDED:
        overrides |= {
            "offsets.topic.replication.factor": str(len(nodes)),
            "transaction.state.log.replication.factor": str(len(nodes)),
            "transaction.state.log.min.isr": str(_COPIES_NEEDED),
            "min.insync.replicas": str(_COPIES_NEEDED),
        }
    return overrides


def _addresses(ports: dict[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
