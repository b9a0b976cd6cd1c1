"""Theorem 1 in [kobilarov2010] on the energy of GNI on a Lie group, and the run times in 6.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

from nh_control.figures.style import RUN, SERIES, positive
from nh_control.geometry import quaternion
from nh_control.integrators import INTEGRATORS, gni
from nh_control.integrators.registry import Make
from nh_control.mechanics.coordinates import in_coordinates
from nh_control.mechanics.system import System
from nh_control.numerics.progress import Progress
from nh_control.papers import measure
from nh_control.papers.kobilarov2010_motions import (
    BOARD,
    BOARD_S,
    BOARD_STEPS,
    any_steering,
    board_start,
    mean_torques,
)
from nh_control.papers.paper import Outcome, Statement
from nh_control.systems import RollingBallParameters, rolling_ball

BALLS = {
    "bi-invariant": RollingBallParameters(Jx=0.016, Jy=0.016, Jz=0.016),
    "left-invariant": RollingBallParameters(Jx=0.012, Jy=0.016, Jz=0.020),
}
"""Balls with equal and with different inertias. With equal inertias, the Lagrangian is
bi-invariant on SO(3) x R^2.
"""
START, SPIN = np.array([1.0, 0.0, 0.0, 0.0, 0.3, 0.2]), np.array([1.0, -2.0, 3.0])
STEP_S, STEPS = 0.05, 100
RDP = INTEGRATORS["rdp_exp"].make
RIVALS: dict[str, Make] = {
    "GNI": gni,
    "RDP": RDP,
    "RK2 on (q, ρ)": INTEGRATORS["rk2"].make,
}


def geared_ball() -> System:
    """Return a rolling ball on SO(3) x R^2 whose rolling radius depends on its position and
    attitude. No translation or rotation preserves the distribution of its admissible velocities.
    """

    def constraint(q: ca.SX, parameters: RollingBallParameters) -> ca.SX:
        # (x', y') = radius (omega_y, -omega_x), with the angular velocity omega in the space frame
        radius = parameters.r * (1 + ca.sin(3 * q[4]) * ca.cos(2 * q[5]) / 2 + 0.3 * q[1] * q[2])
        rolling = radius * ca.vertcat(ca.horzcat(0, 1, 0), ca.horzcat(-1, 0, 0))
        return ca.horzcat(-rolling @ quaternion.matrix(q[:4]), ca.SX.eye(2))

    return replace(
        rolling_ball(),
        name="geared_ball",
        velocity_constraint=constraint,
        distribution=None,
        symmetry=None,
    )


def theorem_1(_: Progress) -> Outcome:
    """Compare GNI's energies at half steps for a bi-invariant Lagrangian and for a Lagrangian that
    is not bi-invariant.
    """
    base = INTEGRATORS["gni_implicit"].make(geared_ball(), STEP_S)
    halves, nodes = {}, {}
    for name, ball in BALLS.items():
        dsys = base.with_parameters(Jx=ball.Jx, Jy=ball.Jy, Jz=ball.Jz)
        a = dsys.system.numeric.constraint_matrix(ca.SX(START))
        # The constraint determines the velocity of the center from the spin.
        velocity = np.concatenate([SPIN, -np.asarray(ca.DM(a[:, :3])) @ SPIN])
        states = dsys.simulate(dsys.state(START, velocity), np.zeros(3), steps=STEPS).states
        energy = _half_step_energy(dsys.system, ball, states[:, : len(START)])
        halves[name] = np.abs(energy / energy[0] - 1)
        nodes[name] = measure.relative_energy_error(dsys, states)
    bi_invariant, left_invariant = (float(halves[name].max()) for name in BALLS)
    between = float(nodes["bi-invariant"].max())
    statements = (
        Statement(
            "Theorem 1",
            "on a Lie group, with a bi-invariant Lagrangian, an arbitrary distribution and a "
            "left-invariant discrete Lagrangian, GNI preserves the energy",
            f"ball with equal inertias on SO(3) x R^2, {STEPS} steps: relative error "
            f"{bi_invariant:.0e} at half steps, {between:.0e} at the nodes",
            bi_invariant < 1e-12 < 1e-9 < between,
            "the theorem means the energy of half steps, of w = log(g_k^-1 g_{k+1}) / h; the "
            "rolling radius depends on position and attitude",
        ),
        Statement(
            "Theorem 1",
            "it needs the bi-invariant Lagrangian",
            f"with different inertias {left_invariant:.0e} at half steps",
            left_invariant > 1e-6,
            "not in the paper",
        ),
    )
    numbers = {
        "energy_error_half_steps": {name: float(e.max()) for name, e in halves.items()},
        "energy_error_nodes": {name: float(e.max()) for name, e in nodes.items()},
    }
    return Outcome(lambda: _draw_energy(halves, nodes), numbers, statements)


def _half_step_energy(system: System, ball: RollingBallParameters, path: np.ndarray) -> np.ndarray:
    """Return `L(w)` with `w = log(g_k^-1 g_{k+1}) / h` along configurations (N, 6)."""
    g0, g1 = (ca.SX.sym(name, len(START)) for name in ("g0", "g1"))
    # local(g0, g1) = log(g0^-1 g1)
    w = ca.Function("w", [g0, g1], [system.space.local(g0, g1) / STEP_S])
    rates = np.asarray(w(path[:-1].T, path[1:].T))
    return np.array([ball.Jx, ball.Jy, ball.Jz, ball.m, ball.m]) @ rates**2 / 2


def _draw_energy(halves: Mapping[str, np.ndarray], nodes: Mapping[str, np.ndarray]) -> Figure:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.add_subplot(
        xlabel="time (s)", ylabel="|E/E₀ − 1|", yscale="log", title="Geared ball by GNI: energy"
    )
    t = STEP_S * np.arange(STEPS + 1)
    for name, color in zip(BALLS, SERIES):
        after = t[:-1] + STEP_S / 2
        axes.plot(after, positive(halves[name]), color=color, label=f"{name}, half steps")
        at_nodes = positive(nodes[name])
        axes.plot(t, at_nodes, ":", color=color, linewidth=1.0, label=f"{name}, nodes")
    axes.legend(fontsize=7)
    return figure


def run_times(_: Progress) -> Outcome:
    """Measure how much processor time each method needs for a step of the snakeboard in Fig. 4."""
    step_us = {name: _step_us(make) for name, make in RIVALS.items()}
    least = min(step_us.values())
    statement = Statement(
        "6.2",
        "the run times of the compared methods are nearly identical",
        ", ".join(
            f"{name} {us:.2g} µs per step ({us / least:.1f})" for name, us in step_us.items()
        ),
        None,
        f"{BOARD_STEPS} steps of Fig. 4; in parentheses relative to the fastest method. Measured "
        "on this machine. RK2 on (q, v), which runs in Python here, is omitted",
    )
    relative = {name: us / least for name, us in step_us.items()}
    numbers = {"us_a_step": step_us, "relative": relative}
    return Outcome(lambda: _draw_times(step_us), numbers, (statement,))


def _step_us(make: Make) -> float:
    """Return the processor time of a step in microseconds."""
    system, inputs = any_steering(BOARD), mean_torques(BOARD_STEPS)
    q, v = board_start(BOARD)  # theta = 0, so rates and body velocities are the same
    dsys = make(system if make is RDP else in_coordinates(system), BOARD_S / BOARD_STEPS)
    return measure.step_us(dsys, dsys.state(q, v, inputs[0]), inputs)


def _draw_times(step_us: Mapping[str, float]) -> Figure:
    figure = Figure(figsize=(6.4, 2.2), layout="constrained")
    axes = figure.add_subplot(xlabel="processor time of a step (µs)", title="Snakeboard of Fig. 4")
    axes.barh(list(step_us), list(step_us.values()), 0.5, color=RUN)
    axes.invert_yaxis()
    return figure
