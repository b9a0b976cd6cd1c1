"""The car axis from the Test Set for IVP Solvers: a rod supported by two springs on a bumpy
road.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

import nh_control as nh
from nh_control.benchmarks.benchmark import PRINTED, Benchmark
from nh_control.benchmarks.motion import METHOD, integrate
from nh_control.mechanics.continuous import ContinuousSystem

LENGTH, REST, MASS, EPSILON, BUMP, RATE = 1.0, 0.5, 10.0, 0.01, 0.1, 10.0
START = (0.0, REST, LENGTH, REST, 0.0)
END = {
    "x_l": "0.04934557842755629",
    "y_l": "0.4969894602303324",
    "x_r": "1.041742524885400",
    "y_r": "0.3739110272652214",
    "x_l'": "-0.07705836840321485",
    "y_l'": "0.007446866596327776",
    "x_r'": "0.01755681574942899",
    "y_r'": "0.7703410437794031",
    "lambda_1": "-0.004736886750784630",
    "lambda_2": "-0.001104680411345730",
}


def car_axis() -> nh.System:
    """Return the system with q = (x_l, y_l, x_r, y_r, t): the ends of the axis, and the time as a
    prescribed coordinate. The left wheel is at the origin, and the right wheel follows the road.
    """

    def road(q: ca.SX) -> ca.SX:
        y = BUMP * ca.sin(RATE * q[4])
        return ca.vertcat(ca.sqrt(LENGTH**2 - y**2), y)

    def lagrangian(q: ca.SX, v: ca.SX) -> ca.SX:
        # L = m |v|^2 / 2 - (|p_l| - l0)^2 / 2 - (|p_r - road| - l0)^2 / 2 - m (y_l + y_r)
        m = MASS * EPSILON**2 / 2
        stretched = [ca.norm_2(q[:2]) - REST, ca.norm_2(q[2:4] - road(q)) - REST]
        return (m * ca.sumsqr(v[:4]) - ca.sumsqr(ca.vertcat(*stretched))) / 2 - m * (q[1] + q[3])

    return nh.System(
        name="car_axis",
        space=nh.Rn("x_l", "y_l", "x_r", "y_r", "t"),
        lagrangian=lagrangian,
        holonomic_constraint=lambda q: ca.vertcat(
            ca.dot(road(q), q[:2]), ca.sumsqr(q[:2] - q[2:4]) - LENGTH**2
        ),
        prescribed=("t",),
        nominal=START,
    )


def compute() -> Mapping[str, float]:
    system = car_axis()
    start_rates = [-REST / LENGTH, 0.0, -REST / LENGTH, 0.0, 1.0]
    q, v = integrate(system, START, start_rates, 3.0, [0.0], steps=3000)
    lam = ContinuousSystem(system).multipliers(q, v, [0.0])
    return dict(zip(END, [*q[:4], *v[:4], *lam]))


CAR_AXIS = Benchmark(
    name="car_axis",
    title="car axis: positions, velocities and constraint forces at 3 s",
    source="Test Set for IVP Solvers (Mazzia, Magherini 2008), car axis",
    reference=PRINTED,
    published=END,
    compute=compute,
    method=METHOD,
    note="The printed lambda do not satisfy the equations at the printed positions and velocities "
    "in more than 7 digits; ours do.",
)
