"""The geometric tracking controller of Lee, Sreenath and Kumar (2013) for quadrotors that carry a
payload: the baseline beside LQR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.paths import ORDER, Path
from nh_control.control.tracking import Command, input_limits
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry import quaternion
from nh_control.geometry.rotations import normalize
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.numerics.compiled import Functions
from nh_control.scenarios.payload_flatness import (
    flat_reference,
    payload_parameters,
    shortest_rotation,
)
from nh_control.systems.quadrotor_payload import (
    Formation,
    QuadrotorPayloadParameters,
    split_configuration,
    split_velocity,
)

DOWN = ca.DM([0, 0, 1])
"""e3 of the paper's frame, along gravity."""


@dataclass(frozen=True)
class GeometricGains(Parameters):
    """Gains of the geometric controller."""

    k_y: float = parameter(12.0, "1/s^2", "payload position")
    k_yd: float = parameter(5.0, "1/s", "payload velocity")
    k_q: float = parameter(16.0, "1/s^2", "link directions")
    k_w: float = parameter(5.0, "1/s", "link rates")
    k_R: float = parameter(100.0, "N m", "attitude")
    k_O: float = parameter(3.0, "N m s", "body rates")


class DesiredThrusts(NamedTuple):
    """Desired motion of every quadrotor, one column each, with z up: the thrust vector (3, n) in
    N, the unit quaternion (4, n) of an attitude along it, body rates (3, n), their derivatives (3,
    n), and the link direction (3, n) from the payload to the quadrotor.
    """

    forces: ca.SX
    attitudes: ca.SX
    omegas: ca.SX
    omega_dots: ca.SX
    links: ca.SX


