"""Time of a variational step and of its linearization, compared with Pinocchio's forward dynamics
of the same robot in the same run, from Python.

    python test/benchmark/pinocchio_speed.py

Pinocchio's step is semi-implicit
Euler, `v1 = v + h aba(q, v, tau), q1 = integrate(q, h v1)`, explicit and of order 1. This
package's step is the implicit midpoint rule of order 2, solved to round-off, and its linearization
covers the whole step, while `computeABADerivatives` gives the derivatives of the acceleration
only. Both must accelerate the joints equally.
"""

import sys
from pathlib import Path

import numpy as np
import pinocchio
from sizes import sized
from snakeboard_speed import measure, table

sys.path.append(str(Path(__file__).parents[1]))
from urdf_robots import robot_file  # noqa: E402

from nh_control.integrators import midpoint
from nh_control.multibody import load_urdf

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


def main():
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


if __name__ == "__main__":
    main()
