"""Functions for joints with several coordinates in the linear-time tree kernel. They are generated
once for each joint type.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import casadi as ca

from nh_control.geometry.spaces import StepGeometry
from nh_control.multibody.joint_types import Joint

Changes = tuple[ca.SX, ca.SX]
"""Displacements Z and twists S, (6, n) each."""


class JointFunctions:
    """Functions of a joint's coordinates q, its unknowns z (mean velocity) and the step h.

    `midpoint(q, z, h) -> turn (3, 3), at (3), twist (6), Z0, S0`: the pose and twist in the
    placement at the middle of the step, and their derivatives with respect to q for fixed q1. The
    derivatives are displacements Z (6, n) in the body's frame and twists S (6, n).
    `midpoint_by_z(q, z, h) -> Zz, Sz`: the same derivatives with respect to z.
    `endpoint(q, z, h) -> q1, Z1, S1`: the configuration q1 at the end of the step, and the
    derivatives with respect to q1 for fixed q.

    The following functions return derivatives of rows `k(Z, S) = Z^T mu + S^T b` for wrenches mu,
    b (6).
    `row_by_z(q, z, h, mu, b) -> dk0/dz`.
    `derivatives(q, z, h, mu, b) -> Zq, Sq, dk0/dq, dk1/dz, dk1/dq, dq1/dz, dq1/dq`; the
    derivatives with respect to q are for fixed z.
    `derivatives_by_h(q, z, h, mu, b) -> Zh, Sh, d(h k0)/dh, d(h k1)/dh, dq1/dh`.

    At a node, `pose(q) -> turn, at, Z (6, n), dZ/dq (6 n, n)`, where Z is the derivative with
    respect to q. `end(q, z, h) -> q1, dq1/dz`.
    """

    def __init__(self, joint: Joint):
        self._joint = joint
        self._space = space = joint.space("joint")
        n = space.nv
        self._q, self._z, self._h = ca.SX.sym("q", space.nq), ca.SX.sym("z", n), ca.SX.sym("h")
        self._mu, self._b = ca.SX.sym("mu", 6), ca.SX.sym("b", 6)
        self._e = ca.SX.sym("e", n)
        self._pose = ca.SX.sym("pose", space.nq), ca.SX.sym("v", space.nw)

    def __iter__(self) -> Iterator[ca.Function]:
        mu, b = self._mu, self._b
        yield self._function("midpoint", [*self._midpoint, *self._by_start])
        yield self._function("midpoint_by_z", [*self._by_z])
        yield self._function("endpoint", [self._step.q1, *self._by_end])
        second, ends = self._second_derivatives(), self._end_jacobians
        yield self._function("row_by_z", second[:1], mu, b)
        yield self._function("derivatives", [*self._from_start, *second[1:], *ends], mu, b)
        yield self._function("derivatives_by_h", self._by_h(), mu, b)
        yield self._node()
        yield self._function("end", [self._step.q1, ends[0]])

    @cached_property
    def _step(self) -> StepGeometry:
        return self._space.step_geometry(self._q, self._h * self._z)

    @cached_property
    def _states(self) -> ca.SX:
        """Coordinates at the middle of the step, and the displacement w over the step."""
        return ca.vertcat(self._step.middle, self._step.w)

    @cached_property
    def _midpoint(self) -> list[ca.SX]:
        """Rotation, position and twist."""
        motion = self._joint.motion(self._step.middle, self._step.w / self._h)
        return [motion.R, motion.r, ca.vertcat(motion.omega, motion.v)]

    @cached_property
    def _by_start(self) -> Changes:
        return self._changes(self._states, self._step.j0)

    @cached_property
    def _by_end(self) -> Changes:
        return self._changes(self._states, self._step.j1)

    @cached_property
    def _by_z(self) -> Changes:
        return self._changes(self._states, ca.jacobian(self._states, self._z))

    @cached_property
    def _from_start(self) -> Changes:
        moved = self._moved(self._states)
        return self._changes(self._states, self._at_rest(ca.jacobian(moved, self._e)))

    def _rows(self) -> tuple[ca.SX, ca.SX]:
        """k0 and k1."""
        k0, k1 = (Z.T @ self._mu + S.T @ self._b for Z, S in (self._by_start, self._by_end))
        return k0, k1

    def _second_derivatives(self) -> list[ca.SX]:
        """Derivatives of k0, then of k1, with respect to z and q."""
        return [
            slope
            for k in self._rows()
            for slope in (
                ca.jacobian(k, self._z),
                self._at_rest(ca.jacobian(self._moved(k), self._e)),
            )
        ]

    @cached_property
    def _end_jacobians(self) -> list[ca.SX]:
        """Derivatives of q1, in its local coordinates, with respect to z and q."""
        return [self._end_by(self._z), self._end_by(self._e)]

    def _end_by(self, variable: ca.SX) -> ca.SX:
        end = ca.SX.sym("end", self._space.nq)
        local = self._space.local(end, self._moved(self._step.q1))
        return ca.substitute(self._at_rest(ca.jacobian(local, variable)), end, self._step.q1)

    def _by_h(self) -> list[ca.SX]:
        h, middle = self._h, self._states
        longer = ca.jacobian(middle, h)
        # d(w / h)/dh = (dw/dh - w / h) / h, and `_changes` divides by h
        longer[self._space.nq :] -= middle[self._space.nq :] / h
        rows = [ca.jacobian(h * k, h) for k in self._rows()]
        return [*self._changes(middle, longer), *rows, self._end_by(h)]

    def _node(self) -> ca.Function:
        q, e, n = self._q, self._e, self._space.nv
        still = ca.SX.zeros(self._space.nw)
        here = self._joint.motion(q, still)
        # d retract(q, e)/de at e = 0
        by = self._at_rest(ca.jacobian(self._moved(q), e))
        shifts = self._changes(ca.vertcat(q, still), ca.vertcat(by, ca.SX(still.numel(), n)))[0]
        slopes = self._at_rest(ca.jacobian(ca.vec(self._moved(shifts).T), e))
        outputs = [ca.densify(ca.SX(f)) for f in (here.R, here.r, shifts, slopes)]
        return ca.Function("pose", [q], outputs, {"cse": True})

    def _changes(self, middle: ca.SX, by: ca.SX) -> Changes:
        """Displacements Z and twists S for changes `by` (nq + nw, n) in the coordinates and the
        displacement at the middle of the step.
        """
        q, v = self._pose
        motion = self._joint.motion(q, v)
        # R^T dR/dq_i is skew, and its vector is the rotation per unit of q_i, in the body's frame
        turned = [
            motion.R.T @ ca.reshape(ca.jacobian(ca.vec(motion.R), q[i]), 3, 3)
            for i in range(q.shape[0])
        ]
        turns = ca.horzcat(*(ca.inv_skew(t) for t in turned))
        shifts = motion.R.T @ ca.jacobian(motion.r, q)
        twist = ca.vertcat(motion.omega, motion.v)
        slopes = [ca.vertcat(turns, shifts), ca.jacobian(twist, q), ca.jacobian(twist, v)]
        n = q.shape[0]
        here = [middle[:n], middle[n:] / self._h]
        pose, by_q, by_v = ca.substitute(slopes, [q, v], here)
        # chain rule with v = w / h
        return pose @ by[:n, :], by_q @ by[:n, :] + by_v @ by[n:, :] / self._h

    def _moved(self, expression: ca.SX) -> ca.SX:
        return ca.substitute(expression, self._q, self._space.retract(self._q, self._e))

    def _at_rest(self, expression: ca.SX) -> ca.SX:
        return ca.substitute(expression, self._e, ca.SX.zeros(self._e.shape[0]))

    def _function(self, name: str, outputs: list[ca.SX], *more: ca.SX) -> ca.Function:
        dense = [ca.densify(ca.SX(output)) for output in outputs]
        inputs = [self._q, self._z, self._h, *more]
        return ca.Function(name, inputs, dense, {"cse": True})
