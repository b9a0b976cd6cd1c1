"""The kinematics and dynamics of a `Multibody` as CasADi functions, for `Robot`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property

import casadi as ca
import numpy as np

from nh_control.multibody.frame_motion import constant
from nh_control.multibody.kinematics import Point
from nh_control.multibody.model import Multibody


class RobotFunctions:
    """Functions of a model. Each function is built on first use. Raises ValueError for unknown
    frames.
    """

    def __init__(self, model: Multibody):
        self.model = model
        self.pose = cache(self._pose)
        self.jacobian = cache(self._jacobian)
        self.pose_error = cache(self._pose_error)

    def _pose(self, frame: str) -> ca.Function:
        """`pose(q) -> (R, r)`, the rotation and position (3, 4) of a frame in the world."""
        q, v = self._symbols
        motion = self.model.kinematics(q, v).motion(frame)
        return ca.Function("pose", [q], [ca.densify(ca.horzcat(motion.R, motion.r))])

    def _jacobian(self, frame: str, axes: str) -> ca.Function:
        """`jacobian(q) -> J`, the Jacobian (6, nw) of a frame's twist (omega, r')."""
        q, v = self._symbols
        k = self.model.kinematics(q, v)
        twist = ca.vertcat(k.angular_velocity(frame, axes), k.velocity(frame, axes))
        return ca.Function("jacobian", [q], [ca.densify(ca.jacobian(twist, v))])

    @cached_property
    def _symbols(self) -> tuple[ca.SX, ca.SX]:
        return ca.SX.sym("q", self.model.space.nq), ca.SX.sym("v", self.model.space.nw)

    @cached_property
    def mass_matrix(self) -> ca.Function:
        """`mass_matrix(q) -> M`, the matrix (nw, nw) of forces for unit accelerations at rest."""
        n = self.model.space.nw
        a = ca.SX.sym("a", n)
        # inverse dynamics at v = 0 without gravity is M a [featherstone2008, ch. 6]
        matrix = ca.jacobian(self._forces(a, ca.SX.zeros(n), gravity=False), a)
        return ca.Function("mass_matrix", [self._symbols[0]], [ca.densify(matrix)])

    @cached_property
    def gravity(self) -> ca.Function:
        """`gravity(q) -> g`, the forces (nw) that hold the weight."""
        rest = ca.SX.zeros(self.model.space.nw)
        return ca.Function(
            "gravity", [self._symbols[0]], [ca.densify(self._forces(rest, rest, gravity=True))]
        )

    @cached_property
    def coriolis_forces(self) -> ca.Function:
        """`coriolis_forces(q, v) -> c`, the forces (nw) for a motion at constant velocity."""
        q, v = self._symbols
        forces = self._forces(ca.SX.zeros(v.numel()), v, gravity=False)
        return ca.Function("coriolis_forces", [q, v], [ca.densify(forces)])

    @cached_property
    def center_of_mass(self) -> ca.Function:
        """`center_of_mass(q) -> r`, the position (3) in the world."""
        q, v = self._symbols
        k = self.model.kinematics(q, v)
        return ca.Function("center_of_mass", [q], [self._mean(k.position)])

    @cached_property
    def center_of_mass_jacobian(self) -> ca.Function:
        """`center_of_mass_jacobian(q) -> J`, the Jacobian (3, nw) of the center of mass's velocity
        in the world.
        """
        q, v = self._symbols
        k = self.model.kinematics(q, v)
        jacobian = ca.densify(ca.jacobian(self._mean(k.velocity), v))
        return ca.Function("center_of_mass_jacobian", [q], [jacobian])

    @property
    def total_mass(self) -> float:
        """Mass of all bodies that are not fixed to the world, in kg."""
        return float(sum(part.mass for part in self.model.spatial_inertias))

    def _mean(self, of: Callable[[Point], ca.SX]) -> ca.SX:
        """The mass-weighted mean of a quantity at the bodies' centers of mass,
        `sum m_i f_i / sum m_i`.
        """
        parts = (
            part.mass * of(Point(part.frame, part.center)) for part in self.model.spatial_inertias
        )
        return ca.densify(sum(parts, ca.SX.zeros(3)) / self.total_mass)

    @cached_property
    def inverse_dynamics(self) -> ca.Function:
        """`inverse_dynamics(q, v, a) -> M a + c(q, v) + g(q)` minus the forces of the elements,
        (nw).
        """
        q, v = self._symbols
        a, w = ca.SX.sym("a", v.numel()), ca.SX.sym("w", v.numel())
        k, virtual = self.model.kinematics(q, v), self.model.kinematics(q, w)
        potential = sum((e.potential(k) for e in self.model.elements), ca.SX(0))
        damping = sum((e.power(k, virtual) for e in self.model.elements), ca.SX(0))
        # spring forces are -dV/dq, mapped to virtual velocities w by the rate of the configuration
        springs = ca.jtimes(potential, q, self._rate(q, w))
        element_forces = ca.gradient(damping - springs, w)
        forces = self._forces(a, v, gravity=True) - element_forces
        return ca.Function("inverse_dynamics", [q, v, a], [ca.densify(forces)])

    def _forces(self, a: ca.SX, v: ca.SX, gravity: bool) -> ca.SX:
        """Forces (nw) from the virtual power of all bodies for virtual velocities w,
        `sum_i m_i v_i(w) . (v_i' - g) + omega_i(w) . (J_i omega_i' + omega_i x J_i omega_i)`. The
        velocities of centers of mass are in the world axes, and angular velocities are in the
        bodies' axes.
        """
        q, rate = self._symbols
        w = ca.SX.sym("w", rate.numel())
        k, virtual = self.model.kinematics(q, rate), self.model.kinematics(q, w)
        weight = constant(self.model.gravity) if gravity else ca.DM.zeros(3)

        def derivative(of: ca.SX) -> ca.SX:
            # d/dt f(q, v) = f_q q' + f_v a
            return ca.jtimes(of, q, self._rate(q, rate)) + ca.jtimes(of, rate, a)

        power = ca.SX(0)
        for part in self.model.spatial_inertias:
            center, inertia = Point(part.frame, part.center), constant(part.inertia)
            linear = derivative(k.velocity(center)) - weight
            power += part.mass * ca.dot(virtual.velocity(center), linear)
            omega = k.motion(part.frame).omega
            angular = inertia @ derivative(omega) + ca.cross(omega, inertia @ omega)
            power += ca.dot(virtual.motion(part.frame).omega, angular)
        # the power is linear in w, and its gradient is the generalized force
        return ca.substitute(ca.gradient(power, w), rate, v)

    def _rate(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Time derivative of the configuration (nq) for a velocity v (nw)."""
        space = self.model.space
        d = ca.SX.sym("d", space.nv)
        # q' = d retract(q, d)/dd at d = 0 times the velocity in tangent coordinates
        rate = ca.jtimes(space.retract(q, d), d, space.frame(q).T @ v)
        return ca.substitute(rate, d, ca.SX.zeros(space.nv))

    def _pose_error(self, frame: str) -> ca.Function:
        """`pose_error(q, d, target) -> r, J`, the pose (12) of a frame at `retract(q, d)` minus
        the target, and its Jacobian (12, nv) with respect to d.

        The difference between the rotations is divided by sqrt(2), so that for small angles its
        norm is the angle between the rotations.
        """
        space, target = self.model.space, ca.SX.sym("target", 12)
        q, d = ca.SX.sym("q", space.nq), ca.SX.sym("d", space.nv)
        motion = self.model.kinematics(space.retract(q, d), ca.SX(space.nw, 1)).motion(frame)
        pose = ca.vertcat(ca.vec(motion.R.T), motion.r)
        scale = ca.DM([1 / np.sqrt(2)] * 9 + [1.0] * 3)
        difference = ca.densify(scale * (pose - target))
        jacobian = ca.densify(ca.jacobian(difference, d))
        return ca.Function("difference", [q, d, target], [difference, jacobian])
