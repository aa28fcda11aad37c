"""The bearer tokens of OAUTHBEARER: asked of a token endpoint, or read from a file.

The endpoint is asked as RFC 6749 says for client credentials (section 4.4). Every client that a
process opens shares one token, asked for anew once most of its life is over. A file is read for
each connection: whoever writes it, such as a Kubernetes node, keeps it fresh.
"""

import asyncio
import base64
import http.client
import json
import logging
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError
from pydantic import SecretStr

from processor.core.errors import ConfigError, ProcessorError, UnreachableError
from processor.settings import Settings

log: Final = logging.getLogger(__name__)
_TIMEOUT_S: Final = 10.0
#: A life beyond a year, or NaN, is none that a clock can be set by.
_LONGEST_LIFE_S: Final = 366 * 86_400
_ANSWER_BYTES: Final = 1 << 20
#: Share of a token's life after which the next one is asked for, as in Kafka's own client.
_USED_FOR: Final = 0.8
# RFC 6750, section 2.1; a stray line break would end the SASL message in its middle.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
# RFC 6749, section 5.2; what else a refusal says may repeat what was sent.
_ERROR_CODE: Final = re.compile(r"[a-z_]{1,40}")


class TokenError(KafkaError):  # type: ignore[misc]  # aiokafka is untyped
    """No token: to aiokafka a connection that failed; its cause is the error of our tree."""


class EndpointClient(NamedTuple):
    """Who asks a token endpoint for what."""

    url: str
    client_id: str
    secret: SecretStr
    scope: str | None


class EndpointTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka is untyped
    """Tokens of a token endpoint, each used for most of its life."""

    def __init__(self, client: EndpointClient) -> None:
        self._client = client
        # Of threads: a process may run one event loop after another.
        self._asking = threading.Lock()
        self._token, self._use_until, self._valid_until = "", 0.0, 0.0

    async def token(self) -> str:
        """Return a token that is valid for a while yet.

        Raises:
            TokenError: The endpoint does not answer, or refuses.
        """
        if time.monotonic() >= self._use_until:
            await asyncio.to_thread(self._renew)
        return self._token

    def _renew(self) -> None:
        with self._asking:
            asked_at = time.monotonic()
            if asked_at < self._use_until:
                return  # another thread has just done it
            try:
                self._token, life_s = _ask(self._client)
            except ProcessorError as error:
                if asked_at < self._valid_until and isinstance(error, UnreachableError):
                    log.warning("no new token, going on with the old one: %s", error)
                    return
                raise TokenError(str(error)) from error
            self._use_until = asked_at + _USED_FOR * life_s
            self._valid_until = asked_at + life_s


class FileTokens(AbstractTokenProvider):  # type: ignore[misc]
    """The token that a file holds at the time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        """Return the file's content.

        Raises:
            TokenError: The file can't be read, or holds no token.
        """
        try:
            token = self._path.read_text(encoding="ascii").strip()
            return _checked(token, f"the file {self._path} of KAFKA_SASL_OAUTHBEARER_TOKEN_FILE")
        except (OSError, UnicodeDecodeError) as error:
            message = (
                f"can't read a token from {self._path}, which KAFKA_SASL_OAUTHBEARER_TOKEN_FILE "
                f"names: {type(error).__name__}"
            )
            raise TokenError(message) from ConfigError(message)
        except ConfigError as error:
            raise TokenError(str(error)) from error


def token_provider(settings: Settings) -> AbstractTokenProvider:
    """Return where tokens come from under these settings; the same object for the same source."""
    if settings.sasl_oauthbearer_token_file is not None:
        return FileTokens(settings.sasl_oauthbearer_token_file)
    return _endpoint_tokens(
        EndpointClient(
            settings.sasl_oauthbearer_token_endpoint_url or "",
            settings.sasl_oauthbearer_client_id or "",
            settings.sasl_oauthbearer_client_secret or SecretStr(""),
            settings.sasl_oauthbearer_scope,
        )
    )


@lru_cache(maxsize=8)
def _endpoint_tokens(client: EndpointClient) -> EndpointTokens:
    return EndpointTokens(client)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows none: the credentials are for the endpoint that was named."""

    def redirect_request(self, *_: object) -> None:
        """Refuse."""


def _ask(client: EndpointClient) -> tuple[str, float]:
    """Return a token and its life in seconds."""
    quoted = (
        urllib.parse.quote_plus(client.client_id),
        urllib.parse.quote_plus(client.secret.get_secret_value()),
    )
    form = {"grant_type": "client_credentials"}
    if client.scope is not None:
        form["scope"] = client.scope
    request = urllib.request.Request(  # noqa: S310 - the setting takes http and https alone
        client.url,
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Accept": "application/json",
            "Authorization": "Basic " + base64.b64encode(":".join(quoted).encode()).decode(),
        },
    )
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            body = answer.read(_ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(client, error.code, error.read(_ANSWER_BYTES)) from None
    except (OSError, http.client.HTTPException) as error:
        message = f"no token from {client.url}: {error}; check that it runs and is to be trusted"
        raise UnreachableError(message) from error
    return _read_answer(client, body)


def _read_answer(client: EndpointClient, body: bytes) -> tuple[str, float]:
    answer = _json_object(body)
    token = _checked(answer.get("access_token"), f"the answer of {client.url}")
    life = answer.get("expires_in")
    # A provider need not say; then each connection asks for a token of its own.
    if not isinstance(life, int | float) or not 0 <= life <= _LONGEST_LIFE_S:
        return token, 0.0
    return token, float(life)


def _refusal(client: EndpointClient, status: int, body: bytes) -> ProcessorError:
    code = _json_object(body).get("error")
    reason = code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else "no reason given"
    what = f"no token from {client.url}: HTTP status {status}, {reason}"
    if status >= http.client.INTERNAL_SERVER_ERROR or status == http.client.TOO_MANY_REQUESTS:
        return UnreachableError(f"{what}; try again later")
    return ConfigError(
        f"{what}; check KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL, "
        f"KAFKA_SASL_OAUTHBEARER_CLIENT_ID={client.client_id}, its secret and the scope"
    )


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _checked(token: object, where: str) -> str:
    if isinstance(token, str) and _TOKEN.fullmatch(token):
        return token
    message = f"{where} holds no bearer token"
    raise ConfigError(message)
