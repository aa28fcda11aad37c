"""The short benchmark fails where a ratio fell, and the long one writes what it found."""

import click
import pytest
from click.testing import CliRunner

from benchmarks import cli
from benchmarks.contenders import BASELINE
from benchmarks.figures import Found, Row
from benchmarks.measure import Figures
from benchmarks.peer_table import Peers


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


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Give the command, with a benchmark that takes no time; it writes into ``tmp_path``."""

    async def measured(contenders, *_):
        return found(0.5), ["quix, once: it failed"]

    monkeypatch.setattr(cli, "measured", measured)
    monkeypatch.setattr(cli, "find_peers", lambda *_: Peers({}, ["bytewax: not there"], {}))
    monkeypatch.setattr(cli, "draw", lambda *_: "")
    monkeypatch.setattr(cli, "FOLDER", tmp_path)
    monkeypatch.setattr(cli, "FIGURES", tmp_path / "figures.json")
    return lambda *arguments: CliRunner().invoke(cli.main, arguments)


def test_report_and_figures_are_written_and_name_what_is_missing(run, tmp_path):
    done = run("--takeovers", "0")
    assert done.exit_code == 0, done.output
    assert "| 1 | worker | 50.0 | 0.50 |" in done.output
    assert "left out: bytewax" in done.output
    text = (tmp_path / "report.md").read_text()
    assert "Left out: bytewax: not there.\nLeft out: quix, once: it failed." in text
    assert (tmp_path / "figures.json").exists()


def test_failure_of_takeovers_leaves_what_was_found_before(run, monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "faults", lambda _: 1 / 0)
    assert isinstance(run().exception, ZeroDivisionError)
    assert "| worker | 50.0 | 0.50 |" in (tmp_path / "report.md").read_text()


def test_figures_of_some_alone_are_shown_and_not_written(run, tmp_path):
    done = run("--only", "worker", "--only", BASELINE)
    assert done.exit_code == 0, done.output
    assert "| 1 | worker | 50.0 | 0.50 |" in done.output
    assert not list(tmp_path.iterdir())


def test_short_one_writes_nothing_either(run, committed):
    before = committed.read_text()
    done = run("--short")
    assert done.exit_code == 1
    assert "fell by more than 15%" in done.output
    assert committed.read_text() == before
