"""Large Lagrangians are differentiated direction by direction by called functions: the same steps
and derivatives as where they are written out.
"""

import casadi as ca
import numpy as np
import pytest
from test_newton import planar_chain

from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint, rdp
from nh_control.mechanics import lagrangian
from nh_control.mechanics.system import System
from nh_control.systems import snakeboard
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters, spherical_pendulum


def puppet() -> System:
    """A chain of three links hung on a hook that is moved at will, its end on a circle, with
    damping and a torque.
    """
    free = planar_chain(3)

    def hook(q):
        return ca.vertcat(
            q[3] + sum(ca.sin(q[i]) for i in range(3)), -sum(ca.cos(q[i]) for i in range(3))
        )

    return System(
        name="puppet",
        space=Rn("a", "b", "c", "hook"),
        lagrangian=lambda q, v: (
            free.lagrangian(q[:3], v[:3])
            + v[3] ** 2 / 2
            + v[3] * sum(ca.cos(q[i]) * v[i] for i in range(3))
        ),
        inputs=("torque",),
        force=lambda q, v, u: ca.vertcat(u, 0, 0, 0) - 0.1 * q[0] * v,
        holonomic_constraint=lambda q: ca.sumsqr(hook(q)) - 4.0,
        prescribed=("hook",),
    )


CASES = {
    "chain": lambda: midpoint(planar_chain(5), 0.02),
    "puppet": lambda: midpoint(puppet(), 0.02, "left"),
    "spheres": lambda: midpoint(
        spherical_pendulum(SphericalPendulumParameters(masses=(1.0, 2.0), lengths=(1.0, 0.5))),
        0.02,
    ),
    "snakeboard": lambda: rdp(snakeboard(), 0.02),
}


def results(case):
    dsys, rng = CASES[case](), np.random.default_rng(4)
    q, v = 0.4 * rng.normal(size=dsys.system.space.nv), rng.normal(size=dsys.system.space.nw)
    x = dsys.measured_state(dsys.system.space.retract(dsys.system.space.origin, q), v)
    if case == "puppet":
        x[:4], x[4:] = [np.pi / 6, np.pi / 2, 5 * np.pi / 6, -1.0], 0.2 * x[4:]
    u, lam = 0.1 * rng.normal(size=dsys.nu), rng.normal(size=dsys.ndx)
    if case == "puppet":
        u[-1] = x[3] + 0.01
    names = dsys.parameter_names
    lin = dsys.linearize(x, u, names)
    return [
        dsys.step(x, u),
        lin.A,
        lin.B,
        lin.P,
        dsys.hessian(x, u, lam, parameters=names),
        lin.multipliers,
        lin.multipliers_x,
        dsys.velocity(x),
    ]


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c == "snakeboard" else c for c in CASES]
)
def test_called_and_written_derivatives_agree(case, monkeypatch):
    written = results(case)
    monkeypatch.setattr(lagrangian, "LARGE", 0)
    for got, want in zip(results(case), written):
        assert np.abs(got - want).max(initial=0.0) <= 1e-12 * np.abs(want).max(initial=1.0)
