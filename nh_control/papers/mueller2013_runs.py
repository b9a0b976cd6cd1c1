"""The four examples in [mueller2013 5], and their motions in maximal coordinates on both
configuration spaces, computed by any method.
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
METHODS = {name: integrator.make for name, integrator in INTEGRATORS.items()} | {
    SECOND_ORDER: partial(index_one, table=HEUN, name=SECOND_ORDER)
}
"""The integrators, and (37) with Heun's second-order tableau."""
SPACES = {"SE3": "SE(3)", "SO3xR3": "SO(3) × R³"}
PI = np.pi


@dataclass(frozen=True)
class Example:
    """A system in joint coordinates with its initial state. `joints` maps constraint names to the
    paper's joint numbers.
    """

    model: Multibody
    q: np.ndarray
    v: np.ndarray
    duration: float
    joints: Mapping[str, int]


@dataclass(frozen=True)
class MeasuredRun:
    """A run at `times` (N): the violation g (N, rows) of every joint by name, the total energy (N)
    from the momenta after each step, and the configurations (N, nq), which are the bodies'
    `poses`.
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
    """Return the example "top", "heavy top", "pendulum", "pair" or "loop", with the paper's
    initial state if it gives one.
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
    """Return the double pendulum. omega_10 and omega_20 are the angular velocities of the bodies.
    The bodies' axes are initially parallel.
    """
    model = double_pendulum()
    upper, lower = np.array([10.0, 0.0, 0.0]), PI * np.array([10.0, 10.0, 20.0])
    v = np.concatenate([upper, lower - upper])
    return Example(model, model.configuration(), v, 2.0, {"upper": 1, "lower": 2})


def _pair() -> Example:
    """Return the floating pair with its center of mass at rest. The paper does not give the
    velocity of this point.
    """
    model, arm = floating_pair(), np.array([LINK[0] / 2, 0.0, 0.0])
    first, second = np.array([0.0, 0.0, -10.0]), np.array([1.0, -1.0, 2 * PI])
    # The masses are equal, so the velocities of both centers of mass cancel.
    velocity = -(np.cross(second, arm) + np.cross(first, arm)) / 2
    v = np.concatenate([first, velocity, second - first])
    return Example(model, model.configuration(), v, 3.0, {"second": 1})


def _loop() -> Example:
    """Return the loop. The triangle swings about its base at 10 rad/s, and the bars spin about
    their axes at 10 pi and 20 pi rad/s. The paper gives no initial state.
    """
    model = three_bar_loop()
    q = model.configuration()
    poses = model.poses(q)
    left, right = poses["left"].rotation, poses["right"].rotation
    swing = np.array([10.0, 0.0, 0.0])
    # Body rates: the common swing, and a spin about the axis of the bar.
    first = left.T @ swing + [10 * PI, 0.0, 0.0]
    second = right.T @ swing + [20 * PI, 0.0, 0.0]
    v = np.concatenate([first, second - right.T @ left @ first])
    return Example(model, q, v, 2.0, {"left": 1, "right": 2, "base": 3})


@cache
def maximal(name: str, spaces: str | tuple[tuple[str, str], ...]) -> Multibody:
    """Return an example in maximal coordinates, on one space or on a separate space for each
    frame.
    """
    return maximal_coordinates(
        example(name).model, spaces if isinstance(spaces, str) else dict(spaces)
    )


def operations(name: str, space: str) -> int:
    """Return the number of operations in a step (37) for an example on one space. Common
    subexpressions are counted once.
    """
    system = maximal(name, space).system
    method = METHODS[METHOD](system, STEP_S).method
    q, _, u = system.symbols
    # An explicit method has no unknowns z.
    rho, h, z = ca.SX.sym("rho", system.nrho), ca.SX.sym("h"), ca.SX(0, 1)
    ends = method.readout(StepSymbols(q, rho, u, z, h, system.mechanics.gradients))
    arguments = [q, rho, u, h, system.parameter_symbols]
    return ca.Function("step", arguments, list(ends), {"cse": True}).n_instructions()


@cache
def motion(
    name: str,
    spaces: str | tuple[tuple[str, str], ...],
    method: str = METHOD,
    h: float = STEP_S,
    duration: float = 0.0,
    stored: int = 1000,
) -> MeasuredRun:
    """Run an example in maximal coordinates, by default for its duration, and evaluate about
    `stored` states.
    """
    case, model = example(name), maximal(name, spaces)
    q, v = maximal_state(case.model, case.q, case.v, model)
    dsys = METHODS[method](model.system, h)
    steps = round((duration or case.duration) / h)
    every = max(1, steps // stored)
    # The number of steps is a multiple of the interval between stored states.
    run = dsys.simulate(dsys.state(q, v), steps=steps // every * every, every=every)
    return measured(model, run.times, run.states)


def measured(model: Multibody, times: np.ndarray, states: np.ndarray) -> MeasuredRun:
    """Evaluate a run of a model in maximal coordinates, where the mass matrix is constant."""
    system, nq = model.system, model.space.nq
    q, v, _ = system.symbols
    evaluate = ca.Function(
        "evaluate", [q, v], [system.mechanics.energy(q, v), system.holonomic(q)]
    )
    momenta = states[:, nq:]
    # v = M^-1 p for all states at once
    velocities = np.linalg.solve(model.mass_matrix(states[0, :nq]), momenta.T)
    energy, h = (np.asarray(value).T for value in evaluate(states[:, :nq].T, velocities))
    # Split the rows of all constraints by joint.
    rows = [len(g) for g in model.constraint_residuals(states[0, :nq]).values()]
    parts = np.split(h, np.cumsum(rows)[:-1], axis=1)
    violation = {c.name: part for c, part in zip(model.constraints, parts)}
    return MeasuredRun(times, violation, energy[:, 0], states[:, :nq])
