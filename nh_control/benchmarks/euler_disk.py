"""Euler's disk: a coin that rolls around on its edge while its center is at rest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import brentq

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, Benchmark
from nh_control.benchmarks.motion import METHOD, integrate
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import Body, floating

MASS, RADIUS, GRAVITY, INCLINATION = 0.4, 0.0375, 9.81, np.radians(20.0)
TURNS = 3


def disk() -> nh.Multibody:
    """Return a thin uniform disk whose axis is the z axis of its frame."""
    across = MASS * RADIUS**2 / 4
    return nh.Multibody(
        "disk",
        [floating("disk", space="SO3xR3")],
        [Body("disk", MASS, inertia=(across, across, 2 * across))],
        gravity=(0, 0, -GRAVITY),
        wheels=[nh.RollingWheel(at="disk", radius=RADIUS, axis="z")],
    )


def start(model: nh.Multibody, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the configuration and velocity of the disk. It is inclined about y, and x points
    toward the point of contact. The disk rotates only about x.
    """
    half, names = INCLINATION / 2, model.space.names
    turn = dict(zip(names[:4], (np.cos(half), 0.0, np.sin(half), 0.0)))
    q = model.configuration({**turn, names[6]: RADIUS * np.sin(INCLINATION)})
    return q, np.array([-rate * np.sin(INCLINATION), 0.0, 0.0, 0.0, 0.0, 0.0])


def precession() -> float:
    """Return the rate (rad/s) of the point of contact, `sqrt(4 g / (R sin(inclination)))`."""
    return float(np.sqrt(4 * GRAVITY / (RADIUS * np.sin(INCLINATION))))


def compute() -> Mapping[str, float]:
    model = disk()
    continuous = ContinuousSystem(model.system)

    def out_of_balance(rate: float) -> float:
        """Return the angular acceleration about y that changes the inclination."""
        # In steady motion, the angular velocity vector rotates with the precession.
        turns = rate**2 * np.sin(INCLINATION) * np.cos(INCLINATION)
        q, v = start(model, rate)
        return float(continuous.acceleration(q, v)[1]) + turns

    rate = brentq(out_of_balance, 0.5 * precession(), 2 * precession(), xtol=1e-13)
    q0, v0 = start(model, precession())
    q, _ = integrate(model.system, q0, v0, TURNS * 2 * np.pi / precession(), steps=500)
    pose = model.pose(q, "disk")
    # The disk's rotation relative to its initial attitude, in its own axes, is a turn about z.
    face = model.pose(q0, "disk").rotation.T @ pose.rotation
    return {
        "precession, rad/s": rate,
        "height of the center after three rounds, m": pose.position[2],
        "turn of the face after three rounds, rad": abs(np.arctan2(face[1, 0], face[0, 0])),
    }


EULER_DISK = Benchmark(
    name="euler_disk",
    title="Euler's disk, inclined by 20 degrees: precession and turn of its face",
    source="steady motion: Moffatt (2000), Nature 404, W^2 sin(a) = 4 g / R",
    reference=CLOSED_FORM,
    published={
        "precession, rad/s": precession(),
        "height of the center after three rounds, m": RADIUS * np.sin(INCLINATION),
        "turn of the face after three rounds, rad": TURNS * 2 * np.pi * (1 - np.cos(INCLINATION)),
    },
    compute=compute,
    method=METHOD,
)
