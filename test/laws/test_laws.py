"""What holds for every system and every integrator that takes it, stated once, on systems that
nobody wrote (random_systems.py).

All numbers are compared in units of their own: a momentum in the size that velocities of order one
give it, everything else in 1. By the form of the systems all motions are then of order one, so
that truncation of differences and round-off are, too, whatever the masses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import islice, pairwise
from zlib import crc32

import casadi as ca
import numpy as np
import pytest
from differences import derivative, second_derivative
from hypothesis import given, settings
from hypothesis import strategies as st
from random_systems import Draw, draws

from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators import INTEGRATORS, Integrator

H = 0.05
SPACING, SPACING_2 = 0.02, 0.05
DIRECTIONS = 4
"""Random directions of second differences: a wrong entry shows in each of them."""
EPS = np.finfo(float).eps


@dataclass(frozen=True)
class Case:
    """A random system under an integrator, at a random state and input."""

    draw: Draw
    method: str
    seed: int = 0

    @cached_property
    def dsys(self) -> DiscreteSystem:
        return INTEGRATORS[self.method](self.draw.system, H)

    @property
    def entry(self) -> Integrator:
        return INTEGRATORS[self.method]

    @cached_property
    def phase(self) -> tuple[np.ndarray, np.ndarray]:
        return self.draw.phase(np.random.default_rng(self.seed))

    def input(self, h: float, steps: int = 1) -> np.ndarray:
        """Inputs (steps, nu): constant forces, and a driven coordinate that moves evenly."""
        (q, v), system = self.phase, self.draw.system
        forces = np.random.default_rng(self.seed + 1).uniform(-1, 1, system.nu)
        times = h * np.arange(1, steps + 1)[:, None]
        n = len(system.prescribed)
        driven = q[len(q) - n :] + times * v[len(v) - n :]
        return np.hstack([np.tile(forces, (steps, 1)), driven])

    @cached_property
    def u(self) -> np.ndarray:
        return self.input(H)[0]

    @cached_property
    def x(self) -> np.ndarray:
        return self.dsys.state(*self.phase, self.u)

    @cached_property
    def x1(self) -> np.ndarray:
        return self.dsys.step(self.x, self.u)

    @cached_property
    def units(self) -> np.ndarray:
        """Units of the local coordinates (ndx) of states."""
        q, v = self.phase
        n, units = self.dsys.system.space.nv, np.ones(self.dsys.ndx)
        rest = self.dsys.measured_state(q, 0 * v)
        frame = np.asarray(ca.DM(self.dsys.system.space.frame(ca.SX(q))))
        moving = [self.dsys.local(rest, self.dsys.measured_state(q, w)) for w in frame.T]
        sizes = np.abs(moving).max(axis=0)[n:]
        units[n:] = np.where(sizes > 0, sizes, 1.0)
        return units

    def difference(self, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
        """From one state to the other in local coordinates, in their units."""
        return self.dsys.local(x0, x1) / self.units

    def moved_step(self, w: np.ndarray, parameters: tuple[str, ...] = ()) -> np.ndarray:
        """The step from a state, an input and parameters that are moved by w, in the local
        coordinates of these parameters about the step.
        """
        dsys, n, m = self.dsys, self.dsys.ndx, self.dsys.ndx + self.dsys.nu
        if w[m:].any():
            values = dict(zip(dsys.parameter_names, dsys.parameter_values))
            changed = {name: values[name] + d for name, d in zip(parameters, w[m:])}
            dsys = dsys.with_step(changed.pop("h", H)).with_parameters(**changed)
        x1 = dsys.step(dsys.retract(self.x, w[:n] * self.units), self.u + w[n:m])
        return dsys.local(self.x1, x1) / self.units


def close(got, want, tolerance):
    """Within a tolerance of the largest number."""
    assert np.shape(got) == np.shape(want)
    error, size = np.abs(np.subtract(got, want)), np.abs(want).max(initial=1.0)
    assert error.max(initial=0.0) <= tolerance * size, (error.max() / size, got, want)


def close_to_difference(rule, function, spacing, got):
    """Within what halving the spacing changes of a difference of order 8, which is 2^8 times its
    error, and round-off.
    """
    coarse, fine = rule(function, spacing), rule(function, spacing / 2)
    change, size = np.abs(fine - coarse).max(), np.abs(fine).max(initial=1.0)
    assert change <= 1e-5 * size, ("the differences are too coarse", coarse, fine)
    assert np.abs(got - fine).max() <= change + 1e-10 * size, (got, fine, change)


def the_linearization_is_the_derivative_of_the_step(case):
    dsys, names = case.dsys, case.dsys.parameter_names
    lin = dsys.linearize(case.x, case.u, names)
    assert np.array_equal(lin.x1, case.x1)
    got = np.hstack([lin.A * case.units, lin.B, lin.P]) / case.units[:, None]
    for column, e in zip(got.T, np.eye(got.shape[1])):
        spacing = SPACING * (H if e[-1] else 1.0)
        close_to_difference(derivative, lambda t: case.moved_step(t * e, names), spacing, column)
    plain = dsys.linearize(case.x, case.u)
    close(plain.A, lin.A, 8 * EPS)
    close(plain.B, lin.B, 8 * EPS)


def the_hessian_is_the_second_derivative_of_the_step(case):
    dsys, rng = case.dsys, np.random.default_rng(case.seed + 2)
    names = dsys.parameter_names if case.seed % 2 else ()
    lam = rng.normal(size=dsys.ndx)
    got = dsys.hessian(case.x, case.u, lam / case.units, parameters=names)
    close(got, got.T, 1e-12)
    units = np.concatenate([case.units, np.ones(len(got) - dsys.ndx)])
    for _ in range(DIRECTIONS):
        d = rng.normal(size=len(got)) / np.sqrt(len(got))
        d[-1] *= H if names else 1.0
        bent = lambda t: lam @ case.moved_step(t * d, names)
        close_to_difference(second_derivative, bent, SPACING_2, units * d @ got @ (units * d))


def a_symmetric_step_is_reversible(case):
    """A step, the velocity reversed, the step back, the velocity reversed: back at the start,
    without damping, moving ground and currents. A method's memory turns or stays.
    """
    draw, n = case.draw, case.dsys.system.space.nq
    if not case.entry.symmetric or draw.first_order:
        return
    dsys = case.dsys.with_parameters(damping=0.0, ground=0.0)
    x, errors, memory = dsys.state(*case.phase, case.u), [], len(dsys.method.memory)
    backward = np.append(case.u[: draw.inputs], x[n - draw.prescribed : n])
    for sign in (1, -1):
        flip = np.where(np.arange(dsys.nx) < n, 1, -1)
        flip[dsys.nx - memory :] = sign
        ends = x, flip * dsys.step(flip * dsys.step(x, case.u), backward)
        if dsys.method.multipliers:  # no step depends on the impulses of constraints
            none = np.zeros(dsys.system.n_holonomic_constraints)
            ends = [dsys.with_constraint_impulses(end, none) for end in ends]
        errors.append(np.abs(dsys.local(*ends) / case.units).max())
    assert min(errors) <= 1e-11, errors


def constraints_hold_at_the_node(case):
    dsys, system, x1 = case.dsys, case.dsys.system, case.x1
    q, v = dsys.configuration(x1), dsys.velocity(x1)
    np.testing.assert_allclose(system.space.retract(q, np.zeros(system.space.nv)), q, atol=4 * EPS)
    symbol = system.symbols[0]
    value = lambda expression: system.value(ca.densify(expression), q)
    rolling = value(system.constraint_matrix(symbol)) @ v - value(system.drift(symbol))[:, 0]
    close(rolling, np.zeros(system.n_velocity_constraints), 1e-13)
    if "holonomic constraints" in case.entry.preserves:
        held = value(system.holonomic(symbol))[:, 0]
        close(held, np.zeros(system.n_holonomic_constraints), 1e-11)
    if "velocity constraints at the middle" in case.entry.preserves:
        between = dsys.constraint_residual(case.x, x1)
        close(between, np.zeros(system.n_velocity_constraints), 1e-11)


def states_are_configurations_and_velocities(case):
    dsys = case.dsys
    q, v = dsys.configuration(case.x), dsys.velocity(case.x)
    again = dsys.state(q, v, case.u)
    close(dsys.configuration(again), q, EPS)
    close(case.difference(case.x, again), np.zeros(dsys.ndx), 1e-12)
    close(dsys.velocity(dsys.measured_state(q, v, case.u)), v, 1e-12)


def local_coordinates_are_the_inverse_of_the_retraction(case):
    dsys, rng = case.dsys, np.random.default_rng(case.seed + 3)
    dx = rng.uniform(-1, 1, dsys.ndx) * case.units
    close(case.difference(case.x, dsys.retract(case.x, dx)), dx / case.units, 1e-13)
    close(dsys.retract(case.x, 0 * dx), case.x, 4 * EPS)
    assert not np.abs(dsys.local(case.x, case.x) / case.units).max() > EPS


def a_step_is_a_pure_function_and_a_simulation_is_its_repetition(case):
    dsys, x, u = case.dsys, case.x.copy(), case.u.copy()
    inputs = case.input(H, 5)
    states = [x]
    for row in inputs:
        states.append(dsys.step(states[-1], row))
    dsys.linearize(x, u)
    assert np.array_equal(dsys.simulate(x, inputs).states, states)
    assert np.array_equal(dsys.step(x, u), states[1])
    assert np.array_equal(dsys.with_step(2 * H).with_step(H).step(x, u), states[1])
    assert np.array_equal(x, case.x) and np.array_equal(u, case.u)


def wrong_arguments_are_refused_by_name(case):
    dsys = case.dsys
    for what, x, u in (
        ("state", case.x[1:], case.u),
        ("state", np.append(case.x, 0.0), case.u),
        ("input", case.x, np.append(case.u, 0.0)),
        ("state", np.where(np.arange(dsys.nx) == dsys.nx - 1, np.nan, case.x), case.u),
        *[("input", case.x, case.u * np.inf)] * (dsys.nu > 0),
    ):
        for call in (dsys.step, dsys.linearize):
            with pytest.raises(ValueError, match=what) as refusal:
                call(x, u)
            assert dsys.system.name in str(refusal.value)


def a_method_has_its_order(case):
    """By the differences of three runs with half the step each, at four common nodes, where they
    stand above round-off: they shrink at least as the order says.
    """
    runs, order, steps = [], case.entry.order, (8, 16, 32)
    for n in steps:
        h = 8 * H / n
        dsys = case.dsys.with_step(h)
        inputs = case.input(h, n)
        states = dsys.simulate(dsys.state(*case.phase, inputs[0]), inputs).states[:: n // 4]
        runs.append((dsys.configuration(states), dsys.velocity(states)))
    for part in zip(*runs):
        coarse, fine = (np.abs(b - a).max() for a, b in pairwise(part))
        assert fine <= 1e-11 or np.log2(coarse / fine) >= order - 0.5, (coarse, fine)


LAWS = (
    a_symmetric_step_is_reversible,
    constraints_hold_at_the_node,
    states_are_configurations_and_velocities,
    local_coordinates_are_the_inverse_of_the_retraction,
    a_step_is_a_pure_function_and_a_simulation_is_its_repetition,
    wrong_arguments_are_refused_by_name,
    a_method_has_its_order,
)
DERIVATIVES = (
    the_linearization_is_the_derivative_of_the_step,
    the_hessian_is_the_second_derivative_of_the_step,
)
METHODS = [name for name in INTEGRATORS if not name.startswith("rdp")]  # they need a symmetry
DERIVED = ("midpoint", "nonholonomic_midpoint", "gni_implicit", "spark_2", "cf4")
"""One of every kind, whose derivatives are tested at once: those of others take long to make."""
LARGE = ("energy", "gonzalez", "itoh", "nonholonomic_gauss", "nprk", "spark", "variational_gauss")
"""Starts of names of methods whose equations are large: their first systems are on R^1 or R^2."""
POOL = 60
"""Number of draws of which every method takes some."""
drawn = cache(lambda seed, largest: Draw.random(np.random.default_rng(seed), largest))


@lru_cache(maxsize=2)
def case_of(method: str, number: int) -> Case:
    """The system of this number, from 0, of those that a method takes, small for the number 0."""
    first, largest = crc32(method.encode()), 5 if number else 2 if method.startswith(LARGE) else 3
    pool = (drawn((first + i) % POOL, largest) for i in range(POOL))
    fitting = (draw for draw in pool if INTEGRATORS[method].takes(draw.system))
    return Case(next(islice(fitting, number, None)), method, number)


def is_quick(method: str) -> bool:
    """Whether the first system of a method is tested by default: a third of those whose equations
    are small, and one of every kind.
    """
    return method in DERIVED or (
        INTEGRATORS[method].order <= 4 and crc32(method.encode()) % 3 == 0
    )


def cases(quick) -> list:
    """(method, number) of all methods and three systems each; slow but for the first system of a
    method that is `quick`.
    """
    return [
        pytest.param(
            method, number, marks=() if quick(method) and not number else pytest.mark.slow
        )
        for method in METHODS
        for number in range(3)
    ]


def ids(value):
    return getattr(value, "__name__", None)


@pytest.mark.parametrize("law", LAWS, ids=ids)
@pytest.mark.parametrize("method, number", cases(is_quick))
def test_a_random_system_obeys(law, method, number):
    law(case_of(method, number))


@pytest.mark.parametrize("law", DERIVATIVES, ids=ids)
@pytest.mark.parametrize("method, number", cases(lambda method: method in DERIVED))
def test_of_a_random_system(law, method, number):
    law(case_of(method, number))


@pytest.mark.exhaustive
@settings(max_examples=100)
@given(draws(), st.data())
def test_all_systems_obey_all_laws(draw, data):
    """The same, with failures shrunk to the simplest system that has them."""
    method = data.draw(st.sampled_from(list(INTEGRATORS.fitting(draw.system))))
    for law in (*LAWS, *DERIVATIVES):
        law(Case(draw, method))
