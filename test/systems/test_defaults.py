"""What a user gets who gives nothing: numbers with their units and bounds, inputs with their
limits; and which input a limit is of.
"""

import numpy as np
import pytest

from nh_control import systems
from nh_control.mechanics.parameters import declarations
from nh_control.systems import Formation, RotorMixing
from nh_control.systems.marionette import MarionetteParameters
from nh_control.systems.quadrotor_payload import QuadrotorPayloadParameters, quadrotor_payload
from nh_control.systems.rigid_body import HeavyTopParameters, RigidBodyParameters, rigid_body
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters

ANY = " (any)"
PARAMETERS = {
    "acrobot": "m1 1 kg, m2 1 kg, l1 1 m, l2 1 m, g 9.81 m/s^2, torque_limit 15 N m",
    "quadrotor": (
        "m 1 kg, Jx 0.008 kg m^2, Jy 0.008 kg m^2, Jz 0.014 kg m^2, g 9.81 m/s^2, "
        "thrust_limit 20 N, roll_torque_limit 1 N m, pitch_torque_limit 1 N m, "
        "yaw_torque_limit 0.2 N m"
    ),
    "car": (
        "m 1200 kg, I 1600 kg m^2, J_steer 2 kg m^2, J_wheel 2.5 kg m^2, l 2.5 m, b 1.2 m, "
        "r 0.3 m, drive_torque_limit 1500 N m, steer_torque_limit 60 N m"
    ),
    "cart_pole": "m_cart 1 kg, m_pole 0.3 kg, l 0.5 m, g 9.81 m/s^2, force_limit 15 N",
    "chaotic_quartic": "n 3 (>= 2)",
    "chaplygin_sleigh": "m 1 kg, I 1 kg m^2, a 1 m, yaw_torque_limit 20 N m, thrust_limit 20 N",
    "differential_drive": (
        "m_body 9 kg, m_wheel 0.5 kg, I_body 0.2 kg m^2, J_roll 0.0016 kg m^2, "
        f"J_yaw 0.0008 kg m^2, d 0.05 m{ANY}, b 0.15 m, r 0.08 m, torque_limit 1.5 N m"
    ),
    "gearbox": "m 1 kg, k 1 N/m, J 1 kg m^2, V1 1 N m, V2 0.2 N m (>= 0)",
    "pendulum": "m 1 kg, l 1 m, g 9.8 m/s^2",
    "roller_racer": (
        "m 30 kg, I1 2 kg m^2, I2 0.5 kg m^2, d1 0.5 m, d2 0.1 m, torque_limit 20 N m"
    ),
    "rolling_ball": (
        "m 1 kg, r 0.2 m, Jx 0.012 kg m^2, Jy 0.016 kg m^2, Jz 0.02 kg m^2, torque_limit 2 N m"
    ),
    "rolling_disk": (
        "m 2 kg, r 0.25 m, J_phi 0.0625 kg m^2, J_theta 0.03125 kg m^2, "
        "roll_torque_limit 2 N m, yaw_torque_limit 0.5 N m"
    ),
    "satellite": (
        "Jx 2 kg m^2, Jy 1.6 kg m^2, Jz 1.2 kg m^2, "
        "wheel_inertias 0.002 0.002 0.002 0.002 kg m^2, elevation 0.6155 rad, "
        "torque_limit 0.1 N m, speed_limit 500 rad/s"
    ),
    "snakeboard": (
        "m 1 kg, l 2 m, I 1 kg m^2, J 1.2 kg m^2, rotor_torque_limit 20 N m, "
        "steer_torque_limit 20 N m"
    ),
    "suslov": (
        "I11 1 kg m^2, I22 2 kg m^2, I33 1.5 kg m^2, "
        f"I13 0.4 kg m^2{ANY}, I23 -0.3 kg m^2{ANY}"
    ),
}  # fmt: skip
PARAMETERS |= {
    f"wet_{name}": f"{PARAMETERS[name]}, friction {friction}, gravity 9.81 m/s^2"
    for name, friction in (("car", 0.6), ("snakeboard", 0.8))
}
OTHERS = {
    QuadrotorPayloadParameters: (
        "payload_mass 0.4 kg, quadrotor_mass 0.755 kg, Jx 0.082 kg m^2, Jy 0.0845 kg m^2, "
        "Jz 0.1377 kg m^2, lengths 0.6 0.8 m, g 9.81 m/s^2, thrust_limit 30 N, torque_limit 5 N m"
    ),
    HeavyTopParameters: (
        "M 15 kg, l 2 m, Jx 0.234375 kg m^2, Jy 0.46875 kg m^2, Jz 0.234375 kg m^2, "
        "g 9.81 m/s^2, chi 0 1 0 (any)"
    ),
    RigidBodyParameters: "Jx 1 kg m^2, Jy 2 kg m^2, Jz 2.5 kg m^2",
    SphericalPendulumParameters: "masses 1 kg, lengths 1 m, g 9.81 m/s^2",
    RotorMixing: (
        "arm 0.315 m, thrust_coefficient 8.5e-06 N s^2/rad^2, drag_ratio 0.016 m, "
        "max_speed 940 rad/s, layout x (any)"
    ),
    MarionetteParameters: (
        "pelvis 10 kg, head 0.75 kg, femur 1.5 kg, tibia 1.5 kg, humerus 0.5 kg, radius 0.5 kg, "
        "damping 0.2 N m s/rad (>= 0), g 9.8 m/s^2 (any)"
    ),
}
INPUTS = {
    "acrobot": "torque -15 ... 15 N m",
    "quadrotor": (
        "thrust 0 ... 20 N, roll_torque -1 ... 1 N m, pitch_torque -1 ... 1 N m, "
        "yaw_torque -0.2 ... 0.2 N m"
    ),
    "car": "drive_torque -1500 ... 1500 N m, steer_torque -60 ... 60 N m",
    "cart_pole": "force -15 ... 15 N",
    "chaotic_quartic": "",
    "chaplygin_sleigh": "yaw_torque -20 ... 20 N m, thrust -20 ... 20 N",
    "chaplygin_sleigh_contact": "yaw_torque -20 ... 20 N m, thrust -20 ... 20 N",
    "differential_drive": "left_torque -1.5 ... 1.5 N m, right_torque -1.5 ... 1.5 N m",
    "gearbox": "pendulum_torque -inf ... inf N m",
    "pendulum": "torque -inf ... inf N m",
    "quadrotor_payload": ", ".join(
        f"quad{i}_{what}"
        for i in (1, 2)
        for what in ("thrust 0 ... 30 N", *(f"torque_{c} -5 ... 5 N m" for c in "xyz"))
    ),
    "roller_racer": "steer_torque -20 ... 20 N m",
    "rolling_ball": ", ".join(f"torque_{c} -2 ... 2 N m" for c in "xyz"),
    "rolling_disk": "roll_torque -2 ... 2 N m, yaw_torque -0.5 ... 0.5 N m",
    "satellite": ", ".join(f"wheel{i}_torque -0.1 ... 0.1 N m" for i in (1, 2, 3, 4)),
    "snakeboard": "rotor_torque -20 ... 20 N m, steer_torque -20 ... 20 N m",
    "suslov": "torque_x -inf ... inf N m, torque_y -inf ... inf N m",
}
INPUTS |= {f"wet_{name}": INPUTS[name] for name in ("car", "snakeboard")}


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


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_of_systems(name):
    assert parameters_in_words(getattr(systems, name)().parameters) == PARAMETERS[name]


