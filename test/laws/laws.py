"""The laws: what holds for every system under every integrator that takes it, each stated once.

All numbers are compared in units of their own: a momentum in the size that velocities of order one
give it, everything else in 1. Motions are then of order one, so that truncation of differences and
round-off are, too, whatever the masses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from differences import derivative, second_derivative
from random_trees import assert_the_same_at, by_equations, not_worth_compiling

from nh_control.control.rollout import rollout
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry import SE2, SE3, SO3, Product, Space, se2
from nh_control.integrators import Integrator
from nh_control.mechanics.constrained_states import ConstrainedStates
from nh_control.mechanics.system import System
from nh_control.multibody.tree_engine import TreeEngine

DIRECTIONS = 4
"""Random directions of second differences: a wrong entry shows in each of them."""
EPS = np.finfo(float).eps
LOSSES = re.compile("damping|friction|ground")
"""Names of parameters without which a motion is reversible."""
Move = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Units(NamedTuple):
    """How many of the new units are in 1 kg, 1 m and 1 s."""

    kg: float
    m: float
    s: float


class Converted(NamedTuple):
    """A system in other units, and how many of them are in one of the old ones, number by number
    of configurations, velocities and inputs.
    """

    system: System
    of_q: np.ndarray
    of_v: np.ndarray
    of_u: np.ndarray


class Subject:
    """A system, and what laws need to know of it: its motions are of order one with the step `h`,
    its derivatives are found by differences with the `spacing`.
    """

    system: System
    h = 0.05
    spacing = 0.02
    nonconservative: tuple[str, ...] = ()
    """Further parameters that are 0 if the system is to keep its energy."""
    smooth = True
    """Whether it is as smooth as orders and differences of high order need."""

    def phase(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A configuration and a velocity that satisfy the holonomic constraints."""
        raise NotImplementedError

    def world_motion(self, rng: np.random.Generator) -> Move | None:
        """A motion of the world that changes no force, of configurations and velocities."""
        return None

    def momentum(self, x: np.ndarray) -> np.ndarray:
        """The momentum of motions of the world, in the frame at rest, of a state (q, p)."""
        raise NotImplementedError

    def in_units(self, units: Units) -> Converted | None:
        """The same system in other units, if it is known."""
        return None

    def reversible(self, dsys: DiscreteSystem) -> DiscreteSystem:
        """The same system without what loses energy or moves the ground."""
        names = self.system.parameter_names
        return dsys.with_parameters(**{name: 0.0 for name in names if LOSSES.search(name)})

    def conservative(self, dsys: DiscreteSystem) -> DiscreteSystem:
        """The same system, which keeps its energy without inputs."""
        return self.reversible(dsys).with_parameters(**dict.fromkeys(self.nonconservative, 0.0))


