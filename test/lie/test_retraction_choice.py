"""Which retraction rotations have: the exponential unless told, where it is the better one."""

import numpy as np
import pytest

from nh_control.integrators import midpoint
from nh_control.scenarios.quadrotor_payload import PayloadPerturbation, perturbed, to_bodies
from nh_control.systems import quadrotor_payload, satellite
from nh_control.systems.rigid_body import heavy_top, rigid_body
from nh_control.systems.spherical_pendulum import spherical_pendulum

H, RATE, STEPS = 0.1, 2.0, 20


def turned(retraction: dict) -> float:
    """Angle (rad) by which a body that turns about a principal axis is ahead after 4 rad."""
    dsys = midpoint(rigid_body(**retraction), H)
    states = dsys.simulate(dsys.state([1.0, 0, 0, 0], [0, 0, RATE]), np.zeros((STEPS, 3))).states
    angles = 2 * np.unwrap(np.arctan2(states[:, 3], states[:, 0]))
    return angles[-1] - H * RATE * STEPS


def test_a_body_turns_exactly_unless_told_to_turn_by_cayley():
    assert abs(turned({})) < 1e-13
    (x,) = (root.real for root in np.roots([1, 0, 1, -H * RATE / 2]) if not root.imag)
    late = STEPS * (2 * np.arctan(x) - H * RATE)
    assert turned({"retraction": "cay"}) == pytest.approx(late, rel=1e-10) and late < -0.01


@pytest.mark.parametrize(
    "build", [rigid_body, heavy_top, spherical_pendulum, quadrotor_payload, satellite]
)
def test_builders_take_a_retraction(build):
    d = np.full(build().space.nv, 0.3)
    ways = [build(**given).space for given in ({}, {"retraction": "exp"}, {"retraction": "cay"})]
    default, exp, cay = (space.retract(space.origin, d) for space in ways)
    kept = cay if build is spherical_pendulum else exp
    np.testing.assert_array_equal(default, kept)
    assert np.abs(exp - cay).max() > 1e-3


def test_initial_errors_of_the_payload_are_angles_whatever_the_retraction():
    ends = []
    for retraction in ("exp", "cay"):
        dsys = midpoint(quadrotor_payload(retraction=retraction), 0.01)
        space = dsys.system.space
        x = dsys.state(space.retract(space.origin, np.full(space.nv, 0.2)), np.zeros(space.nw))
        moved = perturbed(dsys, x, PayloadPerturbation(heading=0.7, swing=0.5, tilt=1.0, seed=4))
        before, after = (
            to_bodies(dsys.system.parameters, s[: space.nq], dsys.velocity(s)) for s in (x, moved)
        )
        links = [
            (quad.position - payload.position) / np.linalg.norm(quad.position - payload.position)
            for payload, quad in ((b[0], b[1]) for b in (before, after))
        ]
        ends.append(np.arccos(links[0] @ links[1]))
    np.testing.assert_allclose(ends, 0.5, atol=1e-12)
