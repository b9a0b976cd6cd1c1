"""Motions compared in [kobilarov2010 6]: by GNI, RDP and Runge-Kutta methods, and an accurate
motion.
"""

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
"""Number of points per step of the accurate motion."""


@dataclass(frozen=True)
class Motions:
    """Configurations (N + 1, n) and energies (N + 1) of methods at `times`, and those of the
    accurate motion with FINE points per step.
    """

    times: np.ndarray
    paths: dict[str, np.ndarray]
    energies: dict[str, np.ndarray]
    true_path: np.ndarray
    true_energy: np.ndarray

    def off(self, name: str) -> float:
        """Return the largest distance of (x, y) from the accurate motion at the same time;
        infinite if the method fails.
        """
        d = self.paths[name][:, -2:] - self.true_path[::FINE, -2:]
        far = np.hypot(*d.T).max()
        return float(far) if np.isfinite(far) else float("inf")

    def energy_error(self, name: str) -> float:
        """Return the largest energy error divided by the largest accurate energy."""
        true = self.true_energy[::FINE]
        return float(np.abs(self.energies[name] - true).max() / np.abs(true).max())

    def numbers(self) -> dict:
        """Return both errors of every method."""
        return {
            name: {"largest_distance": self.off(name), "energy_error": self.energy_error(name)}
            for name in self.paths
        }


def rk2(
    continuous: ContinuousSystem, q: np.ndarray, v: np.ndarray, h: float, inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return configurations and velocities of the explicit midpoint rule on `q' = v, v' = a(q, v,
    u)` in plain coordinates with eliminated multipliers. This is the usual method, and its
    constraints drift. The registry's "rk2" works on (q, rho), where constraints cannot drift.
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
    """Return the motions by GNI, RDP and both RK2 methods under piecewise constant inputs (N, nu),
    and the accurate motion under `torque(t)` by DOP853 at 1e-9.
    """
    plain, steps = in_coordinates(system), len(inputs)
    models = {
        "GNI": gni(plain, h),
        "RDP": rdp(system, h, "exp"),
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
    fine_times = np.linspace(0, times[-1], FINE * steps + 1)
    true = solve_ivp(
        rates,
        (0, fine_times[-1]),
        np.concatenate([q, v]),
        "DOP853",
        fine_times,
        rtol=1e-9,
        atol=1e-9,
    ).y.T
    return Motions(
        times, paths, energies, true[:, :n], np.array([energy(z[:n], z[n:]) for z in true])
    )


def _energy(system: System) -> Callable[[np.ndarray, np.ndarray], float]:
    s = system.numeric
    q, v = ca.SX.sym("q", s.space.nq), ca.SX.sym("v", s.space.nw)
    f = ca.Function("energy", [q, v], [s.mechanics.energy(q, v)])
    return lambda q, v: float(f(q, v))
