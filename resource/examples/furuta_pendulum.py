"""A Furuta pendulum: a motor turns an arm, and a pendulum at its end swings up within limits.

python furuta_pendulum.py                       the whole way in this process, with numbers
nh_control simulate furuta_pendulum.py          swing-up under LQR, with figures
nh_control run furuta_pendulum.py               the same as ROS 2 nodes
ros2 launch nh_control hil.launch.py scenario:=$PWD/furuta_pendulum.py   with a Kalman filter
nh_control study furuta_pendulum.py --reference upright --vary perturb.seed=0:19:20 \
    --set perturb.displacement=0.2
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.control.estimation import Belief
from nh_control.scenarios import Joint, Scenario

SWING_S, HOLD_S = 1.6, 1.0


@dataclass(frozen=True)
class FurutaParameters(nh.Parameters):
    """A small laboratory pendulum."""

    arm_inertia: float = nh.parameter(2e-3, "kg m^2", "of arm and motor about the vertical axis")
    arm_length: float = nh.parameter(0.2, "m", "from the axis to the pendulum's joint")
    mass: float = nh.parameter(0.1, "kg", "of the pendulum")
    center: float = nh.parameter(0.15, "m", "from its joint to its center of mass")
    inertia: float = nh.parameter(5e-4, "kg m^2", "about its center of mass")
    torque_limit: float = nh.parameter(0.2, "N m", "of the motor")


def furuta_pendulum(parameters: FurutaParameters) -> nh.System:
    """`arm` turns about the vertical, `pendulum` is 0 upright."""

    def lagrangian(q, v, p):
        arm, swing = v[0], v[1]
        lever = p.mass * p.center * p.arm_length
        about_joint = p.inertia + p.mass * p.center**2
        kinetic = (p.arm_inertia + p.mass * p.arm_length**2) * arm**2 / 2
        kinetic += about_joint * (swing**2 + (ca.sin(q[1]) * arm) ** 2) / 2
        kinetic += lever * ca.cos(q[1]) * arm * swing
        return kinetic - p.mass * 9.81 * p.center * ca.cos(q[1])

    return nh.System(
        name="furuta_pendulum",
        space=nh.Rn("arm", "pendulum"),
        lagrangian=lagrangian,
        inputs=("motor",),
        input_units=("N m",),
        input_limits=lambda p: np.array([[-p.torque_limit, p.torque_limit]]),
        force=lambda q, v, u, p: ca.vertcat(u[0], 0),
        parameters=parameters,
    )


def swing_up(model: nh.DiscreteSystem) -> nh.Trajectory:
    """From hanging at rest to upright at rest in 1.6 s with the least torque, the motor within its
    limit and the arm within 2 rad; then held upright.
    """
    steps = round(SWING_S / model.h)
    hanging, up = model.state([0, np.pi], [0, 0]), model.state([0, 0], [0, 0])
    guess = nh.Trajectory(model.h, np.linspace(hanging, up, steps + 1), np.zeros((steps, 1)))
    cost = nh.quadratic_cost(model, guess, Q=np.zeros((4, 4)), R=np.eye(1))
    limits = {**nh.Limits.of(model), "arm": (-2.0, 2.0)}
    found = nh.optimize(model, cost, guess, limits=limits, end=up)
    if not found.converged:
        raise ValueError(f"no swing-up: {found.reason}")
    rest = round(HOLD_S / model.h)
    states = np.vstack([found.trajectory.states, np.tile(up, (rest, 1))])
    inputs = np.vstack([found.trajectory.inputs, np.zeros((rest, 1))])
    return nh.Trajectory(model.h, states, inputs, model.state_names, model.inputs, dsys=model)


def upright(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Balanced upright for 2 s."""
    steps = round(2.0 / model.h)
    up = model.state([0, 0], [0, 0])
    return nh.Trajectory(model.h, np.tile(up, (steps + 1, 1)), np.zeros((steps, 1)))


FURUTA_PENDULUM = Scenario(
    name="furuta_pendulum",
    title="A Furuta pendulum that swings up within limits",
    parameters=FurutaParameters(),
    make_system=furuta_pendulum,
    integrators={"midpoint": nh.midpoint},
    references={"swing_up": swing_up, "upright": upright},
    # costs of errors of the angles (rad) and the momenta, and of the torque (N m)
    weights=(np.diag([4.0, 20.0, 1e4, 1e4]), np.diag([50.0]), None),
    joints=(Joint("arm_joint", "arm"), Joint("pendulum_joint", "pendulum")),
    step_s=0.01,
    hold=True,
)


def main() -> None:
    """Swing-up, LQR from a wrong start, and the same by a Kalman filter of noisy angles."""
    model = FURUTA_PENDULUM.model()
    reference = FURUTA_PENDULUM.reference(model)
    torque, turn = np.abs(reference.inputs).max(), np.abs(reference.states[:, 0]).max()
    print(f"swing-up: at most {torque:.3f} N m, the arm within {turn:.2f} rad")
    tracker = FURUTA_PENDULUM.tracker(model, reference)
    start = model.retract(reference.states[0], [0.1, 0.1, 0, 0])
    run = nh.rollout(model, [start], tracker)
    angles = np.abs(run.errors[0, :, :2]).max(axis=1)
    print(f"LQR: error of the angles {angles[0]:.2f} -> {angles[-1]:.1e} rad")

    noise, rng, x = 1e-3, np.random.default_rng(0), start
    filtered = nh.KalmanFilter(model, W=1e-9 * np.eye(4), V=noise**2 * np.eye(2))
    belief = Belief(reference.states[0], np.diag([0.1, 0.1, 1e-3, 1e-3]) ** 2)
    for k in range(len(reference)):
        belief = filtered.update(belief, model.configuration(x) + rng.normal(scale=noise, size=2))
        u = tracker.command(k, belief.x).u
        x, belief = model.step(x, u), filtered.predict(belief, u)
    last = np.abs(model.local(reference.states[-1], x)[:2]).max()
    print(f"from angles with noise of {noise:g} rad: error {last:.1e} rad at the end")


if __name__ == "__main__":
    main()
