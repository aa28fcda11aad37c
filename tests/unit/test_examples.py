import asyncio
import json
from datetime import UTC, datetime
from itertools import islice

import pytest

from examples.episodes import to_graphiti, to_mem0
from examples.memory_agent import Answer, Store, keyword_model, remember
from processor.client.chunk import chunk_of
from tests.builders import chunk_lines
from tests.unit.client.delivering import messages_of, read

TEXTS = [b"the pear tree", b"the plum tree", b"nothing", b"who prunes", b"the pear", b"later"]
MESSAGES = messages_of(chunk_lines(*TEXTS, max_tokens=1))
QUESTION = "who prunes the pear"


def read_again(store):
    """Chunks as the topic delivers them from its start to a reader that keeps positions."""
    return read(MESSAGES, after=lambda chunk: store.load(chunk.session).position)


class Asked:
    """A model that notes what it was asked."""

    def __init__(self):
        self.texts = []

    def __call__(self, question, memory, text):
        self.texts.append(text)
        return keyword_model(question, memory, text)


def test_the_update_gate_keeps_what_has_no_evidence_out(tmp_path):
    store = Store(tmp_path)
    remember(read_again(store)[:3], QUESTION, keyword_model, store)
    assert store.load("s").memory == "the pear tree"


def test_a_closed_update_gate_leaves_the_memory_as_it_was(tmp_path):
    store = Store(tmp_path)
    gates = iter([True, False])

    def model(question, memory, text):
        return Answer(text, is_update=next(gates), is_exit=False)

    remember(read_again(store)[:2], QUESTION, model, store)
    assert store.load("s").memory == "the pear tree"


def test_the_exit_gate_ends_the_questions_of_its_session(tmp_path):
    store, model = Store(tmp_path), Asked()
    remember(read_again(store), QUESTION, model, store)
    assert model.texts == ["the pear tree", "the plum tree", "nothing", "who prunes"]
    assert store.load("s").is_done
    assert store.load("s").position.t == 6


@pytest.mark.parametrize("killed_at", range(7))
def test_a_kill_at_any_chunk_changes_nothing(tmp_path, killed_at):
    store, model = Store(tmp_path), Asked()
    remember(islice(read_again(store), killed_at), QUESTION, model, store)
    remember(read_again(store), QUESTION, model, store)
    assert store.load("s").memory == "the pear tree\nwho prunes"
    assert model.texts == ["the pear tree", "the plum tree", "nothing", "who prunes"]


def test_a_kill_in_the_middle_of_a_write_leaves_what_was_there(tmp_path):
    store = Store(tmp_path)
    remember(read_again(store)[:1], QUESTION, keyword_model, store)
    (path,) = tmp_path.glob("*.json")
    path.with_suffix(".new").write_text('{"memory": "ha')
    assert store.load("s").memory == "the pear tree"


#: Arguments of ``Graphiti.add_episode`` in graphiti-core 0.31.2, those that it must have first.
NEEDED = {"name", "episode_body", "source_description", "reference_time"}
TAKEN = NEEDED | {"source", "group_id", "uuid", "update_communities", "saga"}


class Graphiti:
    def __init__(self):
        self.episodes = []

    async def add_episode(self, **given):
        assert given.keys() >= NEEDED
        assert given.keys() <= TAKEN
        self.episodes.append((given["name"], given["episode_body"], given["reference_time"]))


class AsyncMemory:
    """Takes what ``AsyncMemory.add`` of mem0ai 2.2.1 takes, but for ``agent_id`` and options."""

    def __init__(self):
        self.added = []

    async def add(self, messages, *, user_id=None, run_id=None, metadata=None):
        self.added.append((messages, user_id, run_id, metadata))


LINE = {"role": "user", "content": "prune it", "timestamp": "2026-03-01T08:00:00Z"}
ANSWER = {"role": "tool", "content": "done", "timestamp": "2026-03-01T08:00:05Z"}
TOLD = chunk_lines(
    json.dumps(LINE).encode(), json.dumps(ANSWER).encode(), b"noise", b"more", max_tokens=13
)


async def told():
    for message in messages_of(TOLD):
        yield chunk_of(message)


def test_graphiti_gets_episodes_with_the_time_when_they_were_said():
    graphiti = Graphiti()
    asyncio.run(to_graphiti(graphiti, told()))
    time = datetime(2026, 3, 1, 8, 0, 5, tzinfo=UTC)
    assert graphiti.episodes == [("s/1", "user: prune it\ntool: done", time)]


def test_mem0_gets_what_people_and_models_said():
    memory = AsyncMemory()
    asyncio.run(to_mem0(memory, told(), "ann"))
    about = {"t": 1, "said_at": "2026-03-01T08:00:00+00:00"}
    assert memory.added == [([{"role": "user", "content": "prune it"}], "ann", "s", about)]
