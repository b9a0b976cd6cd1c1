"""Bricard's mechanism: five rods and six revolute joints, which moves although its joints have as
many rows as coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import nh_control as nh
from nh_control.benchmarks.benchmark import INVARIANT, Benchmark
from nh_control.integrators import INTEGRATORS
from nh_control.multibody import Body, JointConstraint, Point, revolute

ENDS = ((1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0))
"""Of the rods of 1 m, in their frames."""
AXES = ("-y", "z", "x", "-y", "z")
TIP, GROUND = Point("rod_4", ENDS[4]), Point("world", (0, 0, 1))
DURATION, STEP, GRAVITY = 10.0, 0.01, 9.81


def bricard(kind: str = "revolute") -> nh.Multibody:
    """The mechanism, closed by a joint of this kind: the five rows of a "revolute" one follow from
    the four of a "cylindrical" one. Rods of 1 kg with square sections of 0.1 m.
    """
    frames, bodies, parent, place = [], [], "world", (0, 0, 0)
    for i, (axis, end) in enumerate(zip(AXES, ENDS)):
        frames.append(revolute(f"rod_{i}", parent, axis=axis, position=place))
        along = np.abs(end)
        inertia = (1 + 0.1**2) / 12 * (1 - along) + 0.1**2 / 6 * along
        bodies.append(Body(f"rod_{i}", 1.0, np.array(end) / 2, inertia))
        parent, place = f"rod_{i}", end
    close = JointConstraint("close", kind, GROUND, TIP, axis="x")
    return nh.Multibody("bricard", frames, bodies, constraints=[close], gravity=(0, -GRAVITY, 0))


def compute() -> Mapping[str, float]:
    model = bricard()
    dsys = INTEGRATORS["midpoint_order8"].make(model.system, STEP)
    x = dsys.state(model.configuration(), model.velocity())
    energies = dsys.energies(dsys.simulate(x, steps=round(DURATION / STEP)).states)
    return {"energy, J": energies[np.argmax(np.abs(energies - energies[0]))]}


BRICARD = Benchmark(
    name="bricard",
    title="Bricard's mechanism, overconstrained: energy in 10 s, where it is farthest off",
    source="IFToMM library, A04 (Gonzalez et al. 2006): energy of the start, -3 m g",
    reference=INVARIANT,
    published={"energy, J": -3 * GRAVITY},
    compute=compute,
    method="midpoint_order8, steps of 10 ms, five rows with one redundant",
)
