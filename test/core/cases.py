"""The systems and integrators the tests run over, built once a process."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from energy_cases import generic, turning

from nh_control import systems
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SO3
from nh_control.integrators import (
    INTEGRATORS,
    lie_group,
    lie_poisson,
    midpoint,
    nonholonomic_midpoint,
    rdp,
    symplectic_lie_group,
)
from nh_control.mechanics.system import System
from nh_control.systems import chaplygin_sleigh, pendulum, snakeboard
from nh_control.systems.rolling_ball import RollingBallParameters


def symmetric_top() -> System:
    """A heavy symmetric top: rows about its axis have no terms of their own."""

    def lagrangian(q, v):
        return (v[0] ** 2 + v[1] ** 2 + 0.4 * v[2] ** 2) / 2 - 1.5 * quaternion.matrix(q)[2, 2]

    return System(name="symmetric_top", space=SO3(), lagrangian=lagrangian)


SYSTEMS = {
    "pendulum": pendulum,
    "sleigh": chaplygin_sleigh,
    "snakeboard": snakeboard,
    "generic": generic,
    "turning": turning,
}
ELSEWHERE = (
    "car",
    "chaotic_quartic",
    "chaplygin_sleigh_contact",
    "differential_drive",
    "gearbox",
    "roller_racer",
    "rolling_ball",
    "rolling_disk",
    "suslov",
)
"""Systems whose equations of motion have tests of their own; all runs over them are slow."""
LARGE_BALL = RollingBallParameters(m=2.0, r=1.0, Jx=0.8, Jy=1.0, Jz=1.2)
"""Momenta of order one turn a small ball too fast for the differences that serve all others."""
SYSTEMS |= {name: getattr(systems, name) for name in ELSEWHERE}
SYSTEMS["rolling_ball"] = lambda: systems.rolling_ball(LARGE_BALL)
FITTING = {name: [*INTEGRATORS.fitting(make())] for name, make in SYSTEMS.items()}
"""Names of the methods that take a system."""
NONHOLONOMIC = ("sleigh", "snakeboard")
RETRACTIONS = ("exp", "cay", "ccsk", "sccsk")
TANGENTS = ("exact", "truncated")

METHODS = {
    "midpoint": midpoint,
    "midpoint-left": lambda system, h: midpoint(system, h, "left"),
    "dla": nonholonomic_midpoint,
    "dla-left": lambda system, h: nonholonomic_midpoint(system, h, "left"),
}
for _retraction in RETRACTIONS:
    for _tangent in TANGENTS:
        for _alpha in (0.5, 0.3):
            METHODS[f"rdp-{_retraction}-{_tangent}-{_alpha:g}"] = (
                lambda system, h, r=_retraction, a=_alpha, t=_tangent: rdp(system, h, r, a, t)
            )

RDP_METHODS = tuple(name for name in METHODS if name.startswith("rdp"))
CENTERED = ("dla", *(name for name in RDP_METHODS if name.endswith("-0.5")))
PAIRS = [("pendulum", "midpoint"), ("pendulum", "midpoint-left")]
PAIRS += [
    (system, method) for system in NONHOLONOMIC for method in ("dla", "dla-left", *RDP_METHODS)
]

METHODS |= {name: entry.make for name, entry in INTEGRATORS.items()}
OWN = dict.fromkeys(("gni_implicit", "si_dla", "spark_2", "itoh_abe"), "generic")
"""The system of an integrator; the sleigh, or the pendulum, where none is named."""
FAMILIES = (lie_group, lie_poisson, symplectic_lie_group)
LIE_GROUP = tuple(one.name for family in FAMILIES for one in family.INTEGRATORS)
OWN_TESTS = (*LIE_GROUP, "itoh_abe", "energy_collocation_6", "variational_gauss_6")
"""Integrators whose quick tests of order are elsewhere or last long; those of compositions and rdp
are elsewhere, too."""


def registered() -> list:
    """(system, name) of every registered integrator on one system."""
    sleigh, swing = chaplygin_sleigh(), pendulum()
    return [
        pytest.param(
            OWN.get(name, "sleigh" if entry.takes(sleigh) else "pendulum"),
            name,
            marks=pytest.mark.slow if name in OWN_TESTS else (),
        )
        for name, entry in INTEGRATORS.items()
        if "_order" not in name and "rdp" not in name
        if entry.takes(sleigh) or entry.takes(swing)
    ]


def discrete(system: str, method: str, h: float) -> DiscreteSystem:
    """The discrete system of a pair of names at step h, made once for all steps."""
    return _made(system, method).with_step(h)


@cache
def _made(system: str, method: str) -> DiscreteSystem:
    return METHODS[method](SYSTEMS[system](), 0.1)


def random_phase(
    dsys: DiscreteSystem, rng, steering: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """A configuration and an admissible velocity of order one.

    Steering angles are within 1 rad, away from the singular pi/2; runs of many steps take a small
    `steering` rate to stay there.
    """
    space = dsys.system.space
    q, v = rng.uniform(-2, 2, space.nq), rng.normal(size=space.nw)
    if dsys.system.name == "generic":
        q /= 4
    if dsys.system.name in ELSEWHERE or space.nq != space.nv:
        q = space.retract(space.origin, q[: space.nv] / 4)
    if "phi" in space.names:
        q[space.names.index("phi")] /= 2
        v[space.velocity_names.index("phi_dot")] *= steering
    return q, dsys.velocity(dsys.state(q, v))


def random_point(
    dsys: DiscreteSystem, rng, steering: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """A state and an input of order one, the rate and the torque of steering of order
    `steering`.
    """
    x, u = dsys.state(*random_phase(dsys, rng, steering)), rng.normal(size=dsys.nu)
    if "steer_torque" in dsys.inputs:
        u[dsys.inputs.index("steer_torque")] *= steering
    return x, u
