"""A robot that is not a simulator: physics of its own (Cartesian equations with multipliers,
SciPy's DOP853, wall time), sensors with noise, jitter, delay and loss, positions only, joints in
several messages.

`python hardware_emulator.py NAME FILE SEED SECONDS PERIOD SLOW`: FILE has where the robot starts,
is held there until the first command, and gets what happened when it ends, SECONDS after that. Its
clock is wall time if SLOW is 1. Otherwise it is published on /clock, runs SLOW times slower than
wall time, and does not count what a busy machine takes from both processes: neither the time in
which this one does not run, nor that in which the answer to a state is overdue by far. Where the
state itself was lost, so that no answer comes, it goes on to the next one.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Transform
from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from scipy.integrate import solve_ivp
from sensor_msgs.msg import JointState, MultiDOFJointState

NOISE, JITTER_S, DELAY_S, DELAY_SPREAD_S, LOSS = 1e-3, 1e-4, 5e-3, 2e-3, 0.01
CLOCK_NS = 500_000
TICK_NS, OVERDUE_NS, LOST_NS = 1_000_000, 40_000_000, 2_000_000_000
"""By what the clock advances at most at once, how old the last state that was answered may become
until it waits for an answer, and how long, in wall time, until it waits for that of the next one.
"""
G = 9.81


def constrained(mass, force, jacobian, bias):
    """Accelerations of `M a = f + J^T lam, J a = bias`."""
    n, m = len(mass), len(jacobian)
    matrix = np.zeros((n + m, n + m))
    matrix[:n, :n], matrix[:n, n:], matrix[n:, :n] = mass, -jacobian.T, jacobian
    return np.linalg.solve(matrix, np.concatenate([force, bias]))[:n]


class CartPole:
    """A cart with a pole, (x, theta)."""

    inputs = ("force",)

    def rates(self, s, u):
        x_dot, w = s[2:]
        M, m, l, c, sn = 1.0, 0.3, 0.5, np.cos(s[1]), np.sin(s[1])
        mass = np.array([[M + m, m * l * c], [m * l * c, m * l**2]])
        force = np.array([u[0] + m * l * sn * w**2, -m * G * l * sn])
        return np.concatenate([[x_dot, w], np.linalg.solve(mass, force)])

    def messages(self, s, rng):
        noisy = s[:2] + NOISE * rng.normal(size=2)
        return [
            JointState(name=[n], position=[p]) for n, p in zip(("cart_joint", "pole_joint"), noisy)
        ]


class Snakeboard:
    """A board in world coordinates (psi, phi, theta, x, y), where its mass matrix is constant."""

    inputs = ("rotor_torque", "steer_torque")
    mass = np.array(
        [
            [1.0, 0, 1.0, 0, 0],
            [0, 2.4, 0, 0, 0],
            [1.0, 0, 4.0, 0, 0],
            [0, 0, 0, 1.0, 0],
            [0, 0, 0, 0, 1.0],
        ]
    )

    @staticmethod
    def wheels(q):
        """No velocity across the wheels, which stand 2 m before and behind the middle."""
        rows = []
        for side, turn in ((-1, 1), (1, -1)):
            angle = q[2] + turn * q[1]
            across = np.array([-np.sin(angle), np.cos(angle)])
            lever = 2.0 * side * np.array([-np.sin(q[2]), np.cos(q[2])])
            rows.append([0, 0, across @ lever, *across])
        return np.array(rows)

    def rates(self, s, u):
        q, v = s[:5], s[5:]
        A = self.wheels(q)
        e = 1e-6
        turning = (self.wheels(q + e * v) - self.wheels(q - e * v)) @ v / (2 * e)
        force = np.array([u[0], u[1], 0, 0, 0])
        return np.concatenate([v, constrained(self.mass, force, A, -turning)])

    def messages(self, s, rng):
        q = s[:5] + NOISE * rng.normal(size=5)
        board = Odometry(child_frame_id="base_link")
        board.header.frame_id = "odom"
        board.pose.pose.position.x, board.pose.pose.position.y = float(q[3]), float(q[4])
        turn = board.pose.pose.orientation
        turn.z, turn.w = float(np.sin(q[2] / 2)), float(np.cos(q[2] / 2))
        board.twist.covariance[0] = -1.0  # not known
        return [
            JointState(name=["front_truck_joint", "rotor_joint"], position=[-q[1], q[0]]),
            board,
            JointState(name=["rear_truck_joint"], position=[q[1]]),
        ]


class QuadrotorPayload:
    """Three particles, two of which turn: positions (9), attitudes (8), velocities (9), body rates
    (6); rods keep the distances."""

    inputs = tuple(
        f"quad{i}_{n}" for i in (1, 2) for n in ("thrust", "torque_x", "torque_y", "torque_z")
    )
    masses, lengths = np.array([0.4, 0.755, 0.755]), (0.6, 0.8)
    inertia = np.array([0.0820, 0.0845, 0.1377])

    @staticmethod
    def axis_z(w, x, y, z):
        return np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])

    def rates(self, s, u):
        x, turns, v, rates = s[:9].reshape(3, 3), s[9:17].reshape(2, 4), s[17:26], s[26:]
        force = -G * np.outer(self.masses, [0, 0, 1.0])
        spin, turning = [], []
        for i in range(2):
            force[i + 1] += u[4 * i] * self.axis_z(*turns[i])
            w = rates[3 * i : 3 * i + 3]
            gyro = np.cross(w, self.inertia * w)
            spin.append((u[4 * i + 1 : 4 * i + 4] - gyro) / self.inertia)
            q0, qv = turns[i][0], turns[i][1:]
            turning += [[-qv @ w / 2, *(q0 * w + np.cross(qv, w)) / 2]]
        J, bias = np.zeros((2, 9)), np.zeros(2)
        for i in range(2):
            rod, speed = x[i + 1] - x[0], v[3 * i + 3 : 3 * i + 6] - v[:3]
            J[i, :3], J[i, 3 * i + 3 : 3 * i + 6], bias[i] = -rod, rod, -speed @ speed
        a = constrained(np.diag(np.repeat(self.masses, 3)), force.ravel(), J, bias)
        return np.concatenate([v, np.ravel(turning), a, *spin])

    def messages(self, s, rng):
        message = MultiDOFJointState(joint_names=["payload", "quad1", "quad2"])
        message.header.frame_id = "odom"
        for i in range(3):
            pose = Transform()
            place = s[3 * i : 3 * i + 3] + NOISE * rng.normal(size=3)
            t, r = pose.translation, pose.rotation
            t.x, t.y, t.z = map(float, place)
            if i:
                turn = s[9 + 4 * (i - 1) :][:4]
                small = np.concatenate([[0], NOISE / 2 * rng.normal(size=3)])
                turn = turn + small * np.linalg.norm(turn)
                r.w, r.x, r.y, r.z = map(float, turn / np.linalg.norm(turn))
            message.transforms.append(pose)
        return [message]


ROBOTS = {"cart_pole": CartPole, "snakeboard": Snakeboard, "quadrotor_payload": QuadrotorPayload}
TOPICS = {
    JointState: "joint_states",
    Odometry: "odom",
    MultiDOFJointState: "multi_dof_joint_states",
}


@dataclass
class Emulator:
    """Physics in wall time."""

    robot: object
    state: np.ndarray
    period_s: float
    rng: np.random.Generator
    slow: float

    def __post_init__(self):
        self.zero, self.wall = time.time_ns(), time.monotonic_ns()
        self.time, self.answered, self.heard_wall = self.zero, 0, 0
        self.u, self.at, self.began, self.first_stamp = None, 0, 0, 0
        self.log: list[np.ndarray] = []

    @property
    def now(self):
        wall = time.monotonic_ns()
        if self.slow == 1.0:
            return self.zero + wall - self.wall
        overdue = self.answered and self.time > self.answered + OVERDUE_NS
        if overdue and wall > self.heard_wall + LOST_NS:
            self.answered, self.heard_wall = self.answered + round(self.period_s * 1e9), wall
        elif not overdue:
            self.time += min(TICK_NS, round((wall - self.wall) / self.slow))
        self.wall = wall
        return self.time

    def command(self, message):
        now, stamp = self.now, message.header.stamp
        self.answered, self.heard_wall = stamp.sec * 10**9 + stamp.nanosec, self.wall
        self.advance(now)
        if self.u is None:
            self.began = self.at = now
            self.first_stamp = self.answered
        values = dict(zip(message.name, message.effort))
        self.u = np.array([values[name] for name in self.robot.inputs])

    def advance(self, now):
        if self.u is not None and now > self.at:
            span = (0.0, (now - self.at) * 1e-9)
            f = lambda _, s: self.robot.rates(s, self.u)  # noqa: E731
            self.state = solve_ivp(f, span, self.state, "DOP853", rtol=1e-7, atol=1e-9).y[:, -1]
            self.at = now


def main():
    robot, file, seed, seconds, period, slow = sys.argv[1:7]
    start, rng = np.load(file), np.random.default_rng(int(seed))
    rclpy.init(args=sys.argv[:1])
    node = rclpy.create_node("robot")
    e = Emulator(ROBOTS[robot](), start, float(period), rng, float(slow))
    node.create_subscription(JointState, "joint_commands", e.command, 10)
    publishers = {
        kind: node.create_publisher(kind, topic, qos_profile_sensor_data)
        for kind, topic in TOPICS.items()
    }
    clock, tick_at = node.create_publisher(Clock, "/clock", 10), 0
    pending, step, next_at = [], int(e.period_s * 1e9), e.now
    while not e.began or e.at < e.began + float(seconds) * 1e9:
        now = e.now
        if now >= tick_at and e.slow != 1.0:
            clock.publish(Clock(clock=Time(sec=now // 10**9, nanosec=now % 10**9)))
            tick_at = now + CLOCK_NS
        if now >= next_at:
            e.advance(now)
            if e.began:
                e.log.append(np.concatenate([[(now - e.first_stamp) * 1e-9], e.state]))
            for message in e.robot.messages(e.state, rng):
                stamp = now + int(JITTER_S * 1e9 * rng.normal())
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
                delay = DELAY_S + DELAY_SPREAD_S * rng.uniform(-1, 1)
                if rng.random() > LOSS:
                    pending.append((now + int(delay * 1e9), message))
            next_at = max(next_at + step, now)
        pending.sort(key=lambda entry: entry[0])
        while pending and pending[0][0] <= e.now:
            message = pending.pop(0)[1]
            publishers[type(message)].publish(message)
        due = min([next_at, *(at for at, _ in pending[:1])])
        if e.slow != 1.0:
            due = min(due, tick_at)
        rclpy.spin_once(node, timeout_sec=max(0.0, (due - e.now) * 1e-9 * e.slow))
    np.save(file, np.array(e.log))
    node.destroy_node()
    rclpy.shutdown()


if __name__ == "__main__":
    main()
