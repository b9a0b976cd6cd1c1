"""doc/tree_kernel.md and the C files of the kernel name the same equations."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "doc/tree_kernel.md").read_text()
NATIVE = sorted((ROOT / "nh_control/multibody/native").glob("*.[ch]"))


def equations(text):
    """The numbers n of the equations (Tn) that a text names."""
    return {int(number) for number in re.findall(r"\bT(\d+)\b", text)}


def test_equations_are_numbered_in_order():
    numbers = [int(n) for n in re.findall(r"^    .*\(T(\d+)\)$", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 30


def test_the_kernel_names_equations_of_the_page_and_every_one_has_its_function():
    """The first is the definition of the discrete Lagrangian, which no function evaluates."""
    named = set().union(*(equations(file.read_text()) for file in NATIVE))
    numbers = {int(n) for n in re.findall(r"^    .*\(T(\d+)\)$", PAGE, re.MULTILINE)}
    assert numbers - {1} <= named <= numbers


def test_functions_that_the_page_names_exist():
    code = "".join(file.read_text() for file in NATIVE)
    names = re.findall(r"`([a-z]{2,}(?:_[a-z0-9]+)+)`", PAGE)
    python = "".join(f.read_text() for f in (ROOT / "nh_control").rglob("*.py"))
    tests = (ROOT / "test/random_trees.py").read_text()
    assert not [name for name in names if not re.search(rf"\b{name}\b", code + python + tests)]
