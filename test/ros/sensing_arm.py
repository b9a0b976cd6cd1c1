"""An arm with an encoder that is 20 ms late, an IMU at its end, and the pose of its end."""

from dataclasses import replace

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.geometry.rotations import SO3
from nh_control.mechanics.imu import Imu
from nh_control.mechanics.outputs import Output
from nh_control.scenarios import Joint, Scenario, Sensor
from nh_control.systems.pendulum import PendulumParameters, pendulum


def end(q, p):
    """Position of the end, in the plane of x and z; the angle is 0 when the arm hangs."""
    return ca.vertcat(p.l * ca.sin(q[0]), 0, -p.l * ca.cos(q[0]))


def turned(q, p):
    """Pose of the end: x to the right, z upwards in the arm that hangs."""
    c, s = ca.cos(q[0]), ca.sin(q[0])
    rotation = ca.vertcat(ca.horzcat(c, 0, -s), ca.horzcat(0, 1, 0), ca.horzcat(s, 0, c))
    return end(q, p), rotation


def pose(q, v, u, p):
    return ca.vertcat(end(q, p), ca.cos(q[0] / 2), 0, -ca.sin(q[0] / 2), 0)


OUTPUTS = (
    Output("angle", lambda q, v, u, p: q[0], units="rad"),
    Imu("imu", pose=turned),
    Output("end", pose, space=nh.Product(nh.Rn("x", "y", "z"), SO3())),
)


def arm(parameters):
    return replace(pendulum(parameters), outputs=OUTPUTS)


def held(model):
    p = model.system.parameters
    steps, torque = round(1.0 / model.h), p.m * 9.81 * p.l * np.sin(0.5)
    x = model.state([0.5], [0.0])
    x, u = nh.equilibrium(model, x, [torque], ["theta"])
    return nh.Trajectory(model.h, np.tile(x, (steps + 1, 1)), np.tile(u, (steps, 1)))


SENSING_ARM = Scenario(
    name="sensing_arm",
    title="An arm with sensors",
    parameters=PendulumParameters(),
    make_system=arm,
    integrators={"midpoint": nh.midpoint},
    references={"held": held},
    weights=(np.diag([100.0, 1.0]), np.eye(1), None),
    joints=(Joint("shoulder", "theta"),),
    sensors=(
        Sensor("encoder", "angle", 0.001, rate_hz=100.0, delay_s=0.02),
        Sensor("imu", "imu", 0.0, frame="arm_end"),
        Sensor("tracking", "end", (0.01,) * 3 + (0.02,) * 3, rate_hz=50.0, frame="odom"),
    ),
    step_s=0.005,
    hold=True,
)
