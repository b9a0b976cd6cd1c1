"""Motions that [kobilarov2010 6] compares: by GNI, RDP and Runge-Kutta, beside the true one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from nh_control.integrators import INTEGRATORS, gni, rdp
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.coordinates import in_coordinates
from nh_control.mechanics.system import System

Torque = Callable[[float], np.ndarray]

FINE = 20
"""The true motion is shown at so many times a step."""


@dataclass(frozen=True)
class Motions:
    """Configurations (N + 1, n) and energies (N + 1) of methods over `times`, and those of the
    true motion at FINE times a step.
    """

    times: np.ndarray
    paths: dict[str, np.ndarray]
    energies: dict[str, np.ndarray]
    true_path: np.ndarray
    true_energy: np.ndarray

    def off(self, name: str) -> float:
        """Largest distance of (x, y) from the true one at the same time, infinite where the
        method breaks down.
        """
        d = self.paths[name][:, -2:] - self.true_path[::FINE, -2:]
        far = np.hypot(*d.T).max()
        return float(far) if np.isfinite(far) else float("inf")

    def energy_error(self, name: str) -> float:
        """Largest error of the energy over its true values' largest."""
        true = self.true_energy[::FINE]
        return float(np.abs(self.energies[name] - true).max() / np.abs(true).max())

    def numbers(self) -> dict:
        """Both for every method."""
        return {
            name: {"largest_distance": self.off(name), "energy_error": self.energy_error(name)}
            for name in self.paths
        }


def rk2(
    continuous: ContinuousSystem, q: np.ndarray, v: np.ndarray, h: float, inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Configurations and velocities of the explicit midpoint rule on `q' = v, v' = a(q, v, u)` in
    plain coordinates, multipliers eliminated: the usual way, in which the constraints drift. The
    registry's "rk2" works on (q, rho), where they cannot.
    """
    states = [(q, v)]
    for u in inputs:
        half = q + h / 2 * v, v + h / 2 * continuous.acceleration(q, v, u)
        q, v = q + h * half[1], v + h * continuous.acceleration(*half, u)
        states.append((q, v))
    return np.array([s[0] for s in states]), np.array([s[1] for s in states])


def motions(
    system: System, q: np.ndarray, v: np.ndarray, h: float, inputs: np.ndarray, torque: Torque
) -> Motions:
    """GNI, RDP and both RK2 under inputs (N, nu) that are held, and the true motion under
    `torque(t)`, by DOP853 at 1e-9.
    """
    plain, steps = in_coordinates(system), len(inputs)
    models = {
        "GNI": gni(plain, h),
        "RDP": rdp(system, h),
        "RK2 on (q, ρ)": INTEGRATORS["rk2"].make(plain, h),
    }
    paths, energies = {}, {}
    for name, dsys in models.items():
        states = dsys.simulate(dsys.state(q, v, inputs[0]), inputs).states
        paths[name] = states[:, : len(q)]
        energies[name] = np.array([dsys.energy(x) for x in states])
    continuous = ContinuousSystem(plain)
    energy = _energy(plain)
    full = rk2(continuous, q, v, h, inputs)
    paths["RK2"], energies["RK2"] = full[0], np.array([energy(*z) for z in zip(*full)])
    n = len(q)

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[n:], continuous.acceleration(y[:n], y[n:], torque(t))])

    times = h * np.arange(steps + 1)
    at = np.linspace(0, times[-1], FINE * steps + 1)
    true = solve_ivp(
        rates, (0, at[-1]), np.concatenate([q, v]), "DOP853", at, rtol=1e-9, atol=1e-9
    ).y.T
    return Motions(
        times, paths, energies, true[:, :n], np.array([energy(z[:n], z[n:]) for z in true])
    )


def _energy(system: System) -> Callable[[np.ndarray, np.ndarray], float]:
    s = system.numeric
    q, v = ca.SX.sym("q", s.space.nq), ca.SX.sym("v", s.space.nw)
    f = ca.Function("energy", [q, v], [s.energy(q, v)])
    return lambda q, v: float(f(q, v))
