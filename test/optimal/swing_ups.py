"""Five problems of optimal control with limits, from rest to a goal: `min sum h (|dx|_Q^2 +
|du|_R^2) / 2 + |dx_N|_Qf^2 / 2`, and guesses that are perturbed at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.control.costs import Cost, quadratic_cost
from nh_control.geometry import quaternion
from nh_control.systems import acrobot, cart_pole, pendulum

NAMES = ("pendulum", "cart_pole", "acrobot", "quadrotor", "ur5e")


@dataclass(frozen=True)
class SwingUp:
    """A problem over `steps` steps from x0 to the goal, with limits; random inputs are `simulated`
    for a guess where states between start and goal make a bad one."""

    dsys: nh.DiscreteSystem
    steps: int
    x0: np.ndarray
    goal: np.ndarray
    held: np.ndarray
    weights: tuple[np.ndarray, np.ndarray, np.ndarray]
    bounds: np.ndarray
    simulated: bool = True

    @property
    def limits(self) -> nh.Limits:
        """Limits of the inputs by name."""
        return nh.Limits({n: (b[0], b[1]) for n, b in zip(self.dsys.inputs, self.bounds)})

    @property
    def cost(self) -> Cost:
        """The cost about the goal."""
        wanted = np.tile(self.goal, (self.steps + 1, 1)), np.tile(self.held, (self.steps, 1))
        Q, R, Qf = self.weights
        h = self.dsys.h
        return quadratic_cost(self.dsys, nh.Trajectory(h, *wanted), h * Q, h * R, Qf)

    def guess(self, seed: int, size: float = 0.3) -> nh.Trajectory:
        """States on the way moved by `size`, inputs by half of it of half their range."""
        d, rng, span = self.dsys, np.random.default_rng(seed), self.dsys.local(self.x0, self.goal)
        states = [self.x0]
        for k in range(1, self.steps + 1):
            noise = size * rng.normal(size=d.ndx)
            noise[d.system.space.nv :] *= 0.3
            states.append(d.retract(d.retract(self.x0, k / self.steps * span), noise))
        half = (self.bounds[:, 1] - self.bounds[:, 0]) / 2
        inputs = self.held + size / 2 * rng.normal(size=(self.steps, d.nu)) * half
        inputs = inputs.clip(*self.bounds.T)
        if self.simulated:
            return d.simulate(self.x0, inputs)
        return nh.Trajectory(d.h, np.array(states), inputs)

    def misses(self, x: np.ndarray) -> float:
        """How far a state is from the goal."""
        return float(np.abs(self.dsys.local(self.goal, x)).max())


def _quadrotor() -> nh.System:
    """A rigid body of 1 kg with four rotors in a cross, which falls on R^3 x SO(3)."""

    def force(q, v, u):
        lift = quaternion.rotate(q[3:], ca.vertcat(0, 0, ca.sum1(u)))
        turn = 0.2 * (u[1] - u[3]), 0.2 * (u[2] - u[0]), 0.05 * (u[0] - u[1] + u[2] - u[3])
        return ca.vertcat(lift, *turn)

    inertia = ca.DM([0.01, 0.01, 0.02])
    return nh.System(
        name="quadrotor",
        space=nh.Product(nh.Rn("x", "y", "z"), nh.SO3("")),
        lagrangian=lambda q, v: (
            ca.sumsqr(v[:3]) / 2 + ca.dot(inertia, v[3:] ** 2) / 2 - 9.81 * q[2]
        ),
        inputs=("f1", "f2", "f3", "f4"),
        force=force,
    )


def _swing(system: nh.System, h: float, goal: list[float], limit: float) -> SwingUp:
    n = len(goal)
    Q, Qf = (np.repeat(w, n // 2) for w in ((0.1, 0.01), (500.0, 50.0)))
    weights = np.diag(Q), 0.1 * np.eye(1), np.diag(Qf)
    bounds = np.array([[-limit, limit]])
    d = nh.midpoint(system, h)
    return SwingUp(d, 100, np.zeros(n), np.array(goal), np.zeros(1), weights, bounds)


def _humanoid(steps: int) -> SwingUp:
    """JVRC-1 with a fixed base moves all joints by 0.2 rad."""
    d = nh.midpoint(nh.load_urdf(jvrc1_file()).system, 0.02)
    n = d.nu
    x0, goal = (d.state(np.full(n, q), np.zeros(n)) for q in (0.0, 0.2))
    held = nh.equilibrium(d, goal, np.zeros(n), fixed=d.state_space.tangent_names)[1]
    Q = np.repeat([1.0, 0.1], n)
    weights = np.diag(Q), 1e-3 * np.eye(n), np.diag(1000 * Q)
    bounds = np.tile([-1e3, 1e3], (n, 1))
    return SwingUp(d, steps, x0, goal, held, weights, bounds, simulated=False)


def ur5e_file() -> Path:
    """The URDF file of airo-models."""
    return _file("airo_models", "arms/ur5e/ur5e.urdf")


def jvrc1_file() -> Path:
    """The URDF file of jvrc-description."""
    return _file("jvrc_description", "urdf/jvrc1.urdf")


def _file(package: str, path: str) -> Path:
    found = find_spec(package)
    if found is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(found.submodule_search_locations[0]) / path


def problem(name: str) -> SwingUp:
    """One of NAMES, "ur5e" needs airo-models; or the humanoid "jvrc1_N" over N nodes, which needs
    jvrc-description.
    """
    if name == "pendulum":
        return _swing(pendulum(), 0.05, [np.pi, 0.0], 5.0)
    if name == "cart_pole":
        return _swing(cart_pole(), 0.03, [0.0, np.pi, 0.0, 0.0], 9.0)
    if name == "acrobot":
        return _swing(acrobot(), 0.05, [np.pi, 0.0, 0.0, 0.0], 15.0)
    if name == "quadrotor":
        d, still = nh.midpoint(_quadrotor(), 0.02), np.zeros(6)
        x0 = d.state([0.0, 0, 0, 1, 0, 0, 0], still)
        goal = d.state([2.0, 1, 1, np.sqrt(0.5), 0, 0, np.sqrt(0.5)], still)
        Q = np.repeat([1.0, 0.1, 0.1, 1.0], 3)
        Qf = np.repeat([500.0, 500.0, 50.0, 500.0], 3)
        weights = np.diag(Q), 0.1 * np.eye(4), np.diag(Qf)
        bounds = np.tile([0.0, 6.0], (4, 1))
        return SwingUp(d, 100, x0, goal, np.full(4, 9.81 / 4), weights, bounds, simulated=False)
    if name.startswith("jvrc1"):
        return _humanoid(int(name.partition("_")[2]))
    d = nh.midpoint(nh.load_urdf(ur5e_file()).system, 0.02)
    x0, goal = (
        d.state(q, np.zeros(6))
        for q in ([0.0, -1.2, 1.5, -1.0, -1.5, 0.0], [1.5, -1.8, 0.8, 0.5, 1.0, 1.0])
    )
    held = nh.equilibrium(d, goal, np.zeros(6), fixed=d.state_space.tangent_names)[1]
    Q, Qf = np.repeat([1.0, 0.1], 6), np.repeat([1000.0, 100.0], 6)
    weights = np.diag(Q), 1e-3 * np.eye(6), np.diag(Qf)
    torque = np.array([150.0, 150, 150, 28, 28, 28])
    bounds = np.stack([-torque, torque], axis=1)
    return SwingUp(d, 50, x0, goal, held, weights, bounds, simulated=False)
