"""The rolling disk in [celledoni2016 2]: Fig. 1 and equations (2) to (8)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import casadi as ca
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from nh_control.figures.style import SERIES, TARGET, WIDTH
from nh_control.integrators import INTEGRATORS
from nh_control.integrators.coordinate_systems import coordinates
from nh_control.mechanics.almost_poisson import AlmostPoisson
from nh_control.numerics.progress import Progress
from nh_control.papers.celledoni2016_chaotic import METHODS, PRESERVING
from nh_control.papers.paper import Outcome, Statement
from nh_control.papers.sketch import Sketched, sketch
from nh_control.scenarios import rolling_disk_visual
from nh_control.systems import RollingDiskParameters, rolling_disk

DISK = RollingDiskParameters()
METRIC = np.array([DISK.J_phi, DISK.J_theta, DISK.m, DISK.m])
"""Inertias that belong to the rates of (phi, theta, x1, x2)."""
RATES = 3.0, 0.8
"""y1 and y2 in rad/s. The motion is a circle with radius r y1 / y2."""
STEP_S, STEPS = 0.1, 100
POINTS, SEED = 20, 2016


def constraint(q: np.ndarray) -> np.ndarray:
    """Return mu(q) (2, 4) from (2)."""
    c, s = np.cos(q[1]), np.sin(q[1])
    return np.array([[-DISK.r * c, 0, 1, 0], [-DISK.r * s, 0, 0, 1]])


def admissible(q: np.ndarray) -> np.ndarray:
    """Return X1 and X2 as columns (4, 2)."""
    c, s = np.cos(q[1]), np.sin(q[1])
    return np.array([[1, 0, DISK.r * c, DISK.r * s], [0, 1, 0, 0]]).T


def normal(angle: float) -> np.ndarray:
    """Return X3 and X4 as columns (4, 2), with the angle theta where the paper prints phi."""
    # X3 and X4 are orthogonal to D in the metric: J_phi k cos(theta) + m r cos(theta) / m = 0.
    k = -DISK.r / DISK.J_phi
    return np.array(
        [[k * np.cos(angle), 0, 1 / DISK.m, 0], [k * np.sin(angle), 0, 0, 1 / DISK.m]]
    ).T


def explicit(t: np.ndarray) -> np.ndarray:
    """Return the motion (N, 4) given by (5) at times t (N). It starts at the origin."""
    y1, y2 = RATES
    radius = DISK.r * y1 / y2
    return np.stack([y1 * t, y2 * t, radius * np.sin(y2 * t), radius * (1 - np.cos(y2 * t))], -1)


def hamiltonian_motion(times: np.ndarray) -> np.ndarray:
    """Return the solution (N, 8) of (6) on T*Q at `times` (N): `q' = v`, `p' = mu^T lam`, where
    the multipliers maintain `mu g^-1 p = 0`.
    """

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:4], x[4:] / METRIC
        mu = constraint(q)
        # d/dt (mu v) = mu' v + mu g^-1 mu^T lam = 0
        slope = np.array([[np.sin(q[1]), 0, 0, 0], [-np.cos(q[1]), 0, 0, 0]]) * DISK.r * v[1]
        lam = np.linalg.solve(mu / METRIC @ mu.T, -slope @ v)
        return np.concatenate([v, mu.T @ lam])

    # p = g v for the admissible velocity v = y1 X1 + y2 X2
    start = np.concatenate([np.zeros(4), METRIC * (admissible(np.zeros(4)) @ RATES)])
    run = solve_ivp(rate, (0, times[-1]), start, "DOP853", t_eval=times, rtol=1e-13, atol=1e-13)
    return run.y.T


@dataclass(frozen=True)
class Structure:
    """The largest errors at random points. `basis` compares the package's basis with X1 and X2.
    `orthogonal` and `printed` test `g(X_a, X_alpha) = 0`, with theta and as printed. `bracket`
    tests `[X1, X2] = m r (sin theta X3 - cos theta X4)`, `constants` tests the bracket C_ab^c
    rho_c in (8), and `energy` tests H and its gradient.
    """

    basis: float
    orthogonal: float
    printed: float
    bracket: float
    constants: float
    energy: float


def structure() -> Structure:
    """Compute the errors at `POINTS` random configurations and momenta."""
    system = rolling_disk(DISK).numeric
    q, rho = ca.SX.sym("q", 4), ca.SX.sym("rho", 2)
    x = coordinates(system, "disk").basis(q)
    poisson = AlmostPoisson(system, system.mechanics.admissible_basis)
    # [X1, X2] = DX2 X1 - DX1 X2
    lie_bracket = ca.jtimes(x[:, 1], q, x[:, 0]) - ca.jtimes(x[:, 0], q, x[:, 1])
    outputs = [x, lie_bracket, poisson.bracket(q, rho), poisson.energy(q, rho)]
    outputs.append(ca.vertcat(*poisson.gradient(q, rho)))
    evaluate = ca.Function("evaluate", [q, rho], outputs)
    inertias = np.array([DISK.m * DISK.r**2 + DISK.J_phi, DISK.J_theta])
    errors = []
    for point in np.random.default_rng(SEED).normal(size=(POINTS, 6)):
        q_, rho_ = point[:4], point[4:]
        basis, bracket_value, k, energy, gradient = (np.asarray(v) for v in evaluate(q_, rho_))
        x12, x34 = admissible(q_), normal(q_[1])
        expected = DISK.m * DISK.r * x34 @ [np.sin(q_[1]), -np.cos(q_[1])]
        # H = sum rho_a^2 / (2 I_a), so its gradient is (0, rho_a / I_a).
        slope = np.concatenate([np.zeros(4), rho_ / inertias])
        errors.append(
            [
                np.abs(basis - x12).max(),
                np.abs(x12.T * METRIC @ x34).max(),
                np.abs(x12.T * METRIC @ normal(q_[0])).max(),  # as printed, with phi
                np.abs(bracket_value[:, 0] - expected).max(),
                np.abs(k).max(),
                max(abs(energy.item() - rho_ @ slope[4:] / 2), *np.abs(gradient[:, 0] - slope)),
            ]
        )
    names = [f.name for f in fields(Structure)]
    return Structure(**dict(zip(names, np.max(errors, axis=0).tolist())))


def steps() -> dict[str, np.ndarray]:
    """Return the configurations (STEPS + 1, 4) computed by the five methods in Fig. 2."""
    system, runs = rolling_disk(DISK), {}
    for name, method in METHODS.items():
        dsys = INTEGRATORS[method].make(system, STEP_S)
        x = dsys.state(np.zeros(4), admissible(np.zeros(4)) @ RATES)
        runs[name] = dsys.simulate(x, np.zeros(2), steps=STEPS).states[:, :4]
    return runs


def figure_1(_: Progress) -> Outcome:
    """Compare the disk's structure and motion with the paper."""
    residuals, runs = structure(), steps()
    times = STEP_S * np.arange(STEPS + 1)
    circle, hamiltonian = explicit(times), hamiltonian_motion(times)
    distance = float(np.abs(hamiltonian[:, :4] - circle).max())
    deviations = {name: float(np.abs(q - circle).max()) for name, q in runs.items()}
    largest_deviation = max(deviations[name] for name in PRESERVING)
    drift = float(np.ptp(hamiltonian[:, 4:6] / METRIC[:2], axis=0).max())

    def draw() -> Figure:
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        visual = rolling_disk_visual.visual_model(DISK)
        marks = {"disk": "φ", "contact": "(x₁, x₂), θ"}
        disk = Sketched("Rolling disk", visual, DISK, np.array([0.5, 0.6, 0.0, 0.0]), marks)
        sketch(figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False), disk)
        _paths(figure.add_subplot(1, 2, 2), runs, circle)
        return figure

    statements = (
        *_of_structure(residuals),
        Statement(
            "2.1.2 (5), 2.2 (6)",
            "y1' = y2' = 0, explicitly integrated; the same as (6), with multipliers",
            f"(6) by DOP853 conserves y1, y2 to {drift:.0e} and stays within {distance:.0e} of "
            f"the circle of (5) over {times[-1]:g} s",
            distance < 1e-10 and drift < 1e-11,
        ),
        Statement(
            "3.2 (14)",
            "the methods of Fig. 2 on the disk",
            ", ".join(f"{name} {value:.0e}" for name, value in deviations.items())
            + f" from the circle (m, rad), {STEPS} steps of {STEP_S:g} s",
            largest_deviation < 1e-11,
            "not in the paper; discrete gradients on SE(2) turn at a constant rate, so their "
            "motion is exact",
        ),
    )
    numbers = {
        "structure": vars(residuals),
        "distance_of_6_from_5": distance,
        "distance_of_methods_from_5": deviations,
    }
    return Outcome(draw, numbers, statements)


