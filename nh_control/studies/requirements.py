"""Requirements for a study, such as `success >= 95 %` or `max(abs(error.position)) < 0.1`.

    requirement  comparison { and | or comparison }, not requirement, (requirement)
    comparison   value < | <= | > | >= | == value, also in a chain: 0 < x < 1
    value        numbers, 95 % (0.95), names, + - * / **, (value), and the functions
                 abs, max, min, mean, rms, final (of a series)
    name         success, failed: shares of all runs; runs: the number of runs
                 metrics of a run: final_error, largest_error, ...
                 series of a run: error, error.NAME, effort, effort.NAME, state.NAME, ...
                 reduced series: series.max (of absolute values), .mean, .rms, .final

A name that is not an identifier is written in brackets: `error["arm-1"]`.

A requirement that contains `success`, `failed` or `runs` applies to the study. All other
requirements apply to each run and define its success: a run succeeds if it meets them all,
regardless of its final error. Without a requirement on `success`, all runs must succeed.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

Value: TypeAlias = "float | np.ndarray"

OF_STUDY = ("success", "failed", "runs")
LONGEST = 500
PERCENT = re.compile(r"(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?)\s*%")
COMPARED: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
SIGNS: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "rms": lambda series: np.sqrt(np.mean(np.square(series))),
    "final": lambda series: np.atleast_1d(series)[-1],
}
REDUCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "max": lambda series: np.max(np.abs(series)),
    "mean": np.mean,
    "rms": FUNCTIONS["rms"],
    "final": FUNCTIONS["final"],
}


@dataclass(frozen=True)
class Outcome:
    """Whether a requirement is met, and the numbers that show why."""

    met: bool
    reason: str


@dataclass(frozen=True)
class Requirement:
    """A requirement, parsed from its `text`. Raises ValueError for a text that is not a
    requirement.
    """

    text: str

    def __post_init__(self) -> None:
        _check(self._tree, self.text)
        if self.of_study and set(self.names) - set(OF_STUDY):
            raise ValueError(
                f"requirement {self.text!r}: {', '.join(OF_STUDY)} apply to the study, "
                f"{', '.join(set(self.names) - set(OF_STUDY))} to a run; write two requirements"
            )

    @cached_property
    def _tree(self) -> ast.expr:
        if len(self.text) > LONGEST:
            raise ValueError(
                f"requirement of {len(self.text)} characters, expected at most {LONGEST}"
            )
        try:
            # Python's parser reads the text. `_check` admits only nodes in the grammar above.
            return ast.parse(PERCENT.sub(r"(\1/100)", self.text.strip()), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(
                f"requirement {self.text!r} cannot be read; write it as in "
                "'success >= 95 %' or 'max(abs(error.position)) < 0.1'"
            ) from error

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The distinct names in the requirement, such as error.position."""
        return tuple(dict.fromkeys(_names(self._tree)))

    @property
    def of_study(self) -> bool:
        """Whether the requirement applies to the study, not to each run."""
        return any(name in OF_STUDY for name in self.names)

    def check_names(self, known: Iterable[str]) -> None:
        """Raise ValueError for an unknown name. The message lists all known names."""
        known = [*known]
        for name in self.names:
            if _known_name(name, known) is None:
                close = difflib.get_close_matches(name, [*OF_STUDY, *known], n=1)
                meant = f" (did you mean {close[0]!r}?)" if close else ""
                raise ValueError(
                    f"requirement {self.text!r}: unknown {name!r}{meant}, choose from "
                    f"{', '.join(OF_STUDY)} (of the study); {', '.join(known)} (of a run)"
                )

    def check(self, examples: Mapping[str, Callable[[], Value]]) -> None:
        """Raise ValueError unless a requirement on a run can be evaluated with values that have
        these names and shapes.
        """
        self.check_names(examples)
        self.outcome(examples)

    def upper_bound(self, name: str) -> float:
        """Return the upper bound of a quantity if the requirement contains it directly, as `name <
        number`, alone or joined to other conditions by `and`. Otherwise, return infinity.
        """
        return _upper_bound(self._tree, name)

    def outcome(self, values: Mapping[str, Callable[[], Value]]) -> Outcome:
        """Return whether values, given by name, meet the requirement. Raises ValueError if the
        requirement compares a series.
        """
        # Divisions by zero give infinity or NaN without a warning. Comparisons with NaN fail.
        with np.errstate(all="ignore"):
            reading = _Reading(self.text, values)
            met = reading.truth(self._tree)
        return Outcome(met, "; ".join(reading.compared))


