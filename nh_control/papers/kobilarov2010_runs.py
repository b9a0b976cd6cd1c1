"""The motions in [kobilarov2010 6], computed by GNI, RDP and Runge-Kutta methods, and accurate
motions.
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
"""Number of points in the accurate motion per step."""


@dataclass(frozen=True)
class Motions:
    """Configurations (N + 1, n) and energies (N + 1) by method at `times`, and those of the
    accurate motion, with FINE points per step.
    """

    times: np.ndarray
    paths: dict[str, np.ndarray]
    energies: dict[str, np.ndarray]
    true_path: np.ndarray
    true_energy: np.ndarray

    def off(self, name: str) -> float:
        """Return the largest distance of (x, y) from the accurate motion at the same time, or
        infinity if the method fails.
        """
        d = self.paths[name][:, -2:] - self.true_path[::FINE, -2:]
        largest = np.hypot(d[:, 0], d[:, 1]).max()
        return float(largest) if np.isfinite(largest) else float("inf")

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
    """Return the configurations and velocities that the explicit midpoint rule computes for `q' =
    v, v' = a(q, v, u)` in plain coordinates with eliminated multipliers. This is the usual method,
    but it lets the constraints drift. The registry's "rk2" works on (q, rho), where constraints
    cannot drift.
    """
    states = [(q, v)]
    for u in inputs:
        # A half Euler step, then the whole step with the rates at the midpoint.
        q_half, v_half = q + h / 2 * v, v + h / 2 * continuous.acceleration(q, v, u)
        q, v = q + h * v_half, v + h * continuous.acceleration(q_half, v_half, u)
        states.append((q, v))
    return np.array([s[0] for s in states]), np.array([s[1] for s in states])


def motions(
    system: System, q: np.ndarray, v: np.ndarray, h: float, inputs: np.ndarray, torque: Torque
) -> Motions:
    """Return the motions computed by GNI, RDP and both RK2 methods under piecewise constant inputs
    (N, nu), and the accurate motion under `torque(t)`, computed by DOP853 with tolerance 1e-9.
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
        # A state begins with the configuration.
        paths[name] = states[:, : len(q)]
        energies[name] = np.array([dsys.energy(x) for x in states])
    continuous = ContinuousSystem(plain)
    energy = _energy(plain)
    paths["RK2"], velocities = rk2(continuous, q, v, h, inputs)
    energies["RK2"] = np.array([energy(q1, v1) for q1, v1 in zip(paths["RK2"], velocities)])
    n = len(q)

    # The accurate motion uses the torques at each time, not their means over steps.
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
