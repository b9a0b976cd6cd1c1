"""LaTeX for the equations of a system and of its discrete step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from nh_control.discrete.method import StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.motion_terms import motion_terms
from nh_control.mechanics.system import System
from nh_control.multibody.model import Multibody

SIMPLIFIED = 60
"""Maximum number of operations in an expression that is simplified. SymPy takes minutes for longer
expressions.
"""


@dataclass(frozen=True)
class Equation:
    """An equation `left = right` of SymPy expressions, with the LaTeX for their symbols."""

    left: Any
    right: Any
    symbols: dict[Any, str]

    def __str__(self) -> str:
        return self.aligned("=")

    def aligned(self, sign: str = "&=") -> str:
        """LaTeX with a sign between the two sides."""
        import sympy as sp

        sides = (sp.latex(e, symbol_names=self.symbols) for e in (self.left, self.right))
        return f" {sign} ".join(sides)


@dataclass(frozen=True)
class Equations:
    """Equations between SymPy expressions, grouped by heading. `str` returns LaTeX with an
    `align*` for each group. Notebooks render the equations.
    """

    title: str
    groups: dict[str, tuple[Equation, ...]]

    def __str__(self) -> str:
        parts = []
        for heading, equations in self.groups.items():
            lines = " \\\\\n".join(f"  {equation.aligned()}" for equation in equations)
            parts.append(f"% {self.title}: {heading}\n\\begin{{align*}}\n{lines}\n\\end{{align*}}")
        return "\n".join(parts) + "\n"

    def __iter__(self) -> Iterator[Equation]:
        for equations in self.groups.values():
            yield from equations

    @property
    def symbols(self) -> dict[Any, str]:
        """The LaTeX for all symbols."""
        return next(iter(self)).symbols

    def _repr_latex_(self) -> str:
        lines = [
            f"&\\text{{{heading}}} \\\\ " + " \\\\ ".join(e.aligned() for e in equations)
            for heading, equations in self.groups.items()
        ]
        return "$$\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}$$"


def latex(
    of: System | Multibody | DiscreteSystem, *, simplify: bool = True, series: bool = False
) -> Equations:
    """The equations of a system in LaTeX: the Lagrangian, the equations of motion
    `M(q) y' = F(q, v, u) + C^T lam` (see `ContinuousSystem`) and the constraints. For a discrete
    system, they are the residual `r(x, u, z) = 0` and the readout of the next state, which is
    marked with a +.

    Parameters are symbols. With `simplify`, SymPy simplifies all but long expressions. With
    `series`, Taylor series for functions of small rotations are included. Long parts are
    abbreviated by w_1, w_2, ..., which are defined in the first group. Equations of motion are
    left out if coordinates are prescribed. Raises ImportError if the package sympy (extra `latex`)
    is missing.
    """
    import nh_control.interop.symbolic  # noqa: F401  (its ImportError names the missing extra)

    if isinstance(of, DiscreteSystem):
        return _of_step(of, simplify, series)
    system = of.system if isinstance(of, Multibody) else of
    return _of_system(system, simplify, series)


class _Writer:
    """Writes expressions and equations with named symbols."""

    def __init__(
        self,
        symbols: Sequence[ca.SX],
        names: Sequence[Sequence[str]],
        simplify: bool,
        series: bool,
    ):
        self._simplify, self._series, self._all = simplify, series, ca.vertcat(*symbols)
        self.latex: dict[Any, str] = {}
        self._abbreviations: dict[Any, Any] = {}
        self.names = [self.symbol(text) for group in names for text in group]

    def expressions(self, expression: ca.SX) -> list[Any]:
        """An expression's entries as SymPy expressions."""
        import sympy as sp

        from nh_control.interop.symbolic import to_sympy

        converted = to_sympy(expression, self._all, self.names, self._series, self._abbreviate)
        # long and piecewise expressions are not simplified, because this can take minutes
        short = (
            self._simplify and e.count_ops() <= SIMPLIFIED and not e.has(sp.Piecewise)
            for e in converted
        )
        return [sp.simplify(e) if simple else e for e, simple in zip(converted, short)]

    def _abbreviate(self, value: Any) -> Any:
        if value not in self._abbreviations:
            self._abbreviations[value] = self.symbol(f"w_{{{len(self._abbreviations) + 1}}}")
        return self._abbreviations[value]

    def with_abbreviations(self, title: str, groups: dict[str, tuple[Equation, ...]]) -> Equations:
        """The groups of equations, preceded by the definitions of abbreviations."""
        named = self._abbreviations
        if named:
            long = self.equations(list(named.values()), list(named))
            groups = {"Abbreviations": long, **groups}
        return Equations(title, groups)

    def equations(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Equation, ...]:
        """The equations left[i] = right[i]."""
        return tuple(Equation(a, b, self.latex) for a, b in zip(left, right))

    def symbol(self, text: str) -> Any:
        """A new symbol with the given LaTeX."""
        import sympy as sp

        # a Dummy differs from all other symbols, even with the same name
        symbol = sp.Dummy(text.strip("\\{}"), real=True, positive=True if text == "h" else None)
        self.latex[symbol] = text
        return symbol


