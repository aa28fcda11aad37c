"""A peer that is not installed is named, with how to install it, and the rest is measured."""

import re

import pytest

from benchmarks import peer_table
from benchmarks.contenders import FOLDER
from processor.demo.kafka_jvm import KAFKA_VERSION


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """Give a machine without a JDK and without the peers' environment."""
    monkeypatch.setattr(peer_table, "PYTHON", tmp_path / "python")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_what_is_not_installed_is_left_out_and_said(bare):
    found, left_out, versions = peer_table.find_peers(bare, peer_table.NAMES)
    assert found.keys() == {"faust"}
    assert versions == {}
    [streams] = [line for line in left_out if "kafka-streams" in line]
    assert "no javac" in streams
    assert "bytewax: make bench-peers installs bytewax" in left_out


def test_nothing_is_said_of_peers_that_nobody_wants(bare):
    assert peer_table.find_peers(bare, ["faust"]).left_out == []


def test_peers_of_the_requirements_are_those_of_the_table():
    text = (FOLDER / "peers/requirements.txt").read_text()
    pinned = set(re.findall(r"^([\w-]+)==", text, flags=re.MULTILINE))
    assert pinned == {package for package, _ in peer_table.PYTHON_PEERS.values()}


def test_kafka_streams_is_of_the_brokers_version():
    assert f"<version>{KAFKA_VERSION}</version>" in (peer_table.STREAMS / "pom.xml").read_text()
