"""The plant node under a flight controller, which is a stand-in for Betaflight in a process of its
own: the same topics as ever, and what becomes of a lost link, late answers, a killed firmware.
"""

import os
import signal
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from bench import Desk, Ended, benches
from sensor_msgs.msg import JointState

from nh_control.autopilots import betaflight, isolation
from nh_control.autopilots.betaflight import Betaflight
from nh_control.loop import simulation_loop
from nh_control.loop.simulation_loop import Mode
from nh_control.ros.messages import conversions
from nh_control.ros.nodes import plant
from nh_control.ros.runtime.parameters import UsageError

STAND_IN = Path(__file__).parents[1] / "autopilots" / "betaflight_stand_in.py"
H_NS = 10**7
HOVER = [9.81, 0.0, 0.0, 0.0]
NAMES = ["thrust", "roll_rate", "pitch_rate", "yaw_rate"]


@pytest.fixture
def firmware(tmp_path, monkeypatch):
    """The stand-in as the firmware that the package starts."""
    program = tmp_path / "firmware"
    program.write_text(f"#!{sys.executable} -IS\n{STAND_IN.read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("NH_CONTROL_BETAFLIGHT", str(program))
    return program


class Flight:
    """A plant node in this thread, whose states are answered with a thrust and rates."""

    def __init__(self, make, **parameters):
        given = {
            "scenario": "quadrotor",
            "autopilot": "betaflight:noise=0",
            "reference": "hover",
            "speed_factor": 0.0,
            "lockstep": True,
        }
        self.node, self.desk = make("plant", "", **given | parameters), Desk()
        self.made = plant.Plant(self.node, self.desk, Ended())
        self.plant, self.loop = self.made.loop.plant, self.made.loop

    @property
    def autopilot(self):
        return self.plant.autopilots[0]

    def fly(self, steps, command=HOVER):
        """Work for some steps."""
        end, answered = self.plant.step + steps, -1

        def serve():
            nonlocal answered
            if self.plant.step >= end or self.loop.mode is not Mode.RUNNING:
                self.desk.close()
                return
            stamp = conversions.nanoseconds(
                self.node.sent("multi_dof_joint_states")[-1].header.stamp
            )
            if stamp != answered:
                answered = stamp
                message = JointState(name=NAMES, effort=list(command))
                self.desk.give("joint_commands", message, stamp)

        self.desk.on_serve, self.desk.closed = serve, False
        self.made.work()
        return self

    def report(self):
        self.desk.closed = False
        return self.node.report()


@pytest.fixture
def flights(firmware, monkeypatch):
    """Makes plants: f(**parameters)."""
    monkeypatch.setattr(simulation_loop, "REPUBLISH_S", 1e6)
    made = []
    with benches() as make:

        def flight(**parameters):
            try:
                made.append(Flight(make, **parameters))
            except isolation.IsolationRefused as refused:
                pytest.skip(str(refused))
            return made[-1]

        try:
            yield flight
        finally:
            for one in made:
                one.plant.close()


def wait_for_sleep(pid, timeout_s=60.0):
    """Until a process waits for input, having answered all that it got."""
    deadline, stat = time.monotonic() + timeout_s, Path(f"/proc/{pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < deadline
        time.sleep(1e-3)


def test_a_plant_under_firmware_has_the_same_topics_and_motors(flights):
    flight = flights().fly(30, [9.81, 1.0, 0.0, 0.0])
    states = flight.node.sent("multi_dof_joint_states")
    stamps = [conversions.nanoseconds(message.header.stamp) // H_NS for message in states]
    assert sorted(set(stamps)) == list(range(31))
    assert states[-1].joint_names == ["quadrotor"] and len(states[-1].transforms) == 1
    assert states[-1].twist[0].angular.x == pytest.approx(1.0, abs=0.25)
    motors = flight.node.sent("motors")[-1]
    assert motors.name == [f"quadrotor_motor{i}" for i in (1, 2, 3, 4)]
    assert min(motors.position) > 0.3 and max(motors.position) < 0.9
    assert sum(motors.effort) == pytest.approx(9.81, abs=0.5)
    level, text, values = flight.report()
    assert level == 0 and text == "running"
    assert int(values["quadrotor: lost"]) == 0
    assert int(values["quadrotor: samples"]) == flight.autopilot.link.sent > 150
    assert "samples answered" in values["link"]


def test_late_answers_are_lost_samples_and_the_flight_goes_on(flights, monkeypatch):
    """A firmware that hangs for a while: motors keep their commands, and stop after 0.1 s; its
    late answers count for nothing, and it flies again.
    """
    flight = flights().fly(10)
    flight.report()
    before, lost = flight.plant.motors.copy(), flight.autopilot.link.lost
    os.kill(flight.autopilot.pid, signal.SIGSTOP)
    monkeypatch.setattr(betaflight, "WAIT_S", 0.003)
    flight.fly(5)
    np.testing.assert_array_equal(flight.plant.motors, before)
    level, text, values = flight.report()
    assert level == 1 and "quadrotor: 25 samples without an answer" in text
    assert int(values["quadrotor: lost in a row"]) == 25
    flight.fly(7)
    assert flight.plant.motors.max() == 0
    os.kill(flight.autopilot.pid, signal.SIGCONT)
    monkeypatch.setattr(betaflight, "WAIT_S", 0.5)
    wait_for_sleep(flight.autopilot.pid)  # all late answers have come
    flight.fly(10)
    level, text, values = flight.report()
    link = flight.autopilot.link
    assert link.in_a_row == 0 and link.lost == lost + 60
    assert flight.plant.motors.min() > 0.2 and not link.ended
    assert flight.fly(1).report()[0] == 0


def test_a_killed_firmware_is_named_and_the_craft_falls(flights):
    flight = flights().fly(5)
    os.kill(flight.autopilot.pid, signal.SIGKILL)
    flight.fly(30)
    level, text, values = flight.report()
    assert level == 1 and "exit code -9" in text and "its motors do not turn" in text
    assert flight.loop.mode is Mode.RUNNING
    assert flight.plant.motors.max() == 0 and flight.plant.velocity[2] < -1.0
    assert "exit code -9" in values["link"]


def test_a_firmware_that_cannot_be_armed_is_refused_with_its_reason(firmware, monkeypatch):
    """Its arming switch has never been off."""
    text = firmware.read_text().replace("False, True\n", "False, False\n")
    firmware.write_text(text)
    monkeypatch.setattr("nh_control.autopilots.flown_plant.ARM_S", 0.5)
    refused = pytest.raises(UsageError, match="not armed within .* arming switch was on")
    with benches() as make, refused:
        Flight(make)


def test_a_deaf_start_is_made_again_and_counted(firmware, tmp_path):
    """The second start, after the configuration, gives a firmware without motor packets."""
    mark = tmp_path / "starts"
    mark.write_text("")
    body = (
        "    import pathlib\n"
        f"    mark = pathlib.Path({str(mark)!r})\n"
        "    mark.write_text(mark.read_text() + '.')\n"
        "    if len(mark.read_text()) == 2:\n"
        "        Firmware.turn = lambda *_: sys.exit(time.sleep(60))\n"
        "    main()\n"
    )
    firmware.write_text(firmware.read_text().replace("    main()\n", body))
    one = Betaflight("craft", folder=tmp_path / "folder")
    try:
        one.start()
    except isolation.IsolationRefused as refused:
        pytest.skip(str(refused))
    try:
        assert one.link.restarts == 1 and mark.read_text() == "..."
        assert "restarts: 1" in one.link.summary
    finally:
        one.close()
