"""Which names commands may have: those of actuators, or of joints that one actuator drives."""

import math

import pytest

from nh_control import scenarios
from nh_control.geometry.spaces import Rn
from nh_control.loop.command_validator import CommandNames
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.mechanics.system import System
from nh_control.scenarios import Joint
from nh_control.scenarios.driven_joints import DrivenJoint, driven_joints

NAMES = CommandNames(("lift", "turn"), [DrivenJoint("turret", 1, -2.0)], ("turret", "flap"))


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("lift", "turn"), ((0, 1.0), (1, 1.0))),
        (("turn", "lift"), ((1, 1.0), (0, 1.0))),
        (("turret", "lift"), ((1, 1.0), (0, -2.0))),
        (("flap", "turret", "lift"), ((1, 1.0), (0, -2.0))),
        (("lift",), None),
        ((), None),
        (("lift", "turn", "turn"), None),
        (("lift", "turn", "turret"), None),
        (("lift", "turn", "flap", "flap"), None),
        (("lift", "turn", "wing"), None),
        (("lift", "flap"), None),
    ],
)
def test_every_input_is_named_once(names, order):
    assert NAMES.order(names) == order


@pytest.mark.parametrize(
    ("names", "values", "driving"),
    [
        (("flap", "turret", "lift"), (0.0, 1.0, 2.0), (1.0, 2.0)),
        (("turret", "flap", "lift"), (1.0, math.nan, 2.0), (1.0, 2.0)),
        (("flap", "turret", "lift"), (0.5, 1.0, 2.0), None),
        (("turret", "flap", "lift"), (1.0, 0.0, 2.0, 3.0), None),
        (("turret", "flap", "lift"), (1.0,), None),
    ],
)
def test_a_joint_that_nothing_drives_may_have_no_effort_as_its_value(names, values, driving):
    assert NAMES.driving(names, values) == driving


def linkage(force):
    """Three unit masses with inputs a, b."""
    return System(
        name="linkage",
        space=Rn("x", "y", "z"),
        inputs=("a", "b"),
        lagrangian=lambda q, v: 0.5 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2),
        force=force,
    )


JOINTS = (Joint("first", "x", -1.0), Joint("again", "x"), Joint("second", "y"), Joint("rest", "z"))


@pytest.mark.parametrize(
    ("force", "driven"),
    [
        (lambda q, v, u: [4 * u[0], u[1], 0], [("first", 0, -0.25), ("second", 1, 1.0)]),
        (lambda q, v, u: [u[1] - v[0], -q[0], 0 * u[0]], [("first", 1, -1.0)]),
        (lambda q, v, u: [u[0] + u[1], 0, 0], []),
        (lambda q, v, u: [u[0], u[0], q[0] * u[1]], []),
    ],
)
def test_a_joint_is_driven_by_an_input_that_moves_it_alone(force, driven):
    found = driven_joints(JOINTS, linkage(force), 2)
    assert [(joint.name, joint.input, joint.gain) for joint in found] == driven


def test_forces_from_outside_are_no_actuators():
    system = linkage(lambda q, v, u: [4 * u[0], u[1], 0])
    pushed = with_external_forces(system, list(on_coordinates(system.space, (), {})))
    assert driven_joints(JOINTS, pushed, 2) == driven_joints(JOINTS, system, 2)


def test_of_joints_that_show_one_coordinate_the_first_one_is_commanded():
    scenario = scenarios.get("snakeboard")
    found = driven_joints(scenario.joints, scenario.make_system(scenario.parameters), 2)
    assert found == (DrivenJoint("rotor_joint", 0, 1.0), DrivenJoint("rear_truck_joint", 1, 1.0))
