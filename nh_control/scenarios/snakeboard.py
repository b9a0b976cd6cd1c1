"""The snakeboard scenario: gaits and parallel-parking maneuvers, tracked by LQR."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np

from nh_control.control.collocation import collocate, resample
from nh_control.control.costs import Cost
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import nonholonomic_midpoint, rdp
from nh_control.scenarios.driving import INTEGRATORS, perturbed
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.obstacles import clear_of
from nh_control.scenarios.perturbation import PlanarPerturbation
from nh_control.scenarios.scenario import Joint, PlanarBody, Scenario
from nh_control.scenarios.snakeboard_visual import visual_model
from nh_control.systems import SnakeboardParameters, snakeboard


@dataclass(frozen=True)
class Gait:
    """Sinusoidal torques that swing the rotor by `psi` (rad) and the steering by `phi` (rad)
    around `phi_offset`. The initial forward speed is `speed` (m/s).

    On a fixed board they would produce `psi(t) = psi sin(n_psi w t)` and
    `phi(t) = phi_offset + phi sin(n_phi w t)`, for `periods` periods of `period` = 2 pi / w s.
    """

    psi: float
    n_psi: int
    phi: float
    n_phi: int
    period: float
    periods: int
    phi_offset: float = 0.0
    speed: float = 0.0

    def reference(self, dsys: DiscreteSystem) -> Trajectory:
        """The simulated motion with these torques. In each step, the torques are constant and
        equal to their values at the midpoint.

        With the initial rates `a (a h / 2) / sin(a h / 2)` for an angular frequency a, the shape
        does not drift under the midpoint rule.
        """
        parameters, h = dsys.system.parameters, dsys.h
        steps = round(self.periods * self.period / h)
        swings = ((self.psi, self.n_psi, parameters.I), (self.phi, self.n_phi, 2 * parameters.J))
        torques, rates = np.empty((steps, 2)), np.empty(2)
        for i, (amplitude, n, inertia) in enumerate(swings):
            a = 2 * np.pi * n / self.period
            torques[:, i] = -inertia * amplitude * a**2 * np.sin(a * h * (np.arange(steps) + 0.5))
            rates[i] = amplitude * a * (a * h / 2) / np.sin(a * h / 2)
        # At a steering angle phi, the board turns with the yaw rate -v tan(phi) / l.
        steering = np.tan(self.phi_offset) / parameters.l
        v0 = np.concatenate([rates, np.array([-steering, 1.0, 0.0]) * self.speed])
        return dsys.simulate(dsys.state([0.0, self.phi_offset, 0.0, 0.0, 0.0], v0), torques)


GAITS = {
    "parking": Gait(psi=-1.4, n_psi=3, phi=0.7, n_phi=2, period=7.4, periods=2),
    "forward": Gait(psi=-0.3, n_psi=1, phi=0.4, n_phi=1, period=2.0, periods=6, speed=1.0),
    "turning": Gait(
        psi=-0.4, n_psi=1, phi=0.4, n_phi=1, period=2.0, periods=6, speed=1.0, phi_offset=0.3
    ),
    "slalom": Gait(psi=0.0, n_psi=1, phi=0.6, n_phi=1, period=3.14, periods=4, speed=2.0),
    "pillars": Gait(psi=0.0, n_psi=1, phi=0.6, n_phi=1, period=3.14, periods=3, speed=2.0),
}
"""`parking` moves the board sideways over cusps and brings it to rest. `forward` and `turning`
propel the board. `slalom` coasts periodically, and `pillars` is a slalom with obstacles that are
too close.
"""
PILLARS = (((5.2, -1.2), 0.6), ((9.8, -3.8), 0.6), ((15.5, -4.45), 0.6))
"""Centers and radii (m) of the pillars that the center of the board must avoid."""


PARKING_S, PARKING_STEERING = 10.0, 0.8
"""Duration (s) of the optimal parking maneuver, and maximum steering angle (rad)."""


def parking_optimal(dsys: DiscreteSystem) -> Trajectory:
    """From rest to rest 1 m to the left with the least `sum_k h |u_k|^2` and a free final angle of
    the rotor.

    Collocation of the midpoint rule on a grid of 0.1 s starts collocation of the model. The first
    guess is a motion with small swings of rotor and steering, because a board at rest is not
    controllable to first order. Raises ValueError if it does not converge.
    """
    coarse = nonholonomic_midpoint(dsys.system, 0.1)
    return _park(dsys, resample(_park(coarse, _swings(coarse), 0.1), dsys.h), 1e-4)


def _park(dsys: DiscreteSystem, guess: Trajectory, barrier_start: float) -> Trajectory:
    effort = Cost(lambda x, u, w: dsys.h / 2 * ca.sumsqr(u))
    end, coordinates = (
        dsys.state([0.0, 0.0, 0.0, 0.0, 1.0], np.zeros(5)),
        dsys.state_space.tangent_names[1:],
    )
    limits = {"phi": (-PARKING_STEERING, PARKING_STEERING)}
    result = collocate(
        dsys,
        effort,
        guess,
        end,
        coordinates,
        limits,
        barrier_start=barrier_start,
        cached=True,
    )
    if not result.converged:
        raise ValueError(
            f"{dsys}: no optimal parking maneuver found ({result.reason}); choose another step"
        )
    return result.trajectory


def _swings(dsys: DiscreteSystem) -> Trajectory:
    """The motion from rest with torques that fade in and out, and that would swing the rotor and
    the steering of a fixed board twice.
    """
    parameters, h, steps = dsys.system.parameters, dsys.h, round(PARKING_S / dsys.h)
    t = h * np.arange(-1, steps + 2)
    window = np.where((t > 0) & (t < PARKING_S), np.sin(np.pi * t / PARKING_S) ** 2, 0.0)
    # Second differences of the swing are the accelerations. Multiplied by the inertias, they are
    # the torques.
    swing = np.diff(window * np.cos(4 * np.pi * t / PARKING_S), 2)[:steps] / h**2
    return dsys.simulate(
        dsys.state(np.zeros(5), np.zeros(5)),
        np.outer(swing, [1.5 * parameters.I, 0.5 * 2 * parameters.J]),
    )


_Q = np.diag([0.1, 1.0, 10.0, 10.0, 10.0, 0.1, 0.1, 1.0])

SNAKEBOARD = Scenario(
    name="snakeboard",
    title="Snakeboard tracking a maneuver",
    parameters=SnakeboardParameters(),
    make_system=snakeboard,
    nodes={"fallback": "damp"},  # a rolling board keeps moving without forces
    integrators={
        **INTEGRATORS,
        "rdp_exp_truncated": partial(rdp, retraction="exp", tangent="truncated"),
    },
    meanings={
        "parking": "sideways over cusps, and to rest",
        "forward": "straight ahead, propelled by rotor and steering",
        "turning": "around a bend, propelled by rotor and steering",
        "slalom": "coasting from curve to curve at 2 m/s",
        "pillars": "a slalom past pillars that are too close, for predictive control",
    },
    references={
        **{name: gait.reference for name, gait in GAITS.items()},
        "parking_optimal": parking_optimal,
    },
    weights=(_Q, 1e-2 * np.eye(2), 100 * _Q),
    perturbation=PlanarPerturbation(position=0.1, heading=0.1, momentum=0.1),
    perturb=perturbed,
    joints=(
        Joint("rotor_joint", "psi"),
        Joint("rear_truck_joint", "phi"),
        Joint("front_truck_joint", "phi", -1.0),
    ),
    body=PlanarBody("base_link", "odom"),
    visual=visual_model,
    limits=SafetyLimits(ranges=("rear_truck_joint:-1.5:1.5",)),
    constraints={"pillars": clear_of([lambda q: q[3:5]], PILLARS, 1e2, ("pillars",))},
    horizon_s=1.5,
)
