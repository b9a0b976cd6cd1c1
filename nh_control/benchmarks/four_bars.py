"""N four-bar windows: a parallelogram linkage that moves like one pendulum and passes through its
flat position, which is singular.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import ellipj, ellipkinc

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, Benchmark
from nh_control.integrators import INTEGRATORS
from nh_control.multibody import Body, Coincident, Point, revolute

WINDOWS, GRAVITY, SPEED, DURATION, STEP = 2, 9.81, 1.0, 10.0, 0.005


def linkage(windows: int = WINDOWS) -> nh.Multibody:
    """Return a linkage in the x-y plane whose rods have a length of 1 m and a mass of 1 kg. It has
    `windows` couplers between `windows + 1` cranks, which are upright when their angles are zero.
    """
    frames, bodies, pins = [], [], []
    thin = 1e-6
    for i in range(windows + 1):
        frames.append(revolute(f"crank_{i}", position=(i, 0.0, 0.0)))
        bodies.append(Body(f"crank_{i}", 1.0, (0.0, 0.5, 0.0), (1 / 12, thin, 1 / 12)))
    for i in range(windows):
        frames.append(revolute(f"coupler_{i}", f"crank_{i}", position=(0.0, 1.0, 0.0)))
        bodies.append(Body(f"coupler_{i}", 1.0, (0.5, 0.0, 0.0), (thin, 1 / 12, 1 / 12)))
        # Each coupler hangs on a crank, and a pin connects its end to the next crank.
        end, tip = Point(f"coupler_{i}", (1.0, 0.0, 0.0)), Point(f"crank_{i + 1}", (0.0, 1.0, 0.0))
        pins.append(Coincident(f"pin_{i}", end, tip, "xy"))
    return nh.Multibody("windows", frames, bodies, constraints=pins, gravity=(0, -GRAVITY, 0))


def compute() -> Mapping[str, float]:
    model = linkage()
    dsys = INTEGRATORS["midpoint_order8"].make(model.system, STEP)
    rates = {f"crank_{i}_dot": -SPEED for i in range(WINDOWS + 1)}
    rates |= {f"coupler_{i}_dot": SPEED for i in range(WINDOWS)}
    x = dsys.state(model.configuration(), model.velocity(rates))
    run = dsys.simulate(x, steps=round(DURATION / STEP))
    tip = model.point(dsys.configuration(run.states[-1]), Point("crank_0", (0.0, 1.0, 0.0)))
    return {"x of B0, m": tip[0], "y of B0, m": tip[1]}


def pendulum(t: float) -> tuple[float, float]:
    """Return the position of B0 at time t. The position follows from the energy integral in terms
    of Jacobi elliptic functions. The angle from the hanging position is `2 am(k t + u0, m)` with
    `k = top speed / 2`, `m = w^2 / k^2`, and the frequency w of small swings.
    """
    inertia = (WINDOWS + 1) / 3 + WINDOWS
    squared = GRAVITY * ((WINDOWS + 1) / 2 + WINDOWS) / inertia  # w^2 of small swings
    k = np.sqrt(SPEED**2 + 4 * squared) / 2
    m = squared / k**2
    _, _, _, half = ellipj(k * t + ellipkinc(np.pi / 2, m), m)  # initially upright: half = pi/2
    return float(-np.sin(2 * half)), float(-np.cos(2 * half))


FOUR_BARS = Benchmark(
    name="four_bars",
    title="two four-bar windows that turn over and are singular when flat: point B0 at 10 s",
    source="IFToMM library, A02 (Gonzalez et al. 2006); reference: pendulum in Jacobi's functions",
    reference=CLOSED_FORM,
    published=dict(zip(("x of B0, m", "y of B0, m"), pendulum(DURATION))),
    compute=compute,
    method="midpoint_order8, steps of 5 ms",
)
