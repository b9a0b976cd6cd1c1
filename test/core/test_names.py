"""Names in the package: nouns of the field, and arguments that are passed by name."""

import ast
from functools import cache
from pathlib import Path

import pytest

import nh_control

PACKAGE = Path(nh_control.__file__).parent
VAGUE = {"own", "given", "made", "one", "kept", "wanted", "held", "found"}
"""Words that name nothing: a reader has to find out what is given, made or kept."""


def bound_names(tree):
    """Names that a module binds: variables, attributes, parameters, functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name


def packed_arguments(tree):
    """Calls f(*(a, b)), whose arguments could be passed by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and any(
            isinstance(part, ast.Starred) and isinstance(part.value, (ast.Tuple, ast.List))
            for part in node.args
        ):
            yield node.lineno, ast.unparse(node)


CHECKS = bound_names, packed_arguments


@cache
def places():
    """The results of all checks in all modules, by check, with their places."""
    results = {check: [] for check in CHECKS}
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text())  # not stored: the garbage collector would search it
        for check, lines in results.items():
            lines += [f"{file.relative_to(PACKAGE)}:{n}: {text}" for n, text in check(tree)]
    return results


def test_names_say_what_they_name():
    names = places()[bound_names]
    assert [name for name in names if name.split(": ")[1].strip("_") in VAGUE] == []


def test_arguments_are_not_packed_to_be_unpacked():
    assert places()[packed_arguments] == []


@pytest.mark.parametrize(
    ("find", "text", "expected"),
    [
        (bound_names, "def f(given): self.kept = 1", ["f", "given", "kept"]),
        (packed_arguments, "f(*(a, b)); g(*rows)", ["f(*(a, b))"]),
    ],
)
def test_the_checks_find_what_they_look_for(find, text, expected):
    assert [found for _, found in find(ast.parse(text))] == expected
