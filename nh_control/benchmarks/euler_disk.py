"""Euler's disk: a coin that rolls around on its edge while its center rests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import brentq

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, Benchmark
from nh_control.benchmarks.motion import METHOD, moved
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import Body, floating

MASS, RADIUS, GRAVITY, INCLINATION = 0.4, 0.0375, 9.81, np.radians(20.0)
TURNS = 3


def disk() -> nh.Multibody:
    """A thin uniform disk, its axis along z of its frame."""
    across = MASS * RADIUS**2 / 4
    return nh.Multibody(
        "disk",
        [floating("disk", space="SO3xR3")],
        [Body("disk", MASS, inertia=(across, across, 2 * across))],
        gravity=(0, 0, -GRAVITY),
        wheels=[nh.RollingWheel(at="disk", radius=RADIUS, axis="z")],
    )


def start(model: nh.Multibody, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Inclined about y, with x to the point that touches; it turns about this x alone."""
    half, names = INCLINATION / 2, model.space.names
    turn = dict(zip(names[:4], (np.cos(half), 0.0, np.sin(half), 0.0)))
    q = model.configuration({**turn, names[6]: RADIUS * np.sin(INCLINATION)})
    return q, np.array([-rate * np.sin(INCLINATION), 0.0, 0.0, 0.0, 0.0, 0.0])


def precession() -> float:
    """Rate (rad/s) of the point that touches, `4 g / (R sin(inclination))`, its square."""
    return float(np.sqrt(4 * GRAVITY / (RADIUS * np.sin(INCLINATION))))


def compute() -> Mapping[str, float]:
    model = disk()
    continuous = ContinuousSystem(model.system)

    def out_of_balance(rate: float) -> float:
        """The angular velocity turns with the precession where the inclination stays."""
        turns = rate**2 * np.sin(INCLINATION) * np.cos(INCLINATION)
        return float(continuous.acceleration(*start(model, rate))[1]) + turns

    rate = brentq(out_of_balance, 0.5 * precession(), 2 * precession(), xtol=1e-13)
    q, _ = moved(
        model.system, *start(model, precession()), TURNS * 2 * np.pi / precession(), steps=500
    )
    pose = model.pose(q, "disk")
    face = model.pose(start(model, 0.0)[0], "disk").rotation.T @ pose.rotation
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
