"""Robots that stand on the ground by their contacts, under LQR by the derivatives of the step
through contact: Upkie balances on its wheels, drives and is pushed; JVRC-1, a humanoid with 34
motors, stands on its soles, is pushed and squats; a payload is put down and picked up again.
"""

from dataclasses import replace

import numpy as np
import pytest
from own_scenarios import EXAMPLES, of_robot, pushed

import nh_control as nh
from nh_control import scenarios
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import PlantOptions, urdf

PUSH = 20.0
"""Force (N) of a push of 0.2 s."""


@pytest.mark.parametrize("space", ["SE3", "SO3xR3"])
def test_messages_of_a_floating_base_hold_its_velocity_in_the_world(space):
    model = nh.load_urdf(urdf.DEFAULT, base="floating", space=space)
    scenario, rng = urdf.of_robot(model, urdf.DEFAULT), np.random.default_rng(0)
    q = model.space.retract(model.space.origin, rng.normal(size=model.space.nv))
    v, h = rng.normal(size=model.space.nw), 1e-7
    (base,) = scenario.to_bodies(scenario.parameters, q, v)
    moved = model.space.retract(q, h * v)
    assert base.linear_velocity == pytest.approx((moved[4:7] - q[4:7]) / h, abs=1e-5)
    back, velocity = scenario.from_bodies((base,))
    assert back == pytest.approx(q[:7]) and velocity == pytest.approx(v[:6])


def test_friction_of_contacts_is_a_parameter_of_a_robot():
    model = nh.load_urdf(urdf.DEFAULT, base="floating")
    foot = nh.Contact("lower_link", nh.Sphere(0.05), friction=0.7, name="foot")
    touching = replace(model, contacts=(foot,))
    scenario = urdf.of_robot(touching, urdf.DEFAULT)
    assert scenario.parameters.foot_friction == 0.7 and scenario.hold
    assert list(scenario.references) == ["hold"]
    assert not urdf.of_robot(model, urdf.DEFAULT).hold


@pytest.fixture(scope="module")
def upkie():
    return of_robot("upkie", "upkie_description")


@pytest.mark.slow
def test_upkie_stands_on_its_tires(upkie):
    model = upkie.model()
    x, u = upkie.reference(model, "stand").states[0], upkie.reference(model, "stand").inputs[0]
    tires = nh.contact_forces(model, x, u)
    weight = 9.81 * sum(body.mass for body in model.system.model.bodies)
    assert sum(tire.normal for tire in tires.values()) == pytest.approx(weight, rel=1e-4)
    for tire in tires.values():
        assert tire.gap == pytest.approx(1e-6 / tire.normal, rel=1e-4)
    assert np.abs(model.local(x, model.step(x, u))).max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("force", [f"{PUSH},0,0", f"-{PUSH},0,0", f"0,{PUSH},0"])
def test_upkie_withstands_a_push(upkie, force):
    result = pushed(upkie, "stand", f"base:gust:{force},start=1,duration=0.2")
    error = result.configuration_error()
    assert error.max() > 0.2 and error[-1] < 0.01
    assert result.contacts.gap.max() < 0.1  # it may lift a wheel


@pytest.mark.slow
def test_upkie_drives_and_is_pushed_as_it_drives(upkie):
    model = upkie.model()
    motion = upkie.reference(model, "drive")
    assert motion.states[-1, 4] - motion.states[0, 4] == pytest.approx(1.0, abs=1e-3)
    wheels = motion.states[-1, [9, 12]] - motion.states[0, [9, 12]]
    assert wheels * 0.05 == pytest.approx([1.0, -1.0], abs=0.03)
    result = pushed(upkie, "drive", f"base:gust:-{PUSH},0,0,start=3,duration=0.2")
    assert result.configuration_error().max() > 0.2 > 0.05 > result.configuration_error()[-1]


HEIGHT = 6
"""Index of the height of the base."""


@pytest.fixture(scope="module")
def jvrc1():
    return of_robot("jvrc1", "jvrc_description")


def held(result, slip):
    """Soles slip less than this (m), no corner is below the ground, efforts are possible."""
    places, limits = result.contacts.position, result.experiment.tracker.limits
    inputs = result.loop.trajectory.inputs[:, : len(limits)]
    assert np.abs(places - places[0]).max() < slip
    assert result.contacts.gap.min() > 0
    assert (inputs >= limits[:, 0]).all() and (inputs <= limits[:, 1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("force", ["100,0,0", "0,-60,0"])
def test_jvrc1_withstands_a_push(jvrc1, force):
    """Of 0.1 s at its pelvis; it does not step."""
    result = pushed(jvrc1, "stand", f"base_link:gust:{force},start=1,duration=0.1")
    error = result.configuration_error()
    assert error.max() > 0.005 and error[-1] < 1e-4
    held(result, slip=1e-3)


@pytest.mark.slow
def test_jvrc1_squats_and_stands_up_and_is_pushed_meanwhile(jvrc1):
    result = pushed(jvrc1, "squat", "base_link:gust:0,60,0,start=2.2,duration=0.1")
    height = result.experiment.tracker.reference.states[:, HEIGHT]
    assert height.min() < height[0] - 0.25
    assert height[-1] == pytest.approx(height[0], abs=1e-6)
    error = result.configuration_error()
    assert error.max() > 0.005 and error[-1] < 1e-3
    held(result, slip=2e-3)
    # the ground carries what the motion down and up asks for
    forces = result.contacts.normal.sum(axis=1)
    assert forces[-1] == pytest.approx(forces[0], rel=1e-3)
    assert forces.min() < 0.99 * forces[0] < 1.01 * forces[0] < forces.max()


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, {"payload_mass": 0.45}], ids=["as known", "heavier"])
def test_a_payload_is_landed_and_picked_up(parameters):
    scenario = scenarios.get(f"{EXAMPLES / 'payload_landing.py'}:PAYLOAD_LANDING")
    error = type(scenario.perturbation)(position=0.1)
    experiment = Experiment.make(
        scenario, options=PlantOptions(parameters=parameters), perturbation=error
    )
    result = Result(experiment, experiment.run(), None, 0.0)
    assert result.loop.failure is None
    ground, heights = result.contacts, result.loop.trajectory.states[:, 2]
    landed = ground.normal[:, 0] > 0.1
    assert 100 < landed.sum() < 500 and heights.min() > 0  # for a while, never below the ground
    assert np.abs(np.diff(landed.astype(int))).sum() <= 6  # not as a ball that bounces
    assert ground.gap[landed, 0] == pytest.approx(1e-6 / ground.normal[landed, 0], rel=1e-6)
    assert heights[-1] == pytest.approx(1.0, abs=0.1)
    assert result.configuration_error()[-1] < (0.2 if parameters else 0.02)
