"""The same tree in other units takes the same steps by the linear-time kernel, A and B too."""

from dataclasses import dataclass

import numpy as np
import pytest
from test_units import OTHERS, SI, STEPS, H, Units

from nh_control.integrators import midpoint
from nh_control.multibody import (
    Body,
    Damper,
    Distance,
    Frame,
    JointDamper,
    JointInput,
    JointSpring,
    Multibody,
    Point,
    Spring,
    floating,
    prismatic,
    revolute,
    spherical,
)
from nh_control.multibody.tree_engine import TreeEngine

FIRST, SECOND, END = np.array([[0.3, 0.1, -0.2], [0.4, -0.2, 0.1], [-0.1, 0.5, 0.3]])


@dataclass(frozen=True)
class Tree:
    """A model, where it starts, in SI, and how many units are in one of SI, number by number of
    configuration, its changes and inputs.
    """

    model: Multibody
    q: list
    v: list
    u: list
    of_q: list
    of_d: list
    of_u: list


def tree(n: Units, frames: list[Frame], *elements, inputs=(), constraints=()) -> Multibody:
    inertia = n.kg * n.m**2 * np.array([0.03, 0.05, 0.04])
    bodies = [
        Body(frame.name, (1 + k / 2) * n.kg, n.m * SECOND / 4, inertia)
        for k, frame in enumerate(frames)
    ]
    gravity = (0.0, 0.0, -9.81 * n.m / n.s**2)
    return Multibody("tree", frames, bodies, elements, inputs, constraints, gravity=gravity)


def links(n: Units) -> list[Frame]:
    """Two joints that turn and one between them that slides."""
    return [
        revolute("a", "world", "y"),
        prismatic("b", "a", (1.0, 0.5, 0.2), position=n.m * FIRST),
        revolute("c", "b", (0.2, 1.0, 0.3), position=n.m * SECOND),
    ]


def on_joints(n: Units) -> list:
    torque, stiff = n.newton * n.m, n.newton / n.m
    return [
        *(JointSpring("a", 3 * torque, 0.2), JointDamper("a", 0.3 * torque * n.s)),
        *(JointSpring("b", 40 * stiff, 0.1 * n.m), JointDamper("b", 0.5 * stiff * n.s)),
    ]


def moving_links(n: Units, *elements, constraints=()) -> Tree:
    inputs = [JointInput("a"), JointInput("b")]
    model = tree(n, links(n), *elements, inputs=inputs, constraints=constraints)
    of = [1.0, n.m, 1.0]
    start = [0.4, 0.1, -0.6], [0.7, -0.4, 1.1], [0.5, -0.3]
    return Tree(model, *start, of, of, [n.newton * n.m, n.newton])


def chain(n: Units) -> Tree:
    return moving_links(n, *on_joints(n))


def tied(n: Units) -> Tree:
    """The end of the chain hangs by a spring and a damper."""
    end, at, stiff = Point("c", n.m * END), Point("world", -n.m * END), n.newton / n.m
    spring, damper = Spring(end, at, 5 * stiff, 0.4 * n.m), Damper(end, at, 0.7 * stiff * n.s)
    return moving_links(n, *on_joints(n), spring, damper)


def held(n: Units) -> Tree:
    """The end of the chain hangs by a rod."""
    end, at = Point("c", n.m * END), Point("world", -n.m * END)
    ends = (chain(SI).model.point(np.array([0.4, 0.1, -0.6]), Point("c", END)), -END)
    rod = Distance("rod", end, at, float(np.linalg.norm(ends[0] - ends[1])) * n.m)
    return moving_links(n, *on_joints(n), constraints=[rod])


def flying(n: Units) -> Tree:
    """A body free on SE(3) with an arm on a ball joint."""
    frames = [floating("base"), spherical("arm", "base", position=n.m * SECOND)]
    frames.append(prismatic("rod", "arm", "x", position=n.m * END))
    spring = JointSpring("rod", 30 * n.newton / n.m)
    model = tree(n, frames, spring, inputs=[JointInput("rod")])
    q = [0.5, -0.5, 0.5, 0.5, 0.3, -0.2, 0.9, 0.8, 0.0, 0.6, 0.0, 0.1]
    v = [0.6, -0.3, 0.4, 0.8, -0.2, 0.3, -0.5, 0.9, 0.2, 0.1]
    of_q = [1.0] * 4 + [n.m] * 3 + [1.0] * 4 + [n.m]
    return Tree(model, q, v, [0.4], of_q, [1.0] * 3 + [n.m] * 3 + [1.0] * 3 + [n.m], [n.newton])


def flat(n: Units) -> Tree:
    """A cart with two links, which move in a plane."""
    frames = [
        prismatic("a", axis="x"),
        revolute("b", "a", "y"),
        revolute("c", "b", "y", position=(0, 0, -n.m)),
    ]
    model = tree(n, frames, inputs=[JointInput("a")])
    of = [n.m, 1.0, 1.0]
    return Tree(model, [0.2, 0.9, -0.4], [0.5, -0.7, 1.3], [0.8], of, of, [n.newton])


TREES = {"chain": chain, "tied": tied, "held": held, "flying": flying, "flat": flat}


def steps(name: str, n: Units) -> tuple[np.ndarray, np.ndarray]:
    """State after some steps, and A and B there, in SI."""
    it = TREES[name](n)
    of_q, of_d, of_u = map(np.array, (it.of_q, it.of_d, it.of_u))
    of_rho = n.kg * n.m**2 / n.s / of_d
    of_x, of_dx = np.concatenate([of_q, of_rho]), np.concatenate([of_d, of_rho])
    dsys, u = midpoint(it.model.system, H / 4 * n.s), it.u * of_u
    assert isinstance(dsys.engine, TreeEngine)
    x = dsys.state(it.q * of_q, it.v * of_d / n.s)
    for _ in range(STEPS):
        x = dsys.step(x, u)
    lin = dsys.linearize(x, u)
    return x / of_x, np.hstack([lin.A * of_dx, lin.B * of_u]) / of_dx[:, None]


FAR = {"units of 1e-25 s": Units(1.0, 1.0, 1e25), "units of 1e25 s": Units(1.0, 1.0, 1e-25)}


@pytest.mark.parametrize("name", TREES)
def test_the_same_tree_in_other_units_takes_the_same_steps(name):
    """A state's velocity was that of a step of 1e-30 s, however short the steps."""
    x, slopes = steps(name, SI)
    for told, units in (OTHERS | FAR).items():
        y, others = steps(name, units)
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-12, err_msg=told)
        largest = np.abs(slopes).max()
        np.testing.assert_allclose(others, slopes, rtol=0, atol=1e-12 * largest, err_msg=told)