def _of_system(system: System, simplify: bool, series: bool) -> Equations:
    space, (q, v, u) = system.space, system.symbols
    m = system.n_velocity_constraints + system.n_holonomic_constraints
    lam, rates = ca.SX.sym("lam", m), ca.SX.sym("a", space.nv)
    velocities = [_dotted(name, space.names) for name in space.velocity_names]
    names = [
        _texts(space.names),
        velocities,
        _texts(system.inputs),
        _texts(system.parameter_names),
        [f"\\lambda_{{{i + 1}}}" for i in range(m)],
        _rates(velocities)
        if space.nv == space.nw
        else _rates([f"y_{{{i + 1}}}" for i in range(space.nv)]),
    ]
    write = _Writer([q, v, u, system.parameter_symbols, lam, rates], names, simplify, series)
    name = write.symbol("L")
    # L(q, v)
    lagrangian = write.expressions(system.lagrangian_at(q, v))
    groups = {"Lagrangian": write.equations([name], lagrangian)}
    if not system.prescribed:
        # M(q) y' = F(q, v, u) + C^T lam
        terms = motion_terms(system, q, v, u)
        left = write.expressions(terms["mass"] @ rates)
        right = write.expressions(terms["force"] + terms["constraint"].T @ lam)
        groups["Equations of motion"] = write.equations(left, right)
    rolling = system.constraint_matrix(q) @ v - system.drift(q)  # A(q) v = b(q)
    for heading, rows in (
        ("Velocity constraints", rolling),
        ("Holonomic constraints", system.holonomic(q)),
    ):
        if rows.shape[0]:
            sides = write.expressions(rows)
            groups[heading] = write.equations(sides, [0] * len(sides))
    return write.with_abbreviations(system.name, groups)


def _of_step(dsys: DiscreteSystem, simplify: bool, series: bool) -> Equations:
    system, method, n = dsys.system, dsys.method, dsys.system.space.nq
    if len(method.substeps) > 1:
        raise ValueError(
            f"{dsys}: a composition has no single residual; use the method of its substeps"
        )
    x, u, z, h = (
        ca.SX.sym(name, size)
        for name, size in (("x", dsys.nx), ("u", dsys.nu), ("z", method.nz), ("h", 1))
    )
    names = [
        _texts(dsys.state_names),
        _texts(dsys.inputs),
        [f"z_{{{i + 1}}}" for i in range(method.nz)],
        ["h"],
        _texts(system.parameter_names),
    ]
    write = _Writer([x, u, z, h, system.parameter_symbols], names, simplify, series)
    # the method writes its equations in these symbols, with the step size h
    symbols = StepSymbols(x[:n], x[n:], u, z, h, system.mechanics.gradients)
    following = [write.symbol(f"{text}^{{+}}") for text in names[0]]
    after = write.expressions(ca.vertcat(*method.readout(symbols)))
    groups = {"Next state": write.equations(following, after)}
    if method.nz:
        residual = write.expressions(method.residual(symbols))
        groups = {"Residual": write.equations(residual, [0] * method.nz), **groups}
    return write.with_abbreviations(dsys.name, groups)


def _texts(names: Sequence[str]) -> list[str]:
    """LaTeX for names. Words are upright, names of Greek letters become Greek letters, and the
    part of a name after the underscore is an index, as in x_1.
    """
    return [_text(name.replace("[", "_").replace("]", "")) for name in names]


def _text(name: str) -> str:
    import sympy as sp

    # x_1 has the base x and the index 1
    base, _, index = name.partition("_")
    letter = base if base.isdigit() else sp.latex(sp.Symbol(base))
    if len(letter) > 1 and not letter.startswith("\\") and not letter.isdigit():
        return f"\\mathrm{{{name}}}".replace("_", r"\,")
    return letter + (f"_{{{_text(index)}}}" if index else "")


def _dotted(name: str, coordinates: Sequence[str]) -> str:
    """LaTeX for a velocity: its coordinate with a dot, or its name if it has no coordinate."""
    for suffix in ("_dot", "_rate", ""):
        if name.endswith(suffix) and name.removesuffix(suffix) in coordinates:
            return f"\\dot{{{_texts([name.removesuffix(suffix)])[0]}}}"
    return _texts([name])[0]


def _rates(velocities: Sequence[str]) -> list[str]:
    """LaTeX for the rates of velocities, with an additional dot."""
    return [
        f"\\d{text[1:]}" if text.startswith("\\dot") else f"\\dot{{{text}}}" for text in velocities
    ]
