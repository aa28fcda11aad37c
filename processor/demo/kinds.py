"""The kinds of broker, and what each can do."""

from typing import Final, Literal

BrokerName = Literal["given", "docker", "jvm", "embedded"]

EVICTING: Final[frozenset[BrokerName]] = frozenset({"given", "docker", "jvm"})
"""Brokers that drop a group member which stops sending heartbeats; noida-db never does."""

RESTARTING: Final[frozenset[BrokerName]] = frozenset({"jvm"})
"""Brokers that we may kill, freeze and start again with their data."""
