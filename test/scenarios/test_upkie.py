"""Robots that stand on the ground by their contacts: Upkie balances on its wheels, drives, and is
pushed, under LQR by the derivatives of the step through contact.
"""

from dataclasses import replace

import numpy as np
import pytest
from own_scenarios import of_robot, pushed

import nh_control as nh
from nh_control.scenarios import urdf

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
    weight = 9.81 * sum(body.mass for body in upkie_bodies(upkie))
    assert sum(tire.normal for tire in tires.values()) == pytest.approx(weight, rel=1e-4)
    for tire in tires.values():
        assert tire.gap == pytest.approx(1e-6 / tire.normal, rel=1e-4)
    assert np.abs(model.local(x, model.step(x, u))).max() < 1e-10


def upkie_bodies(scenario):
    (model,) = {id(part.args[0]): part.args[0] for part in [scenario.make_system]}.values()
    return model.bodies


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
