"""Time of a variational step and of its linearization, compared with Pinocchio's forward dynamics
of the same robot in the same run, from Python.

Run with `python -m pytest test/benchmark/test_pinocchio.py -s`. Pinocchio's step is semi-implicit
Euler, `v1 = v + h aba(q, v, tau), q1 = integrate(q, h v1)`, explicit and of order 1. This
package's step is the implicit midpoint rule of order 2, solved to round-off, and its linearization
covers the whole step, while `computeABADerivatives` gives the derivatives of the acceleration
only. The test only asserts that both accelerate the joints equally.
"""

import numpy as np
import pytest
from sizes import sized
from test_speed import NEED_COMPILER, measure, table
from urdf_robots import robot_file

from nh_control.integrators import midpoint
from nh_control.multibody import load_urdf

pinocchio = pytest.importorskip(
    "pinocchio", reason="needs the package pin, see the extra urdf-test"
)

H = 1e-3
CASES = [("ur5e", "fixed"), ("cookie", "fixed"), ("upkie", "floating")][: sized(None, 1)]


class Pinocchio:
    """Semi-implicit Euler with the articulated body algorithm."""

    def __init__(self, path, base):
        free = [pinocchio.JointModelFreeFlyer()] if base == "floating" else []
        self.model = pinocchio.buildModelFromUrdf(str(path), *free)
        self.data = self.model.createData()
        self.q, self.v, self.force = (
            pinocchio.neutral(self.model),
            np.zeros(self.model.nv),
            np.zeros(self.model.nv),
        )

    def take_random_state(self, model):
        """A configuration, a velocity and inputs of our model, taken over."""
        rng, space = np.random.default_rng(10), model.space
        q, v, u = (
            space.retract(space.origin, rng.uniform(-0.5, 0.5, space.nv)),
            rng.normal(size=space.nw) / 2,
            rng.normal(size=model.system.nu),
        )
        efforts = {entry.coordinate: value for entry, value in zip(model.inputs, u)}
        for joint, name in zip(self.model.joints[1:], list(self.model.names)[1:]):
            if name == "root_joint":
                self.q[:7], self.v[:6] = [*q[4:7], *q[1:4], q[0]], [*v[3:6], *v[:3]]
                continue
            i, j = model.tree.scalar_indices(name)
            self.q[joint.idx_q : joint.idx_q + joint.nq] = (
                q[i] if joint.nq == 1 else [np.cos(q[i]), np.sin(q[i])]
            )
            self.v[joint.idx_v], self.force[joint.idx_v] = v[j], efforts.get(name, 0.0)
        return q, v, u

    def step(self):
        v = self.v + H * pinocchio.aba(self.model, self.data, self.q, self.v, self.force)
        return pinocchio.integrate(self.model, self.q, H * v), v

    def joint_accelerations(self, names):
        rates = pinocchio.aba(self.model, self.data, self.q, self.v, self.force)
        return np.array(
            [rates[self.model.joints[self.model.getJointId(name)].idx_v] for name in names]
        )

    def derivatives(self):
        pinocchio.computeABADerivatives(self.model, self.data, self.q, self.v, self.force)
        return self.data.ddq_dq, self.data.ddq_dv, self.data.Minv


@NEED_COMPILER
def test_steps_and_linearizations():
    rows = []
    for name, base in CASES:
        path = robot_file(name)
        model = load_urdf(path, base)
        reference = Pinocchio(path, base)
        q, v, u = reference.take_random_state(model)
        vi = midpoint(model.system, H)
        x = vi.state(q, v)
        n = len(model.tree.scalars)
        expected, accelerations = (
            reference.joint_accelerations(model.tree.scalars),
            (vi.velocity(vi.step(x, u)) - v)[-n:] / H,
        )
        assert np.linalg.norm(accelerations - expected) <= 0.05 * np.linalg.norm(expected)
        theirs, ours = (
            measure(reference.step, 2000),
            measure(lambda vi=vi, x=x, u=u: vi.step(x, u), 500),
        )
        their_slopes, our_slopes = (
            measure(reference.derivatives, 2000),
            measure(lambda vi=vi, x=x, u=u: vi.linearize(x, u), 200),
        )
        rows.append(
            [
                f"{name}, {base}, {model.space.nv} dof",
                ours.text(),
                our_slopes.text(),
                theirs.text(),
                their_slopes.text(),
            ]
        )
    head = [
        "us, median [fastest, slowest]",
        "variational step",
        "step and A, B",
        "Pinocchio aba + Euler",
        "ABA derivatives",
    ]
    table("From Python, with the linearization including its step", head, rows)
