"""Steps in the coordinates zeta = (d, rho) of the chart at the middle of the step. The
energy-preserving methods use these coordinates.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from nh_control.discrete.method import StepSymbols
from nh_control.geometry.chart import Chart, has_symmetric_retraction, middle_and_end
from nh_control.integrators.registry import first_of, if_drifting
from nh_control.mechanics.almost_poisson import AlmostPoisson, LocalStructure
from nh_control.mechanics.distribution import BASES, change_of_basis
from nh_control.mechanics.system import System


class EnergySteps:
    """Steps of a system with unknowns z = (rates of zeta, impulses h lam, mu). Each stage has its
    rates and lam.

    The augmented energy `H + lam . h` contains the multipliers lam (k) of holonomic constraints
    h(q). With its discrete gradient, `h(q1) = h(q0)` implies H1 = H0. The momentum of a state has
    no component along `Dh^T`. Within a step, the momentum has the component mu at both ends,

    `rho+ = rho0 + N(q0) mu,  rho1 = rho- - (-1)^(stages + 1) N(q1) mu`,
    `N = J^T R^{-1}`, `R^T R = J (X^T M X)^{-1} J^T`, `J = Dh X`,

    so that `Dh v1 = 0`. The columns of N have unit kinetic energy and are orthogonal to all
    admissible momenta, so both kicks change the kinetic energy by `|mu|^2 / 2`, and the two
    changes cancel.
    """

    def __init__(self, system: System, basis: str = "own", stages: int = 1):
        self.system, self.basis, self.stages = system, basis, stages
        self.n_free = system.space.nv - len(system.prescribed)
        self.n_rates = self.n_free + system.nrho
        k = system.n_holonomic_constraints
        self.multipliers = range(stages * self.n_rates, stages * (self.n_rates + k))
        self.nz = self.multipliers.stop + k

    def at(self, symbols: StepSymbols, change: ca.SX) -> EnergyStep:
        """The step with the given change (n_rates) in zeta."""
        return EnergyStep(self, symbols, change)


class EnergyStep:
    """One step. It contains the chart, the displacement `d` (nv) in the chart, the final
    configuration `q1`, the velocities `w` of prescribed coordinates (None if there are none), and
    the structure in the step's basis.
    """

    def __init__(self, steps: EnergySteps, symbols: StepSymbols, change: ca.SX):
        self._steps, self._symbols, system = steps, symbols, steps.system
        moved = system.prescribed_part(symbols.u) - system.prescribed_part(symbols.q)
        self.w = moved / symbols.h if system.prescribed else None
        d = ca.vertcat(change[: steps.n_free], moved)
        center, self.q1 = middle_and_end(system.space, symbols.q, d)
        self.chart = Chart(system.space, center, symbols.q)
        self.d = self.chart.turned(symbols.q, d)
        self._frame = self.chart.moving_frame
        self.bases = BASES[steps.basis](system, symbols.q, self._frame)
        self.structure = AlmostPoisson(system, self.bases)

    @property
    def inputs(self) -> ca.SX:
        """The inputs that are forces, without prescribed coordinates."""
        return self._symbols.u[: self._steps.system.nu]

    def local(self, lam: ca.SX | None = None) -> LocalStructure:
        """The structure in the chart, for the augmented energy with the multipliers lam."""
        return self.structure.local(self.chart, self.w, lam)

    def rates(self, z: ca.SX) -> ca.SX:
        """Rates of zeta (nv + nrho, stages) from the unknown rates (n_rates, stages)."""
        n, w = self._steps.n_free, self.w
        fixed = ca.SX(0, z.shape[1]) if w is None else ca.repmat(w, 1, z.shape[1])
        # the unknown rates are in the frame at q0, and the chart's rates in the frame at the
        # middle
        by_d = self.chart.turned(self._symbols.q, ca.vertcat(z[:n, :], fixed))
        return ca.vertcat(by_d, z[n:, :])

    def unknown(self, rates: ca.SX) -> ca.SX:
        """The rows (n_rates) of the rates of zeta that are unknown."""
        n = self._steps.n_free
        return rates if self.w is None else ca.vertcat(rates[:n], rates[self.d.shape[0] :])

    @cached_property
    def start(self) -> ca.SX:
        """rho+ (nrho) in the step's basis."""
        system, (q, stored, *_) = self._steps.system, self._symbols
        # convert the stored momentum to the step's basis, then add the kick N mu
        rho = _to_step(self._change(q), system.mechanics.reduce(q, stored, self._frame(q)))
        if not system.n_holonomic_constraints:
            return rho
        w = system.prescribed_part(stored[: stored.shape[0]]) if system.prescribed else None
        normal, kick = self._normal(q, rho, w)
        return rho + kick @ (self._mu - normal)

    def end_rows(self, rho: ca.SX) -> ca.SX:
        """`h(q1)`, and the difference between the components of the momentum rho- (nrho) and of mu
        along the kicks.
        """
        system = self._steps.system
        if not system.n_holonomic_constraints:
            return ca.SX(0, 1)
        normal, _ = self._normal(self.q1, rho, self.w)
        sign = (-1) ** (self._steps.stages + 1)
        return ca.vertcat(system.holonomic(self.q1), normal - sign * self._mu)

    def end(self, rho: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The final configuration and the stored momentum for rho- (nrho)."""
        system = self._steps.system
        if system.n_holonomic_constraints:
            normal, kick = self._normal(self.q1, rho, self.w)
            # a state's momentum has no component along the kicks
            rho -= kick @ normal
        rho1, w = _to_state(self._change(self.q1), rho), self.w
        velocities = ca.SX(0, 1) if w is None else w
        frame = self._frame(self.q1)
        return self.q1, system.mechanics.store(self.q1, rho1, velocities, frame)

    @property
    def _mu(self) -> ca.SX:
        return self._symbols.z[self._steps.multipliers.stop :]

    def _normal(self, q: ca.SX, rho: ca.SX, w: ca.SX | None) -> tuple[ca.SX, ca.SX]:
        """`R^{-T} Dh v` (k) and N (nrho, k)."""
        slope, gram, slip = self.structure.normal(q, rho, w)
        # R^T R = J (X^T M X)^-1 J^T and N = J^T R^-1
        root = ca.chol(gram)
        return ca.solve(root.T, slip), ca.solve(root.T, slope).T

    def _change(self, q: ca.SX) -> ca.SX | None:
        """C with `rho = C^T (rho in the step's basis)`, or None for the system's basis."""
        if self._steps.basis == "own":
            return None
        system_basis = self._steps.system.mechanics.admissible_basis(q, self._frame(q))
        return change_of_basis(self.bases(q), system_basis)


def _to_step(change: ca.SX | None, rho: ca.SX) -> ca.SX:
    """rho in the step's basis.

    This function solves a linear system with the matrix in `_to_state`. With the inverse change of
    basis instead, the round-off would have the same sign in every step (measured: 4e-17 of the
    energy).
    """
    return rho if change is None else ca.solve(change.T, rho)


def _to_state(change: ca.SX | None, rho: ca.SX) -> ca.SX:
    """rho in the system's basis."""
    return rho if change is None else change.T @ rho


def if_asymmetric(system: System) -> str:
    """Refuses retractions that have no chart about the middle of a step."""
    fits = has_symmetric_retraction(system.space)
    return "" if fits else "has a retraction with retract(retract(q, d), -d) != q"


refuses = first_of(if_drifting, if_asymmetric)
