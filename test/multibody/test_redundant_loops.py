"""Closed loops whose joints have more rows than the loop needs are refused with their names, and
with a joint that closes the loop as well.
"""

import re

import numpy as np
import pytest

from nh_control.multibody import (
    Body,
    Coincident,
    Distance,
    JointConstraint,
    Multibody,
    Point,
    PointOnPlane,
    floating,
    revolute,
)

A, B = Point("coupler", (1.0, 0.0, 0.0)), Point("rocker", (0.0, 0.0, -0.5))


def four_bar(*constraints, base="world"):
    """A parallelogram in the plane x, z of its base, 1 m wide, on cranks of 0.5 m."""
    cranks = [
        revolute("crank", base, axis="y"),
        revolute("coupler", "crank", axis="y", position=(0, 0, -0.5)),
        revolute("rocker", base, axis="y", position=(1, 0, 0)),
    ]
    bodies = [
        Body("crank", 1.0, (0, 0, -0.25), (0.03, 0.03, 0.01)),
        Body("coupler", 2.0, (0.5, 0, 0), (0.01, 0.2, 0.2)),
        Body("rocker", 1.0, (0, 0, -0.25), (0.03, 0.03, 0.01)),
    ]
    if base == "hull":
        cranks.insert(0, floating("hull", space="SO3xR3"))
        bodies.append(Body("hull", 5.0, inertia=(0.3, 0.3, 0.3)))
    return Multibody("bars", cranks, bodies, constraints=constraints)


def bricard(*constraints):
    """Bricard's mechanism: five rods of 1 m and six revolute joints, which moves although its
    joints have as many rows as coordinates; rank 4 where it is closed, 5 elsewhere.
    """
    joints = (("-y", (0, 0, 0)), ("z", (1, 0, 0)), ("x", (0, -1, 0)), ("-y", (0, 0, 1)))
    frames, bodies, parent = [], [], "world"
    ends = (1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0)
    for i, (axis, place) in enumerate((*joints, ("z", (-1, 0, 0)))):
        frames.append(revolute(f"rod_{i}", parent, axis=axis, position=place))
        across = 0.1 - 0.09 * np.abs(ends[i])
        bodies.append(Body(f"rod_{i}", 1.0, np.array(ends[i]) / 2, across))
        parent = f"rod_{i}"
    return Multibody("bricard", frames, bodies, constraints=constraints)


TIP, GROUND = Point("rod_4", (0, 1, 0)), Point("world", (0, 0, 1))
LOOPS = {
    "a ball joint in a plane": (
        lambda: four_bar(Coincident("pin", A, B)),
        "bars: rows ['y'] of Coincident 'pin' are zero or depend on rows before",
        "Coincident('pin', a, b, along='xz')",
        lambda: four_bar(Coincident("pin", A, B, "xz")),
    ),
    "a hinge in a plane": (
        lambda: four_bar(JointConstraint("pin", "revolute", A, B, axis="y")),
        "5 equations for 3 admissible velocities; rows [1, 3, 4] (counted from 0) of "
        "JointConstraint 'pin' are",
        "Coincident('pin', a, b, along='xz')",
        lambda: four_bar(Coincident("pin", A, B, "xz")),
    ),
    "a ball joint in a plane that turns": (
        lambda: four_bar(Coincident("pin", A, B), base="hull"),
        "bars: rows ['z'] of Coincident 'pin' are",
        "PointOnPlane('pin_x', a, b, normal='x') and PointOnPlane('pin_z', a, b, normal='z')",
        lambda: four_bar(
            PointOnPlane("pin_x", A, B, "x"), PointOnPlane("pin_z", A, B, "z"), base="hull"
        ),
    ),
    "a rod beside a pin": (
        lambda: four_bar(
            Coincident("pin", A, B, "xz"), Distance("rod", "crank", Point("crank", (0, 1, 0)), 1.0)
        ),
        "bars: rows [0] (counted from 0) of Distance 'rod' are",
        "drop 'rod'",
        lambda: four_bar(Coincident("pin", A, B, "xz")),
    ),
    "an overconstrained mechanism": (
        lambda: bricard(JointConstraint("close", "revolute", GROUND, TIP, axis="x")),
        "bricard: rows [4] (counted from 0) of JointConstraint 'close' are",
        "JointConstraint('close', 'cylindrical', ...)",
        lambda: bricard(JointConstraint("close", "cylindrical", GROUND, TIP, axis="x")),
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_redundant_rows_of_a_loop_are_refused_with_a_remedy_that_helps(loop):
    make, rows, remedy, remedied = LOOPS[loop]
    with pytest.raises(ValueError, match=re.escape(rows)) as refused:
        make().system  # noqa: B018
    assert remedy in str(refused.value)
    assert remedied().system.n_holonomic_constraints > 0


def test_dependent_rows_of_a_screw_are_named_without_its_pitch_in_other_joints():
    """In a plane that turns, where its aligned axes say nothing."""
    close = JointConstraint("pin", "helical", A, B, axis="y", pitch=0.1)
    message = (
        r"rows \[2, 3\] \(counted from 0\) of JointConstraint 'pin'.*declare constraints with 3"
    )
    with pytest.raises(ValueError, match=message):
        four_bar(close, base="hull").system  # noqa: B018
