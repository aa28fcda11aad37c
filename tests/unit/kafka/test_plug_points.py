"""The private names we plug into exist in the installed versions, and their lack is noticed."""

import pytest

from processor.core.errors import ConfigError
from processor.kafka import plug_points


def test_the_installed_versions_have_every_plug_point():
    plug_points.check_plug_points()


def test_a_release_that_lacks_one_stops_the_start(monkeypatch):
    class Renamed:
        pass

    monkeypatch.setitem(plug_points.PLUG_POINTS, Renamed, ("_commit",))
    with pytest.raises(ConfigError, match=r"Renamed\._commit"):
        plug_points.check_plug_points()
