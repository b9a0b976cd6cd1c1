"""Rotations, poses and directions: a quick look at what test/lie/test_rotation_spaces.py, which is
slow, looks at closely.
"""

import casadi as ca
import numpy as np
import pytest
from differences import jacobian

from nh_control.geometry.rotations import S2, SE3, SO3

SPACES = {
    f"{kind.__name__}-{retraction}": kind(retraction=retraction)
    for kind in (S2, SO3, SE3)
    for retraction in ("exp", "cay")
}
WIDTH = {S2: 3, SO3: 4, SE3: 4}
"""Numbers of a configuration that have length one."""


@pytest.fixture(params=SPACES)
def way(request):
    """A space, two of its points, and the tangent vector from one to the other, 1.4 rad long."""
    space, rng = SPACES[request.param], np.random.default_rng(8)
    q = rng.normal(size=space.nq)
    n = WIDTH[type(space)]
    q[:n] /= np.linalg.norm(q[:n])
    d = rng.normal(size=space.nv)
    d *= 1.4 / np.linalg.norm(d[: min(3, space.nv)])
    return space, q, space.retract(q, d), d


def function(space, expression):
    """A number's function of the symbolic `expression(q, d)`."""
    q, d = ca.SX.sym("q", space.nq), ca.SX.sym("d", space.nv)
    f = ca.Function("f", [q, d], expression(q, d))
    return lambda q, d: [np.array(part) for part in f.call([ca.DM(q), ca.DM(d)])]


def test_the_tangent_vector_to_a_point_leads_there_and_keeps_to_the_manifold(way):
    space, q0, q1, d = way
    n = WIDTH[type(space)]
    assert np.linalg.norm(q1[:n]) == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(space.local(q0, q1), d, atol=1e-13)
    np.testing.assert_allclose(space.retract(q0, space.local(q0, q1)), q1, atol=1e-14)
    np.testing.assert_allclose(space.retract(q1, space.local(q1, q0)), q0, atol=1e-14)


def test_lengths_are_the_angles_or_twice_the_tangents_of_their_halves():
    for kind, share in ((S2, 1.0), (SO3, 0.5)):
        for retraction, angle in (("exp", 1.4), ("cay", 2 * np.arctan(1.4 / 2))):
            space = kind(retraction=retraction)
            d = 1.4 * np.eye(space.nv)[0]
            cosine = space.origin @ space.retract(space.origin, d)
            assert cosine == pytest.approx(np.cos(share * angle), abs=1e-14)


def test_derivatives_of_the_tangent_vector_by_either_end(way):
    space, q0, q1, d = way
    at_start, at_end = function(space, space.local_jacobians)(q0, d)
    for got, moved in (
        (at_start, lambda e: space.local(space.retract(q0, e), q1)),
        (at_end, lambda e: space.local(q0, space.retract(q1, e))),
    ):
        np.testing.assert_allclose(got, jacobian(moved, space.nv, 1e-2), atol=1e-9)


def test_a_step_has_its_end_its_middle_and_their_derivatives(way):
    space, q0, q1, d = way
    segment = function(space, lambda q, d: list(vars(space.step_geometry(q, d)).values()))
    end, middle, _, by_start, by_end = segment(q0, d)
    np.testing.assert_allclose(end[:, 0], q1, atol=1e-14)
    n = WIDTH[type(space)]
    total = q0 + q1
    total[:n] /= np.linalg.norm(total[:n])
    total[n:] /= 2
    np.testing.assert_allclose(middle[:, 0], total, atol=1e-14)

    def parts(start, to):
        return np.concatenate(segment(start, space.local(start, to))[1:3])[:, 0]

    for got, moved in (
        (by_start, lambda e: parts(space.retract(q0, e), q1)),
        (by_end, lambda e: parts(q0, space.retract(q1, e))),
    ):
        np.testing.assert_allclose(got, jacobian(moved, space.nv, 1e-2), atol=1e-9)
