"""Draws the sample of mutants: places in the code at random with a seed, one mutant at each."""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, WorkItem

Place = tuple[int, int]


def draw(study: dict[str, Any], room: str, session: Path) -> None:
    """Write a session of cosmic-ray with the sample of a room, by the settings `study`."""
    with use_db(session, WorkDB.Mode.create) as database:
        database.add_work_items(_sample(study, room, study["sample"][room]))


def _sample(study: dict[str, Any], room: str, number: int) -> list[WorkItem]:
    """`number` mutants of the room, at most one at a place; fewer where it has not as many."""
    by_place = defaultdict(list)
    files = [
        path for path in sorted(Path(room).rglob("*.py")) if str(path) not in study["without"]
    ]
    for path in files:
        for mutation in _mutations(path, study):
            by_place[mutation.module_path, mutation.start_pos].append(mutation)
    chance = random.Random(f"{study['seed']} {room}")
    places = chance.sample(sorted(by_place), min(number, len(by_place)))
    chosen = [chance.choice(by_place[place]) for place in places]
    return [WorkItem.single(_name(mutation), mutation) for mutation in chosen]


def _name(mutation: MutationSpec) -> str:
    """A name that another drawing of the same sample gives too."""
    line, column = mutation.start_pos
    operator = mutation.operator_name.removeprefix("core/")
    return f"{mutation.module_path}:{line}:{column} {operator} {mutation.occurrence}"


def _mutations(path: Path, study: dict[str, Any]) -> list[MutationSpec]:
    """All mutants of a file by the operators that the study names, less what is left out."""
    tree = get_ast_from_path(path)
    left_out = list(_left_out(ast.parse(path.read_text()), study))
    found = []
    for name in _operators(study):
        operator = cosmic_ray.plugins.get_operator(name)()
        places = (at for node in ast_nodes(tree) for at in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if not any(first <= start < last for first, last in left_out):
                found.append(MutationSpec(path, name, occurrence, start, end))
    return found


def _operators(study: dict[str, Any]) -> list[str]:
    wanted = re.compile("core/(" + "|".join(study["operators"]) + ")")
    return sorted(name for name in cosmic_ray.plugins.operator_names() if wanted.fullmatch(name))


def _left_out(tree: ast.AST, study: dict[str, Any]) -> Iterator[tuple[Place, Place]]:
    """Where mutants are equivalent or change texts and looks only: type hints, decorators, texts
    put together from values, `__repr__` and `__str__`, what is logged, what only draws.
    """
    for node in ast.walk(tree):
        if _is_left_out(node, study):
            yield _span(node)
        yield from map(_span, getattr(node, "decorator_list", ()))
        for hint in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if hint is not None:
                yield _span(hint)


def _is_left_out(node: ast.AST, study: dict[str, Any]) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__repr__", "__str__")
    if isinstance(node, ast.keyword):
        return node.arg in study["looks"]
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).startswith("log.")
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return _name_of(node) in study["tables"]
    return isinstance(node, ast.JoinedStr)


def _name_of(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return ast.unparse(target).strip("()")


def _span(node: Any) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
