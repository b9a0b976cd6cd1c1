"""A pendulum with its bob, a body in space: the least scenario with all that nodes publish."""

import numpy as np

from nh_control import Trajectory, scenarios
from nh_control.integrators import midpoint
from nh_control.scenarios import BodyState, Joint, MonitoredOutput, Scenario, discovery
from nh_control.scenarios.joints import TurningPerturbation
from nh_control.systems.pendulum import PendulumParameters, pendulum

STEPS = 20
TORQUE = 0.25


def perturbed(model, x, perturbation):
    return x + np.array([perturbation.angle, 0.0])


def to_bodies(p, q, v):
    angle, rate = float(q[0]), float(v[0])
    return [
        BodyState(
            "bob",
            "odom",
            p.l * np.array([np.sin(angle), 0.0, -np.cos(angle)]),
            np.array([np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0]),
            p.l * rate * np.array([np.cos(angle), 0.0, np.sin(angle)]),
            np.array([0.0, -rate, 0.0]),
        )
    ]


def from_bodies(bodies):
    (bob,) = bodies
    w, _, y, _ = bob.quaternion_wxyz
    return np.array([-2 * np.arctan2(y, w)]), np.array([-bob.angular_velocity_body[1]])


def pushed(dsys):
    return dsys.simulate(dsys.state([0.3], [0.0]), np.full((STEPS, 1), TORQUE))


def hanging(dsys):
    return Trajectory(dsys.h, np.zeros((STEPS // 2 + 1, 2)), np.zeros((STEPS // 2, 1)))


def loads(p, q, v, u, external):
    """What is watched: the torque, and what pushes from outside."""
    return np.array([u[0], sum(np.sum(force) for force in external.values())])


class Alone(Scenario):
    """A scenario that has its own integrators alone, and so need not look which others fit."""

    def usable_integrators(self, system):
        return self.integrators


BOB = Alone(
    name="bob",
    title="Bob",
    parameters=PendulumParameters(),
    make_system=pendulum,
    integrators={"midpoint": midpoint},
    references={"pushed": pushed, "hanging": hanging},
    weights=(np.eye(2), np.eye(1), np.eye(2)),
    perturbation=TurningPerturbation(),
    perturb=perturbed,
    joints=(Joint("pivot", "theta"),),
    to_bodies=to_bodies,
    from_bodies=from_bodies,
    monitor=MonitoredOutput(
        "load", ("torque", "wind"), "N m", loads, minimum=-1.0, warning="a load that is too low"
    ),
)


def put_up(monkeypatch, scenario=BOB):
    """Have nodes find the scenario, and look for no others."""
    monkeypatch.setitem(scenarios._SCENARIOS, "bob", lambda: scenario)
    monkeypatch.setattr(discovery, "installed", dict)
