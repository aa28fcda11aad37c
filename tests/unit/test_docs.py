import subprocess
import sys
from pathlib import Path

import pytest

from processor.cli import VERBS
from processor.settings import Settings, env_name

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as ``make docs`` builds it: a link to nothing, or a page in no menu, fails."""
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(  # noqa: S603 - our own command
        f"{sys.executable} -m sphinx -W --keep-going --quiet -c docs . {folder / 'html'}".split(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return folder / "html"


def test_the_site_begins_at_its_root(site):
    assert "docs/index.html" in (site / "index.html").read_text()
    assert (site / "docs" / "index.html").exists()


def test_every_verb_and_every_setting_is_told(site):
    verbs = (site / "docs" / "reference" / "verbs.html").read_text()
    settings = (site / "docs" / "reference" / "settings.html").read_text()
    assert [it for it in VERBS if f'id="{it}"' not in verbs] == []
    assert [it for it in map(env_name, Settings.model_fields) if it not in settings] == []


@pytest.mark.parametrize("name", ["processor.client.read_chunks", "processor.ChunkPolicy"])
def test_public_names_are_told(site, name):
    assert f'id="{name}"' in (site / "docs" / "reference" / "python.html").read_text()