@pytest.mark.parametrize("made", OTHERS, ids=lambda made: made.__name__)
def test_parameters_of_what_needs_no_system(made):
    assert parameters_in_words(made()) == OTHERS[made]


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_with_their_limits_and_units(name):
    assert inputs_in_words(getattr(systems, name)()) == INPUTS[name]


def test_every_system_that_can_be_had_is_asked():
    made = {name for name in systems.__all__ if name.islower() and name != "link_tensions"}
    assert set(INPUTS) == made
    assert set(PARAMETERS) == made - {"quadrotor_payload", "chaplygin_sleigh_contact"}


@pytest.mark.parametrize("name", INPUTS)
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


def test_wind_has_no_limits_and_names_the_bodies_in_their_order():
    windy = quadrotor_payload(wind=True)
    bodies = ("payload", "quad1", "quad2")
    assert windy.inputs[8:] == tuple(f"{body}_force_{c}" for body in bodies for c in "xyz")
    assert windy.input_units[8:] == ("N",) * 9
    np.testing.assert_array_equal(windy.input_bounds[8:], [[-np.inf, np.inf]] * 9)


def test_torques_on_a_rigid_body_have_no_limits():
    assert inputs_in_words(rigid_body()) == (
        "torque_x -inf ... inf N m, torque_y -inf ... inf N m, torque_z -inf ... inf N m"
    )


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


