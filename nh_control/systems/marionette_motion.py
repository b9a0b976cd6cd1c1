"""Motions of the marionette. The motion of its strings is prescribed, and its body follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.mechanics.consistent_states import minimize_potential_energy
from nh_control.systems.marionette import initial_configuration, model_data


@dataclass(frozen=True)
class StringMotion:
    """Prescribed coordinates that oscillate about their start with `amplitudes` (m) as
    `a sin(frequency t)`, frequency in rad/s, for `duration` s.

    The amplitude grows during the first `ramp` s. Without a ramp, as published, the velocities of
    the strings jump at the beginning. This jump requires compression in some of the strings. The
    motion begins at the published configuration or, with `from_rest`, at the equilibrium below it.
    """

    amplitudes: Mapping[str, float]
    frequency: float
    duration: float
    ramp: float = 0.0
    from_rest: bool = False

    def inputs(self, dsys: DiscreteSystem, q0: np.ndarray) -> np.ndarray:
        """Values (N, 18) of the prescribed coordinates for the N steps from configuration q0. As
        in the publication, the value for the end of step k is the oscillation at the beginning of
        the step, at the time k h.
        """
        system = dsys.system
        times = dsys.h * np.arange(round(self.duration / dsys.h))
        part = np.minimum(times / self.ramp, 1) if self.ramp else np.ones(len(times))
        # with a smoothstep, the velocities that the ramp adds are zero at both of its ends
        growth = part**2 * (3 - 2 * part)
        values = np.tile(q0[system.nrho :], (len(times), 1))
        for name, amplitude in self.amplitudes.items():
            values[:, system.prescribed.index(name)] += (
                amplitude * growth * np.sin(self.frequency * times)
            )
        return values

    def reference(self, dsys: DiscreteSystem) -> Trajectory:
        """The motion for the prescribed strings. It satisfies the discrete equations, because it
        is simulated.
        """
        q0 = initial_configuration()
        if self.from_rest:
            q0 = minimize_potential_energy(dsys.system, q0)
        return dsys.simulate(released(dsys, q0), self.inputs(dsys, q0))


LIMBS = {
    "left_leg_string-length": -0.1,
    "right_leg_string-length": 0.1,
    "left_arm_string-length": 0.1,
    "right_arm_string-length": -0.1,
}

PUBLISHED = StringMotion(LIMBS, frequency=0.6 * np.pi, duration=10.01)
"""The experiment in [johnson2014 VIII-B]. Its loop over floating-point times makes 1001 steps of
0.01 s.
"""


def released(dsys: DiscreteSystem, q: np.ndarray) -> np.ndarray:
    """State (nx) after two equal configurations q (nq), as at the beginning of the published
    experiment. The velocity is zero, and `p = D2 Ld(q, q) = h/2 dL/dq`.
    """
    system = dsys.system
    q_ = ca.SX.sym("q", system.space.nq)
    force = ca.Function(
        "force", [q_], [system.mechanics.gradients(q_, ca.SX.zeros(system.space.nw))[0]]
    )(q)
    # p = h/2 dL/dq at rest
    momenta = dsys.h / 2 * np.asarray(force)[: system.nrho, 0]
    return np.concatenate([q, momenta, np.zeros(len(system.prescribed))])


def tensions(dsys: DiscreteSystem, trajectory: Trajectory) -> np.ndarray:
    """String tensions (N, 6), in N, over the steps of a trajectory. They are `2 d lam / h` for the
    constraint `|a - b|^2 - d^2`, and negative if a string would push.
    """
    names = dsys.system.space.names
    lengths = [names.index(f"{c['name']}-length") for c in model_data()["constraints"]]
    impulses = np.array(
        [dsys.multipliers(x, u) for x, u in zip(trajectory.states, trajectory.inputs)]
    )
    return 2 * trajectory.states[:-1, lengths] * impulses / dsys.h
