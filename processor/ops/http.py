"""A small HTTP server: a table of pages, GET and HEAD alone, nothing of a request but its path."""

import errno
import logging
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from processor.core.errors import ConfigError

log: Final = logging.getLogger(__name__)

_MAX_LINE_BYTES: Final = 2048
_MAX_FIELD_BYTES: Final = 4096
_MAX_HEADERS: Final = 50
_KEEP_ALIVE_S: Final = 30.0
_SHUTDOWN_S: Final = 1.0
_ALLOWED: Final = ("GET", "HEAD")
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def _is_ours(line: logging.LogRecord) -> bool:
    """Leave out requests that are none: whoever sends them must not fill the log."""
    return not (line.exc_info and isinstance(line.exc_info[1], HttpProcessingError))


_requests_log: Final = logging.getLogger(f"{__name__}.requests")
_requests_log.addFilter(_is_ours)

#: Makes an answer; told what the client accepts.
Page = Callable[[str], web.Response]


class HttpServer:
    """Serves ``pages`` by path.

    Args:
        pages: Path to what makes the answer; whatever else is asked for is not found.
    """

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, *ports: int) -> str:
        """Listen, and return the address as a URL.

        Args:
            host: Name or number to listen at.
            ports: Of it; the first that is free is taken.

        Raises:
            ConfigError: It can't be had.
        """
        server = web.Server(
            self._answer,
            access_log=None,
            logger=_requests_log,
            keepalive_timeout=_KEEP_ALIVE_S,
            # A request with a body is answered and its connection closed, the body unread.
            lingering_time=0,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_HEADERS,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_S)
        await self._runner.setup()
        for number in ports:
            try:
                await web.TCPSite(self._runner, host, number).start()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    message = (
                        f"can't listen at PROCESSOR_HTTP_HOST={host}, PROCESSOR_HTTP_PORT={number}:"
                        f" {error.strerror or error}; choose an address of this machine, or port 0"
                        " to serve neither health, metrics nor status page"
                    )
                    raise ConfigError(message) from error
            else:
                return f"http://{f'[{host}]' if ':' in host else host}:{number}/"
        message = (
            f"PROCESSOR_HTTP_PORT={ports[0]}: something else listens there, perhaps another worker "
            "on this machine; give each a port of its own, or 0 to serve neither health, metrics "
            "nor status page"
        )
        raise ConfigError(message)

    async def stop(self) -> None:
        """Close all connections; harmless when it was never started."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        page = self._pages.get(request.path)
        if page is None:
            paths = " ".join(self._pages)
            answer = web.Response(status=404, text=f"not found; there are: {paths}\n")
        elif request.method not in _ALLOWED:
            allow = {"Allow": ", ".join(_ALLOWED)}
            answer = web.Response(status=405, text="only GET and HEAD\n", headers=allow)
        else:
            answer = page(request.headers.get("Accept", ""))
        answer.headers.update(_HEADERS)
        return answer
