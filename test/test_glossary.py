"""The glossary and the code agree: every code name in doc/glossary.md exists."""

import re
from importlib import import_module
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "doc" / "glossary.md").read_text()
ROOMS = "geometry|mechanics|multibody|discrete|integrators|systems|control|scenarios"
NAMES = sorted(set(re.findall(rf"`((?:{ROOMS})(?:\.\w+)+)`", TEXT)))


def found(name: str) -> object:
    """The object with this name, counted from the package's root."""
    value = import_module("nh_control")
    parts = name.split(".")
    for i, part in enumerate(parts):
        if not hasattr(value, part):
            import_module(".".join(["nh_control", *parts[: i + 1]]))
        value = getattr(value, part)
    return value


def test_code_names_of_the_glossary_exist():
    assert len(list(map(found, NAMES))) > 40  # raises unless they exist


def test_a_name_that_does_not_exist_is_found():
    with pytest.raises((ImportError, AttributeError)):
        found("geometry.space.Space.rectract")


def test_readme_and_contributing_link_the_glossary():
    root = Path(__file__).parents[1]
    for file in ("README.md", "CONTRIBUTING.md"):
        assert "(doc/glossary.md)" in (root / file).read_text()
