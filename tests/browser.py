"""A headless Chromium, driven over its own DevTools protocol."""

import asyncio
import itertools
import os
import shutil
import subprocess
import time
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # a container's root has no other way
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--remote-debugging-port=0",
)
POLL_S = 0.05


def program():
    """Return the path of a Chromium, ``None`` where there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


#: For tests that need one; in CI a missing one fails.
needed = pytest.mark.skipif(
    program() is None and os.environ.get("CI") != "true", reason="without Chromium"
)


class Tab:
    """One page; what goes wrong in it is in ``errors``."""

    def __init__(self, socket):
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers = {}
        self._session = None
        self.errors = []

    async def open(self, url, *, width=1280, height=900, dark=False):
        self._reading = asyncio.create_task(self._read())
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call("Target.attachToTarget", flatten=True, **target)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        await self.call("Emulation.setScrollbarsHidden", hidden=True)
        await self.call("Page.navigate", url=url)

    async def call(self, method, **params):
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send_json(message)
        return await asyncio.wait_for(answer, 30)

    async def evaluate(self, expression):
        told = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def text(self, selector):
        return await self.evaluate(f"document.querySelector({selector!r}).innerText")

    async def rows(self, table):
        """Return the texts of a table's body."""
        return await self.evaluate(
            f"[...document.querySelectorAll('{table} tbody tr')]"
            ".map((row) => [...row.cells].map((it) => it.textContent))"
        )

    async def wait_for(self, expression, *, within_s=20.0):
        deadline = time.monotonic() + within_s
        while not await self.evaluate(expression):
            assert time.monotonic() < deadline, f"never so: {expression}"
            await asyncio.sleep(POLL_S)

    async def close(self):
        await self.call("Page.close")
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self):
        async for message in self._socket:
            told = message.json()
            if answer := self._answers.pop(told.get("id"), None):
                if "error" in told:
                    answer.set_exception(AssertionError(told["error"]))
                else:
                    answer.set_result(told["result"])
            elif told["method"] == "Runtime.exceptionThrown":
                self.errors.append(told["params"]["exceptionDetails"])
            elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.errors.append(told["params"]["entry"])


@contextmanager
def running(folder):
    """Yield the address of a browser that keeps what it must in ``folder``."""
    command = [program(), *FLAGS, f"--user-data-dir={folder}"]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            told = next(it for it in process.stderr if it.startswith("DevTools listening on "))
            yield told.split()[-1]
        finally:
            process.kill()


@asynccontextmanager
async def opened(address, url, **how):
    """Yield a tab of the browser at ``address`` that shows ``url``."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address, max_msg_size=0) as socket,
    ):
        tab = Tab(socket)
        await tab.open(url, **how)
        yield tab
        await tab.close()
