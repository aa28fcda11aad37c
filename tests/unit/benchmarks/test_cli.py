"""The short benchmark fails where a ratio fell, and says what it compared."""

import click
import pytest

from benchmarks import cli
from benchmarks.contenders import BASELINE
from benchmarks.figures import Found, Row
from benchmarks.measure import Figures


def found(ratio):
    rates = {BASELINE: 100e3, "worker": ratio * 100e3}
    return Found(
        [Row(1, name, Figures(1_000, it, it, it, it, it, 1.0, 90.0)) for name, it in rates.items()]
    )


@pytest.fixture
def committed(monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "FIGURES", tmp_path / "figures.json")
    found(0.60).write(tmp_path / "figures.json")
    return tmp_path / "figures.json"


def test_ratio_as_it_was_committed_passes_and_is_shown(committed, capsys):
    cli.compare(found(0.55))
    assert "worker: 0.55 of the pass-through; when last committed, 0.60" in capsys.readouterr().out


def test_ratio_that_fell_fails(committed):
    with pytest.raises(click.ClickException, match=r"fell by more than 15%: worker: 0\.45"):
        cli.compare(found(0.45))


def test_nothing_to_compare_with_fails_and_says_what_writes_it(committed):
    committed.unlink()
    with pytest.raises(click.ClickException, match=r"make bench writes figures\.json"):
        cli.compare(found(0.60))
