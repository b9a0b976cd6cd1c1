"""The rattleback of Kane and Levinson (1982): an ellipsoid with skew inertia that rolls and turns
its spin around.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import eigvalsh

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, INVARIANT, Benchmark
from nh_control.benchmarks.motion import METHOD, moved, rolling
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import Body, floating

RADII, DEPTH, GRAVITY = (0.20, 0.03, 0.02), 0.01, 9.81
"""Half axes, and of the center of mass below their center, m."""
A, B, C, D = 2e-4, 16e-4, 17e-4, 0.2e-4
"""Inertias about the center of mass of 1 kg: along the axes, and the product of x and y (z up)."""
TILT, SPIN, DURATION = np.radians(0.5), 5.0, 5.0


def stone() -> nh.Multibody:
    """A body of 1 kg, its frame at the center of the ellipsoid."""
    inertia = np.array([[A, D, 0], [D, B, 0], [0, 0, C]])
    return nh.Multibody(
        "rattleback",
        [floating("stone", space="SO3xR3")],
        [Body("stone", 1.0, (0, 0, -DEPTH), inertia)],
        gravity=(0, 0, -GRAVITY),
    )


def rattleback(model: nh.Multibody) -> nh.System:
    """It rolls without slipping."""
    shape = nh.Ellipsoid(RADII)
    return rolling(model, {"stone": shape}, nominal=tuple(placed(model, 0.0)))


def placed(model: nh.Multibody, roll: float) -> np.ndarray:
    """Configuration on the plane, rolled about its long axis."""
    height = np.hypot(RADII[1] * np.sin(roll), RADII[2] * np.cos(roll))
    turn = {"stone_w": np.cos(roll / 2), "stone_x": np.sin(roll / 2)}
    names = model.space.names
    values = dict(zip(names[:4], (np.cos(roll / 2), np.sin(roll / 2), 0.0, 0.0)))
    del turn
    return model.configuration({**values, names[6]: height})


def rocking() -> np.ndarray:
    """Frequencies (2) of small oscillations at rest: `det(K - w^2 M) = 0` about the point that
    touches, with the radii of curvature `a^2 / c` and `b^2 / c` there.
    """
    a, b, c = RADII
    height = c - DEPTH
    stiffness = GRAVITY * np.diag([b**2 / c - height, a**2 / c - height])
    return np.sqrt(eigvalsh(stiffness, [[A + height**2, D], [D, B + height**2]]))


def compute_rocking() -> Mapping[str, float]:
    model = stone()
    found = ContinuousSystem(rattleback(model)).linearize(placed(model, 0.0), model.velocity()).A
    frequencies = np.sort(np.linalg.eigvals(found).imag)[-2:]
    return {"roll, rad/s": frequencies[0], "pitch, rad/s": frequencies[1]}


def reversal() -> tuple[nh.Multibody, np.ndarray, np.ndarray]:
    """The model, and its configuration and velocity at the end of a run from the start of Kane and
    Levinson: rolled by 0.5 degrees, spinning in the direction that it does not like.
    """
    model = stone()
    system, q = rattleback(model), placed(model, TILT)
    v = _rolling_velocity(system, q, np.array([0.0, 0.0, SPIN]))
    return model, *moved(system, q, v, DURATION)


def _rolling_velocity(system: nh.System, q: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Velocity with the body's angular velocity omega (3)."""
    q_symbol = system.symbols[0]
    rows = system.value(system.mechanics.holonomic_jacobian(q_symbol), q)
    rows = np.vstack([system.value(system.velocity_constraint(q_symbol), q), rows])
    return np.concatenate([omega, np.linalg.solve(rows[:, 3:], -rows[:, :3] @ omega)])


def _energy(model: nh.Multibody, q: np.ndarray, v: np.ndarray) -> float:
    height = model.point(q, nh.multibody.Point("stone", (0, 0, -DEPTH)))[2]
    return float(GRAVITY * height + v @ model.mass_matrix(q) @ v / 2)


def compute_reversal() -> Mapping[str, float]:
    return {"energy, J": _energy(*reversal())}


def start_energy() -> float:
    """By hand: spin about an axis that is tilted against the vertical, the center of mass at rest
    but for the rolling.
    """
    model = stone()
    system, q = rattleback(model), placed(model, TILT)
    return _energy(model, q, _rolling_velocity(system, q, np.array([0.0, 0.0, SPIN])))


ROCKING = Benchmark(
    name="rattleback",
    title="rattleback at rest: frequencies of rolling and pitching",
    source="data of Kane, Levinson (1982); reference: small oscillations on its two curvatures",
    reference=CLOSED_FORM,
    published=dict(zip(("roll, rad/s", "pitch, rad/s"), rocking())),
    compute=compute_rocking,
    method="exact linearization of the nonlinear equations",
)
