"""Random systems through all entry points of the native library, for the sanitizers to watch.

    python test/sanitize/random_systems.py FIRST END

runs the systems and trees of the seeds FIRST ... END - 1. Steps may fail, as hard ones do; any
other error ends the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "multibody")]

from random_trees import (  # noqa: E402
    KINDS,
    random_tree,
    with_followers,
    with_wheels,
    with_wrenches,
)
from tree_models import (  # noqa: E402
    constrained_tree,
    parametrized,
    with_bonds,
)

import nh_control as nh  # noqa: E402
from nh_control.control.parallel_steps import step_all  # noqa: E402
from nh_control.control.weights import weight_names  # noqa: E402
from nh_control.integrators import INTEGRATORS  # noqa: E402
from nh_control.integrators.composition import composition  # noqa: E402
from nh_control.multibody import Multibody, Point  # noqa: E402
from nh_control.numerics import compiled  # noqa: E402

LARGEST, SMALL = 12, 6
"""Coordinates of the largest systems, and of those that all methods step."""
STEPS = 4


@dataclass(frozen=True)
class Numbers:
    """Parameters of a random system."""

    mass: float = 1.3
    stiffness: float = 0.7


def random_system(rng: np.random.Generator, n: int) -> nh.System:
    """A system of n coordinates with any of: velocity and holonomic constraints, contacts,
    first-order and prescribed coordinates, inputs, parameters.
    """
    prescribed = int(rng.random() < 0.2 and n > 2)
    filters = int(rng.random() < 0.25 and n > 2) * int(rng.integers(1, 3))
    moving = max(1, n - prescribed - filters)
    touching = rng.random() < 0.3
    holonomic = 0 if touching else min(int(rng.integers(0, 3)), (moving - 1) // 2)
    rolling = 0 if touching else min(int(rng.integers(0, 4)), (moving - holonomic) // 2)
    forces = int(rng.integers(0, min(4, moving + 1)))
    names = [f"x{i}" for i in range(moving)]
    names += [f"f{i}" for i in range(filters)] + ["t"] * prescribed
    mixed = rng.permutation(moving).tolist()
    rows = 0.4 * rng.normal(size=(rolling, len(names)))
    pushes = rng.normal(size=(moving, forces))

    def lagrangian(q, v, p):
        bent = v[:moving] + 0.3 * ca.sin(q[mixed]) * v[0]
        spring = p.stiffness * (ca.sumsqr(q[:moving]) + ca.sum1(ca.cos(q[:moving]))) / 2
        return p.mass * ca.sumsqr(bent) / 2 + ca.sumsqr(v[:moving]) / 4 - spring

    def force(q, v, u, p):
        pushed = sum((ca.DM(pushes[:, k]) * u[k] for k in range(forces)), -0.1 * v[:moving])
        return ca.vertcat(pushed, ca.SX(len(names) - moving, 1))

    def velocity_constraint(q, p):
        own = np.zeros(rows.shape)
        own[range(rolling), range(moving - rolling, moving)] = 1.0
        free = np.ones(rows.shape)
        free[:, moving:] = 0.0  # of coordinates that are not moved by forces
        return ca.DM(own) + 0.5 * ca.DM(rows * free) * ca.repmat(ca.cos(q.T), rolling, 1)

    def holonomic_constraint(q, p):
        return ca.vertcat(*(q[i] - 0.2 * ca.sin(q[i + holonomic]) for i in range(holonomic)))

    contacts = (
        nh.UnilateralConstraint(
            "ground", lambda q, p: 0.05 + q[0], point=lambda q, p: q[1:2], friction=0.4
        ),
        nh.UnilateralConstraint("wall", lambda q, p: 1.5 - q[0]),
    )
    return nh.System(
        name="random",
        space=nh.Rn(*names),
        lagrangian=lagrangian,
        inputs=tuple(f"u{i}" for i in range(forces)),
        force=force,
        velocity_constraint=velocity_constraint if rolling else None,
        holonomic_constraint=holonomic_constraint if holonomic else None,
        prescribed=("t",) * prescribed,
        first_order=tuple(names[moving : moving + filters]),
        first_order_rate=(lambda q, v, u, p: v[0] - q[moving : moving + filters])
        if filters
        else None,
        first_order_units=("1",) * filters,
        contacts=contacts[: int(rng.integers(1, 3))] if touching and moving > 1 else (),
        parameters=Numbers(),
    )


def random_multibody(rng: np.random.Generator, n: int) -> tuple[Multibody, np.ndarray]:
    """A tree of up to n joints, with any of: constraints, contacts, followers, wrenches, springs,
    dampers, prescribed joints, parameters, a wheel; and a configuration.
    """
    kinds = rng.choice([0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8], size=max(1, n // 2)).tolist()
    if rng.random() < 0.3:
        return constrained_tree(kinds, rng.choice(KINDS, size=rng.integers(1, 3)).tolist(), rng)
    scalars = [f"b{i}" for i, kind in enumerate(kinds) if kind < 2]
    held = tuple(scalars[: int(rng.random() < 0.3)])
    model = random_tree(kinds, rng, prescribed=held)
    if scalars and rng.random() < 0.4:
        model = with_followers(model, int(rng.integers(1, 3)), rng)
    if rng.random() < 0.4:
        model = with_wrenches(model, int(rng.integers(1, 3)), rng)
    if rng.random() < 0.4 and len(model.frames) > 1:
        model = with_bonds(model, int(rng.integers(1, 3)), rng)
    if rng.random() < 0.3:
        ground, foot = nh.Plane(height=rng.uniform(-3, -0.5)), Point("b0", (0.1, 0.0, -0.3))
        contacts = [nh.Contact(foot, nh.Sphere(0.05), 0.5, ground=ground)]
        model = replace(model, contacts=contacts)
    elif rng.random() < 0.4:
        model = parametrized(model)
    q = model.space.retract(model.space.origin, 0.3 * rng.normal(size=model.space.nv))
    if not (model.contacts or model.parameters) and model.space.nv > 3 and rng.random() < 0.6:
        model = with_wheels(model, q, 1, rng)
    return model, q


def attempt(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of a call; None where a step fails or a matrix is singular."""
    try:
        return call(*arguments, **options)
    except (nh.StepFailed, np.linalg.LinAlgError):
        return None


