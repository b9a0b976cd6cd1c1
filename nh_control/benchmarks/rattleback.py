"""The rattleback of Kane and Levinson (1982): an ellipsoid with skew inertia that rolls and
reverses its spin.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import eigvalsh

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, INVARIANT, Benchmark
from nh_control.benchmarks.motion import METHOD, integrate
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import Body, floating

RADII, DEPTH, GRAVITY = (0.20, 0.03, 0.02), 0.01, 9.81
"""Semi-axes, depth of the center of mass below the ellipsoid's center (m), and gravity (m/s^2)."""
INERTIA = 1e-4 * np.array([[2, 0.2, 0], [0.2, 16, 0], [0, 0, 17]])
"""Inertia about the center of mass for a mass of 1 kg, in axes with z up."""
TILT, SPIN, DURATION = np.radians(0.5), np.array([0.0, 0.0, 5.0]), 8.0
"""Initial roll (rad) and angular velocity (rad/s), and duration of the run (s)."""


def stone() -> nh.Multibody:
    """Return a rolling body with a mass of 1 kg whose frame is at the ellipsoid's center."""
    return nh.Multibody(
        "rattleback",
        [floating("stone", space="SO3xR3")],
        [Body("stone", 1.0, (0, 0, -DEPTH), INERTIA)],
        gravity=(0, 0, -GRAVITY),
        wheels=[nh.RollingWheel(at="stone", shape=nh.Ellipsoid(RADII))],
    )


def on_plane(model: nh.Multibody, roll: float) -> np.ndarray:
    """Return the configuration of the stone on the plane, rolled about its long axis."""
    # The support function of the ellipse with semi-axes b and c.
    height = np.hypot(RADII[1] * np.sin(roll), RADII[2] * np.cos(roll))
    names, turn = model.space.names, (np.cos(roll / 2), np.sin(roll / 2), 0.0, 0.0)
    return model.configuration({**dict(zip(names[:4], turn)), names[6]: height})


def rocking() -> np.ndarray:
    """Return the frequencies (2) of small oscillations about rest. They solve `det(K - w^2 M) = 0`
    about the point of contact, where the radii of curvature are `a^2 / c` and `b^2 / c`.
    """
    a, b, c = RADII
    height = c - DEPTH
    stiffness = GRAVITY * np.diag([b**2 / c - height, a**2 / c - height])
    return np.sqrt(eigvalsh(stiffness, INERTIA[:2, :2] + height**2 * np.eye(2)))


def compute_rocking() -> Mapping[str, float]:
    model = stone()
    A = ContinuousSystem(model.system).linearize(on_plane(model, 0.0), model.velocity()).A
    frequencies = np.sort(np.linalg.eigvals(A).imag)[-2:]
    return {"roll, rad/s": frequencies[0], "pitch, rad/s": frequencies[1]}


def _start() -> tuple[np.ndarray, np.ndarray]:
    """Return the upward vertical n and the vector from the center of the ellipsoid to the point of
    contact, `-A^2 n / |A n|`, both in the body's axes.
    """
    up = np.array([0.0, np.sin(TILT), np.cos(TILT)])
    return up, -np.square(RADII) * up / np.linalg.norm(RADII * up)


def reversal(duration: float) -> tuple[float, float]:
    """Return the spin about the vertical (rad/s) and the energy (J) after `duration` (s). As in
    Kane and Levinson, the stone is initially rolled by half a degree and spins in the unstable
    direction.
    """
    model = stone()
    q = on_plane(model, TILT)
    # The point of contact is at rest, so the velocity of the center is -omega x arm.
    velocity = model.pose(q, "stone").rotation @ np.cross(_start()[1], SPIN)
    q, v = integrate(model.system, q, np.concatenate([SPIN, velocity]), duration, steps=40_000)
    pose = model.pose(q, "stone")
    height = model.point(q, nh.multibody.Point("stone", (0, 0, -DEPTH)))[2]
    energy = GRAVITY * height + v @ model.mass_matrix(q) @ v / 2
    return float((pose.rotation @ v[:3])[2]), float(energy)


def start_energy() -> float:
    """Return the initial energy for a mass of 1 kg, with the center of mass at `-arm` from the
    point of contact, which is at rest.
    """
    up, arm = _start()
    arm = arm + [0.0, 0.0, DEPTH]
    kinetic = np.sum(np.cross(SPIN, arm) ** 2) + SPIN @ INERTIA @ SPIN
    return float(kinetic / 2 - GRAVITY * up @ arm)


def compute_reversal() -> Mapping[str, float]:
    return {"energy, J": reversal(DURATION)[1]}


ROCKING = Benchmark(
    name="rattleback",
    title="rattleback at rest: frequencies of rolling and pitching",
    source="data of Kane, Levinson (1982); reference: small oscillations on its two curvatures",
    reference=CLOSED_FORM,
    published=dict(zip(("roll, rad/s", "pitch, rad/s"), rocking())),
    compute=compute_rocking,
    method="exact linearization of the nonlinear equations",
)
REVERSAL = Benchmark(
    name="rattleback_reversal",
    title="rattleback: energy after the reversal of its spin",
    source="data and start of Kane, Levinson (1982); reference: initial energy by hand",
    reference=INVARIANT,
    published={"energy, J": start_energy()},
    compute=compute_reversal,
    method=METHOD,
)
