"""Bricard's mechanism: five rods and six revolute joints. The mechanism moves, although it has as
many constraint rows as coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import nh_control as nh
from nh_control.benchmarks.benchmark import INVARIANT, Benchmark
from nh_control.integrators import INTEGRATORS
from nh_control.multibody import Body, JointConstraint, Point, revolute

ENDS = ((1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0))
"""Ends of the rods (1 m long) in their frames."""
AXES = ("-y", "z", "x", "-y", "z")
TIP, GROUND = Point("rod_4", ENDS[4]), Point("world", (0, 0, 1))
DURATION, STEP, GRAVITY = 10.0, 0.01, 9.81


def bricard(kind: str = "revolute") -> nh.Multibody:
    """Return the mechanism, closed by a joint of the given kind. Its rods have a mass of 1 kg and
    square cross sections with sides of 0.1 m. The five rows of a "revolute" joint follow from the
    four rows of a "cylindrical" one.
    """
    frames, bodies, parent, position = [], [], "world", (0, 0, 0)
    for i, (axis, end) in enumerate(zip(AXES, ENDS)):
        frames.append(revolute(f"rod_{i}", parent, axis=axis, position=position))
        # m (l^2 + a^2) / 12 across the rod, m a^2 / 6 along it
        along = np.abs(end)
        inertia = (1 + 0.1**2) / 12 * (1 - along) + 0.1**2 / 6 * along
        bodies.append(Body(f"rod_{i}", 1.0, np.array(end) / 2, inertia))
        parent, position = f"rod_{i}", end
    close = JointConstraint("close", kind, GROUND, TIP, axis="x")
    return nh.Multibody("bricard", frames, bodies, constraints=[close], gravity=(0, -GRAVITY, 0))


def compute() -> Mapping[str, float]:
    model = bricard()
    dsys = INTEGRATORS["midpoint_order8"].make(model.system, STEP)
    x = dsys.state(model.configuration(), model.velocity())
    energies = dsys.energies(dsys.simulate(x, steps=round(DURATION / STEP)).states)
    # Among all nodes, the energy with the largest error.
    return {"energy, J": energies[np.argmax(np.abs(energies - energies[0]))]}


BRICARD = Benchmark(
    name="bricard",
    title="Bricard's mechanism, overconstrained: energy with the largest error in 10 s",
    source="IFToMM library, A04 (Gonzalez et al. 2006): initial energy, -3 m g",
    reference=INVARIANT,
    published={"energy, J": -3 * GRAVITY},
    compute=compute,
    method="midpoint_order8, steps of 10 ms, five rows with one redundant",
)
