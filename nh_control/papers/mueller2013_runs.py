"""The four examples of [mueller2013 5] and their motions: in maximal coordinates on either
configuration space, by any method, and in joint coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import casadi as ca
import numpy as np

from nh_control.discrete.method import StepSymbols
from nh_control.integrators import INTEGRATORS
from nh_control.integrators.index_one import index_one
from nh_control.integrators.lie_tableaux import munthe_kaas
from nh_control.multibody import Multibody, maximal_coordinates, maximal_state
from nh_control.systems.linkages import (
    LINK,
    NONE,
    box_top,
    double_pendulum,
    floating_pair,
    three_bar_loop,
)

STEP_S = 1e-3
METHOD = "rkmk4_index_one"
SECOND_ORDER = "rkmk2_index_one"
HEUN = munthe_kaas("rkmk2", 2, ((0, 0), (1, 0)), (1 / 2, 1 / 2))
METHODS = {name: one.make for name, one in INTEGRATORS.items()} | {
    SECOND_ORDER: partial(index_one, table=HEUN, name=SECOND_ORDER)
}
"""The integrators, and (37) with Heun's tableau of order 2."""
SPACES = {"SE3": "SE(3)", "SO3xR3": "SO(3) × R³"}
PI = np.pi


@dataclass(frozen=True)
class Example:
    """A system in joint coordinates with its start; `joints` maps names of constraints to the
    numbers of the paper's joints.
    """

    model: Multibody
    q: np.ndarray
    v: np.ndarray
    duration: float
    joints: Mapping[str, int]


@dataclass(frozen=True)
class Motion:
    """At `times` the violation g (N, rows) of every joint by name, and the total energy (N) from
    the momenta after each step; `poses` (N, nq) are those of the bodies.
    """

    times: np.ndarray
    violation: dict[str, np.ndarray]
    energy: np.ndarray
    poses: np.ndarray

    def largest(self, joint: str = "") -> float:
        """Return the largest component of the violation of a joint, or of all joints."""
        chosen = [self.violation[joint]] if joint else self.violation.values()
        return max(float(np.abs(g).max()) for g in chosen)

    @property
    def energy_error(self) -> np.ndarray:
        """`E / E0 - 1`."""
        return self.energy / self.energy[0] - 1


@cache
def example(name: str) -> Example:
    """Return "top", "heavy top", "pendulum", "pair" or "loop", from the paper's start if it gives
    one.
    """
    makes: dict[str, Callable[[], Example]] = {
        "top": _top,
        "heavy top": lambda: _top((0.0, 0.0, -9.81)),
        "pendulum": _pendulum,
        "pair": _pair,
        "loop": _loop,
    }
    return makes[name]()


def _top(gravity: tuple[float, float, float] = NONE) -> Example:
    model = box_top(gravity)
    return Example(model, model.configuration(), np.array([0, 20 * PI, 10 * PI]), 3.0, {"box": 1})


def _pendulum() -> Example:
    """omega_10 and omega_20 belong to the bodies, whose axes are parallel at the start."""
    model = double_pendulum()
    upper, lower = np.array([10.0, 0.0, 0.0]), PI * np.array([10.0, 10.0, 20.0])
    v = np.concatenate([upper, lower - upper])
    return Example(model, model.configuration(), v, 2.0, {"upper": 1, "lower": 2})


def _pair() -> Example:
    """The center of mass is at rest; the paper does not give its velocity."""
    model, arm = floating_pair(), np.array([LINK[0] / 2, 0.0, 0.0])
    first, second = np.array([0.0, 0.0, -10.0]), np.array([1.0, -1.0, 2 * PI])
    velocity = -(np.cross(second, arm) + np.cross(first, arm)) / 2
    v = np.concatenate([first, velocity, second - first])
    return Example(model, model.configuration(), v, 3.0, {"second": 1})


def _loop() -> Example:
    """The triangle swings about its base at 10 rad/s, and the bars spin about their axes with
    omega_20 of the double pendulum; the paper gives no start.
    """
    model = three_bar_loop()
    q = model.configuration()
    poses = model.poses(q)
    left, right = poses["left"].rotation, poses["right"].rotation
    swing = np.array([10.0, 0.0, 0.0])
    first = left.T @ swing + [10 * PI, 0.0, 0.0]
    second = right.T @ swing + [20 * PI, 0.0, 0.0]
    v = np.concatenate([first, second - right.T @ left @ first])
    return Example(model, q, v, 2.0, {"left": 1, "right": 2, "base": 3})


@cache
def maximal(name: str, spaces: str | tuple[tuple[str, str], ...]) -> Multibody:
    """Return an example in maximal coordinates, on one space or on pairs of frame and space."""
    return maximal_coordinates(
        example(name).model, spaces if isinstance(spaces, str) else dict(spaces)
    )


def operations(name: str, space: str) -> int:
    """Return the operations of one step (37) of an example on one space; common subexpressions
    count once.
    """
    system = maximal(name, space).system
    method = METHODS[METHOD](system, STEP_S).method
    q, _, u = system.symbols
    rho, h, none = ca.SX.sym("rho", system.nrho), ca.SX.sym("h"), ca.SX(0, 1)
    ends = method.readout(StepSymbols(q, rho, u, none, h, system.mechanics.gradients))
    arguments = [q, rho, u, h, system.parameter_symbols]
    return ca.Function("step", arguments, list(ends), {"cse": True}).n_instructions()


@cache
def motion(
    name: str,
    spaces: str | tuple[tuple[str, str], ...],
    method: str = METHOD,
    h: float = STEP_S,
    duration: float = 0.0,
    kept: int = 1000,
) -> Motion:
    """Run an example in maximal coordinates, by default for its own duration, and evaluate about
    `kept` states.
    """
    case, model = example(name), maximal(name, spaces)
    q, v = maximal_state(case.model, case.q, case.v, model)
    dsys = METHODS[method](model.system, h)
    steps = round((duration or case.duration) / h)
    every = max(1, steps // kept)
    run = dsys.simulate(dsys.state(q, v), steps=steps // every * every, every=every)
    return measured(model, run.times, run.states)


def measured(model: Multibody, times: np.ndarray, states: np.ndarray) -> Motion:
    """Evaluate a run of a model in maximal coordinates, which has a constant mass matrix."""
    system, nq = model.system, model.space.nq
    q, v, _ = system.symbols
    evaluate = ca.Function(
        "evaluate", [q, v], [system.mechanics.energy(q, v), system.holonomic(q)]
    )
    momenta = states[:, nq:]
    velocities = np.linalg.solve(model.mass_matrix(states[0, :nq]), momenta.T)
    energy, h = (np.asarray(value).T for value in evaluate(states[:, :nq].T, velocities))
    rows = [len(g) for g in model.constraint_residuals(states[0, :nq]).values()]
    parts = np.split(h, np.cumsum(rows)[:-1], axis=1)
    violation = {c.name: part for c, part in zip(model.constraints, parts)}
    return Motion(times, violation, energy[:, 0], states[:, :nq])