def exercise(dsys: nh.DiscreteSystem, q: np.ndarray, rng: np.random.Generator) -> None:
    """All entry points in CasADi's virtual machine, and then by compiled functions, if there is a
    compiler.
    """
    call_all(dsys, q, rng)
    if compiled.compiler() is not None:
        dsys.prepare(hessian=True)
        call_all(dsys, q, rng)


def call_all(dsys: nh.DiscreteSystem, q: np.ndarray, rng: np.random.Generator) -> None:
    """All entry points at a state in the configuration q, then steps that fail."""
    space = dsys.system.space
    x = attempt(dsys.state, q, 0.5 * rng.normal(size=space.nw))
    if x is None:
        return
    u = dsys.idle(x) + 0.1 * rng.normal(size=dsys.nu)
    adjoint = rng.normal(size=dsys.ndx)
    attempt(dsys.step, x, u)
    attempt(dsys.linearize, x, u)
    attempt(dsys.linearize, x, u, dsys.parameter_names)
    if (operators := attempt(dsys.linearize_operator, x, u)) is not None:
        operators.A @ np.eye(dsys.ndx), operators.A.T @ adjoint  # noqa: B018
    attempt(dsys.hessian, x, u, adjoint)
    attempt(dsys.conditioning, x, u)
    attempt(step_all, dsys, np.tile(x, (3, 1)), np.tile(u, (3, 1)))
    motion = attempt(dsys.simulate, x, np.tile(u, (STEPS, 1)), every=2)
    if motion is not None:
        follow(dsys, motion, rng)
    for h, scale in ((1e3, 1.0), (dsys.h, 1e8), (dsys.h, np.nan)):
        hard = dsys.with_step(h)
        with suppress(ValueError):  # states that are not finite are refused
            attempt(hard.step, scale * x, u)
            attempt(hard.linearize, scale * x, u)


def follow(dsys: nh.DiscreteSystem, motion: nh.Trajectory, rng: np.random.Generator) -> None:
    """Functions of the states of a motion, and closed loops that track it."""
    states = motion.states
    attempt(dsys.energy, states)
    attempt(dsys.velocity, states[-1])
    attempt(dsys.constraint_residuals, states[:-1], states[1:])
    dsys.retract(states, 0.1 * rng.normal(size=(len(states), dsys.ndx)))
    dsys.local(states[:-1], states[1:])
    if dsys.system.n_holonomic_constraints:
        impulses = attempt(dsys.constraint_impulses, states[0])
        if impulses is not None:
            attempt(dsys.with_constraint_impulses, states[0], impulses + 0.1)
    for gain in (0.0, 0.5) if dsys.nu and not dsys.system.prescribed else (0.0,):
        weights = np.ones(len(weight_names(dsys))), np.eye(dsys.nu)
        with suppress(ValueError):  # gains of some random systems do not exist
            tracker = attempt(nh.LqrTracker, dsys, motion, *weights, disturbance_gain=gain)
            if tracker is not None:
                attempt(nh.rollout, dsys, states[:1].repeat(3, 0), tracker, threads=2)


def run_system(seed: int) -> str:
    """A random system by some methods, by a composition, and adaptively."""
    rng = np.random.default_rng(seed)
    system = random_system(rng, 1 + seed % LARGEST)
    q = 0.2 * rng.normal(size=system.space.nq)
    h = system.n_holonomic_constraints
    q[:h] = 0.2 * np.sin(q[h : 2 * h])
    fitting = INTEGRATORS.fitting(system)
    names = {"midpoint", "nonholonomic_midpoint"} & {*fitting}
    if len(q) <= SMALL:
        names |= {*rng.choice([*fitting], size=min(3, len(fitting)), replace=False).tolist()}
    for name in sorted(names):
        exercise(fitting[name](system, 0.01), q, rng)
    jump = composition(INTEGRATORS["nonholonomic_midpoint"], 4, 3)
    if jump.takes(system):
        exercise(jump(system, 0.01), q, rng)
    if not h and not system.has_contacts and not system.prescribed and not system.first_order:
        states = INTEGRATORS["nonholonomic_midpoint"](system, 0.01)
        x = states.measured_state(q, rng.normal(size=system.space.nw))
        u = rng.normal(size=system.nu)
        ways = {}, {"dense_output": True, "events": lambda t, x: x[0] - 0.05}
        for way in ways:
            nh.solve_ivp(system, (0.0, 0.3), x, u, **way)
    return f"{system}: {', '.join(sorted(names))}"


def run_tree(seed: int) -> str:
    """A random tree of bodies."""
    rng = np.random.default_rng(seed)
    model, q = random_multibody(rng, 1 + seed % LARGEST)
    try:
        dsys = nh.nonholonomic_midpoint(model, 0.01)
    except ValueError as refusal:  # random constraints may depend on each other
        return f"{model} is refused: {refusal}"
    exercise(dsys, q, rng)
    return str(model)


if __name__ == "__main__":
    for number in range(*map(int, sys.argv[1:])):
        for run in (run_system, run_tree):
            print(f"seed {number}: {run(number)}", flush=True)
