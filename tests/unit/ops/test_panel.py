"""Health, metrics and status put together, asked as they are served."""

import asyncio
import json
import re
from importlib.resources import files

import pytest
from aiohttp import ClientSession

from processor.core.chunks import FlushReason
from processor.demo.local_broker import free_ports
from processor.kafka.flow import chunking
from processor.ops.counting import CountingMetrics
from processor.ops.panel import Panel
from processor.ops.status import Fill
from processor.ops.vitals import VitalsReader
from processor.protocol.partition import Partition
from processor.settings import Settings
from tests.unit.ops.seeing import Seen
from tests.unit.ops.statuses import keeping_up
from tests.unit.protocol.story import CONFIG


class Shown(Seen):
    """A worker with one partition, its panel, and one who asks it."""

    def __init__(self):
        super().__init__()
        self.metrics, self.stuck = CountingMetrics(), []
        story = self.story
        story.partition = Partition(0, story.broker, CONFIG, self.clock, self.metrics)
        reader = VitalsReader(self.partitions, self.clock, lambda: self.member, lambda: self.stuck)
        settings = Settings(app_id="a", http_port=free_ports(1)[0], max_tokens=3)
        self.url = f"http://127.0.0.1:{settings.http_port}/"
        self.panel = Panel(settings, chunking(settings), self.metrics, reader.read, self.partitions)

    async def ask(self, path):
        async with ClientSession() as client, client.get(self.url + path) as answer:
            return answer.status, await answer.text()


def play(story):
    async def served():
        it = Shown()
        await it.panel.start()
        try:
            return await story(it)
        finally:
            await it.panel.stop()

    return asyncio.run(served())


def test_probes_answer_with_what_is_wrong():
    async def story(it):
        assert (await it.ask("readyz"))[0] == 503
        assert (await it.ask("livez"))[0] == 200
        await it.assign()
        assert await it.ask("readyz") == (200, '{"ok": true, "problems": []}\n')
        it.stuck = ["records[0]: stuck"]
        status, text = await it.ask("livez")
        assert status == 503
        assert json.loads(text)["problems"][0]["what"] == "records[0]: stuck"

    play(story)


def test_metrics_are_served():
    async def story(it):
        await it.assign()
        it.feed(it.raw(0, 2), it.raw(1, 2))
        await it.story.partition.commit()
        _, text = await it.ask("metrics")
        assert 'processor_chunks_total{flush="tokens"} 1.0' in text
        assert 'processor_open_records{partition="0",topic="records"} 1.0' in text
        assert "processor_ready 1.0" in text

    play(story)


def test_status_has_the_shape_that_the_page_is_tried_with():
    async def story(it):
        await it.assign()
        it.feed(it.raw(0, 2), it.raw(1, 2), it.raw(2, 1, key=b"s2"))
        await it.story.partition.commit()
        return json.loads((await it.ask("status.json"))[1])

    def shape(value):
        if isinstance(value, dict):
            return {key: shape(it) for key, it in value.items()}
        is_list_of_dicts = isinstance(value, list) and value and isinstance(value[0], dict)
        return [shape(value[0])] if is_list_of_dicts else None

    status = play(story)
    assert shape(status) == shape(keeping_up())
    assert status["fill"]["sessions"] == [0, 0, 0, 1, 0, 0, 1, 0, 0, 0]
    assert status["chunks"][0]["session"] == "s1"


def test_status_is_made_once_for_all_who_ask_at_the_same_time():
    async def story(it):
        return {await it.ask("status.json") for _ in range(3)}, it.clock.advance(1)

    assert len(play(story)[0]) == 1


def test_port_0_serves_nothing():
    async def story():
        it = Shown()
        settings = Settings(app_id="a", http_port=0)
        panel = Panel(settings, chunking(settings), it.metrics, it.reader.read, it.partitions)
        await panel.start()
        await panel.stop()

    asyncio.run(story())


def test_how_full_chunks_are_is_not_counted_at_every_look(monkeypatch):
    counted, times = [], iter([1.0, 1.5, 2.0, 30.0, 30.1])
    monkeypatch.setattr(Fill, "_count", lambda _self, _: counted.append(1) or [0] * 10)
    monkeypatch.setattr("processor.ops.status.time.monotonic", lambda: next(times))
    fill = Fill(5000)
    for _ in range(3):
        fill.view([])
    assert len(counted) == 2


@pytest.mark.parametrize("path", ["", "status.json", "livez", "readyz", "metrics"])
def test_every_answer_keeps_to_itself(path):
    async def story(it):
        async with ClientSession() as client, client.get(it.url + path) as answer:
            return answer.headers

    headers = play(story)
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_page_has_words_for_every_reason_to_close_a_chunk():
    page = files("processor.ops").joinpath("status.html").read_text()
    words = re.search(r"function reasons\(\).*?\n}", page, re.DOTALL)[0]
    assert [it for it in FlushReason if f"{it}: " not in words] == []