class GeometricController:
    """Geometric controller of quadrotors with a payload [celledoni2021 6.2]: the links' tensions
    move the payload along a path, thrusts across the links turn the links to the formation, and
    moments turn the quadrotors to their thrusts.

    The formation turns with the desired force on the payload. The controller holds the last point
    of the path after its end. It has the same limits and `saturated` as `LqrTracker`; the tracking
    error is relative to the flat motion on the same path.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        path: Path,
        formation: Formation = Formation(),
        gains: GeometricGains = GeometricGains(),
        limits: ArrayLike | None = None,
        name: str = "",
    ):
        self.dsys, self.reference = dsys, flat_reference(dsys, path, formation, name=name)
        self.limits = input_limits(dsys, limits)
        self._jets = path.jets(self.reference.times).reshape(len(self.reference) + 1, -1)
        self._law = _control_law(payload_parameters(dsys), formation, gains)

    def target(self, k: int) -> np.ndarray:
        """Reference state at step k (the last one past the end)."""
        return self.reference.states[min(k, len(self.reference))]

    def command(self, k: int, x: ArrayLike, memory: Any = None) -> Command:
        """Command for step k at state x (nx)."""
        jet = self._jets[min(k, len(self.reference))]
        u = self._law("law", jet, self.dsys.configuration(x), self.dsys.velocity(x))[0][:, 0]
        clipped = np.clip(u, self.limits[:, 0], self.limits[:, 1])
        return Command(clipped, clipped != u, self.dsys.local(self.target(k), x))


def flip(a: ca.SX) -> ca.SX:
    """Convert a vector (3) between the paper's frame (e3 down) and the package's frame (z up), by
    half a turn about x.
    """
    return ca.vertcat(a[0], -a[1], -a[2])


def _control_law(
    p: QuadrotorPayloadParameters, formation: Formation, gains: GeometricGains
) -> Functions:
    """Inputs u (4 n) as a function of the path's jet (21), the configuration (nq) and the velocity
    (nw), both as in `quadrotor_payload`.
    """
    jet = ca.SX.sym("jet", 3 * (ORDER + 1))
    q, v = ca.SX.sym("q", 3 + 7 * p.n), ca.SX.sym("v", 3 + 6 * p.n)
    y, attitudes, links = split_configuration(q, p.n)
    y_dot, omegas, rates = split_velocity(v, p.n)
    spins = [ca.cross(link, rate) for link, rate in zip(links, rates)]
    wanted = desired_thrusts(p, formation, gains, jet, (y, y_dot, links, spins))
    u = quadrotor_inputs(p, gains, wanted, attitudes, omegas)
    return Functions(
        "quadrotor_payload_geometric",
        [ca.Function("law", [jet, q, v], [u], ["jet", "q", "v"], ["u"])],
    )


def desired_thrusts(
    p: QuadrotorPayloadParameters,
    formation: Formation,
    gains: GeometricGains,
    jet: ca.SX,
    motion: tuple[ca.SX, ca.SX, Sequence[ca.SX], Sequence[ca.SX]],
) -> DesiredThrusts:
    """The thrust vectors that take the payload along a path with this jet (21), from its motion:
    position y (3), velocity (3), link directions and inertial angular velocities (n of 3 each).

    The paper's link directions point from the quadrotors to the payload, `q_i <- -flip(q_i)`.
    """
    y, y_dot, links, spins = motion
    path = [flip(jet[3 * k : 3 * k + 3]) for k in range(ORDER + 1)]
    directions = [-flip(link) for link in links]
    state = ca.vertcat(*path, flip(y), flip(y_dot), *directions, *map(flip, spins))
    return DesiredThrusts(*_force_law(p, formation, gains)(state))


def quadrotor_inputs(
    p: QuadrotorPayloadParameters,
    gains: GeometricGains,
    wanted: DesiredThrusts,
    attitudes: Sequence[ca.SX],
    omegas: Sequence[ca.SX],
) -> ca.SX:
    """Thrusts and moments (4 n) of quadrotors with attitudes (n unit quaternions) and body rates
    (n of 3): each thrust is the component of the desired thrust vector along the body's z axis.
    """
    out = []
    for i, (attitude, omega) in enumerate(zip(attitudes, omegas)):
        force, attitude_d, omega_d, omega_d_dot = (w[:, i] for w in wanted[:4])
        thrust = ca.dot(force, quaternion.rotate(attitude, ca.SX([0, 0, 1])))
        out += [thrust, _moment(p, gains, attitude, omega, attitude_d, omega_d, omega_d_dot)]
    return ca.vertcat(*out)


def _moment(
    p: QuadrotorPayloadParameters,
    gains: GeometricGains,
    attitude: ca.SX,
    omega: ca.SX,
    attitude_d: ca.SX,
    omega_d: ca.SX,
    omega_d_dot: ca.SX,
) -> ca.SX:
    """`M = -k_R e_R - k_O e_O + Omega x J Omega - J (Omega x R_e^T Omega_d - R_e^T Omega_d')` with
    `R_e = R_d^T R`, `e_R = vee(R_e - R_e^T) / 2` and
    `e_O = Omega - R_e^T Omega_d`."""
    inertia = ca.DM([p.Jx, p.Jy, p.Jz])
    error = quaternion.multiply(quaternion.conjugate(attitude_d), attitude)
    spin = quaternion.rotate_back(error, omega_d)
    spin_dot = quaternion.rotate_back(error, omega_d_dot)
    feedback = -gains.k_R * 2 * error[0] * error[1:] - gains.k_O * (omega - spin)
    return (
        feedback + ca.cross(omega, inertia * omega) - inertia * (ca.cross(omega, spin) - spin_dot)
    )


def _force_law(
    p: QuadrotorPayloadParameters, formation: Formation, gains: GeometricGains
) -> ca.Function:
    """The parts of `DesiredThrusts` as functions of a `_Motion`'s s: forces u_i of `_link_force`,
    for links `q_d,i = Qd r_i`, with Qd of `_desired_frame` for the wanted force on the payload
    `F = m_y (-k_y e_y - k_yd e_y' + y_d'' - g e3)`, and the attitudes along them.

    Rates are derivatives along the motion of s under these forces, for which `y'' = g e3 + a`
    exactly, `a = sum mu_i / m_y`.
    """
    motion, r = _Motion.of(p.n), _desired_links(formation, p.n)
    force = _payload_force(p, gains, motion)
    along = _link_components(force, motion.q, r)
    a = sum(along[1:], along[0]) / p.payload_mass
    frame = _desired_frame(formation, force)
    gravity = p.g * DOWN

    def rate(expression: ca.SX, spin_rates: Sequence[ca.SX] = (ca.SX(3 * p.n, 1),)) -> ca.SX:
        return ca.jtimes(expression, motion.s, motion.flow(gravity + a, spin_rates))

    forces, links, spin_rates = [], [], []
    for i, l in enumerate(p.lengths):
        q_d = frame @ ca.DM(r[i])
        q_d_dot = rate(q_d)  # q_d and q_d' do not depend on w, so their rates need no w'
        w_d, w_d_dot = ca.cross(q_d, q_d_dot), ca.cross(q_d, rate(q_d_dot))
        wanted = q_d, w_d, w_d_dot
        u = _link_force(gains, p.quadrotor_mass, l, along[i], a, motion.link(i), wanted)
        links.append(-flip(q_d))
        forces.append(u)
        spin_rates.append(ca.cross(motion.q[i], a - u / p.quadrotor_mass) / l)
    attitudes = [shortest_rotation(normalize(flip(u))) for u in forces]
    omegas = [
        2 * quaternion.multiply(quaternion.conjugate(R), rate(R, spin_rates))[1:]
        for R in attitudes
    ]
    omega_dots = [rate(omega, spin_rates) for omega in omegas]
    columns = ([flip(u) for u in forces], attitudes, omegas, omega_dots, links)
    outputs = [ca.horzcat(*column) for column in columns]
    return ca.Function("forces", [motion.s], outputs, {"cse": True})


class _Motion(NamedTuple):
    """s = (jet (21), y, y', q_1 ... q_n, w_1 ... w_n) in the paper's frame, and its parts: the
    path's derivatives y_d, y_d', ..., the payload's position y and velocity, the links' directions
    q and angular velocities w.
    """

    s: ca.SX
    path: list[ca.SX]
    y: ca.SX
    y_dot: ca.SX
    q: list[ca.SX]
    w: list[ca.SX]

    @classmethod
    def of(cls, n: int) -> _Motion:
        """Symbols of n links."""
        s = ca.SX.sym("s", 3 * (ORDER + 1) + 6 + 6 * n)
        vectors = [s[3 * k : 3 * k + 3] for k in range(s.numel() // 3)]
        path, (y, y_dot, *links) = vectors[: ORDER + 1], vectors[ORDER + 1 :]
        return cls(s, path, y, y_dot, links[:n], links[n:])

    def link(self, i: int) -> tuple[ca.SX, ca.SX]:
        """Direction and angular velocity of a link."""
        return self.q[i], self.w[i]

    def flow(self, acceleration: ca.SX, spin_rates: Sequence[ca.SX]) -> ca.SX:
        """s' with the payload's acceleration (3) and the links' w'; the path's last derivative
        stays.
        """
        turned = (ca.cross(w, q) for q, w in zip(self.q, self.w))
        return ca.vertcat(
            *self.path[1:], ca.SX(3, 1), self.y_dot, acceleration, *turned, *spin_rates
        )


def _payload_force(p: QuadrotorPayloadParameters, gains: GeometricGains, motion: _Motion) -> ca.SX:
    """`F = m_y (-k_y e_y - k_yd e_y' + y_d'' - g e3)`, e_y = y - y_d."""
    y_d, y_d_dot, y_d_ddot = motion.path[:3]
    return p.payload_mass * (
        -gains.k_y * (motion.y - y_d)
        - gains.k_yd * (motion.y_dot - y_d_dot)
        + y_d_ddot
        - p.g * DOWN
    )


def _link_components(force: ca.SX, q: Sequence[ca.SX], r: np.ndarray) -> list[ca.SX]:
    """`mu_i = (F . q_i) q_i / ((r_i . e3) |sum r|)`: F's share of every link, along the link."""
    share = float(r[0, 2] * np.linalg.norm(r.sum(axis=0)))
    return [ca.dot(force, q_i) * q_i / share for q_i in q]


def _link_force(
    gains: GeometricGains,
    m: float,
    l: float,
    mu: ca.SX,
    a: ca.SX,
    link: tuple[ca.SX, ca.SX],
    wanted: tuple[ca.SX, ca.SX, ca.SX],
) -> ca.SX:
    """The thrust vector on a quadrotor of mass m whose `link` (q, w) of length l is to turn as
    `wanted` (q_d, w_d, w_d'), `w_d = q_d x q_d'`:

    `u = mu + m l |w|^2 q + m q q^T a - m hat(q)^2 a`
    `  + m l q x (-k_q e_q - k_w e_w - (q . w_d) q' - hat(q)^2 w_d')`
    with `e_q = q_d x q`, `e_w = w + hat(q)^2 w_d` [celledoni2021 6.2].
    """
    (q, w), (q_d, w_d, w_d_dot) = link, wanted
    e_q, e_w = ca.cross(q_d, q), w - _across(q, w_d)
    along = mu + m * l * ca.sumsqr(w) * q + m * q * ca.dot(q, a)
    commanded = (
        -gains.k_q * e_q - gains.k_w * e_w - ca.dot(q, w_d) * ca.cross(w, q) + _across(q, w_d_dot)
    )
    return along + m * l * ca.cross(q, commanded) + m * _across(q, a)


def _across(q: ca.SX, a: ca.SX) -> ca.SX:
    """The part of a normal to the unit vector q, `-hat(q)^2 a`."""
    return a - q * ca.dot(q, a)


def _desired_links(formation: Formation, n: int) -> np.ndarray:
    """Link directions r_i (n, 3) in hover, in the paper's frame turned so that s_d is x: its z is
    down, the links point down to the payload.
    """
    turns = 2 * np.pi * np.arange(n) / n
    tilt = formation.angle if n > 1 else 0.0
    return np.stack(
        [np.sin(tilt) * np.cos(turns), -np.sin(tilt) * np.sin(turns), np.full(n, np.cos(tilt))],
        axis=1,
    )


def _desired_frame(formation: Formation, force: ca.SX) -> ca.SX:
    """Qd (3, 3): -F along its third axis, the horizontal direction s_d of quadrotor 1's link close
    to its first.
    """
    s_d = ca.DM([-np.cos(formation.azimuth), np.sin(formation.azimuth), 0])
    side = ca.cross(force, s_d)
    return ca.horzcat(normalize(-ca.cross(force, side)), normalize(-side), normalize(-force))
