"""Watt's flyball governor, with rigid couplers or with stiff springs in their place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import brentq

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, INVARIANT, Benchmark
from nh_control.benchmarks.motion import METHOD, integrate
from nh_control.multibody import (
    Body,
    Damper,
    Distance,
    Element,
    Point,
    Spring,
    prismatic,
    revolute,
)

ROD, BALL, SLIDER, SIDE, OFFSET = 0.3, 5.0, 3.0, 0.01, 0.05
"""Masses (kg) of the rods and the shaft, the balls, and the slider; the width of a rod and the
distance of its joint from the axis (m).
"""
ANGLE, RATE, GRAVITY = np.pi / 3, 2 * np.pi, 9.81
"""Initial angle of the rods from the vertical (rad), initial rate of the shaft (rad/s), and
gravity (m/s^2).
"""
ACROSS, ALONG = ROD * (1 + SIDE**2) / 12, ROD * SIDE**2 / 6
TURNING = ALONG + SLIDER * 0.1**2 / 6
"""Inertia of the shaft and the slider about the axis."""
COUPLER, STIFFNESS, DAMPING = 0.5, 8e5, 4e4


def governor(rigid: bool) -> nh.Multibody:
    """Return the governor. Rods 1 m long, with balls at their ends, hang from the top of a shaft 1
    m long. Couplers 0.5 m long connect the rods' centers to the slider.
    """
    sides, elements, constraints = {"right": 1, "left": -1}, list[Element](), []
    frames = [revolute("shaft"), prismatic("slider", "shaft", axis="z")]
    bodies = [
        Body("shaft", ROD, (0, 0, 0.5), (ACROSS, ACROSS, ALONG)),
        Body("slider", SLIDER, inertia=(SLIDER * 0.1**2 / 6,) * 3),
    ]
    for name, sign in sides.items():
        # The axes are opposite, so both angles open outward.
        position = (sign * OFFSET, 0.0, 1.0)
        frames.append(revolute(name, "shaft", axis=(0, -sign, 0), position=position))
        frames.append(nh.multibody.fixed(f"{name}_ball", name, position=(0, 0, -1)))
        bodies.append(Body(name, ROD, (0, 0, -0.5), (ACROSS, ACROSS, ALONG)))
        bodies.append(Body(f"{name}_ball", BALL))
        middle, end = Point(name, (0, 0, -0.5)), Point("slider", (sign * OFFSET, 0.0, 0.0))
        if rigid:
            constraints.append(Distance(f"{name}_coupler", middle, end, COUPLER))
        else:
            elements.append(Spring(middle, end, STIFFNESS, COUPLER))
            elements.append(Damper(middle, end, DAMPING))
    return nh.Multibody(
        "governor",
        frames,
        bodies,
        elements=elements,
        constraints=constraints,
        gravity=(0, 0, -GRAVITY),
    )


def start(model: nh.Multibody) -> tuple[np.ndarray, np.ndarray]:
    """Return the configuration and velocity. The slider is at 0.5 m, and all bodies turn as
    one.
    """
    pose = {"right": ANGLE, "left": ANGLE, "slider": 1 - np.cos(ANGLE)}
    return model.configuration(pose), model.velocity({"shaft_dot": RATE})


def turning_inertia(angle: np.ndarray | float) -> np.ndarray:
    """Return the inertia about the axis, with the rods at the given angle from the vertical."""
    s, c = np.sin(angle), np.cos(angle)
    side = ROD * (OFFSET + s / 2) ** 2 + ACROSS * s**2 + ALONG * c**2 + BALL * (OFFSET + s) ** 2
    return np.asarray(TURNING + 2 * side)


def swing() -> float:
    """Return the period of the rods with rigid couplers. The period follows from the conservation
    of energy and angular momentum: `T = 2 int sqrt(M / (2 (E - V - L^2 / 2I))) dangle`.
    """
    momentum = turning_inertia(ANGLE) * RATE

    def effective(angle: np.ndarray | float) -> np.ndarray:
        height = 1 - np.cos(angle)  # for balls and slider; the rods' centers rise half as far
        weight = GRAVITY * ((2 * BALL + SLIDER) * height + ROD * height)
        return weight + momentum**2 / (2 * turning_inertia(angle))

    energy = effective(ANGLE)
    # The other turning point, and the substitution angle = middle - amplitude cos(tau), which
    # removes the singularities at both turning points. The mean over equal steps in tau is exact
    # to round-off.
    other = brentq(lambda a: effective(a) - energy, ANGLE + 0.05, np.pi / 2, xtol=1e-15)
    tau = (np.arange(200) + 0.5) * np.pi / 200
    amplitude = (other - ANGLE) / 2
    angle = (ANGLE + other) / 2 - amplitude * np.cos(tau)
    inertia = 2 * (ACROSS + ROD / 4 + BALL) + SLIDER * np.sin(angle) ** 2
    rate = np.sqrt(2 * (energy - effective(angle)) / inertia)
    return float(2 * np.mean(amplitude * np.sin(tau) / rate) * np.pi)


def compute_rigid() -> Mapping[str, float]:
    model = governor(rigid=True)
    q, v = start(model)
    q, v = integrate(model.system, q, v, swing(), steps=1000)
    return {"slider, m": q[model.space.names.index("slider")], "shaft rate, rad/s": v[0]}


def compute_stiff() -> Mapping[str, float]:
    model = governor(rigid=False)
    dsys = nh.midpoint(model, 1e-3)
    q, v = start(model)
    last = dsys.simulate(dsys.state(q, v), steps=10_000).states[-1]
    # The momentum conjugate to the shaft's angle, p = M(q) v.
    momentum = model.mass_matrix(dsys.configuration(last)) @ dsys.velocity(last)
    return {"angular momentum, kg m^2/s": momentum[0]}


RIGID = Benchmark(
    name="governor",
    title="flyball governor with rigid couplers: slider and shaft after one swing",
    source="data of IFToMM library, A05; reference: integrals of energy and angular momentum",
    reference=CLOSED_FORM,
    published={"slider, m": 1 - np.cos(ANGLE), "shaft rate, rad/s": RATE},
    compute=compute_rigid,
    method=METHOD,
)
STIFF = Benchmark(
    name="governor_stiff",
    title="flyball governor with stiff spring-dampers: angular momentum after 10 s",
    source="IFToMM library, A05 (Gonzalez et al. 2006): initial angular momentum",
    reference=INVARIANT,
    published={"angular momentum, kg m^2/s": float(turning_inertia(ANGLE) * RATE)},
    compute=compute_stiff,
    method="nh.midpoint, 10 000 steps of 1 ms",
)
