"""Physical parameters and the step are arguments: one compile serves all values, and the step's
derivatives by them are exact.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from cases import discrete, random_point
from differences import derivative
from refusals import refusal

sys.path.insert(0, str(Path(__file__).parents[1] / "lie"))
import lie_cases  # noqa: E402

from nh_control.geometry.spaces import Rn  # noqa: E402
from nh_control.integrators import midpoint, nonholonomic_midpoint  # noqa: E402
from nh_control.mechanics.consistent_states import minimize_potential_energy  # noqa: E402
from nh_control.mechanics.continuous import ContinuousSystem  # noqa: E402
from nh_control.mechanics.parameters import Parameters, parameter  # noqa: E402
from nh_control.mechanics.reduced import ReducedEquations  # noqa: E402
from nh_control.mechanics.system import System  # noqa: E402
from nh_control.numerics import compiled  # noqa: E402
from nh_control.systems import snakeboard  # noqa: E402

H = 0.05
SPACING = 0.01


def test_by_a_parameter_that_must_stay_a_unit_vector():
    dsys = midpoint(lie_cases.system("heavy_top"), H)
    x, u = lie_cases.random_point(dsys, np.random.default_rng(3))
    names = tuple(f"chi[{i}]" for i in range(3))
    lin, chi = dsys.linearize(x, u, parameters=names), np.array(dsys.system.parameters.chi)
    side = np.cross(chi, [0.0, 0.0, 1.0])

    def turned(s):
        at = dsys.with_parameters(chi=tuple(np.cos(s) * chi + np.sin(s) * side))
        return dsys.local(lin.x1, at.step(x, u))

    np.testing.assert_allclose(lin.P @ side, derivative(turned, SPACING), rtol=0, atol=1e-9)


def test_parameters_and_steps_share_one_compile(monkeypatch):
    dsys = discrete("snakeboard", "dla", H).prepare()
    dsys.linearize(*(at := random_point(dsys, np.random.default_rng(1))))
    made = []
    monkeypatch.setattr(compiled.Native, "__init__", lambda *a: made.append(a))
    heavy = dsys.with_parameters(m=1.5, J=0.7).with_step(0.02)
    fresh = nonholonomic_midpoint(snakeboard(heavy.system.parameters), 0.02)
    states = [heavy.step(*at), heavy.linearize(*at).A, heavy.energy(at[0])]
    assert made == []
    monkeypatch.undo()
    for ours, theirs in zip(
        states, (fresh.step(*at), fresh.linearize(*at).A, fresh.energy(at[0]))
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert heavy.h == 0.02 and heavy.system.parameters.m == 1.5 and dsys.system.parameters.m == 1.0
    assert np.array_equal(dsys.step(*at), discrete("snakeboard", "dla", H).step(*at))


@dataclass(frozen=True)
class Rod(Parameters):
    """A rod of some points."""

    masses: tuple[float, ...] = parameter((1.0, 2.0), "kg", "masses")
    length: float = parameter(1.0, "m", "length")


def rod(parameters=Rod()) -> System:
    return System(
        name="rod",
        space=Rn("angle"),
        lagrangian=lambda q, v, p: sum(p.masses) * (p.length * v) ** 2 / 2 + ca.cos(q),
        parameters=parameters,
    )


def test_wrong_changes_are_refused(snapshot):
    dsys = midpoint(rod(), H)
    wrong = (
        {"mass": 1.0},
        {"masses": (1.0, 2.0, 3.0)},
        {"length": -1.0},
        {"masses": (1.0, float("nan"))},
    )
    assert [refusal(lambda: dsys.with_parameters(**one)) for one in wrong] == snapshot


def test_derivatives_by_unknown_parameters_are_refused():
    dsys = midpoint(rod(), H)
    assert dsys.parameter_names == ("masses[0]", "masses[1]", "length", "h")
    with pytest.raises(ValueError, match=r"no parameters \['mass'\].*masses\[0\]"):
        dsys.linearize([0.1, 0.2], (), parameters=("mass",))
    with pytest.raises(ValueError, match="step h must be positive"):
        dsys.with_step(0.0)


@dataclass(frozen=True)
class Spring(Parameters):
    """A mass that hangs from a spring; with bounds of its own for its only input."""

    stiffness: float = parameter(100.0, "N/m")
    mass: float = parameter(2.0, "kg")
    limit: float = parameter(7.0, "N")


def spring() -> System:
    return System(
        name="spring",
        space=Rn("z"),
        lagrangian=lambda q, v, p: p.mass * (v**2 / 2 - 10.0 * q) - p.stiffness * q**2 / 2,
        inputs=("push",),
        force=lambda q, v, u, p: u,
        parameters=Spring(),
        input_limits=lambda p: [[-p.limit, p.limit]],
    )


def reduced_acceleration(system):
    return ReducedEquations(system).rates([0.0])(0.0, np.array([0.1, 0.0]))[1]


VALUES = {
    "equilibrium": (lambda s: minimize_potential_energy(s, [0.1])[0], (-0.2, -0.4, -0.1)),
    "acceleration": (
        lambda s: ContinuousSystem(s).acceleration([0.1], [0.0], [0.0])[0],
        (-15.0, -12.5, -20.0),
    ),
    "reduced": (reduced_acceleration, (-15.0, -12.5, -20.0)),
    "values": (lambda s: s.parameter_values @ [0, 1, 0], (2.0, 4.0, 1.0)),
    "momentum": (lambda s: midpoint(s, H).state([0.1], [1.0])[1], (2.0, 4.0, 1.0)),
}
"""What is found of a system, and for masses of 2, 4 and 1 kg."""


@pytest.mark.parametrize("what", VALUES)
def test_what_needs_numbers_takes_the_present_ones(what):
    """Also after the same was found with others, and without a change to these."""
    find, (expected, heavy, light) = VALUES[what]
    system = spring()
    for _ in range(2):
        assert find(system) == pytest.approx(expected, rel=1e-9)
        assert find(system.with_parameters(mass=4.0)) == pytest.approx(heavy, rel=1e-9)
        assert find(system.with_parameters(mass=1.0, limit=7.0)) == pytest.approx(light, rel=1e-9)
    assert system.with_parameters(limit=3.0).input_bounds.tolist() == [[-3.0, 3.0]]
    assert system.with_parameters().parameters == system.parameters == Spring()
