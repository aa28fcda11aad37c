import importlib
import re

from processor.core import errors
from tests.unit.repository import MODULES, PACKAGE


def drawn():
    """Return each error of the tree with the one that it stands below."""
    above, found = [(-1, None)], {}
    for line in errors.__doc__.splitlines():
        if entry := re.match(r"( +)(\w+Error)\b", line):
            depth, name = len(entry[1]), entry[2]
            while above[-1][0] >= depth:
                above.pop()
            found[name] = above[-1][1]
            above.append((depth, name))
    return found


def raised(kind):
    for it in kind.__subclasses__():
        if it.__module__.startswith("processor."):
            yield it.__name__, kind.__name__
            yield from raised(it)


def test_tree_of_errors_is_drawn_as_it_is():
    for path in MODULES:
        if path.name != "__main__.py":
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            importlib.import_module(".".join(parts).removesuffix(".__init__"))
    assert drawn() == {"ProcessorError": None, **dict(raised(errors.ProcessorError))}
