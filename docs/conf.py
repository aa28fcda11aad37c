"""How the documentation becomes a site: ``make docs``.

The source is the whole repository, so that the pages' links among each other, to the README and to
files hold in both places; a link to nothing is an error. Verbs (``pages.py``) and the Python
interface are read from the code; tests hold the tables that have to say what it says.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

project = "processor"
root_doc = "docs/index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "pages"]
include_patterns = ["*.md", "docs/**", "benchmarks/*.md"]
exclude_patterns = [".*", "build"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
napoleon_use_ivar = True  # what a class documents in its docstring is not told twice
autodoc_typehints = "signature"
html_theme = "furo"
html_title = "processor"
html_extra_path = ["_site"]  # leads from the site's root to the first page
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
