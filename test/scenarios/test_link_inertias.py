"""Inertias of links, found from the kinetic energy: the mass matrix is that of the system."""

from xml.etree import ElementTree

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.scenarios.frame_tree import ScenarioFrames, frame_tree
from nh_control.scenarios.link_inertias import link_inertias
from nh_control.scenarios.robot_description import robot_description

STEP = 1e-5
SLOW = ("quadrotor_payload", "snakeboard", "differential_drive", "rolling_disk")
NAMES = ["cart_pole", *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)]


def velocities(frames, link, q, e):
    """Angular velocity in the world and the velocity of a link's point, for unit rates e."""
    ahead, back = (frames.poses(frames.space.retract(q, s * STEP * e))[link] for s in (1, -1))
    here = frames.poses(q)[link].rotation
    turn = (ahead.rotation - back.rotation) / (2 * STEP) @ here.T
    omega = np.array([turn[2, 1], turn[0, 2], turn[1, 0]])
    return omega, (ahead.position - back.position) / (2 * STEP)


@pytest.mark.parametrize("name", NAMES)
def test_links_have_the_kinetic_energy_of_the_system(name):
    scenario = scenarios.get(name)
    frames = ScenarioFrames(scenario)
    found = link_inertias(frames, frame_tree(scenario))
    assert found and all(np.linalg.eigvalsh(one.inertia)[0] > -1e-9 for one in found)
    for one in found:  # as bodies have them
        a, b, c = np.linalg.eigvalsh(one.inertia)
        assert a + b >= c - 1e-9 and one.mass > 0
    random = np.random.default_rng(11)
    q = frames.space.retract(frames.space.origin, random.uniform(-0.6, 0.6, frames.space.nv))
    e = random.normal(size=frames.space.nv)
    energy = 0.0
    for one in found:
        omega, v = velocities(frames, one.link, q, e)
        R = frames.poses(q)[one.link].rotation
        v = v + np.cross(omega, R @ one.center)
        energy += one.mass * v @ v / 2 + omega @ R @ one.inertia @ R.T @ omega / 2
    M = ContinuousSystem(scenario.make_system(scenario.parameters)).mass_matrix(q)
    assert energy == pytest.approx(e @ M @ e / 2, rel=1e-4)


def test_the_urdf_has_them_on_request():
    cart_pole = scenarios.get("cart_pole")
    robot = ElementTree.fromstring(robot_description(cart_pole, inertias=True))
    masses = {link.get("name"): link.find("inertial/mass") for link in robot.findall("link")}
    sizes = {name: float(m.get("value")) for name, m in masses.items() if m is not None}
    assert sizes.keys() == {"cart", "pole"}
    p = cart_pole.parameters
    assert sum(sizes.values()) == pytest.approx(p.m_cart + p.m_pole, rel=1e-4)
    assert "inertial" not in robot_description(cart_pole)


@pytest.mark.slow
def test_masses_that_the_motion_determines_are_found():
    scenario = scenarios.get("quadrotor_payload")
    frames, p = ScenarioFrames(scenario), scenario.parameters
    found = {one.link: one for one in link_inertias(frames, frame_tree(scenario))}
    assert found["payload"].mass == pytest.approx(p.payload_mass, rel=1e-4)
    quad = np.sort(np.linalg.eigvalsh(found["quad1"].inertia))
    assert quad == pytest.approx(sorted([p.Jx, p.Jy, p.Jz]), rel=1e-4)


@pytest.mark.slow
def test_a_system_whose_energy_is_not_that_of_its_frames_has_none():
    scenario = scenarios.get("car")  # its front wheels turn as drawn, not as in the model
    assert link_inertias(ScenarioFrames(scenario), frame_tree(scenario)) == []
