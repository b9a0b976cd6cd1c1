"""Dry friction of joints: the smoothed law of Coulomb, in URDF files, and as parameters."""

import numpy as np
import pytest

from nh_control.integrators import midpoint
from nh_control.multibody import (
    Body,
    JointFriction,
    JointInput,
    Multibody,
    Robot,
    load_urdf,
    prismatic,
)

MASS, FRICTION, SMOOTH = 2.0, 3.0, 0.1
LINK = """<link name="{}"><inertial><mass value="2"/>
<inertia ixx="0.3" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.3"/></inertial></link>"""
GRIPPER = f"""<robot name="gripper"><link name="base"/>{LINK.format("a")}{LINK.format("b")}
<joint name="lead" type="continuous"><parent link="base"/><child link="a"/>
<dynamics friction="0.5"/></joint>
<joint name="follow" type="continuous"><parent link="base"/><child link="b"/>
<mimic joint="lead" multiplier="-2"/><dynamics friction="0.25" damping="0.1"/></joint></robot>"""


def sled(friction=FRICTION, smooth=SMOOTH, **options):
    return Multibody(
        "sled",
        [prismatic("sled")],
        [Body("sled", MASS)],
        [JointFriction("sled", friction, smooth)],
        [JointInput("sled")],
        **options,
    )


def test_a_sled_stops_after_the_distance_of_the_law():
    """M v dv/dx = -F v / sqrt(v^2 + s^2), so x = M/F times the integral of sqrt(v^2 + s^2)."""
    v = 1.5
    root = np.hypot(v, SMOOTH)
    expected = MASS / FRICTION / 2 * (v * root + SMOOTH**2 * np.arcsinh(v / SMOOTH))
    errors = []
    for h in (0.04, 0.02, 0.01):
        model = midpoint(sled().system, h)
        run = model.simulate(model.state([0.0], [v]), np.zeros((round(4.0 / h), 1)))
        assert np.abs(run.velocities[-1]).max() <= 1e-6
        errors.append(abs(run.states[-1, 0] - expected))
    assert errors[-1] <= 1e-5 and errors[0] / errors[1] > 3.5 and errors[1] / errors[2] > 3.5


def test_a_push_below_friction_creeps_and_one_above_accelerates():
    """At F v / sqrt(v^2 + s^2) = push, v = s push / sqrt(F^2 - push^2)."""
    model, push = midpoint(sled().system, 0.01), 0.8 * FRICTION
    run = model.simulate(model.state([0.0], [0.0]), np.full((800, 1), push))
    creep = SMOOTH * push / np.sqrt(FRICTION**2 - push**2)
    np.testing.assert_allclose(run.velocities[-1], creep, rtol=1e-6)
    run = model.simulate(model.state([0.0], [0.0]), np.full((800, 1), 2 * FRICTION))
    np.testing.assert_allclose(run.velocities[-1], 8.0 * FRICTION / MASS, rtol=0.02)


@pytest.mark.parametrize("part, turns_back", [(0.99, False), (4.0, True)])
def test_a_step_turns_a_slow_joint_back_only_beyond_the_bound(part, turns_back):
    h = part * 2 * MASS * SMOOTH / FRICTION
    model = midpoint(sled().system, h)
    run = model.simulate(model.state([0.0], [1e-3]), np.zeros((40, 1)))
    assert bool((run.velocities < 0).any()) == turns_back
    assert abs(run.velocities[-1, 0]) < 1e-4
    left = midpoint(sled().system, h, "left")
    run = left.simulate(left.state([0.0], [1e-3]), np.zeros((40, 1)))
    assert not (run.velocities < 0).any()


def test_friction_of_a_file_acts_and_that_of_a_mimic_on_the_joint_it_follows():
    model = load_urdf(GRIPPER, friction_velocity=0.2)
    (friction,) = (e for e in model.elements if isinstance(e, JointFriction))
    assert friction == JointFriction("lead", 1.0, 0.2)
    robot, rest = Robot(model), Robot(load_urdf(GRIPPER.replace("friction=", "rough=")))
    state = [0.3], [0.4], [0.0]
    more = robot.inverse_dynamics(*state) - rest.inverse_dynamics(*state)
    np.testing.assert_allclose(more, 0.4 / np.hypot(0.4, 0.2), rtol=1e-12)


def test_two_frictions_of_one_joint_are_stepped_by_generated_equations():
    """The kernel has one velocity for every joint."""
    halves = [JointFriction("sled", FRICTION / 2, smooth) for smooth in (SMOOTH, 2 * SMOOTH)]
    frames, bodies = [prismatic("sled")], [Body("sled", MASS)]
    model = midpoint(Multibody("sled", frames, bodies, halves).system, 0.01)
    force = -sum(FRICTION / 2 / np.hypot(1, smooth) for smooth in (SMOOTH, 2 * SMOOTH))
    x = model.step(model.state([0.0], [1.0]), [])
    np.testing.assert_allclose(x[1] / MASS, 1.0 + 0.01 * force / MASS, rtol=1e-5)


@pytest.mark.parametrize("friction, smooth", [(-1.0, 0.1), (1.0, 0.0), (np.nan, 0.1)])
def test_friction_that_no_joint_has_is_refused(friction, smooth):
    with pytest.raises(ValueError, match="JointFriction"):
        sled(friction, smooth)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf])
def test_masses_are_scaled_by_a_positive_number(scale):
    with pytest.raises(ValueError, match="mass_scale must be positive"):
        sled(mass_scale=scale)
    model = midpoint(sled(parameters=("mass_scale",)).system, 0.01)
    with pytest.raises(ValueError, match="mass_scale must be positive"):
        model.with_parameters(mass_scale=scale)


def test_scaled_masses_are_those_of_every_function():
    heavy = sled(mass_scale=1.5)
    np.testing.assert_allclose(heavy.mass_matrix([0.0]), [[1.5 * MASS]])
    changed = midpoint(sled(parameters=("mass_scale",)).system, 0.01)
    changed = changed.with_parameters(mass_scale=1.5)
    x = changed.state([0.0], [0.7])
    np.testing.assert_allclose(x[1], 1.5 * MASS * 0.7)
    np.testing.assert_array_equal(
        changed.step(x, [2.0]), midpoint(heavy.system, 0.01).step(x, [2.0])
    )
