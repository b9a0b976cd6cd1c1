"""Sphinx's configuration: `python -m sphinx -W -b html doc doc/_build` builds the pages, and
publish.py those of a version.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import nh_control

sys.path.insert(0, str(Path(__file__).parent))
import scenario_pages
import tables

project = "nh_control"
author = "nh_control maintainers"
copyright = "nh_control maintainers"
version = release = nh_control.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "fieldlist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
SHORT = (
    "ArrayLike Expression Graph Input LimitsByName Monitor Returned StateWeight Trajectories "
    "Vector"
)
autodoc_type_aliases = {name: name for name in SHORT.split()}  # not what they stand for
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}

html_theme = "furo"
html_title = f"nh_control {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["tables.css", "versions.css"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/version.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}


def _inline(self, node):
    self.body.append(convert(node.astext()))
    raise SkipNode


def _block(self, node):
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="math">{number}{formula}</div>')
    raise SkipNode


def _write_pages(app):
    source = Path(app.srcdir)
    (source / "reference" / "scenarios").mkdir(exist_ok=True)
    for name, text in {**tables.pages(), **scenario_pages.write(source)}.items():
        page = source / "reference" / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app):
    """Formulas as MathML, which browsers draw without a script; pages from the registries."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("builder-inited", _write_pages)
