"""The numbers of a scenario: parts of the error, units, distance from the manifold."""

from dataclasses import replace

import numpy as np
import pytest
from transforms3d.quaternions import axangle2quat

from nh_control import scenarios
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.scenarios import Joint, error_metrics, get

JOINTS = get("pendulum_swing_up")
"""A scenario of joints alone, of which others are made here."""
SLIDER = replace(JOINTS, joints=(Joint("rail", "x", unit="m"), Joint("hinge", "theta")))


def parts(scenario, space, q, target):
    """Return the parts of the error of one configuration: {name: (unit, value)}."""
    found = error_metrics.error_parts(scenario, space, np.array([q]), np.array([target]))
    return {part.name: (part.unit, float(part.values[0])) for part in found}


def test_coordinates_of_one_unit_are_one_part():
    space = Rn("x", "theta")
    assert parts(SLIDER, space, [0.3, 0.1], [0.0, 0.5]) == {
        "x": ("m", pytest.approx(0.3)),
        "theta": ("rad", pytest.approx(0.4)),
    }
    assert error_metrics.coordinate_units(SLIDER, space) == {"x": "m", "theta": "rad"}


def test_many_coordinates_are_lengths_and_angles():
    arms = replace(
        JOINTS,
        joints=tuple(Joint(name, name, unit="m" if name < "e" else "rad") for name in "abcdefgh"),
    )
    got = parts(arms, Rn(*"abcdefgh"), np.ones(8), np.zeros(8))
    assert got == {"lengths": ("m", pytest.approx(2.0)), "angles": ("rad", pytest.approx(2.0))}


def test_errors_of_a_planar_body_are_position_heading_and_others():
    board = scenarios.get("snakeboard")
    got = parts(
        board, Product(Rn("psi", "phi"), SE2()), [0.3, 0.4, 1.0, 3.0, 4.0], [0, 0, 0.75, 0, 0]
    )
    assert got == {
        "psi, phi": ("rad", pytest.approx(0.5)),
        "position": ("m", pytest.approx(5.0)),
        "heading": ("rad", 0.25),
    }


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-3, 1.0, 3.0, np.pi])
@pytest.mark.parametrize("sign", [-1, 1])
def test_errors_of_rotations_and_directions_are_accurate_angles(angle, sign):
    scenario, axis = scenarios.get("quadrotor_payload"), np.array([2, -1, 2]) / 3
    turned = sign * np.array(axangle2quat(axis, angle))
    space = Product(SO3("quad1_"), S2("link1_"), SE3("tool_"))
    direction = [np.sin(angle), 0.0, np.cos(angle)]
    q, target = (
        [*turned, *direction, *turned, 1.0, 0, 0],
        [1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 2.0],
    )
    got = parts(scenario, space, q, target)
    near = pytest.approx(angle, rel=1e-12, abs=1e-15)
    assert got == {
        "quad1 attitude": ("rad", near),
        "link1 direction": ("rad", near),
        "tool position": ("m", pytest.approx(np.sqrt(5))),
        "tool attitude": ("rad", near),
    }


def test_distance_from_the_manifold_is_that_of_the_worst_factor():
    space = Product(Rn("x"), SO3(), S2("link_"))
    q = np.array([space.origin, space.origin, space.origin])
    q[1, 1] *= 1 + 1e-6
    q[2, 5:] *= 1 - 1e-3
    np.testing.assert_allclose(
        error_metrics.manifold_residual(space, q), [0, 1e-6, 1e-3], rtol=1e-3, atol=1e-16
    )
    q[2, 1] *= 1 + 1e-6
    largest = error_metrics.manifold_residual(space, q)[2]
    assert largest == pytest.approx(1e-3, rel=1e-6), "not the sum"
    assert error_metrics.manifold_residual(Product(Rn("psi"), SE2()), np.zeros((2, 4))) is None


@pytest.mark.parametrize("space", [S2("link_"), SO3(), SE3()], ids=["S2", "SO3", "SE3"])
def test_a_single_sphere_has_a_distance_from_the_manifold(space):
    """A spherical pendulum and a free body, also with coordinates in R^n."""
    longer = 1.001 * space.origin
    for whole, q in ((space, longer), (Product(Rn("psi"), space), np.r_[0.7, longer])):
        np.testing.assert_allclose(error_metrics.manifold_residual(whole, q[None]), 1e-3)


def test_prescribed_inputs_and_errors_have_the_units_of_their_coordinates():
    for name, units in (("marionette", ["m"] * 18), ("cart_pole", ["N"])):
        scenario = get(name)
        system = scenario.make_system(scenario.parameters)
        assert list(error_metrics.input_units(scenario, system)) == units
        assert error_metrics.error_unit(scenario, system.space) == "m, rad"
