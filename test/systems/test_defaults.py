"""What a user gets who gives nothing: numbers with their units and bounds, inputs with their
limits; and which input a limit is of.
"""

import numpy as np
import pytest
from refusals import refusal

from nh_control import systems
from nh_control.mechanics.parameters import declarations
from nh_control.systems import Formation, RotorMixing
from nh_control.systems.bicycle import BicycleParameters
from nh_control.systems.marionette import MarionetteParameters
from nh_control.systems.quadrotor_payload import QuadrotorPayloadParameters
from nh_control.systems.rigid_body import HeavyTopParameters, RigidBodyParameters, rigid_body
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters

MADE = {name for name in systems.__all__ if name.islower()} - {"link_tensions", "with_rotors"}
WITHOUT_SYSTEM = (
    QuadrotorPayloadParameters,
    HeavyTopParameters,
    RigidBodyParameters,
    SphericalPendulumParameters,
    RotorMixing,
    MarionetteParameters,
    BicycleParameters,
)


def in_words(declared):
    value = declared.value
    if not isinstance(value, str):
        value = " ".join(f"{number:.12g}" for number in np.atleast_1d(value))
    bound = "" if declared.bound == "> 0" else f" ({declared.bound or 'any'})"
    return f"{declared.name} {value} {declared.unit}".rstrip() + bound


def parameters_in_words(parameters):
    return ", ".join(map(in_words, declarations(parameters)))


def inputs_in_words(system):
    assert len(system.input_units) == system.nu
    limits = (f"{lower:g} ... {upper:g}" for lower, upper in system.input_bounds)
    return ", ".join(map(" ".join, zip(system.inputs, limits, system.input_units)))


def test_numbers_have_their_defaults_units_and_bounds(snapshot):
    """Of all systems, and of what is given to none of them."""
    made = {name: getattr(systems, name)().parameters for name in sorted(MADE)}
    made |= {parameters.__name__: parameters() for parameters in WITHOUT_SYSTEM}
    assert {name: parameters_in_words(one) for name, one in made.items()} == snapshot


def test_inputs_have_their_limits_and_units(snapshot):
    made = {name: getattr(systems, name)() for name in sorted(MADE)} | {"rigid_body": rigid_body()}
    assert {name: inputs_in_words(system) for name, system in made.items()} == snapshot


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_limit_is_that_of_the_inputs_of_its_name(name):
    """`thrust_limit` of every thrust, `torque_limit` of every torque."""
    system = getattr(systems, name)()
    limits = [p for p in vars(system.parameters) if p.endswith("_limit")]
    assert bool(limits) == np.isfinite(system.input_bounds).any()
    for limit in limits:
        larger = 1.5 * getattr(system.parameters, limit)
        changed = system.with_parameters(**{limit: larger}).input_bounds
        meant = [limit.removesuffix("_limit") in entry for entry in system.inputs]
        assert np.array_equal(changed[:, 1] == larger, meant)
        np.testing.assert_array_equal(changed[meant, 0], -larger * (changed[meant, 0] < 0))
        others = ~np.array(meant, dtype=bool)
        np.testing.assert_array_equal(changed[others], system.input_bounds[others])


def test_quadrotors_stand_counter_clockwise_from_the_left():
    """Seen from above, at 30 degrees from the vertical."""
    links = Formation().links(4)
    np.testing.assert_allclose(links[:, 2], np.cos(np.pi / 6))
    np.testing.assert_allclose(links[0, :2], [0, 0.5], atol=1e-15)
    np.testing.assert_allclose(links[1, :2], [-0.5, 0], atol=1e-15)
    np.testing.assert_allclose(Formation().links(1), [[0, 0, 1]])
    Formation(angle=0.0)
    for wrong in ({"angle": np.pi / 2}, {"angle": -0.01}, {"azimuth": np.inf}):
        with pytest.raises(ValueError, match="angle must lie in"):
            Formation(**wrong)


BOUNDS = [
    (
        systems.SnakeboardParameters,
        [{"m": 0.26}, {"l": 1.01}, {"I": 3.99}],
        [{"m": 0.25}, {"l": 1.0}, {"I": 4.0}],
    ),
    (systems.CarParameters, [{"J_steer": 1599.0}], [{"J_steer": 1600.0}]),
    (
        QuadrotorPayloadParameters,
        [{"thrust_limit": 9.38}, {"payload_mass": 4.6}, {"g": 31.0}],
        [{"thrust_limit": 9.36}, {"payload_mass": 4.7}, {"g": 32.0}],
    ),
    (
        systems.QuadrotorParameters,
        [{"thrust_limit": 9.82}, {"m": 2.03}, {"Jz": 0.0159}],
        [{"thrust_limit": 9.8}, {"m": 2.04}, {"Jz": 0.0161}],
    ),
    (
        HeavyTopParameters,
        [{"chi": (0.6, 0.0, -0.8)}],
        [{"chi": (0.6, 0.0, -0.80002)}, {"chi": (0.6, 0.0, 0.79)}, {"chi": (0.0, 2.0, 0.0)}],
    ),
    (
        RigidBodyParameters,
        [{"Jx": 4.5}, {"Jy": 3.5}, {"Jz": 3.0}],
        [{"Jx": 4.51}, {"Jy": 3.51}, {"Jz": 3.01}],
    ),
    (
        systems.RollingBallParameters,
        [{"Jx": 0.0359}, {"Jz": 0.0279}],
        [{"Jx": 0.0361}, {"Jz": 0.0281}],
    ),
    (
        SphericalPendulumParameters,
        [{"masses": (1.0, 2.0), "lengths": (3.0, 4.0)}],
        [{"masses": (1.0, 2.0)}, {"lengths": (1.0, 2.0)}],
    ),
    (
        systems.SatelliteParameters,
        [{"elevation": 1.57}, {"wheel_inertias": (0.1,) * 3}],
        [{"elevation": np.pi / 2}, {"wheel_inertias": (0.1,) * 2}],
    ),
    (systems.SuslovParameters, [{"I13": 0.5}], [{"I13": 3.0}]),
    (systems.ChaoticQuarticParameters, [{"n": 2}], [{"n": 1}]),
    (
        systems.SuslovParameters,
        [{"I13": 0.0, "I23": 0.0, "I22": 2.49}],
        [{"I13": 0.0, "I23": 0.0, "I22": 2.51}],
    ),
]
"""What is made, the numbers that it takes just so, and those that it refuses just beyond."""


def test_numbers_that_depend_on_others_have_their_bounds(snapshot):
    for made, allowed, refused in BOUNDS:
        for numbers in allowed:
            made(**numbers)
        assert [refusal(lambda: made(**numbers)) for numbers in refused] == snapshot
