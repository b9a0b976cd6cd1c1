"""Sensors of craft: values by hand, rates and noise."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.autopilots.sensors import CraftSensors
from nh_control.scenarios.craft_sensors import Place

PLACE = Place()


@pytest.fixture(scope="module")
def plant():
    scenario = scenarios.get("quadrotor", autopilot="betaflight")
    dsys = scenario.plant(scenario.model()).with_step(0.002)
    return dsys, scenario.flight.crafts(dsys.system)


def sample(plant, q, v, u=(9.81, 0, 0, 0), factor=0.0):
    sensors = CraftSensors(*plant, factor=factor)
    sensors.start(np.array(q), np.array(v), np.array(u, dtype=float))
    return sensors.samples(0.0, np.array(q), np.array(v))[0]


def test_barometer_and_receiver(plant):
    """Hydrostatics of air with 284.95 K between both heights; 100 m north and 200 m east in
    degrees of a sphere.
    """
    low = sample(plant, [0, 0, 0, 1, 0, 0, 0], np.zeros(6))
    high = sample(plant, [200, 100, 10, 1, 0, 0, 0], [1, 2, 3, 0, 0, 0])
    density = (low.pressure + high.pressure) / 2 / (287.05 * 284.95)
    assert low.pressure - high.pressure == pytest.approx(density * 9.80665 * 10, rel=1e-3)
    assert low.pressure == pytest.approx(95600, abs=50)  # standard atmosphere
    moved = np.degrees(high.geodetic[:2] - low.geodetic[:2])
    np.testing.assert_allclose(moved, [100 / 111195, 200 / 75270], rtol=1e-3)
    assert high.geodetic[2] - low.geodetic[2] == 10
    np.testing.assert_allclose(high.gps_velocity, [1, 2, 3])


def test_magnetometer(plant):
    """Nose north, the field shows forward and down; nose east, to the left and down."""
    north, _, down = PLACE.field
    s = np.sqrt(0.5)
    forward = sample(plant, [0, 0, 0, s, 0, 0, s], np.zeros(6)).field
    left = sample(plant, [0, 0, 0, 1, 0, 0, 0], np.zeros(6)).field
    np.testing.assert_allclose([forward[0], forward[2]], [north, -down], rtol=1e-9)
    np.testing.assert_allclose([left[1], left[2]], [north, -down], rtol=1e-9)


def test_imu(plant):
    """Hover shows 1 g upwards, a fall nothing; rates are those of the body."""
    hover = sample(plant, [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 2, 3])
    np.testing.assert_allclose(hover.angular_velocity, [1, 2, 3])
    np.testing.assert_allclose(hover.specific_force, [0, 0, 9.81])
    falling = sample(plant, [0, 0, 0, 1, 0, 0, 0], np.zeros(6), u=np.zeros(4))
    np.testing.assert_allclose(falling.specific_force, 0, atol=1e-12)


def test_rates_delay_and_noise(plant):
    """At 500 Hz: the IMU in every step, the barometer every 10, the receiver every 50 and 0.1 s
    late; noise has its deviation, and depends on the seed alone.
    """
    sensors, again = CraftSensors(*plant, seed=1), CraftSensors(*plant, seed=1)
    q, v, u = np.array([0, 0, 1, 1, 0, 0, 0.0]), np.zeros(6), np.array([9.81, 0, 0, 0])
    samples = []
    for one in (sensors, again):
        one.start(q, v, u)
    for k in range(500):
        for one in (sensors, again):
            one.measure(k, q, v, u)
        samples.append(sensors.samples(0.002 * k, q, v)[0])
        other = again.samples(0.002 * k, q, v)[0]
        np.testing.assert_array_equal(other.specific_force, samples[-1].specific_force)
    gyroscope = np.array([one.angular_velocity for one in samples])
    assert gyroscope.std() == pytest.approx(0.005, rel=0.1)
    changes = [
        np.count_nonzero(np.diff([value(one) for one in samples]))
        for value in (lambda s: s.pressure, lambda s: s.geodetic[2])
    ]
    assert changes == [49, 9]
    first = np.flatnonzero(np.diff([one.geodetic[2] for one in samples]))[0]
    assert first == 49
