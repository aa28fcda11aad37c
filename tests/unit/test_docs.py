import ast
import json
import re
import subprocess
import sys
from itertools import chain
from types import SimpleNamespace

import pytest

import processor
from processor import client, testing
from processor.cli import EXIT_CODES, VERBS
from processor.core import errors
from processor.schema import chunk_schema
from processor.settings import Settings, env_name
from tests.builders import chunk_lines
from tests.documents import ROOT, assert_table, rows_in

#: What stands there is put together when the site is built.
MADE = {"docs/reference/verbs.md", "docs/reference/python.md"}
#: Its fields are on the page of settings.
TOLD_ELSEWHERE = {"Settings"}


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


def test_every_page_is_one_click_from_the_readme():
    pages = {str(it.relative_to(ROOT)) for it in (ROOT / "docs").rglob("*.md")}
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)", (ROOT / "README.md").read_text()))
    assert pages - linked == {"docs/index.md", *MADE}


def test_every_verb_is_told(site):
    verbs = (site / "docs" / "reference" / "verbs.html").read_text()
    assert [it for it in VERBS if f'id="{it}"' not in verbs] == []


def test_every_public_name_is_told(site):
    names = {
        f"{module.__name__}.{name}"
        for module in (processor, client)
        for name in set(module.__all__) - TOLD_ELSEWHERE
    }
    names |= {
        f"{module.__name__}.{name}"
        for module in (testing, errors)
        for name, it in vars(module).items()
        if getattr(it, "__module__", None) == module.__name__ and not name.startswith("_")
    }
    names.discard("processor.testing.VecSource")  # as processor.VecSource
    python = (site / "docs" / "reference" / "python.html").read_text()
    assert [it for it in sorted(names) if f'id="{it}"' not in python] == []


def fields_of(name, path=""):
    """Yield a row for each field of a chunk; one that may be missing has a star."""
    model = chunk_schema()["$defs"][name]
    for field, about in model["properties"].items():
        inner = about.get("$ref") or about.get("items", {}).get("$ref")
        here = f"{path}{field}" + "[]" * ("items" in about)
        star = "" if field in model["required"] else "*"
        yield f"| `{here}`{star} | {type_of(about)} | {about['description']} |"
        if inner:
            yield from fields_of(inner.rpartition("/")[2], f"{here}.")


def type_of(about):
    if "anyOf" in about:
        return " or ".join(it["type"] for it in about["anyOf"])
    return about.get("type", "object" if "$ref" in about else "any")


def test_table_of_a_chunks_fields_is_the_models():
    assert_table("docs/reference/messages.md", "fields", list(fields_of("WireChunk")))


def test_the_digest_is_what_the_page_computes():
    page = (ROOT / "docs" / "reference" / "messages.md").read_text()
    code = re.search(r"### The digest.*?```python\n(.*?)```", page, re.DOTALL)[1]
    values = [[b"1", b"two"], [b"\xff"]]
    lines = map(json.loads, chunk_lines(*chain.from_iterable(values)))
    chunks = [
        SimpleNamespace(**line | {"record_bytes": those})
        for line, those in zip(lines, values, strict=True)
    ]
    exec(code, {"session": "s", "chunks_of_the_session": chunks})  # noqa: S102 - our own page


def default_of(field):
    default = field.get_default()
    if default in (None, ""):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_table_of_settings_is_the_codes():
    rows = [
        f"| `{env_name(name)}` | {default_of(it)} | {' '.join(it.description.split())} |"
        for name, it in Settings.model_fields.items()
    ]
    assert_table("docs/reference/settings.md", "settings", rows)


def test_tests_that_pages_name_are_there():
    paths = list((ROOT / "tests").rglob("*.py"))
    there = {it.name for it in paths}.union(
        *(re.findall(r"def (test_\w+)", it.read_text()) for it in paths)
    )
    for page in (ROOT / "docs").rglob("*.md"):
        named = set(re.findall(r"\btest_\w+(?:\.py)?", page.read_text()))
        assert named <= there, page.name


def cells(path, name):
    return [[it.strip() for it in row.strip("|").split("|")] for row in rows_in(path, name)]


def test_table_of_exit_codes_is_the_codes():
    told = [int(row[0]) for row in cells("docs/reference/exit-codes.md", "codes")]
    assert told == sorted({0, 1, 2} | {code for _, code in EXIT_CODES})


@pytest.fixture(scope="module")
def texts():
    """All texts in the code, a value in one as an ellipsis."""
    found = []
    for path in (ROOT / "processor").rglob("*.py"):
        for it in ast.walk(ast.parse(path.read_text())):
            if isinstance(it, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "…" for p in it.values)
                found.append("".join(parts))
            elif isinstance(it, ast.Constant) and isinstance(it.value, str):
                found.append(it.value)
    return "\n".join(found)


@pytest.mark.parametrize("name", ["messages", "faults"])
def test_messages_that_are_explained_are_the_codes(texts, name):
    told = [it for row in cells("docs/reference/exit-codes.md", name) for it in row[0].split("; ")]
    assert [it for it in told if it not in texts] == []
