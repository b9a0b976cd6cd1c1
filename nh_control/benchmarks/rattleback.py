"""The rattleback of Kane and Levinson (1982): an ellipsoid with skew inertia that rolls and turns
its spin around.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import eigvalsh

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, INVARIANT, Benchmark
from nh_control.benchmarks.motion import METHOD, moved
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import Body, floating

RADII, DEPTH, GRAVITY = (0.20, 0.03, 0.02), 0.01, 9.81
"""Half axes, and of the center of mass below their center, m."""
INERTIA = 1e-4 * np.array([[2, 0.2, 0], [0.2, 16, 0], [0, 0, 17]])
"""Of 1 kg, about the center of mass, in axes with z up."""
TILT, SPIN, DURATION = np.radians(0.5), np.array([0.0, 0.0, 5.0]), 8.0
"""Roll and angular velocity (rad/s) of the start, and length of the run (s)."""


def stone() -> nh.Multibody:
    """A body of 1 kg that rolls, its frame at the center of the ellipsoid."""
    return nh.Multibody(
        "rattleback",
        [floating("stone", space="SO3xR3")],
        [Body("stone", 1.0, (0, 0, -DEPTH), INERTIA)],
        gravity=(0, 0, -GRAVITY),
        wheels=[nh.RollingWheel(at="stone", shape=nh.Ellipsoid(RADII))],
    )


def placed(model: nh.Multibody, roll: float) -> np.ndarray:
    """Configuration on the plane, rolled about its long axis."""
    height = np.hypot(RADII[1] * np.sin(roll), RADII[2] * np.cos(roll))
    names, turn = model.space.names, (np.cos(roll / 2), np.sin(roll / 2), 0.0, 0.0)
    return model.configuration({**dict(zip(names[:4], turn)), names[6]: height})


def rocking() -> np.ndarray:
    """Frequencies (2) of small oscillations at rest: `det(K - w^2 M) = 0` about the point that
    touches, with the radii of curvature `a^2 / c` and `b^2 / c` there.
    """
    a, b, c = RADII
    height = c - DEPTH
    stiffness = GRAVITY * np.diag([b**2 / c - height, a**2 / c - height])
    return np.sqrt(eigvalsh(stiffness, INERTIA[:2, :2] + height**2 * np.eye(2)))


def compute_rocking() -> Mapping[str, float]:
    model = stone()
    found = ContinuousSystem(model.system).linearize(placed(model, 0.0), model.velocity()).A
    frequencies = np.sort(np.linalg.eigvals(found).imag)[-2:]
    return {"roll, rad/s": frequencies[0], "pitch, rad/s": frequencies[1]}


def _start() -> tuple[np.ndarray, np.ndarray]:
    """In the body's axes: the upward vertical, and the arm from the center of the ellipsoid to the
    point that touches, `-A^2 n / |A n|`.
    """
    up = np.array([0.0, np.sin(TILT), np.cos(TILT)])
    return up, -np.square(RADII) * up / np.linalg.norm(RADII * up)


def reversal(duration: float) -> tuple[float, float]:
    """Spin about the vertical (rad/s) and energy (J) after `duration` (s) from the start of Kane
    and Levinson: rolled by half a degree, it spins in the direction that it does not like.
    """
    model = stone()
    q = placed(model, TILT)
    velocity = model.pose(q, "stone").rotation @ np.cross(_start()[1], SPIN)
    q, v = moved(model.system, q, np.concatenate([SPIN, velocity]), duration, steps=40_000)
    pose = model.pose(q, "stone")
    height = model.point(q, nh.multibody.Point("stone", (0, 0, -DEPTH)))[2]
    energy = GRAVITY * height + v @ model.mass_matrix(q) @ v / 2
    return float((pose.rotation @ v[:3])[2]), float(energy)


def start_energy() -> float:
    """By hand, of 1 kg whose center of mass is at `-arm` from the point at rest."""
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
    title="rattleback: energy after it has turned its spin around",
    source="data and start of Kane, Levinson (1982); reference: energy of the start by hand",
    reference=INVARIANT,
    published={"energy, J": start_energy()},
    compute=compute_reversal,
    method=METHOD,
)
