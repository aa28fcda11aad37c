"""Health, metrics and status page of one worker, put together and served from its event loop."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import web

from processor.kafka.flow import Flow
from processor.ops.counting import CountingMetrics
from processor.ops.exposition import Exposition
from processor.ops.health import Problem, why_not_live, why_not_ready
from processor.ops.history import History
from processor.ops.http import HttpServer
from processor.ops.page import StatusPage
from processor.ops.status import (
    Fill,
    chunks_view,
    counts_view,
    health_view,
    history_view,
    partitions_view,
)
from processor.ops.vitals import Vitals
from processor.protocol.partitions import Partitions
from processor.settings import Settings

log: Final = logging.getLogger(__name__)

#: Ports tried where none was asked for: workers that share a machine.
_TRIES: Final = 16
#: However many pages are open, the status is made once in this time.
_STATUS_INTERVAL_S: Final = 1.0


class Panel:
    """What a worker shows of itself.

    Args:
        settings: Where to serve it, port 0 for nowhere; and what it runs with.
        flow: What it reads and writes, and as whom.
        metrics: Its counts.
        vitals: Reads it as it is now.
        partitions: Its partitions.
    """

    def __init__(
        self,
        settings: Settings,
        flow: Flow,
        metrics: CountingMetrics,
        vitals: Callable[[], Vitals],
        partitions: Partitions,
    ) -> None:
        self._settings = settings
        self._flow = flow
        self._metrics = metrics
        self._vitals = vitals
        self._partitions = partitions
        self._started_at_ms = vitals().at_ms
        self._history = History(metrics, vitals)
        self._exposition = Exposition(
            metrics, flow.input_topic, vitals, lambda: not self.why_not_ready()
        )
        self._fill = Fill(settings.max_tokens)
        self._status: tuple[float, bytes] = (0.0, b"")
        page = StatusPage()
        self._server = HttpServer(
            {
                "/": page.answer,
                "/status.json": self._status_json,
                "/livez": lambda _: _probe(self.why_not_live()),
                "/readyz": lambda _: _probe(self.why_not_ready()),
                "/metrics": self._metrics_text,
            }
        )
        self._sampling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Serve, unless the settings say not to.

        Raises:
            ConfigError: The address can't be had.
        """
        settings = self._settings
        if not settings.http_port:
            return
        is_given = "http_port" in settings.model_fields_set
        ports = range(settings.http_port, settings.http_port + (1 if is_given else _TRIES))
        url = await self._server.start(settings.http_host, *ports)
        self._sampling = asyncio.create_task(self._history.sample_forever())
        log.info("health, metrics and status page are served", extra={"url": url})

    async def stop(self) -> None:
        """Serve no more."""
        if self._sampling is not None:
            self._sampling.cancel()
            await asyncio.wait([self._sampling])
        await self._server.stop()

    def why_not_live(self) -> list[Problem]:
        """Return why the process should be started again; nothing when it should not."""
        beat_s_ago = self._history.beat_s_ago(asyncio.get_running_loop().time())
        return why_not_live(self._vitals(), beat_s_ago)

    def why_not_ready(self) -> list[Problem]:
        """Return why the worker does not process all it was given; nothing when it does."""
        return why_not_ready(self._vitals(), self._settings.session_timeout_s)

    def status(self) -> dict[str, Any]:
        """Return what the status page shows."""
        settings, flow, vitals = self._settings, self._flow, self._vitals()
        return {
            "at_ms": vitals.at_ms,
            "started_at_ms": self._started_at_ms,
            "host": socket.gethostname(),
            "group": flow.group,
            "topics": {"input": flow.input_topic, "output": flow.output_topic},
            "policy": {"idle_s": settings.idle_s, "max_age_s": settings.max_age_s},
            "live": health_view(self.why_not_live()),
            "ready": health_view(self.why_not_ready()),
            "partitions": partitions_view(vitals),
            "history": history_view(self._history.samples),
            "fill": self._fill.view(self._partitions),
            "chunks": chunks_view(self._partitions),
            "counts": counts_view(self._metrics),
        }

    def _status_json(self, _accept: str) -> web.Response:
        made_at_s, body = self._status
        now_s = time.monotonic()
        if not body or now_s - made_at_s >= _STATUS_INTERVAL_S:
            body = json.dumps(self.status(), separators=(",", ":")).encode()
            self._status = (now_s, body)
        return web.Response(body=body, content_type="application/json")

    def _metrics_text(self, accept: str) -> web.Response:
        body, content_type = self._exposition.text(accept)
        return web.Response(body=body, headers={"Content-Type": content_type})


def _probe(problems: Sequence[Problem]) -> web.Response:
    text = json.dumps(health_view(problems)) + "\n"
    return web.Response(status=503 if problems else 200, text=text, content_type="application/json")
