"""The pages of theory and the C files that they explain name the same equations."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "T": ("doc/tree_kernel.md", "multibody"),
    "O": ("doc/theory/interior_point.md", "control/optimal"),
    "S": ("doc/theory/native_steps.md", "numerics"),
}
WITHOUT_A_FUNCTION = {"T": {1}, "O": {23}, "S": set()}
"""The definition of the discrete Lagrangian, which no function evaluates, and states with
constants beside them, which Python makes.
"""


def page(letter):
    return (ROOT / PAGES[letter][0]).read_text()


def sources(letter):
    return sorted((ROOT / "nh_control" / PAGES[letter][1] / "native").glob("*.[ch]"))


def numbered(letter):
    """The numbers n of the equations (Tn) of a page, in its order."""
    return [
        int(n) for n in re.findall(rf"^    .*\({letter}(\d+)\)[.,]?$", page(letter), re.MULTILINE)
    ]


def named(letter, text):
    """The numbers of the equations that comments name, (T3) or a range (T3)-(T5)."""
    ranges = re.findall(rf"\b{letter}(\d+)\)-\({letter}(\d+)", text)
    single = {int(n) for n in re.findall(rf"\b{letter}(\d+)\b", text)}
    return single.union(*(range(int(a), int(b) + 1) for a, b in ranges))


@pytest.mark.parametrize("letter", PAGES)
def test_equations_are_numbered_in_order(letter):
    numbers = numbered(letter)
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 15


@pytest.mark.parametrize("letter", PAGES)
def test_the_code_names_equations_of_the_page_and_every_one_has_its_function(letter):
    code = set().union(*(named(letter, file.read_text()) for file in sources(letter)))
    numbers = set(numbered(letter))
    assert numbers - WITHOUT_A_FUNCTION[letter] <= code <= numbers


def uncommented(text):
    """Functions without a comment directly above them; lines of macros may be between."""
    lines, missing = text.splitlines(), []
    for i, line in enumerate(lines):
        if re.match(r"[a-zA-Z_][\w \*]*\w\(", line) and ";" not in line:
            above = [one for one in lines[:i] if not re.fullmatch(r"#.*|[A-Z_]+", one)]
            if not above or not above[-1].endswith("*/"):
                missing.append(line.split("(")[0])
    return missing


@pytest.mark.parametrize("letter", "OS")
def test_every_function_has_a_comment(letter):
    """Of a file with one function the comment is at the top."""
    assert any(file.suffix == ".c" for file in sources(letter))
    for file in sources(letter):
        text = file.read_text() if file.suffix == ".c" else ""
        missing = uncommented(text)
        assert not missing or (len(missing) == 1 and text.startswith("/*")), (file.name, missing)


@pytest.mark.parametrize("letter", PAGES)
def test_functions_that_the_page_names_exist(letter):
    code = "".join(file.read_text() for file in sources(letter))
    names = re.findall(r"`([a-z]{2,}(?:_[a-z0-9]+)+)`", page(letter))
    python = "".join(f.read_text() for f in (ROOT / "nh_control").rglob("*.py"))
    tests = (ROOT / "test/random_trees.py").read_text()
    assert not [name for name in names if not re.search(rf"\b{name}\b", code + python + tests)]
