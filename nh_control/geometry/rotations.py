"""Spaces of rotations, directions and poses: SO(3), S^2 and SE(3).

The retraction is "exp", the default for rotations and poses, or "cay" (Cayley, stereographic), the
default for directions. With "exp", local coordinates are rotation vectors, and the midpoint rule
is exact for a rotation about a fixed axis. With "cay", such a step rotates by `2 atan(x)` with
`x (1 + x^2) = h omega / 2`. The table shows the largest errors of `midpoint` during a motion and
the processor time (us) per step, measured by test/benchmark/retractions.py:

                            error of q   of p     simulate   step   linearize   hessian
    rigid body        cay      3.5e-02   2.0e-02      0.84    2.1         8.1       4.8
      h = 0.05        exp      1.1e-03   2.9e-04      1.05    2.2         8.3       5.8
    heavy top, slow   cay      5.4e-01   1.9e-01      2.12    3.6        10.1      12.0
      h = 0.005       exp      1.3e-02   4.5e-03      2.03    3.6        10.9      12.8
    heavy top, fast   cay      5.5e-01   4.3e-02      2.28    3.8        11.1      12.1
      h = 0.001       exp      8.1e-03   8.1e-03      2.29    3.8        11.1      13.5
    body on SE(3)     cay      1.9e-02   1.5e-02      3.34    4.7        13.5      19.3
      h = 0.05        exp      8.9e-03   6.5e-03      5.34    6.7        16.9      31.3
    pendulum, N = 2   cay      1.9e-03   7.0e-04      1.83    3.0         9.7      13.8
      h = 0.01        exp      1.9e-03   7.0e-04      1.97    3.1        10.3      11.5
    payload           cay      1.2e-04   2.2e-05      4.94    6.2        17.3      25.2
      h = 0.01        exp      1.2e-04   2.2e-05      5.34    6.7        18.0      29.7

On S^2, the velocity of a step is its chord, so both retractions lead to the same motion. The local
coordinates of "cay" are unique (they do not repeat after a full turn), which helps trajectory
optimization. The remaining error for the payload is due to its links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.even_functions import (
    arctan_over,
    sinc,
    sine_defect,
    tangent_coefficient,
    versine,
)
from nh_control.geometry.retraction import Retraction
from nh_control.geometry.spaces import Space, StepGeometry

T = TypeVar("T")


def normalize(a: ca.SX) -> ca.SX:
    """The unit vector along a."""
    return a / ca.sqrt(ca.sumsqr(a))


def _projector(unit: ca.SX) -> ca.SX:
    return ca.SX.eye(unit.shape[0]) - unit @ unit.T


ROTATION_RETRACTIONS = {
    r.name: r
    for r in (
        Retraction("exp", quaternion.exp, quaternion.log, quaternion.dexp_inverse),
        Retraction("cay", quaternion.cay, quaternion.cay_inverse, quaternion.dcay_inverse),
    )
}


def _choose(table: Mapping[str, T], space: str, name: str) -> T:
    if name not in table:
        raise ValueError(f"{space}: unknown retraction {name!r}, choose one of {sorted(table)}")
    return table[name]


class SO3(Space):
    """Rotations as unit quaternions (w, x, y, z), with velocities and tangent vectors in the body
    frame. `retract(q, d)` is `q tau(d)`, normalized.

    q and -q represent the same rotation, and no function distinguishes them. `local` is defined
    for angles below pi. The midpoint of a step is `(q0 + q1) / |q0 + q1|`.
    """

    def __init__(self, prefix: str = "", retraction: str = "exp"):
        self.names = tuple(f"{prefix}q{c}" for c in "wxyz")
        self.velocity_names = tuple(f"{prefix}omega_{c}" for c in "xyz")
        self._tangent_names = tuple(f"{prefix}rotation_{c}" for c in "xyz")
        self.retraction = _choose(ROTATION_RETRACTIONS, "SO3", retraction)

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return self._tangent_names

    @property
    def origin(self) -> np.ndarray:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def _retract(self, q: ca.SX, d: ca.SX) -> ca.SX:
        return normalize(quaternion.multiply(q, self.retraction.tau(d)))

    def _local(self, q0: ca.SX, q1: ca.SX) -> ca.SX:
        return self.retraction.inverse(quaternion.multiply(quaternion.conjugate(q0), q1))

    def local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        return -self.retraction.dtau_inverse(d), self.retraction.dtau_inverse(-d)

    def step_geometry(self, q0: ca.SX, d: ca.SX) -> StepGeometry:
        q1 = self._retract(q0, d)
        middle, m0, m1 = _quaternion_middle(q0, q1)
        j0, j1 = self.local_jacobians(q0, d)
        return StepGeometry(q1, middle, d, ca.vertcat(m0, j0), ca.vertcat(m1, j1))


def _quaternion_middle(q0: ca.SX, q1: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """The midpoint `m = (q0 + q1) / |q0 + q1|` and its Jacobians (4, 3) along trivialized
    variations of q0 and of q1, `(I - m m^T) dq / |q0 + q1|`.
    """
    total = q0 + q1
    middle = normalize(total)
    length = ca.sqrt(ca.sumsqr(total))
    m0, m1 = (_projector(middle) @ _quaternion_tangent(q) / length for q in (q0, q1))
    return middle, m0, m1


def _quaternion_tangent(q: ca.SX) -> ca.SX:
    """The derivative (4, 3) of `retract(q, e)` at e = 0."""
    w, v = q[0], q[1:4]
    return ca.vertcat(-v.T, w * ca.SX.eye(3) + quaternion.hat(v)) / 2


class S2(Space):
    """Directions as unit vectors in R^3. Velocities and momenta are stored as vectors in R^3,
    which have no singularity on the sphere.

    Tangent vectors d are components in an orthonormal frame (b1, b2) of the plane normal to q,
    `t = b1 d1 + b2 d2`. The retraction "cay" is stereographic,
    `q1 = ((1 - |t|^2/4) q + t) / (1 + |t|^2/4)`; "exp" is `q1 = cos|t| q + sinc|t| t`. Both reach
    every direction except -q. The midpoint of a step is `(q0 + q1) / |q0 + q1|`, where the
    velocity `(q1 - q0) / h` is tangent.
    """

    def __init__(self, prefix: str = "", retraction: str = "cay"):
        self.names = tuple(f"{prefix}{c}" for c in "xyz")
        self.velocity_names = tuple(f"{prefix}{c}_dot" for c in "xyz")
        self._tangent_names = tuple(f"{prefix}swing_{i}" for i in (1, 2))
        self._chord, self._tangent = _choose(_SPHERE_RETRACTIONS, "S2", retraction)

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return self._tangent_names

    @property
    def origin(self) -> np.ndarray:
        return np.array([0.0, 0.0, 1.0])

    def _retract(self, q: ca.SX, d: ca.SX) -> ca.SX:
        return self.along(q, self.frame(q) @ d)

    def along(self, q: ca.SX, w: ca.SX) -> ca.SX:
        return normalize(q + self._chord(q, w))

    def _local(self, q0: ca.SX, q1: ca.SX) -> ca.SX:
        return self.frame(q0).T @ self._tangent(q0, q1)

    def frame(self, q: ca.SX, near: ca.SX | None = None) -> ca.SX:
        """An orthonormal basis (3, 2) of the plane normal to q: the images of x and y under the
        shortest rotation from z to q (of x and -y, from -z, below the equator); Duff et al.,
        Building an orthonormal basis, revisited, JCGT 2017. With `near`, the pole is the one on
        that configuration's side.
        """
        x, y, z = q[0], q[1], q[2]
        # the pole on q's side keeps 1 + |z| away from zero
        s = ca.if_else((z if near is None else near[2]) < 0, -1, 1)
        a = -1 / (s + z)
        b = a * x * y
        return ca.horzcat(
            ca.vertcat(1 + s * a * x**2, s * b, -s * x), ca.vertcat(b, s + a * y**2, -y)
        )

    def transport(self, q0: ca.SX, q1: ca.SX, w: ca.SX) -> ca.SX:
        """Parallel transport by the reflection that maps q0 to -q1. For tangent vectors, it equals
        the shortest rotation from q0 to q1. It is orthogonal even if -q1 is close to q0.
        """
        total = q0 + q1
        return w - 2 * ca.dot(total, w) / ca.sumsqr(total) * total

    def local_jacobians(self, q0: ca.SX, d: ca.SX) -> tuple[ca.SX, ca.SX]:
        return self._local_jacobians(q0, d)

    def step_geometry(self, q0: ca.SX, d: ca.SX) -> StepGeometry:
        chord = self._chord(q0, self.frame(q0) @ d)
        q1 = normalize(q0 + chord)
        total = q0 + q1
        middle = normalize(total)
        b0, b1 = self.frame(q0), self.frame(q1)
        # d middle = (I - middle middle^T) dq / |q0 + q1|, dw = dq1 - dq0
        spread = _projector(middle) / ca.sqrt(ca.sumsqr(total))
        return StepGeometry(
            q1, middle, chord, ca.vertcat(spread @ b0, -b0), ca.vertcat(spread @ b1, b1)
        )


def _stereographic_chord(q: ca.SX, t: ca.SX) -> ca.SX:
    """`q1 - q`, computed without a subtraction, because the division by h for a velocity would
    amplify the round-off.
    """
    s = ca.sumsqr(t) / 4
    return (t - 2 * s * q) / (1 + s)


def _stereographic_tangent(q0: ca.SX, q1: ca.SX) -> ca.SX:
    """`2 / (1 + q0.q1) (q1 - q0.q1 q0)` with `1 + q0.q1 = |q0 + q1|^2 / 2`, which avoids
    cancellation near -q0.
    """
    total = q0 + q1
    return 4 / ca.sumsqr(total) * total - 2 * q0


def _geodesic_chord(q: ca.SX, t: ca.SX) -> ca.SX:
    # q1 - q = sinc|t| t - (1 - cos|t|) q
    square = ca.sumsqr(t)
    return sinc(square) * t - square * versine(square) * q


def geodesic_tangent(q0: ca.SX, q1: ca.SX) -> ca.SX:
    """The tangent vector t (3) at q0 of the great circle to q1. |t| is twice the angle whose sine
    is |q1 - q0| / 2 and whose cosine is |q1 + q0| / 2.
    """
    total = q0 + q1
    half_sine_square, half_cosine_square = ca.sumsqr(q1 - q0) / 4, ca.sumsqr(total) / 4
    half_cosine = ca.sqrt(half_cosine_square)
    return (
        arctan_over(half_sine_square, half_cosine)
        / half_cosine
        * (total - 2 * half_cosine_square * q0)
    )


SphereMap: TypeAlias = Callable[[ca.SX, ca.SX], ca.SX]
_SPHERE_RETRACTIONS: dict[str, tuple[SphereMap, SphereMap]] = {
    "cay": (_stereographic_chord, _stereographic_tangent),
    "exp": (_geodesic_chord, geodesic_tangent),
}


class SE3(Space):
    """Poses as a unit quaternion and a position (7), with velocities and tangent vectors
    (rotation, translation) in the body frame. `retract(g, d)` is `g tau(d)`. The midpoint of a
    step consists of the midpoint of the two rotations and the mean of the two positions.

    The translation of tau(w, v) is `t = V v` with
    `V = I + (1 - cos a)/a^2 hat(w) + (a - sin a)/a^3 hat(w)^2` for exp [celledoni2021 (8)], and
    `t = (I - hat(w)/2)^{-1} v` for cay.
    """

    def __init__(self, prefix: str = "", retraction: str = "exp"):
        self.names = tuple(f"{prefix}q{c}" for c in "wxyz") + tuple(f"{prefix}{c}" for c in "xyz")
        self.velocity_names = tuple(f"{prefix}omega_{c}" for c in "xyz") + tuple(
            f"{prefix}v_{c}" for c in "xyz"
        )
        self._tangent_names = tuple(f"{prefix}rotation_{c}" for c in "xyz") + tuple(
            f"{prefix}translation_{c}" for c in "xyz"
        )
        self.retraction = _choose(ROTATION_RETRACTIONS, "SE3", retraction)

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return self._tangent_names

    @property
    def origin(self) -> np.ndarray:
        return np.array([1.0, 0, 0, 0, 0, 0, 0])

    def _retract(self, g: ca.SX, d: ca.SX) -> ca.SX:
        rotation = self.retraction.tau(d[:3])
        t = self._translation(d[:3], d[3:])
        return ca.vertcat(
            normalize(quaternion.multiply(g[:4], rotation)), g[4:] + quaternion.rotate(g[:4], t)
        )

    def _local(self, g0: ca.SX, g1: ca.SX) -> ca.SX:
        w = self.retraction.inverse(quaternion.multiply(quaternion.conjugate(g0[:4]), g1[:4]))
        t = quaternion.rotate_back(g0[:4], g1[4:] - g0[4:])
        return ca.vertcat(w, self._translation_inverse(w) @ t)

    def step_geometry(self, g0: ca.SX, d: ca.SX) -> StepGeometry:
        g1 = self._retract(g0, d)
        middle, *spread = _quaternion_middle(g0[:4], g1[:4])
        j0, j1 = self.local_jacobians(g0, d)
        # a variation moves the position by R(g) dt, and the mean by half of that
        m0, m1 = (ca.diagcat(s, quaternion.matrix(g[:4]) / 2) for s, g in zip(spread, (g0, g1)))
        return StepGeometry(
            g1,
            ca.vertcat(middle, (g0[4:] + g1[4:]) / 2),
            d,
            ca.vertcat(m0, j0),
            ca.vertcat(m1, j1),
        )

    def _translation_inverse(self, w: ca.SX) -> ca.SX:
        """V(w)^{-1} (3, 3), where `v = V^{-1} t` is the translational part of the tangent
        vector.
        """
        h = quaternion.hat(w)
        if self.retraction.name == "cay":
            return ca.SX.eye(3) - h / 2
        return ca.SX.eye(3) - h / 2 + tangent_coefficient(ca.sumsqr(w)) * h @ h

    def _translation(self, w: ca.SX, v: ca.SX) -> ca.SX:
        """The translation `t = V(w) v` (3) of tau(w, v)."""
        w_v = ca.cross(w, v)
        if self.retraction.name == "cay":
            return (v + w_v / 2 + w * ca.dot(w, v) / 4) / (1 + ca.sumsqr(w) / 4)
        square = ca.sumsqr(w)
        return v + versine(square) * w_v + sine_defect(square) * ca.cross(w, w_v)
