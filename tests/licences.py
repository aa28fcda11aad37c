"""The licences of what the image holds, as its packages state them: ``make licences`` writes them.

docs/licences.md is its output, which a test keeps as it would be written.
"""

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "licences.md"
#: Whose metadata says nothing, or a whole text: as their licence files say.
READ = {
    "fastokens": "Apache-2.0",
    "faust-streaming": "BSD-3-Clause",
    "mode-streaming": "BSD-3-Clause",
    "tiktoken": "MIT",
    "venusian": "Repoze Public License",
}
#: Only installed on Windows, which no image is.
ELSEWHERE = {"colorama"}

HEAD = """\
# Licences

What `deploy/runtime.lock` installs beside the project, which is [Apache-2.0](../LICENSE), by the
packages' own words. `make licences` writes this page.

| package | version | licence |
| --- | --- | --- |
"""


def packages():
    """Return name and version of each package of the runtime lock, without those elsewhere."""
    text = (ROOT / "deploy" / "runtime.lock").read_text()
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))
    return {name: version for name, version in locked.items() if name not in ELSEWHERE}


def licence(name):
    """Return what an installed package says of its licence."""
    if name in READ:
        return READ[name]
    told = metadata.metadata(name)
    classes = [it for it in told.get_all("Classifier") or [] if it.startswith("License ::")]
    words = [told.get("License-Expression"), told.get("License"), *classes[:1]]
    [word, *_] = [it.rpartition(" :: ")[2] for it in words if it]
    return word


def page():
    """Return the page."""
    rows = (f"| {name} | {version} | {licence(name)} |\n" for name, version in packages().items())
    return HEAD + "".join(rows)


if __name__ == "__main__":
    DOCUMENT.write_text(page())