BOUNDS = {
    # made, what it allows just so, what it refuses just beyond, and what it says
    "a rotor lighter than the board": (
        systems.SnakeboardParameters,
        [{"m": 0.26}, {"l": 1.01}, {"I": 3.99}],
        [{"m": 0.25}, {"l": 1.0}, {"I": 4.0}],
        r"m l\^2 = \S+ is the total yaw inertia and must exceed the rotor's I = ",
    ),
    "wheels that steer within the car": (
        systems.CarParameters,
        [{"J_steer": 1599.0}],
        [{"J_steer": 1600.0}],
        "J_steer = 1600 is part of the yaw inertia I = 1600 and must be smaller",
    ),
    "a weight that thrusts can hold": (
        QuadrotorPayloadParameters,
        [{"thrust_limit": 9.38}, {"payload_mass": 4.6}, {"g": 31.0}],
        [{"thrust_limit": 9.36}, {"payload_mass": 4.7}, {"g": 32.0}],
        "2 thrusts of at most .* N cannot hold the weight of",
    ),
    "a thrust that carries a quadrotor": (
        systems.QuadrotorParameters,
        [{"thrust_limit": 9.82}, {"m": 2.03}, {"Jz": 0.0159}],
        [{"thrust_limit": 9.8}, {"m": 2.04}, {"Jz": 0.0161}],
        "QuadrotorParameters: (a thrust of at most .* N cannot hold|the largest inertia)",
    ),
    "a top's direction of length one": (
        HeavyTopParameters,
        [{"chi": (0.6, 0.0, -0.8)}],
        [{"chi": (0.6, 0.0, -0.80002)}, {"chi": (0.6, 0.0, 0.79)}, {"chi": (0.0, 2.0, 0.0)}],
        "chi must be a unit vector",
    ),
    "a body's inertias": (
        RigidBodyParameters,
        [{"Jx": 4.5}, {"Jy": 3.5}, {"Jz": 3.0}],
        [{"Jx": 4.51}, {"Jy": 3.51}, {"Jz": 3.01}],
        "largest inertia",
    ),
    "a ball's inertias": (
        systems.RollingBallParameters,
        [{"Jx": 0.0359}, {"Jz": 0.0279}],
        [{"Jx": 0.0361}, {"Jz": 0.0281}],
        "RollingBallParameters.*largest inertia",
    ),
    "as many masses as lengths": (
        SphericalPendulumParameters,
        [{"masses": (1.0, 2.0), "lengths": (3.0, 4.0)}],
        [{"masses": (1.0, 2.0)}, {"lengths": (1.0, 2.0)}],
        r"\d masses but \d lengths",
    ),
    "a satellite's wheels": (
        systems.SatelliteParameters,
        [{"elevation": 1.57}, {"wheel_inertias": (0.1,) * 3}],
        [{"elevation": np.pi / 2}, {"wheel_inertias": (0.1,) * 2}],
        "three wheels or more with an elevation below pi/2",
    ),
    "products of inertia": (
        systems.SuslovParameters,
        [{"I13": 0.0, "I23": 0.0, "I22": 2.49}],
        [{"I13": 0.0, "I23": 0.0, "I22": 2.51}],
        "SuslovParameters.*largest inertia",
    ),
}


@pytest.mark.parametrize("what", BOUNDS)
def test_numbers_that_depend_on_others_have_their_bounds(what):
    made, allowed, refused, message = BOUNDS[what]
    for numbers in allowed:
        made(**numbers)
    for numbers in refused:
        with pytest.raises(ValueError, match=message):
            made(**numbers)
