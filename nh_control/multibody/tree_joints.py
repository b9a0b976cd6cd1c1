"""What the linear-time kernel of trees knows of joints with several coordinates: functions that
are generated once for every kind of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from nh_control.multibody.frames import Joint


class JointFunctions:
    """Functions of a joint's coordinates q, its unknowns z (mean velocity) and the step h.

    `middle(q, z, h) -> turn (3, 3), at (3), twist (6), Z0, S0`: pose and twist in the placement
    at the middle of the step, and their changes, displacements Z (6, n) in the body's frame and
    twists S (6, n), by a change of q that leaves the end where it is (0);
    `along(q, z, h) -> Zz, Sz`, by z; `after(q, z, h) -> q1, Z1, S1`: the end of the step, and
    changes by it that leave q where it is. With `k(Z, S) = Z^T mu + S^T b` for wrenches mu, b (6):
    `bend(q, z, h, mu, b) -> dk0/dz`;
    `slopes(q, z, h, mu, b) -> Zq, Sq, dk0/dq, dk1/dz, dk1/dq, dq1/dz, dq1/dq`, q moved with z;
    `growth(q, z, h, mu, b) -> Zh, Sh, d(h k0)/dh, d(h k1)/dh, dq1/dh`.
    At a node `node(q) -> turn, at, Z (6, n), dZ/dq (6 n, n)`, Z by changes of q;
    `reach(q, z, h) -> q1, dq1/dz`.
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
        q, z, h, mu, b, e = self._q, self._z, self._h, self._mu, self._b, self._e
        step = self._space.segment(q, h * z)
        middle = ca.vertcat(step.middle, step.w)
        motion = self._joint.motion(step.middle, step.w / h)
        before, after = (self._changes(middle, j) for j in (step.j0, step.j1))
        along = self._changes(middle, ca.jacobian(middle, z))
        twist = ca.vertcat(motion.omega, motion.v)
        yield self._function("middle", [motion.R, motion.p, twist, *before])
        yield self._function("along", [*along])
        yield self._function("after", [step.q1, *after])
        k0, k1 = (change[0].T @ mu + change[1].T @ b for change in (before, after))
        yield self._function("bend", [ca.jacobian(k0, z)], mu, b)
        moved = self._moved(middle)
        bends = [self._at_rest(ca.jacobian(self._moved(k), e)) for k in (k0, k1)]
        end = ca.SX.sym("end", self._space.nq)
        local = self._space.local(end, self._moved(step.q1))
        ends = [self._at_rest(ca.jacobian(local, v)) for v in (z, e)]
        ends = ca.substitute(ends, [end], [step.q1])
        slopes = [
            *self._changes(middle, self._at_rest(ca.jacobian(moved, e))),
            bends[0],
            ca.jacobian(k1, z),
            bends[1],
            *ends,
        ]
        yield self._function("slopes", slopes, mu, b)
        longer = ca.jacobian(middle, h)
        longer[self._space.nq :] -= middle[self._space.nq :] / h
        grown = ca.substitute(self._at_rest(ca.jacobian(local, h)), end, step.q1)
        rows = [ca.jacobian(h * k, h) for k in (k0, k1)]
        yield self._function("growth", [*self._changes(middle, longer), *rows, grown], mu, b)
        yield self._node()
        yield self._function("reach", [step.q1, ends[0]])

    def _node(self) -> ca.Function:
        q, e, n = self._q, self._e, self._space.nv
        still = ca.SX.zeros(self._space.nw)
        here = self._joint.motion(q, still)
        by = self._at_rest(ca.jacobian(self._moved(q), e))
        shifts = self._changes(ca.vertcat(q, still), ca.vertcat(by, ca.SX(still.numel(), n)))[0]
        slopes = self._at_rest(ca.jacobian(ca.vec(self._moved(shifts).T), e))
        outputs = [ca.densify(ca.SX(f)) for f in (here.R, here.p, shifts, slopes)]
        return ca.Function("node", [q], outputs, {"cse": True})

    def _changes(self, middle: ca.SX, by: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Displacements Z and twists S for changes `by` (nq + nw, n) of the middle."""
        q, v = self._pose
        motion = self._joint.motion(q, v)
        turned = [
            motion.R.T @ ca.reshape(ca.jacobian(ca.vec(motion.R), q[i]), 3, 3)
            for i in range(q.shape[0])
        ]
        turns = ca.horzcat(*(ca.inv_skew(t) for t in turned))
        shifts = motion.R.T @ ca.jacobian(motion.p, q)
        twist = ca.vertcat(motion.omega, motion.v)
        slopes = [ca.vertcat(turns, shifts), ca.jacobian(twist, q), ca.jacobian(twist, v)]
        n = q.shape[0]
        here = [middle[:n], middle[n:] / self._h]
        pose, by_q, by_v = ca.substitute(slopes, [q, v], here)
        return pose @ by[:n, :], by_q @ by[:n, :] + by_v @ by[n:, :] / self._h

    def _moved(self, expression: ca.SX) -> ca.SX:
        return ca.substitute(expression, self._q, self._space.retract(self._q, self._e))

    def _at_rest(self, expression: ca.SX) -> ca.SX:
        return ca.substitute(expression, self._e, ca.SX.zeros(self._e.shape[0]))

    def _function(self, name: str, outputs: list[ca.SX], *more: ca.SX) -> ca.Function:
        dense = [ca.densify(ca.SX(output)) for output in outputs]
        inputs = [self._q, self._z, self._h, *more]
        return ca.Function(name, inputs, dense, {"cse": True})
