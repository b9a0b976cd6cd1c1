"""Orders of Lie group methods, of the embedded ones and of the variational and symplectic ones, in
every position, rotation, direction and momentum, against DOP853 at 1e-13 on equations by hand
(lie_motion.py).
"""

from __future__ import annotations

from functools import cache

import lie_cases
import numpy as np
import pytest

from nh_control.integrators import INTEGRATORS
from nh_control.integrators.lie_group import lie_group
from nh_control.integrators.lie_tableaux import TABLES, munthe_kaas

TURNED = np.array([0.5, -0.4, 0.6, 0.3]) / np.linalg.norm([0.5, -0.4, 0.6, 0.3])
OBSERVED = 4
"""Times in the second half of the run at which errors are taken; their largest counts, so that an
error that happens to pass through zero does not.
"""
FITTED = 4
"""How many step sizes make a slope."""


def links_in_space(n):
    """A start out of the plane, with the first link horizontal, so that links pass the seam of the
    frame.
    """
    rng = np.random.default_rng(11)
    q = rng.normal(size=(n, 3))
    q[0, 2] = 0.0
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return np.concatenate([q.reshape(-1), np.cross(q, rng.normal(size=(n, 3))).reshape(-1)])


MILD_MOMENTA = lie_cases.inertia(lie_cases.MILD_TOP) * [0.5, 8.0, -1.0]
BODY = [*TURNED, 0.7, -1.1, 0.9, *(0.3, -0.2, 1), *(1, -0.5, 0.4)]
TORQUE = [0.783, 0.413, -0.675]
RUNS = {
    "heavy top": ("heavy_top", [*TURNED, *MILD_MOMENTA], 1.0, []),
    "rigid body": ("rigid_body", [*TURNED, 0.7, -1.1, 0.9], 2.0, TORQUE),
    "body of the plane": ("planar_body", [0.4, 0.3, -0.2, 0.9, 0.7, -0.8], 1.0, TORQUE),
    **{
        f"body on SE(3), {r}": (f"floating_body_{r}", BODY, 1.0, [*TORQUE, 8.3, 1.65, 9.0])
        for r in ("exp", "cay")
    },
    "1 link": ("pendulum_1", links_in_space(1), 1.0, []),
    "2 links": ("pendulum_2", links_in_space(2), 1.0, []),
    "2 links, exp": ("pendulum_2_exp", links_in_space(2), 1.0, []),
}
"""System, start, duration in s and inputs that stay."""
COARSE, FINE = (8, 16, 24, 32, 48, 64, 96, 128), (128, 192, 256, 384, 512)
COUNTS = {1: (*FINE, 768), 2: FINE, 3: (48, 64, 96, *FINE), 4: (*COARSE, *FINE[1:])}
COUNTS[5] = (*COARSE, *FINE[1:], 768)
"""Numbers of steps for a method of an order."""


@cache
def reference(run):
    """States at 2 OBSERVED + 1 times, and errors of their components, or of a method's sums, above
    which those of the method are seen.
    """
    name, start, duration, u = RUNS[run]
    times, inputs = np.linspace(0, duration, 2 * OBSERVED + 1), lambda t: np.array(u)
    motion = lie_cases.motion(name, inputs)
    states = motion.solve(start, times)
    floor = np.abs(motion.solve(start, times, 1e-12) - states).max(0)
    return states, 10 * floor + 100 * np.finfo(float).eps * np.abs(states).max(0)


def blocks(space):
    """Kinds and places of every position, rotation, direction and momentum vector in a state."""
    for _, q, _, w in lie_cases.parts(space):
        yield "pose", [*range(*q.indices(space.nq))]
        yield "momentum", [space.nq + k for k in range(*w.indices(space.nw))]


def check_order(run, make, order):
    """No vector below the order, and the slowest of each kind not above it: of the largest errors
    of its components over the finest steps where they stand above the reference's.
    """
    name, _, duration, u = RUNS[run]
    (states, floors), base = reference(run), make(lie_cases.system(name), duration)
    errors, counts = [], COUNTS[order]
    for n in counts:
        dsys = base.with_step(duration / n)
        nodes = dsys.simulate(states[0], np.tile(u, (n, 1))).states[:: n // (2 * OBSERVED)]
        errors.append(np.abs(nodes - states)[OBSERVED:].max(0))
    found, errors = {"pose": [], "momentum": []}, np.array(errors)
    for kind, at in blocks(base.system.space):
        worst = errors[:, at].max(1)
        above = np.flatnonzero(worst > floors[at].max())[-FITTED:]
        if len(above) == FITTED:
            logs = np.log(np.take(counts, above)), np.log(worst[above])
            found[kind].append(-np.polyfit(*logs, 1)[0])
    for slopes in found.values():
        assert abs(min(slopes) - order) <= 0.05 * (order + 1), found


QUICK = {
    *((("heavy top", name)) for name in ("cf4", "crouch_grossman_3", "cf3_third_stage")),
    *(("body of the plane", name) for name in ("slgi_0", "slgi_half", "lie_mean_value")),
    ("rigid body", "midpoint"),
    ("2 links", "midpoint"),
}
REGISTERED = [
    pytest.param(run, name, marks=() if (run, name) in QUICK else pytest.mark.slow)
    for run, (system, *_) in RUNS.items()
    for name in ("midpoint", *(n for n in INTEGRATORS if n.startswith(("slgi", "lie_"))))
    if INTEGRATORS[name].takes(lie_cases.system(system))
]


@pytest.mark.parametrize("run, name", REGISTERED)
def test_order_of_registered_methods(run, name):
    check_order(run, INTEGRATORS[name].make, INTEGRATORS[name].order)


def tables(names, default):
    """Four motions with all tableaux; the first motion by those of `default`, the others slow."""
    return [
        pytest.param(run, name, marks=() if is_first and name in default else pytest.mark.slow)
        for run in ("heavy top", "rigid body", "body on SE(3), exp", "2 links")
        for is_first in [run == "heavy top"]
        for name in names
    ]


PAIRS = [name for name, table in TABLES.items() if table.embedded_order]
ALONE = [name for name in TABLES if name not in PAIRS] + ["cf43"]
"""The orders of the other pairs are asked of the errors of one step, too."""


def by(table, coordinates="exp"):
    return lambda system, h: lie_group(system, h, table, coordinates)


@pytest.mark.parametrize("run, name", tables(TABLES, ALONE))
def test_order_of_tableaux(run, name):
    check_order(run, by(TABLES[name]), TABLES[name].order)


@pytest.mark.parametrize("run, name", tables(PAIRS, ("cf43",)))
def test_order_of_embedded_methods(run, name):
    table = TABLES[name].embedded_method
    check_order(run, by(table), table.order)


@pytest.mark.parametrize("coordinates", ("cay", "second"))
@pytest.mark.parametrize("run, name", tables(("rkmk4", "rkmk54"), ("rkmk4",)))
def test_order_in_other_coordinates(run, name, coordinates):
    check_order(run, by(TABLES[name], coordinates), TABLES[name].order)


def test_any_tableau_makes_a_method():
    """Ralston's third order."""
    a, b = [[0, 0, 0], [1 / 2, 0, 0], [0, 3 / 4, 0]], [2 / 9, 1 / 3, 4 / 9]
    check_order("heavy top", by(munthe_kaas("ralston", 3, a, b)), 3)