class _Reading:
    """Evaluates a requirement and notes the values of all comparisons."""

    def __init__(self, text: str, values: Mapping[str, Callable[[], Value]]):
        self._text, self._values = text, values
        self.compared: list[str] = []

    def truth(self, tree: Any) -> bool:
        """Return whether a condition is met."""
        # All parts are evaluated, even if the first one decides, so that all values are noted.
        if isinstance(tree, ast.BoolOp):
            every = all if isinstance(tree.op, ast.And) else any
            return every([self.truth(part) for part in tree.values])
        if isinstance(tree, ast.UnaryOp):
            return not self.truth(tree.operand)
        sides = [tree.left, *tree.comparators]
        numbers = [self.number(side) for side in sides]
        self.compared += [
            f"{ast.unparse(side)} = {number:.6g}"
            for side, number in zip(sides, numbers)
            if any(_names(side))
        ]
        pairs = zip(tree.ops, numbers, numbers[1:])
        return all(bool(COMPARED[type(kind)](left, right)) for kind, left, right in pairs)

    def number(self, tree: Any) -> float:
        """Return the value of a tree as a number. Raises ValueError for a series."""
        value = np.asarray(self._value(tree), dtype=float)
        if value.size != 1:
            shown = ast.unparse(tree)
            size = f"abs({shown})" if _dotted(tree) else shown
            raise ValueError(
                f"requirement {self._text!r}: {shown} is a series of {value.size} numbers; "
                f"compare max({size}), rms({shown}) or final({shown})"
            )
        return float(value.reshape(()))

    def _value(self, tree: Any) -> Any:
        if type(tree) is ast.Constant:
            number: Any = tree.value
            return float(number)
        if type(tree) is ast.UnaryOp:
            return SIGNS[type(tree.op)](self._value(tree.operand))
        if type(tree) is ast.BinOp:
            # The numbers are NumPy numbers, so that a division by zero does not raise an
            # exception.
            left, right = (np.float64(1) * self._value(side) for side in (tree.left, tree.right))
            if np.size(left) > 1 and np.size(right) > 1 and np.shape(left) != np.shape(right):
                raise ValueError(
                    f"requirement {self._text!r}: the series of {ast.unparse(tree)} have shapes "
                    f"{np.shape(left)} and {np.shape(right)}, expected equal shapes; reduce them, "
                    f"as in max(abs({ast.unparse(tree.left)}))"
                )
            return BINARY[type(tree.op)](left, right)
        if type(tree) is ast.Call:
            return FUNCTIONS[ast.unparse(tree.func)](self._value(tree.args[0]))
        name = _dotted(tree)
        known = _known_name(name, self._values) or name
        value = self._values[known]()
        return value if known == name else REDUCTIONS[name.removeprefix(f"{known}.")](value)


# The grammar -------------------------------------------------------------------------------------


def _check(tree: Any, text: str) -> None:
    """Raise ValueError unless a tree is a condition in the grammar."""
    if isinstance(tree, ast.BoolOp):
        for part in tree.values:
            _check(part, text)
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        _check(tree.operand, text)
    elif isinstance(tree, ast.Compare):
        if any(type(kind) not in COMPARED for kind in tree.ops):
            raise ValueError(
                f"requirement {text!r}: expected a comparison with <, <=, >, >= or =="
            )
        for side in (tree.left, *tree.comparators):
            _check_value(side, text)
        if not any(_names(tree)):
            raise ValueError(f"requirement {text!r} names no quantity")
    else:
        raise ValueError(
            f"requirement {text!r}: {ast.unparse(tree)!r} is not a comparison; write for example "
            f"'success >= 95 %' or 'effort.max < 5'"
        )


def _check_value(tree: Any, text: str) -> None:
    """Raise ValueError unless a tree is a value in the grammar."""
    parts: list[Any] = []
    if isinstance(tree, ast.Constant) and type(tree.value) in (int, float):
        return
    if isinstance(tree, ast.UnaryOp) and type(tree.op) in SIGNS:
        parts = [tree.operand]
    elif isinstance(tree, ast.BinOp) and type(tree.op) in BINARY:
        parts = [tree.left, tree.right]
    elif isinstance(tree, ast.Call):
        name = tree.func.id if isinstance(tree.func, ast.Name) else ast.unparse(tree.func)
        if name not in FUNCTIONS or len(tree.args) != 1 or tree.keywords:
            raise ValueError(
                f"requirement {text!r}: {ast.unparse(tree)!r} is not one of the functions "
                f"{', '.join(FUNCTIONS)} of one value"
            )
        parts = tree.args
    elif not _dotted(tree):
        raise ValueError(f"requirement {text!r}: {ast.unparse(tree)!r} is not a value")
    for part in parts:
        _check_value(part, text)


def _upper_bound(tree: Any, name: str) -> float:
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return min(_upper_bound(part, name) for part in tree.values)
    bound = math.inf
    if isinstance(tree, ast.Compare):
        sides = [tree.left, *tree.comparators]
        # `a > b` is read as `b < a`. Other comparisons do not bound anything from above.
        for left, kind, right in zip(sides, tree.ops, sides[1:]):
            if isinstance(kind, ast.Gt | ast.GtE):
                left, right = right, left
            elif not isinstance(kind, ast.Lt | ast.LtE):
                continue
            if _dotted(left) == name and not any(_names(right)):
                bound = min(bound, _Reading("", {}).number(right))
    return bound


def _dotted(tree: Any) -> str:
    """Return the name of `a.b` or `a["b"]`, or "" for anything else."""
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Attribute):
        owner = _dotted(tree.value)
        return f"{owner}.{tree.attr}" if owner else ""
    if isinstance(tree, ast.Subscript) and isinstance(tree.slice, ast.Constant):
        owner = _dotted(tree.value)
        return f"{owner}.{tree.slice.value}" if owner and type(tree.slice.value) is str else ""
    return ""


def _names(tree: Any) -> Iterator[str]:
    """Yield the names in a tree that conforms to the grammar."""
    if name := _dotted(tree):
        yield name
        return
    parts = tree.args if isinstance(tree, ast.Call) else ast.iter_child_nodes(tree)
    for part in parts:
        yield from _names(part)


def _known_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a name equals or reduces, as error.max reduces error. Return None
    for an unknown name.
    """
    known = [*known]
    if name in known:
        return name
    owner, _, reduction = name.rpartition(".")
    return owner if owner in known and reduction in REDUCTIONS else None