@dataclass(frozen=True, eq=False)
class Case:
    """A system under an integrator, at a random state and input."""

    subject: Subject
    entry: Integrator
    seed: int = 0

    def __repr__(self) -> str:
        return f"{self.subject} by {self.entry.name}, seed {self.seed}"

    @property
    def h(self) -> float:
        return self.subject.h

    @property
    def system(self) -> System:
        return self.subject.system

    @cached_property
    def dsys(self) -> DiscreteSystem:
        return self.entry(self.system, self.h)

    @cached_property
    def phase(self) -> tuple[np.ndarray, np.ndarray]:
        return self.subject.phase(np.random.default_rng(self.seed))

    def input(self, h: float, steps: int = 1, strength: float = 1.0) -> np.ndarray:
        """Inputs (steps, nu): constant forces, and driven coordinates that move evenly."""
        (q, v), system = self.phase, self.system
        largest = np.nan_to_num(system.input_bounds[:, 1], posinf=5.0)[: system.nu] / 5
        forces = np.random.default_rng(self.seed + 1).uniform(-1, 1, system.nu) * largest
        times = h * np.arange(1, steps + 1)[:, None]
        n = len(system.prescribed)
        driven = q[len(q) - n :] + times * v[len(v) - n :]
        return np.hstack([np.tile(strength * forces, (steps, 1)), driven])

    @cached_property
    def u(self) -> np.ndarray:
        return self.input(self.h)[0]

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
        n, units = self.system.space.nv, np.ones(self.dsys.ndx)
        rest = self.dsys.measured_state(q, 0 * v)
        frame = np.asarray(ca.DM(self.system.space.frame(ca.SX(q))))
        moving = [self.dsys.local(rest, self.dsys.measured_state(q, w)) for w in frame.T]
        sizes = np.abs(moving).max(axis=0)[n:]
        units[n:] = np.where(sizes > 0, sizes, 1.0)
        return units

    @cached_property
    def round_off(self) -> float:
        """How many times larger than in numbers of order one round-off is, in the units."""
        return max(1.0, np.abs(self.x[self.system.space.nq :]).max() / self.units.min())

    def difference(self, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
        """From one state to the other in local coordinates, in their units."""
        return self.dsys.local(x0, x1) / self.units

    def moved_step(self, w: np.ndarray, with_parameters: bool = False) -> np.ndarray:
        """The step from a state, an input and all parameters that are moved by w, in the local
        coordinates of these parameters about the step.
        """
        dsys, n, m = self.dsys, self.dsys.ndx, self.dsys.ndx + self.dsys.nu
        if with_parameters and w[m:].any():
            dsys = dsys.with_parameter_values(dsys.parameter_values + w[m:])
        x1 = dsys.step(dsys.retract(self.x, w[:n] * self.units), self.u + w[n:m])
        return dsys.local(self.x1, x1) / self.units

    @cached_property
    def free_run(self) -> tuple[DiscreteSystem, np.ndarray]:
        """Five states of a motion without forces and losses."""
        dsys = self.subject.conservative(self.dsys)
        inputs = self.input(self.h, 4, strength=0.0)
        return dsys, dsys.simulate(dsys.state(*self.phase, inputs[0]), inputs).states


def close(got, want, tolerance, size=1.0):
    """Within a tolerance of the largest number, or of a larger size."""
    assert np.shape(got) == np.shape(want)
    error, size = np.abs(np.subtract(got, want)), np.abs(want).max(initial=size)
    assert error.max(initial=0.0) <= tolerance * size, (error.max() / size, got, want)


def close_to_difference(rule, function, spacing, got):
    """Within what halving the spacing changes of a difference of order 8, which is 2^8 times its
    error, and round-off; the spacing is halved up to twice while it is too coarse.
    """
    for _ in range(3):
        coarse, fine = rule(function, spacing), rule(function, spacing / 2)
        change, size = np.abs(fine - coarse).max(), np.abs(fine).max(initial=1.0)
        if change <= 1e-5 * size:
            break
        spacing /= 2
    else:
        raise AssertionError("the differences are too coarse", coarse, fine)
    power = 2 if rule is second_derivative else 1
    round_off = 1e-10 * max(1.0, 0.02 / spacing) ** power
    assert np.abs(got - fine).max() <= change + round_off * size, (got, fine, change)


# --- derivatives ---------------------------------------------------------------------------------


def the_linearization_is_the_derivative_of_the_step(case):
    dsys, names = case.dsys, case.dsys.parameter_names
    lin, values = dsys.linearize(case.x, case.u, names), dsys.parameter_values
    got = np.hstack([lin.A * case.units, lin.B, lin.P]) / case.units[:, None]
    scale = np.ones(got.shape[1])
    if case.subject.smooth:
        scale[-1] = case.h
    else:
        scale[dsys.ndx + dsys.nu :] = np.maximum(np.abs(values), 1e-3)
    for column, e, s in zip(got.T, np.eye(got.shape[1]), scale):
        step = lambda t: case.moved_step(t * e, with_parameters=True)
        close_to_difference(derivative, step, case.subject.spacing * s, column)
    plain = dsys.linearize(case.x, case.u)
    assert np.array_equal(plain.x1, case.x1)
    near = 1e-10 if isinstance(dsys.engine, TreeEngine) else 64 * EPS  # the kernel knows only h
    for a, b in ((plain.x1, lin.x1), (plain.A, lin.A), (plain.B, lin.B)):
        close(a, b, near)


def the_hessian_is_the_second_derivative_of_the_step(case):
    dsys, rng = case.dsys, np.random.default_rng(case.seed + 2)
    names = dsys.parameter_names if case.seed % 2 and case.subject.smooth else ()
    lam = rng.normal(size=dsys.ndx)
    got = dsys.hessian(case.x, case.u, lam / case.units, parameters=names)
    close(got, got.T, 1e-12)
    units = np.concatenate([case.units, np.ones(len(got) - dsys.ndx)])
    for _ in range(DIRECTIONS):
        d = rng.normal(size=len(got)) / np.sqrt(len(got))
        d[-1] *= case.h if names else 1.0
        bent = lambda t: lam @ case.moved_step(t * d, with_parameters=bool(names))
        spacing = 2.5 * case.subject.spacing
        close_to_difference(second_derivative, bent, spacing, units * d @ got @ (units * d))


# --- what a step is ------------------------------------------------------------------------------


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
    back = case.difference(case.x, dsys.retract(case.x, dx))
    close(back, dx / case.units, 1e-13 * case.round_off)
    projected = isinstance(case.system.mechanics.state_space, ConstrainedStates)
    close(dsys.retract(case.x, 0 * dx), case.x, 1e-13 * case.round_off if projected else 4 * EPS)
    assert not np.abs(dsys.local(case.x, case.x) / case.units).max() > EPS


def a_step_is_a_pure_function_and_a_simulation_is_its_repetition(case):
    dsys, x, u = case.dsys, case.x.copy(), case.u.copy()
    inputs = case.input(case.h, 5)
    states = [x]
    for row in inputs:
        states.append(dsys.step(states[-1], row))
    dsys.linearize(x, u)
    assert np.array_equal(dsys.simulate(x, inputs).states, states)
    assert np.array_equal(dsys.step(x, u), states[1])
    assert np.array_equal(dsys.with_step(2 * case.h).with_step(case.h).step(x, u), states[1])
    assert np.array_equal(x, case.x) and np.array_equal(u, case.u)


def a_batch_equals_single_runs(case):
    """Runs with states, inputs and parameters of their own, and tables of states."""
    dsys, rng = case.dsys, np.random.default_rng(case.seed + 4)
    nominal = dsys.parameter_values[:-1]
    values = nominal * rng.uniform(0.99, 1.01, (3, len(nominal)))
    values[0] = nominal
    starts = np.array([case.x, case.x1, dsys.step(case.x1, case.input(case.h, 2)[1])])
    inputs = case.input(case.h, 5)
    inputs = np.array([inputs[k : k + 3] for k in range(3)])
    of_runs = values if values.size and not case.system.n_holonomic_constraints else None
    runs = rollout(dsys, starts, inputs, parameters=of_runs, threads=2)
    assert not runs.failures
    for start, rows, numbers, states in zip(starts, inputs, values, runs.states):
        one = dsys if of_runs is None else dsys.with_parameter_values(np.append(numbers, case.h))
        assert np.array_equal(one.simulate(start, rows).states, states)
    q, v = dsys.configuration(starts), dsys.velocity(starts)
    moved = dsys.retract(starts, dx := rng.uniform(-0.1, 0.1, (3, dsys.ndx)) * case.units)
    changes, energies, made = dsys.local(starts, moved), dsys.energies(starts), dsys.state(q, v)
    for k, x in enumerate(starts):
        assert np.array_equal(dsys.configuration(x), q[k])
        assert np.array_equal(dsys.velocity(x), v[k])
        assert np.array_equal(dsys.state(q[k], v[k]), made[k])
        assert np.array_equal(dsys.retract(x, dx[k]), moved[k])
        assert np.array_equal(dsys.local(x, moved[k]), changes[k])
        assert dsys.energy(x) == energies[k]


def wrong_arguments_are_refused_by_name(case):
    dsys, momentum = case.dsys, case.system.space.nq
    broken = lambda k, x: np.where(np.arange(len(x)) == k, np.nan, x)
    for what, x, u in (
        ("state", case.x[1:], case.u),
        ("state", np.append(case.x, 0.0), case.u),
        ("input", case.x, np.append(case.u, 0.0)),
        ("state", broken(0, case.x), case.u),
        ("state", broken(momentum, case.x), case.u),
        ("state", broken(dsys.nx - 1, case.x), case.u),
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
        h = 8 * case.h / n
        dsys = case.dsys.with_step(h)
        inputs = case.input(h, n)
        states = dsys.simulate(dsys.state(*case.phase, inputs[0]), inputs).states[:: n // 4]
        runs.append((dsys.configuration(states), dsys.velocity(states)))
    for part in zip(*runs):
        coarse, fine = (np.abs(b - a).max() for a, b in pairwise(part))
        assert fine <= 1e-11 or np.log2(coarse / fine) >= order - 0.5, (coarse, fine)


# --- structure -----------------------------------------------------------------------------------


def a_symmetric_step_is_reversible(case):
    """A step, the velocity reversed, the step back, the velocity reversed: back at the start,
    without damping and moving ground. A method's memory turns or stays.
    """
    n, driven = case.system.space.nq, len(case.system.prescribed)
    dsys = case.subject.reversible(case.dsys)
    x, errors, memory = dsys.state(*case.phase, case.u), [], len(dsys.method.memory)
    backward = np.append(case.u[: case.system.nu], x[n - driven : n])
    for sign in (1, -1):
        flip = np.where(np.arange(dsys.nx) < n, 1, -1)
        flip[dsys.nx - memory :] = sign
        ends = x, flip * dsys.step(flip * dsys.step(x, case.u), backward)
        if dsys.method.multipliers:  # no step depends on the impulses of constraints
            none = np.zeros(dsys.system.n_holonomic_constraints)
            ends = [dsys.with_constraint_impulses(end, none) for end in ends]
        errors.append(np.abs(dsys.local(*ends) / case.units).max())
    assert min(errors) <= 1e-11 * case.round_off, errors


def constraints_hold_at_the_node(case):
    dsys, system, x1 = case.dsys, case.system, case.x1
    q, v = dsys.configuration(x1), dsys.velocity(x1)
    np.testing.assert_allclose(system.space.retract(q, np.zeros(system.space.nv)), q, atol=4 * EPS)
    symbol = system.symbols[0]
    value = lambda expression: system.value(ca.densify(expression), q)
    rolling = value(system.constraint_matrix(symbol)) @ v - value(system.drift(symbol))[:, 0]
    size = np.abs(v).max(initial=1.0)
    close(rolling, np.zeros(system.n_velocity_constraints), 1e-13, size)
    if "holonomic constraints" in case.entry.preserves:
        held = value(system.holonomic(symbol))[:, 0]
        close(held, np.zeros(system.n_holonomic_constraints), 1e-11)
    # open: gonzalez_f on S^2 is up to 3e-8 off
    is_open = case.entry.name == "gonzalez_f" and system.space.nw != system.space.nv
    if "velocity constraints at the middle" in case.entry.preserves and not is_open:
        between = dsys.constraint_residual(case.x, x1)
        close(between, np.zeros(system.n_velocity_constraints), 1e-11, size)


def the_energy_is_kept(case):
    dsys, states = case.free_run
    q, v = dsys.configuration(states[0]), dsys.velocity(states[0])
    energies = dsys.energies(states)
    kinetic = energies[0] - dsys.energy(dsys.measured_state(q, 0 * v))
    close(energies, np.full(5, energies[0]), 1e-11, abs(kinetic))


def the_symplectic_form_is_kept(case):
    """`A^T Omega(x1) A = Omega(x)` along the holonomic constraints."""
    dsys, states = case.free_run
    x, u, system = states[1], case.input(case.h, 2, strength=0.0)[1], case.system
    lin, n = dsys.linearize(x, u), system.space.nv
    tangent = np.eye(n)
    if system.n_holonomic_constraints:
        symbol, change = system.symbols[0], ca.SX.sym("d", n)
        rows = ca.jacobian(system.holonomic(system.space.retract(symbol, change)), change)
        rows = ca.densify(ca.substitute(rows, change, ca.SX.zeros(n)))
        held = np.linalg.svd(system.value(rows, dsys.configuration(x)))[2]
        tangent = held[system.n_holonomic_constraints :].T
    zero, momenta = np.zeros_like(tangent), np.diag(case.units[n:])
    along = np.block([[tangent, np.zeros((n, n))], [zero, momenta]])
    moved = lin.A @ along
    before = along.T @ symplectic_form(system.space, x) @ along
    close(moved.T @ symplectic_form(system.space, lin.x1) @ moved, before, 1e-11)


def symplectic_form(space: Space, x: np.ndarray) -> np.ndarray:
    """`[[-C, I], [-I, 0]]` in the local coordinates (dq, dp) at a state (q, p), with
    `a . C b = -p . [a, b]` for a group's bracket of body velocities.
    """
    c, at, stored = np.zeros((space.nv, space.nv)), 0, space.nq
    for part in parts_of(space):
        p, tangent = x[stored : stored + part.nw], slice(at, at + part.nv)
        e = np.eye(part.nv)
        if isinstance(part, SE2 | SO3 | SE3):
            c[tangent, tangent] = [[-p @ bracket(part, a, b) for b in e] for a in e]
        at, stored = at + part.nv, stored + part.nw
    eye = np.eye(space.nv)
    return np.block([[-c, eye], [-eye, np.zeros_like(eye)]])


def bracket(part: Space, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The bracket of two body velocities."""
    if isinstance(part, SE2):
        return np.asarray(ca.DM(se2.ad(ca.SX(a)))) @ b
    turning = np.cross(a[:3], b[:3])
    if isinstance(part, SO3):
        return turning
    return np.append(turning, np.cross(a[:3], b[3:]) - np.cross(b[:3], a[3:]))


def parts_of(space: Space) -> list[Space]:
    """The factors of a product and of the products in it, or the space alone."""
    if not isinstance(space, Product):
        return [space]
    return [part for factor in space.factors for part in parts_of(factor)]


def momenta_at_rest_are_kept(case):
    """The momentum of a motion of the world, in the frame at rest."""
    dsys, states = case.free_run
    found = np.array([case.subject.momentum(x) for x in states])
    close(found, np.tile(found[0], (5, 1)), 1e-11, case.units[case.system.space.nv :].max())


def a_moved_world_does_not_matter(case):
    """A motion of the world moves a step, and leaves its derivatives as they are."""
    dsys, move = case.dsys, case.subject.world_motion(np.random.default_rng(case.seed + 5))
    u = case.u
    x = dsys.state(*move(*case.phase), u)
    x1 = dsys.step(x, u)
    space, (q, v) = case.system.space, move(dsys.configuration(case.x1), dsys.velocity(case.x1))
    close(space.local(q, dsys.configuration(x1)), np.zeros(space.nv), 1e-11)
    close(dsys.velocity(x1), v, 1e-11)
    for there, here in zip(dsys.linearize(x, u), dsys.linearize(case.x, u)):
        unit = case.units if there.shape[1] == dsys.ndx else np.ones(there.shape[1])
        close(there * unit / case.units[:, None], here * unit / case.units[:, None], 1e-9)


OTHER_UNITS = Units(kg=1e6, m=1e3, s=1e3), Units(kg=1e-3, m=1e-3, s=1 / 3600)


def units_do_not_matter(case):
    q1, v1 = case.dsys.configuration(case.x1), case.dsys.velocity(case.x1)
    for units in OTHER_UNITS:
        system, of_q, of_v, of_u = case.subject.in_units(units)
        (q, v), u = case.phase, case.u * of_u
        dsys = case.entry(system, case.h * units.s)
        x1 = dsys.step(dsys.state(q * of_q, v * of_v, u), u)
        close(dsys.configuration(x1) / of_q, q1, 1e-10)
        close(dsys.velocity(x1) / of_v, v1, 1e-10)


def the_kernel_of_trees_solves_the_generated_equations(case):
    """Steps, unknowns, derivatives and condition numbers."""
    generated = not_worth_compiling(by_equations(case.system, case.h))
    assert_the_same_at(case.dsys, generated, case.x, case.u)


# --- the list ------------------------------------------------------------------------------------


def always(case: Case) -> bool:
    return True


@dataclass(frozen=True)
class Law:
    """A law, the methods that it is about by what is registered of them, and the systems."""

    holds: Callable[[Case], None]
    of_method: Callable[[Integrator], bool] = lambda entry: True
    of_case: Callable[[Case], bool] = always
    needs: str = ""
    """A method that a kind of Subject must have of its own."""

    @property
    def name(self) -> str:
        return self.holds.__name__

    def applies(self, case: Case) -> bool:
        return self.of_method(case.entry) and self.knows(case) and self.of_case(case)

    def knows(self, case: Case) -> bool:
        """Whether what the law needs is known of this kind of systems."""
        kind = type(case.subject)
        return not self.needs or getattr(kind, self.needs) is not getattr(Subject, self.needs)


def keeps(*names: str) -> Callable[[Integrator], bool]:
    """Whether one of these invariants is registered."""
    return lambda entry: any(name in entry.preserves for name in names)


def is_free(case: Case) -> bool:
    """Whether what moves, moves by a Lagrangian alone where losses are 0."""
    system = case.system
    return not (system.first_order or system.prescribed or system.has_contacts)


def is_hamiltonian(case: Case) -> bool:
    return is_free(case) and not case.system.n_velocity_constraints


ABOUT_UNITS = {
    "gonzalez": "its correction divides by |zeta1 - zeta0|^2, which adds lengths, angles, momenta",
    "gonzalez_r": "the same",
    "gonzalez_r_differences": "the same",
    "gonzalez_f": "the same",
    "rkmk4_baumgarte": "its rates are numbers in 1/s",
}
"""Methods that are others in other units."""

LAWS = (
    Law(a_symmetric_step_is_reversible, lambda entry: entry.symmetric is True,
        lambda case: not (case.system.first_order or case.system.has_contacts)),
    Law(constraints_hold_at_the_node),
    Law(states_are_configurations_and_velocities),
    Law(local_coordinates_are_the_inverse_of_the_retraction),
    Law(a_step_is_a_pure_function_and_a_simulation_is_its_repetition),
    Law(a_batch_equals_single_runs),
    Law(wrong_arguments_are_refused_by_name),
    Law(a_method_has_its_order, of_case=lambda case: case.subject.smooth),
    Law(the_energy_is_kept, keeps("energy"), is_free),
    Law(momenta_at_rest_are_kept, keeps("momenta", "momenta in the frame at rest"),
        lambda case: is_hamiltonian(case) and moves(case), "momentum"),
    Law(a_moved_world_does_not_matter, of_case=lambda case: moves(case), needs="world_motion"),
    Law(units_do_not_matter, lambda entry: entry.name not in ABOUT_UNITS, needs="in_units"),
    Law(the_kernel_of_trees_solves_the_generated_equations, lambda entry: entry.name == "midpoint",
        lambda case: isinstance(case.dsys.engine, TreeEngine)),
)  # fmt: skip
DERIVATIVES = (
    Law(the_linearization_is_the_derivative_of_the_step),
    Law(the_hessian_is_the_second_derivative_of_the_step,
        of_case=lambda case: case.subject.spacing > 1e-4),  # else they drown in round-off
    Law(the_symplectic_form_is_kept, keeps("symplectic form"), is_hamiltonian),
)  # fmt: skip


def moves(case: Case) -> bool:
    return case.subject.world_motion(np.random.default_rng(0)) is not None
