"""Figures 2 to 4 of [kobilarov2010 6]: paths and energy of the sleigh and the snakeboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from nh_control.figures.style import LIMIT, OPEN, RUN, SERIES, TARGET
from nh_control.integrators import INTEGRATORS, gni, nonholonomic_midpoint, rdp
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.mechanics.coordinates import in_coordinates
from nh_control.mechanics.system import System
from nh_control.numerics.progress import Progress
from nh_control.papers.paper import Outcome, Statement
from nh_control.scenarios.snakeboard import GAITS
from nh_control.systems import (
    ChaplyginSleighParameters,
    SnakeboardParameters,
    chaplygin_sleigh,
    snakeboard,
)

Torque = Callable[[float], np.ndarray]
Points = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

SLEIGH = ChaplyginSleighParameters(m=1.0, I=1.0, a=0.5)
SLEIGH_START = np.zeros(3), np.array([0.25, -1.5, 0.125])
SLEIGH_STEP_S, SLEIGH_STEPS = 0.2, 60
BOARD = SnakeboardParameters(m=1.0, l=0.7, I=0.1, J=1.2)
BOARD_S, BOARD_STEPS = 10.0, 128
FINE = 20
"""The true motion is shown at so many times a step."""
LINES: dict[str, dict[str, Any]] = {
    "GNI": {"color": RUN},
    "RDP": {"color": SERIES[1], "linestyle": "--"},
    "RK2": {"color": OPEN},
    "RK2 on (q, ρ)": {"color": SERIES[2], "linestyle": ":", "linewidth": 1.6},
}


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


def sleigh() -> Motions:
    """The free sleigh; the paper gives neither parameters nor start."""
    inputs = np.zeros((SLEIGH_STEPS, 2))
    system = chaplygin_sleigh(SLEIGH)
    return motions(system, *SLEIGH_START, SLEIGH_STEP_S, inputs, lambda t: np.zeros(2))


def board(parameters: SnakeboardParameters = BOARD) -> Motions:
    """The snakeboard of Fig. 4: torques cos(20 pi t), sin(2 pi t); a step has their mean."""
    h = BOARD_S / BOARD_STEPS
    t = h * np.arange(BOARD_STEPS + 1)
    first, second = np.sin(20 * np.pi * t) / (20 * np.pi), -np.cos(2 * np.pi * t) / (2 * np.pi)
    inputs = np.diff([first, second], axis=1).T / h

    def torque(t: float) -> np.ndarray:
        return np.array([np.cos(20 * np.pi * t), np.sin(2 * np.pi * t)])

    return motions(snakeboard(parameters), *board_start(parameters), h, inputs, torque)


def board_start(p: SnakeboardParameters) -> tuple[np.ndarray, np.ndarray]:
    """psi = pi/2, phi = pi/3, theta = 0, psi' = 2.5, phi' = -0.02 and p1 = -1: `xi = w e(phi)`,
    `w = p1 / (2 m l^2 cos(phi)) - I sin(phi) psi' / (m l^2)`.
    """
    phi, rates, p1 = np.pi / 3, (2.5, -0.02), -1.0
    yaw = p.m * p.l**2
    w = p1 / (2 * yaw * np.cos(phi)) - p.I * np.sin(phi) * rates[0] / yaw
    q = np.array([np.pi / 2, phi, 0.0, 0.0, 0.0])
    return q, np.array([*rates, w * np.sin(phi), -w * p.l * np.cos(phi), 0.0])


def draw(result: Motions, title: str, points: Points) -> Figure:
    """Path at the left and energy at the right; `points(q)` are the coordinates of a path."""
    figure = Figure(figsize=(7.4, 3.6), layout="constrained")
    path, energy = figure.subplots(1, 2)
    fine = np.linspace(0, result.times[-1], len(result.true_energy))
    path.plot(*points(result.true_path), color=TARGET, linewidth=2.4, alpha=0.35, label="true")
    energy.plot(fine, result.true_energy, color=TARGET, linewidth=2.4, alpha=0.35)
    for name, q in result.paths.items():
        style: dict[str, Any] = {"linewidth": 1.0, "label": name, **LINES[name]}
        path.plot(*points(q), **style)
        energy.plot(result.times, result.energies[name], **style)
    true = np.array(points(result.true_path))
    margin = 0.15 * np.ptp(true, axis=1).max()
    path.set(title=title, xlabel="x (m)", ylabel="y (m)", aspect="equal")
    path.set(xlim=(true[0].min() - margin, true[0].max() + margin))
    path.set(ylim=(true[1].min() - margin, true[1].max() + margin))
    low, high = result.true_energy.min(), result.true_energy.max()
    room = max(high - low, 0.1 * high)
    energy.set(title="Energy", xlabel="time (s)", ylabel="J", ylim=(low - room, high + room))
    path.legend(fontsize=7)
    return figure


def figure_2(_: Progress) -> Outcome:
    """The sleigh."""
    result = sleigh()
    n = result.numbers()

    def skate(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return q[:, 1] - SLEIGH.a * np.cos(q[:, 0]), q[:, 2] - SLEIGH.a * np.sin(q[:, 0])

    statement = Statement(
        "6.1, Fig. 2",
        "GNI and RDP reproduce the true path better than RK2, and preserve the energy better",
        _compared(n),
        max(n[k]["energy_error"] for k in ("GNI", "RDP")) < n["RK2"]["energy_error"]
        and max(n[k]["largest_distance"] for k in ("GNI", "RDP")) < n["RK2"]["largest_distance"],
        "chosen, as the paper gives none: m = 1, I = 1, a = 0.5, omega = 0.25, v = -1.5, h = 0.2",
    )
    return Outcome(lambda: draw(result, "Sleigh: skate", skate), n, (statement,))


def figure_4(_: Progress) -> Outcome:
    """The snakeboard at N = 128."""
    result = board()
    n = result.numbers()
    size = float(np.ptp(result.true_path[:, 3]))
    cusps = _cusps(result.true_path)
    good = max(n[k]["largest_distance"] for k in ("GNI", "RDP"))
    bad, reduced = n["RK2"]["largest_distance"], n["RK2 on (q, ρ)"]["largest_distance"]
    statements = (
        Statement(
            "6.2, Fig. 4",
            "N = 128: RK2 fails to follow the true path, GNI and RDP are qualitatively right",
            f"largest distance {_metres(n)}; the path is {size:.2f} m wide",
            good < 0.02 * size < 0.2 * size < bad and not cusps,
            "chosen, as the paper gives none: m = 1, l = 0.7, I = 0.1, J = 1.2; the first torque "
            "is above the Nyquist rate, so steps have the torques' mean; this path has no cusps",
        ),
        Statement(
            "6.2, Fig. 4",
            "one likely explanation: their better energy behaviour",
            "energy error "
            + ", ".join(f"{k} {n[k]['energy_error']:.1e}" for k in ("GNI", "RDP", "RK2")),
            max(n[k]["energy_error"] for k in ("GNI", "RDP")) < 0.1 * n["RK2"]["energy_error"],
        ),
        Statement(
            "6.2",
            "the comparison is to a typical second order Runge-Kutta method",
            f"on (q, v), multipliers eliminated, it is {bad:.2g} m off; the same rule on (q, rho) "
            f"only {reduced:.1e} m, as good as GNI and RDP: what fails are the coordinates",
            reduced < 2 * good,
            "the paper does not say which equations RK2 solves",
        ),
    )
    return Outcome(
        lambda: draw(result, "Snakeboard, N = 128", lambda q: (q[:, 3], q[:, 4])),
        {"width_of_path": size, "cusps": cusps, **n},
        statements,
    )


def figure_3(_: Progress) -> Outcome:
    """A typical path of the snakeboard, with cusps."""
    dsys = nonholonomic_midpoint(snakeboard(), 0.02)
    run = GAITS["parking"].reference(dsys)
    forward = np.array([dsys.velocity(x)[3] for x in run.states])
    moving = np.flatnonzero(np.abs(forward) > 1e-3)
    turns = np.flatnonzero(np.diff(np.sign(forward[moving])))
    cusps = [int(moving[k]) for k in turns]

    def picture() -> Figure:
        figure = Figure(figsize=(4.6, 4.0), layout="constrained")
        axes = figure.add_subplot(xlabel="x (m)", ylabel="y (m)", aspect="equal")
        axes.set_title("Snakeboard: parking sideways")
        axes.plot(run.states[:, 3], run.states[:, 4], color=RUN)
        axes.plot(run.states[cusps, 3], run.states[cusps, 4], "o", color=LIMIT, markersize=4)
        return figure

    statement = Statement(
        "6.2, Fig. 3",
        "sinusoidal torques at the joints create parallel parking maneuvers with cusps",
        f"the scenario's parking gait: {len(cusps)} cusps",
        len(cusps) >= 3,
        "not from the start and with the torques of Fig. 4, as far as they are given",
    )
    return Outcome(picture, {"cusps_at_s": [dsys.h * k for k in cusps]}, (statement,))


def _cusps(path: np.ndarray) -> int:
    """How often a path (N, 5) changes between forwards and backwards."""
    theta, way = path[:-1, 2], np.diff(path[:, 3:], axis=0)
    forward = np.cos(theta) * way[:, 0] + np.sin(theta) * way[:, 1]
    return int(np.count_nonzero(np.diff(np.sign(forward))))


def _metres(numbers: dict) -> str:
    return ", ".join(
        f"{name} {numbers[name]['largest_distance']:.1g} m" for name in ("GNI", "RDP", "RK2")
    )


def _compared(numbers: dict) -> str:
    return ", ".join(
        f"{name} {n['largest_distance']:.1g} m and {n['energy_error']:.0e}"
        for name, n in numbers.items()
    )
