"""The systems and integrators the tests run over, built once a process."""

from __future__ import annotations

from functools import cache

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators import midpoint, nonholonomic_midpoint, rdp
from nh_control.systems import chaplygin_sleigh, pendulum, snakeboard

SYSTEMS = {"pendulum": pendulum, "sleigh": chaplygin_sleigh, "snakeboard": snakeboard}
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
SYMMETRIC = tuple(name for name in CENTERED if "-ccsk-" not in name)
PAIRS = [("pendulum", "midpoint"), ("pendulum", "midpoint-left")]
PAIRS += [
    (system, method) for system in NONHOLONOMIC for method in ("dla", "dla-left", *RDP_METHODS)
]


@cache
def discrete(system: str, method: str, h: float) -> DiscreteSystem:
    """The discrete system of a pair of names at step h."""
    return METHODS[method](SYSTEMS[system](), h)


def random_phase(
    dsys: DiscreteSystem, rng, steering: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """A configuration and an admissible velocity of order one.

    Steering angles are within 1 rad, away from the singular pi/2; runs of many steps take a small
    `steering` rate to stay there.
    """
    space = dsys.system.space
    q, v = rng.uniform(-2, 2, space.nq), rng.normal(size=space.nw)
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
