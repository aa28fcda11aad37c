import asyncio
import json

import pytest
from pydantic import SecretStr

from processor.core.errors import ConfigError, UnreachableError
from processor.kafka import tokens
from processor.kafka.tokens import (
    EndpointClient,
    EndpointTokens,
    FileTokens,
    TokenError,
    token_provider,
)
from processor.settings import Settings

CLIENT = EndpointClient("https://login.test/t", "ada", SecretStr("hush"), None)


class Endpoint:
    """Stands where a token endpoint is asked; gives ``token-1``, ``token-2`` and so on."""

    def __init__(self, monkeypatch, life_s):
        self.life_s, self.now_s, self.asked, self.error = life_s, 0.0, 0, None
        monkeypatch.setattr(tokens, "_ask", self.ask)
        monkeypatch.setattr(tokens.time, "monotonic", lambda: self.now_s)

    def ask(self, client):
        assert client == CLIENT
        if self.error is not None:
            raise self.error
        self.asked += 1
        return f"token-{self.asked}", self.life_s


@pytest.fixture
def endpoint(monkeypatch):
    return Endpoint(monkeypatch, life_s=100.0)


def token_of(provider):
    return asyncio.run(provider.token())


def test_token_is_used_for_most_of_its_life(endpoint):
    provider = EndpointTokens(CLIENT)
    found = []
    for endpoint.now_s in (0, 79, 80, 159, 160):
        found.append(token_of(provider))
    assert found == ["token-1", "token-1", "token-2", "token-2", "token-3"]


def test_token_of_unknown_life_is_used_once(endpoint):
    endpoint.life_s = 0.0
    provider = EndpointTokens(CLIENT)
    assert [token_of(provider), token_of(provider)] == ["token-1", "token-2"]


def test_token_goes_on_while_the_endpoint_is_silent_until_it_has_expired(endpoint):
    provider = EndpointTokens(CLIENT)
    token_of(provider)
    endpoint.error = UnreachableError("silence")
    endpoint.now_s = 99
    assert token_of(provider) == "token-1"
    endpoint.now_s = 100
    with pytest.raises(TokenError, match="silence"):
        token_of(provider)


def test_refusal_ends_the_use_of_a_token_that_should_be_renewed(endpoint):
    provider = EndpointTokens(CLIENT)
    token_of(provider)
    endpoint.now_s, endpoint.error = 81, ConfigError("revoked")
    with pytest.raises(TokenError, match="revoked") as found:
        token_of(provider)
    assert isinstance(found.value.__cause__, ConfigError)


def test_many_connections_at_once_ask_once(endpoint):
    provider = EndpointTokens(CLIENT)

    async def all_at_once():
        return await asyncio.gather(*(provider.token() for _ in range(20)))

    assert set(asyncio.run(all_at_once())) == {"token-1"}
    assert endpoint.asked == 1


def test_clients_of_the_same_settings_share_their_token():
    settings = Settings(
        sasl_oauthbearer_token_endpoint_url="https://login.test/shared",  # noqa: S106
        sasl_oauthbearer_client_id="ada",
        sasl_oauthbearer_client_secret="hush",  # noqa: S106 - made up
    )
    assert token_provider(settings) is token_provider(settings.model_copy())


def test_file_is_read_for_each_connection(tmp_path):
    file = tmp_path / "token"
    provider = FileTokens(file)
    for text in ("abc\n", "def"):
        file.write_text(text)
        assert token_of(provider) == text.strip()


@pytest.mark.parametrize("content", [None, b"", b"two words", b"a\x01b", b"\xff"])
def test_file_without_a_token_is_named_and_not_quoted(tmp_path, content):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TokenError, match="KAFKA_SASL_OAUTHBEARER_TOKEN_FILE") as found:
        token_of(FileTokens(file))
    assert isinstance(found.value.__cause__, ConfigError)
    assert "two words" not in str(found.value)


def test_answer_gives_token_and_life():
    body = json.dumps({"access_token": "abc", "expires_in": 60}).encode()
    assert tokens._read_answer(CLIENT, body) == ("abc", 60.0)  # noqa: SLF001
    assert tokens._read_answer(CLIENT, b'{"access_token":"abc"}') == ("abc", 0.0)  # noqa: SLF001


@pytest.mark.parametrize("body", [b"", b"[1]", b"<html>", b'{"access_token": 7}', b"\xff"])
def test_answer_without_a_token_is_refused(body):
    with pytest.raises(ConfigError, match=r"login\.test/t holds no bearer token"):
        tokens._read_answer(CLIENT, body)  # noqa: SLF001


@pytest.mark.parametrize(
    ("status", "kind"), [(400, ConfigError), (401, ConfigError), (503, UnreachableError)]
)
def test_refusal_says_the_code_alone(status, kind):
    body = b'{"error": "invalid_client", "error_description": "not hush"}'
    found = tokens._refusal(CLIENT, status, body)  # noqa: SLF001
    assert type(found) is kind
    assert f"{status}, invalid_client" in str(found)
    assert "hush" not in str(found)
    assert "no reason given" in str(tokens._refusal(CLIENT, status, b'{"error": "hush!"}'))  # noqa: SLF001
