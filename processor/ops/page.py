"""The status page: one file that asks ``/status.json``; its policy lets nothing else run."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from re import DOTALL, findall
from typing import Final

from aiohttp import web

_FILE: Final = "status.html"


class StatusPage:
    """The page as it is answered to everyone."""

    def __init__(self) -> None:
        self._html = files(__package__).joinpath(_FILE).read_bytes()
        self._policy = (
            f"default-src 'none'; script-src {self._hashes('script')}; "
            f"style-src {self._hashes('style')}; connect-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )

    def answer(self, _accept: str) -> web.Response:
        """Return it."""
        return web.Response(
            body=self._html,
            content_type="text/html",
            charset="utf-8",
            headers={"Content-Security-Policy": self._policy},
        )

    def _hashes(self, tag: str) -> str:
        """Return what allows the texts of every such element."""
        texts: list[bytes] = findall(f"<{tag}>(.*?)</{tag}>".encode(), self._html, DOTALL)
        return " ".join(f"'sha256-{b64encode(sha256(it).digest()).decode()}'" for it in texts)
