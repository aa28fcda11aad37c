import asyncio
from contextlib import asynccontextmanager

import pytest
from aiokafka.errors import GroupLoadInProgressError

from processor.core.errors import UnreachableError
from processor.kafka import groups
from processor.kafka.group_description import Member
from processor.settings import Settings


class LoadingBroker:
    """An admin client whose broker goes on loading its groups."""

    async def list_consumer_group_offsets(self, _):
        raise GroupLoadInProgressError


def test_group_that_is_not_told_is_named_as_it_was_asked_for(monkeypatch):
    """Symptom: a router's message named the group of the worker."""

    @asynccontextmanager
    async def admin_client(*_):
        yield LoadingBroker()

    monkeypatch.setattr(groups, "admin_client", admin_client)
    monkeypatch.setattr(groups, "_PATIENCE_S", -1)
    with pytest.raises(UnreachableError, match="group app-router: no coordinator"):
        asyncio.run(groups.offsets_in(Settings(app_id="app"), "app-router", "telemetry"))


def test_member_is_shown_with_no_code_that_a_terminal_would_obey():
    assert str(Member("app-1", "/10.0.0.1", None)) == "app-1 at /10.0.0.1"
    assert "\x1b" not in str(Member("\x1b[2J", "/10.0.0.1", None))