def _of_structure(residuals: Structure) -> tuple[Statement, ...]:
    """Return the statements about the bases, the bracket and the Hamiltonian."""
    return (
        Statement(
            "2 (2), 2.1.1",
            "D is spanned by X1, X2, its orthogonal complement by X3, X4",
            f"X1, X2 {residuals.basis:.0e}; g(X_a, X_alpha) {residuals.orthogonal:.0e} with "
            f"theta, {residuals.printed:.1f} as printed",
            max(residuals.basis, residuals.orthogonal) < 1e-15 < residuals.printed,
            "X3 and X4 contain cos theta and sin theta, not those of phi; likewise phi' of 2.1.1; "
            f"{POINTS} random points, m = {DISK.m:g}, r = {DISK.r:g}, J_phi = {DISK.J_phi:g}, "
            f"J_theta = {DISK.J_theta:g}, which the paper does not give",
        ),
        Statement(
            "2.1.2",
            "[X1, X2] = m r sin(theta) X3 - m r cos(theta) X4, hence C_ab^c = 0",
            f"equal to {residuals.bracket:.0e}; C_ab^c rho_c is at most {residuals.constants:.0e}",
            max(residuals.bracket, residuals.constants) < 1e-15,
            "with the corrected X3, X4",
        ),
        Statement(
            "2.2 (8), (9)",
            "H = rho_1^2 / (2 (m r^2 + J_phi)) + rho_2^2 / (2 J_theta)",
            f"H and grad H to {residuals.energy:.0e}; Pi consists of X1, X2 and C_ab^c = 0",
            residuals.energy < 1e-12,
        ),
    )


def _paths(axes: Axes, runs: dict[str, np.ndarray], circle: np.ndarray) -> None:
    """Draw the paths of the contact point."""
    axes.plot(*circle[:, 2:].T, color=TARGET, linewidth=1, label="(5)")
    # Smaller markers lie on top of larger ones, so all five methods stay visible.
    for k, (name, q) in enumerate(runs.items()):
        size = 6 - k
        axes.plot(*q[::4, 2:].T, "os^vD"[k], color=SERIES[k], markersize=size, label=name)
    axes.set(title="Contact point (m)", xlabel="x₁", ylabel="x₂", aspect="equal")
    axes.legend(fontsize=7, loc="center")
