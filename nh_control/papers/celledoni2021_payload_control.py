"""The geometric tracking controller of Lee, Sreenath and Kumar (2013) for quadrotors that carry a
payload. It serves as a baseline for LQR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.paths import ORDER, Path
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
"""e3 in the paper's frame, which points along gravity."""


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
    """Desired motion of the quadrotors, with one column for each and z up. It contains thrust
    vectors (3, n) in N, unit quaternions (4, n) of attitudes along the thrusts, body rates (3, n)
    and their derivatives (3, n), and link directions (3, n) from the payload to the quadrotors.
    """

    forces: ca.SX
    attitudes: ca.SX
    omegas: ca.SX
    omega_dots: ca.SX
    links: ca.SX


class GeometricController:
    """Geometric controller for quadrotors with a payload [celledoni2021 6.2]. The link tensions
    move the payload along a path, thrusts normal to the links turn the links into the formation,
    and moments turn the quadrotors toward their desired thrusts.

    The formation turns with the desired force on the payload. After the path ends, the controller
    holds its last point. `targets` contains the flat motion along the same path.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        path: Path,
        formation: Formation = Formation(),
        gains: GeometricGains = GeometricGains(),
    ):
        flat = flat_reference(dsys, path, formation)
        self.targets, self._dsys = flat.states, dsys
        self._jets = path.jets(flat.times).reshape(len(self.targets), -1)
        self._law = _control_law(payload_parameters(dsys), formation, gains)

    def command(self, k: int, x: ArrayLike) -> np.ndarray:
        """Return the inputs u (nu) for step k at state x (nx)."""
        jet = self._jets[min(k, len(self._jets) - 1)]
        return self._law("law", jet, self._dsys.configuration(x), self._dsys.velocity(x))[0][:, 0]


def flip(a: ca.SX) -> ca.SX:
    """Convert a vector (3) between the paper's frame (e3 down) and the package's frame (z up), by
    half a turn about x.
    """
    return ca.vertcat(a[0], -a[1], -a[2])


def _control_law(
    parameters: QuadrotorPayloadParameters, formation: Formation, gains: GeometricGains
) -> Functions:
    """Return a function that computes the inputs u (4 n) from the path's jet (21) and the
    configuration (nq) and velocity (nw) of `quadrotor_payload`.
    """
    jet = ca.SX.sym("jet", 3 * (ORDER + 1))
    q, v = ca.SX.sym("q", 3 + 7 * parameters.n), ca.SX.sym("v", 3 + 6 * parameters.n)
    y, attitudes, links = split_configuration(q, parameters.n)
    y_dot, omegas, rates = split_velocity(v, parameters.n)
    # The links' angular velocities follow from the rates of their directions, w = q x q'.
    spins = [ca.cross(link, rate) for link, rate in zip(links, rates)]
    desired = desired_thrusts(parameters, formation, gains, jet, (y, y_dot, links, spins))
    u = quadrotor_inputs(parameters, gains, desired, attitudes, omegas)
    return Functions(
        "quadrotor_payload_geometric",
        [ca.Function("law", [jet, q, v], [u], ["jet", "q", "v"], ["u"])],
    )


def desired_thrusts(
    parameters: QuadrotorPayloadParameters,
    formation: Formation,
    gains: GeometricGains,
    jet: ca.SX,
    motion: tuple[ca.SX, ca.SX, Sequence[ca.SX], Sequence[ca.SX]],
) -> DesiredThrusts:
    """Return the thrusts that move the payload along a path with the given jet (21). `motion`
    contains the payload's position y (3) and velocity (3), and the directions and inertial angular
    velocities of the links (n vectors (3) each).

    In the paper, link directions point from the quadrotors to the payload: `q_i <- -flip(q_i)`.
    """
    # Convert everything to the paper's frame, in which the control law is written.
    y, y_dot, links, spins = motion
    path = [flip(jet[3 * k : 3 * k + 3]) for k in range(ORDER + 1)]
    directions = [-flip(link) for link in links]
    state = ca.vertcat(*path, flip(y), flip(y_dot), *directions, *map(flip, spins))
    forces, attitudes, omegas, omega_dots, desired_links = _force_law(
        parameters, formation, gains
    )(state)
    return DesiredThrusts(forces, attitudes, omegas, omega_dots, desired_links)


def quadrotor_inputs(
    parameters: QuadrotorPayloadParameters,
    gains: GeometricGains,
    desired: DesiredThrusts,
    attitudes: Sequence[ca.SX],
    omegas: Sequence[ca.SX],
) -> ca.SX:
    """Return the thrusts and moments (4 n) of quadrotors with the given attitudes (n unit
    quaternions) and body rates (n vectors (3)). Each thrust is the component of the desired thrust
    vector along the body's z axis.
    """
    out = []
    for i, (attitude, omega) in enumerate(zip(attitudes, omegas)):
        # The thrust is u_i . R_i e_z, so that an attitude error does not increase it.
        force, attitude_d, omega_d, omega_d_dot = (w[:, i] for w in desired[:4])
        thrust = ca.dot(force, quaternion.rotate(attitude, ca.SX([0, 0, 1])))
        out += [
            thrust,
            _moment(parameters, gains, attitude, omega, attitude_d, omega_d, omega_d_dot),
        ]
    return ca.vertcat(*out)


def _moment(
    parameters: QuadrotorPayloadParameters,
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
    inertia = ca.DM([parameters.Jx, parameters.Jy, parameters.Jz])
    # With the quaternion (c, s) of R_e, e_R = 2 c s.
    error = quaternion.multiply(quaternion.conjugate(attitude_d), attitude)
    spin = quaternion.rotate_back(error, omega_d)
    spin_dot = quaternion.rotate_back(error, omega_d_dot)
    feedback = -gains.k_R * 2 * error[0] * error[1:] - gains.k_O * (omega - spin)
    return (
        feedback + ca.cross(omega, inertia * omega) - inertia * (ca.cross(omega, spin) - spin_dot)
    )


def _force_law(
    parameters: QuadrotorPayloadParameters, formation: Formation, gains: GeometricGains
) -> ca.Function:
    """Return the parts of `DesiredThrusts` as functions of the vector s of a `_Motion`: the forces
    u_i from `_link_force`, and the attitudes along them. The desired link directions are `q_d,i =
    Qd r_i`, where `_desired_frame` computes Qd from the desired force on the payload, `F = m_y
    (-k_y e_y - k_yd e_y' + y_d'' - g e3)`.

    Rates are derivatives along the motion of s under these forces. This motion satisfies `y'' = g
    e3 + a` exactly, with `a = sum mu_i / m_y`.
    """
    motion, r = _Motion.of(parameters.n), _desired_links(formation, parameters.n)
    force = _payload_force(parameters, gains, motion)
    # mu_i and a = sum mu_i / m_y
    along = _link_components(force, motion.q, r)
    a = sum(along[1:], along[0]) / parameters.payload_mass
    frame = _desired_frame(formation, force)
    gravity = parameters.g * DOWN

    # d/dt f(s) = Df(s) s', with s' from `flow`
    def rate(
        expression: ca.SX, spin_rates: Sequence[ca.SX] = (ca.SX(3 * parameters.n, 1),)
    ) -> ca.SX:
        return ca.jtimes(expression, motion.s, motion.flow(gravity + a, spin_rates))

    forces, links, spin_rates = [], [], []
    for i, l in enumerate(parameters.lengths):
        q_d = frame @ ca.DM(r[i])
        q_d_dot = rate(q_d)  # q_d and q_d' do not depend on w, so their rates do not need w'
        # w_d = q_d x q_d', and w_d' = q_d x q_d'' because q_d' x q_d' = 0.
        w_d, w_d_dot = ca.cross(q_d, q_d_dot), ca.cross(q_d, rate(q_d_dot))
        desired = q_d, w_d, w_d_dot
        u = _link_force(gains, parameters.quadrotor_mass, l, along[i], a, motion.link(i), desired)
        links.append(-flip(q_d))
        forces.append(u)
        # l w_i' = q_i x (a - u_i / m_i), the equation of motion of the link
        spin_rates.append(ca.cross(motion.q[i], a - u / parameters.quadrotor_mass) / l)
    # The attitude along a thrust that requires the smallest rotation from upright.
    attitudes = [shortest_rotation(normalize(flip(u))) for u in forces]
    # (0, omega) = 2 conj(R) R' for a unit quaternion R
    omegas = [
        2 * quaternion.multiply(quaternion.conjugate(R), rate(R, spin_rates))[1:]
        for R in attitudes
    ]
    omega_dots = [rate(omega, spin_rates) for omega in omegas]
    columns = ([flip(u) for u in forces], attitudes, omegas, omega_dots, links)
    outputs = [ca.horzcat(*column) for column in columns]
    return ca.Function("forces", [motion.s], outputs, {"cse": True})


class _Motion(NamedTuple):
    """The vector s = (jet (21), y, y', q_1 ... q_n, w_1 ... w_n) in the paper's frame, and its
    parts: the path's y_d and its derivatives, the payload's position y and velocity, and the
    links' directions q and angular velocities w.
    """

    s: ca.SX
    path: list[ca.SX]
    y: ca.SX
    y_dot: ca.SX
    q: list[ca.SX]
    w: list[ca.SX]

    @classmethod
    def of(cls, n: int) -> _Motion:
        """Return symbols for n links."""
        s = ca.SX.sym("s", 3 * (ORDER + 1) + 6 + 6 * n)
        vectors = [s[3 * k : 3 * k + 3] for k in range(s.numel() // 3)]
        path, (y, y_dot, *links) = vectors[: ORDER + 1], vectors[ORDER + 1 :]
        return cls(s, path, y, y_dot, links[:n], links[n:])

    def link(self, i: int) -> tuple[ca.SX, ca.SX]:
        """Return the direction and the angular velocity of a link."""
        return self.q[i], self.w[i]

    def flow(self, acceleration: ca.SX, spin_rates: Sequence[ca.SX]) -> ca.SX:
        """Return s' for an acceleration (3) of the payload and the links' w'. The last derivative
        of the path is constant.
        """
        # q_i' = w_i x q_i
        link_rates = (ca.cross(w, q) for q, w in zip(self.q, self.w))
        return ca.vertcat(
            *self.path[1:], ca.SX(3, 1), self.y_dot, acceleration, *link_rates, *spin_rates
        )


def _payload_force(
    parameters: QuadrotorPayloadParameters, gains: GeometricGains, motion: _Motion
) -> ca.SX:
    """Return `F = m_y (-k_y e_y - k_yd e_y' + y_d'' - g e3)` with e_y = y - y_d."""
    y_d, y_d_dot, y_d_ddot = motion.path[:3]
    return parameters.payload_mass * (
        -gains.k_y * (motion.y - y_d)
        - gains.k_yd * (motion.y_dot - y_d_dot)
        + y_d_ddot
        - parameters.g * DOWN
    )


def _link_components(force: ca.SX, q: Sequence[ca.SX], r: np.ndarray) -> list[ca.SX]:
    """Return each link's share of F, along the link: `mu_i = (F . q_i) q_i / ((r_i . e3) |sum
    r|)`.
    """
    # r_i . e3 is the same for all links in the formation.
    share = float(r[0, 2] * np.linalg.norm(r.sum(axis=0)))
    return [ca.dot(force, q_i) * q_i / share for q_i in q]


def _link_force(
    gains: GeometricGains,
    m: float,
    l: float,
    mu: ca.SX,
    a: ca.SX,
    link: tuple[ca.SX, ca.SX],
    desired: tuple[ca.SX, ca.SX, ca.SX],
) -> ca.SX:
    """Return the thrust vector on a quadrotor of mass m that makes its `link` (q, w) of length l
    follow the `desired` motion (q_d, w_d, w_d'), where `w_d = q_d x q_d'`:

    `u = mu + m l |w|^2 q + m q q^T a - m hat(q)^2 a`
    `  + m l q x (-k_q e_q - k_w e_w - (q . w_d) q' - hat(q)^2 w_d')`
    with `e_q = q_d x q`, `e_w = w + hat(q)^2 w_d` [celledoni2021 6.2].
    """
    (q, w), (q_d, w_d, w_d_dot) = link, desired
    e_q, e_w = ca.cross(q_d, q), w - _across(q, w_d)
    # Along the link: its share of F, the centripetal force and the payload's acceleration.
    along = mu + m * l * ca.sumsqr(w) * q + m * q * ca.dot(q, a)
    # Normal to the link: feedback of direction and angular velocity, and the desired motion.
    commanded = (
        -gains.k_q * e_q - gains.k_w * e_w - ca.dot(q, w_d) * ca.cross(w, q) + _across(q, w_d_dot)
    )
    return along + m * l * ca.cross(q, commanded) + m * _across(q, a)


def _across(q: ca.SX, a: ca.SX) -> ca.SX:
    """Return the part of a that is normal to the unit vector q, `-hat(q)^2 a`."""
    return a - q * ca.dot(q, a)


def _desired_links(formation: Formation, n: int) -> np.ndarray:
    """Return the link directions r_i (n, 3) in hover. They are given in the paper's frame, with z
    down, after a rotation that makes s_d its x axis. The links point down to the payload.
    """
    turns = 2 * np.pi * np.arange(n) / n
    tilt = formation.angle if n > 1 else 0.0
    return np.stack(
        [np.sin(tilt) * np.cos(turns), -np.sin(tilt) * np.sin(turns), np.full(n, np.cos(tilt))],
        axis=1,
    )


def _desired_frame(formation: Formation, force: ca.SX) -> ca.SX:
    """Return Qd (3, 3). Its third axis is along -F, and its first axis is close to s_d, the
    horizontal direction of quadrotor 1's link.
    """
    s_d = ca.DM([-np.cos(formation.azimuth), np.sin(formation.azimuth), 0])
    # Gram-Schmidt: side is normal to F and s_d, and F x side completes the frame.
    side = ca.cross(force, s_d)
    return ca.horzcat(normalize(-ca.cross(force, side)), normalize(-side), normalize(-force))
