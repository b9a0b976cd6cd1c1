"""Actuators with first-order dynamics whose outputs are the inputs of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.input_bounds import input_bounds
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Returned, as_expression

Law = Callable[..., Returned]
"""A function of (q, v, w, u), or of (q, v, w, u, p) if the system has parameters p."""


@dataclass(frozen=True)
class DcMotor(Parameters):
    """A motor with a gear: with current i, voltage u and the speed `omega` of the joint that it
    drives, `L i' = u - R i - K n omega`, the torque on the joint is `n K i - n^2 b omega`, and
    there is `n^2 J omega^2 / 2` more kinetic energy.

    With n in rad/m instead of a ratio it drives a joint that slides.
    """

    resistance: float = parameter(1.0, "ohm", "R of the winding")
    inductance: float = parameter(1e-3, "H", "L of the winding")
    torque_constant: float = parameter(0.1, "N m/A", "K, also the voltage per speed in V s/rad")
    gear: float = parameter(1.0, "", "n, turns of the rotor per turn of the joint")
    rotor_inertia: float = parameter(0.0, "kg m^2", "J about the rotor's axis", at_least=0.0)
    friction: float = parameter(0.0, "N m s", "b at the rotor", at_least=0.0)
    voltage_limit: float = parameter(24.0, "V", "largest voltage of either sign")


def with_actuators(
    system: System,
    states: Sequence[str],
    rate: Law,
    effort: Law,
    inputs: Sequence[str],
    *,
    state_units: Sequence[str] = (),
    input_units: Sequence[str] = (),
    input_limits: np.ndarray | Callable[[Any], np.ndarray] | None = None,
    lagrangian: Callable[..., Returned] | None = None,
) -> System:
    """The system with actuators in front of its inputs: `w' = rate(q, v, w, u)`, `f = force(q, v,
    effort(q, v, w, u))`.

    w (n) are the actuators' states, named `states`; they follow the system's coordinates q. u are
    the new `inputs`, with their units and limits (nu, 2). v is the system's velocity. If the
    system has parameters p, `rate`, `effort` and `lagrangian` take p last. `lagrangian(q, v)` is
    added to the system's, for the kinetic energy of a rotor. The new system declares no symmetry.
    Raises ValueError for a system without inputs, with prescribed or with first-order coordinates.
    """
    if not system.inputs or system.prescribed or system.first_order:
        raise ValueError(
            f"{system.name}: actuators need a system with inputs, without prescribed coordinates "
            f"{system.prescribed} and first-order coordinates {system.first_order}; declare such "
            "a system with `first_order` and `first_order_rate`"
        )
    space, n = system.space, len(states)
    behind = _BehindActuators(system, n, rate, effort, lagrangian)
    factors = space.factors if isinstance(space, Product) else (space,)
    a, x = system.velocity_constraint, system.distribution
    return System(
        name=f"{system.name}_with_actuators",
        space=Product(*factors, Rn(*states)),
        lagrangian=behind.energy,
        inputs=tuple(inputs),
        force=behind.force,
        velocity_constraint=a and (lambda q, *p: _padded(behind.at(_declared(a), q, *p), right=n)),
        velocity_drift=behind.of_configuration(system.velocity_drift),
        holonomic_constraint=behind.of_configuration(system.holonomic_constraint),
        distribution=x and (lambda q, *p: _padded(behind.at(_declared(x), q, *p), below=n)),
        dependent=system.dependent,
        domain=behind.of_configuration(system.domain),
        parameters=system.parameters,
        input_limits=input_limits,
        input_units=tuple(input_units),
        nominal=None if system.nominal is None else (*system.nominal, *np.zeros(n)),
        outputs=tuple(o.behind(space.nq, space.nw, behind.efforts) for o in system.outputs),
        first_order=tuple(states),
        first_order_rate=behind.rates,
        first_order_units=tuple(state_units),
    )


@dataclass(frozen=True)
class _BehindActuators:
    """The functions of a system behind actuators with n states w: of (q, w), (v, w') and the
    inputs u of the actuators.
    """

    system: System
    n: int
    rate: Law
    effort: Law
    lagrangian: Callable[..., Returned] | None

    def rates(self, q: ca.SX, v: ca.SX, u: ca.SX, *p: Any) -> Returned:
        """w' = rate(q, v, w, u)."""
        nq, nw = self.system.space.nq, self.system.space.nw
        return self.rate(q[:nq], v[:nw], q[nq:], u, *p)

    def efforts(self, q: ca.SX, v: ca.SX, u: ca.SX, *p: Any) -> ca.SX:
        """The inputs of the system, `effort(q, v, w, u)`; raises ValueError for another number."""
        system, (nq, nw) = self.system, (self.system.space.nq, self.system.space.nw)
        efforts = ca.vertcat(as_expression(self.effort(q[:nq], v[:nw], q[nq:], u, *p)))
        if efforts.shape != (system.nu, 1):
            raise ValueError(
                f"{system.name}: effort must give {system.nu} numbers, one for each of "
                f"{system.inputs}, got shape {efforts.shape}"
            )
        return efforts

    def force(self, q: ca.SX, v: ca.SX, u: ca.SX, *p: Any) -> ca.SX:
        system, efforts = self.system, self.efforts(q, v, u, *p)
        own = q[: system.space.nq], v[: system.space.nw]
        f = as_expression(_declared(system.force)(*own, efforts, *p))
        return ca.vertcat(f, ca.SX(self.n, 1))

    def energy(self, q: ca.SX, v: ca.SX, *p: Any) -> ca.SX:
        own = q[: self.system.space.nq], v[: self.system.space.nw]
        added = 0.0 if self.lagrangian is None else self.lagrangian(*own, *p)
        return as_expression(self.system.lagrangian(*own, *p)) + added

    def at(self, function: Callable[..., Returned], q: ca.SX, *p: Any) -> Returned:
        """A function of the system's own configuration."""
        return function(q[: self.system.space.nq], *p)

    def of_configuration(
        self, function: Callable[..., Returned] | None
    ) -> Callable[..., Returned] | None:
        return function and partial(self.at, function)


def with_lag(system: System, time_constants: Mapping[str, float]) -> System:
    """The system whose inputs named in `time_constants` (s) follow their commands u late:
    `tau w' = u - w`, w the effort that acts, `<input>_actual`; names, units and limits of the
    inputs stay.

    Raises ValueError for names that are no inputs, constants that are not positive, and as
    `with_actuators`.
    """
    taus = _chosen(system, time_constants)
    if not all(np.isfinite(tau) and tau > 0 for tau in taus.values()):
        raise ValueError(
            f"{system.name}: time constants must be positive and finite (s), got "
            f"{dict(time_constants)}; leave inputs without a lag out"
        )
    places = list(taus)
    scale = ca.DM(list(taus.values()))

    def effort(q: ca.SX, v: ca.SX, w: ca.SX, u: ca.SX, *p: Any) -> ca.SX:
        acting = ca.SX(u)
        acting[places] = w
        return acting

    return with_actuators(
        system,
        [f"{system.inputs[i]}_actual" for i in places],
        lambda q, v, w, u, *p: (u[places] - w) / scale,
        effort,
        system.inputs,
        state_units=[system.input_units[i] for i in places] if system.input_units else (),
        input_units=system.input_units,
        input_limits=system.input_limits,
    )


def with_dc_motors(system: System, motors: Mapping[str, DcMotor]) -> System:
    """The system whose inputs named in `motors` are made by motors: the input is the voltage
    `<input>_voltage`, the current `<input>_current` a first-order coordinate, see `DcMotor`.

    The speed is the one on which the input works, `omega = (df/du_i)^T v`. Raises ValueError for
    names that are no inputs, forces that are not linear in the inputs, and as `with_actuators`.
    """
    chosen = _chosen(system, motors)
    places, n = list(chosen), ca.DM([motor.gear for motor in chosen.values()])
    r, inductance, k, b, j = (
        ca.DM([getattr(motor, name) for motor in chosen.values()])
        for name in ("resistance", "inductance", "torque_constant", "friction", "rotor_inertia")
    )

    def speed(q: ca.SX, v: ca.SX, *p: Any) -> ca.SX:
        u = ca.SX.sym("u", system.nu)
        f = as_expression(_declared(system.force)(q, v, u, *p))
        slope = ca.jacobian(f, u)
        if ca.depends_on(slope, u):
            raise ValueError(
                f"{system.name}: force must be linear in the inputs {system.inputs} for motors to "
                "drive them"
            )
        return slope[:, places].T @ v

    def effort(q: ca.SX, v: ca.SX, w: ca.SX, u: ca.SX, *p: Any) -> ca.SX:
        acting = ca.SX(u)
        acting[places] = n * k * w - n**2 * b * speed(q, v, *p)
        return acting

    names, units = list(system.inputs), list(system.input_units)
    for i in places:
        names[i] = f"{system.inputs[i]}_voltage"
        if units:
            units[i] = "V"

    def limits(p: Any) -> np.ndarray:
        bounds = np.array(
            input_bounds(system.name, system.input_limits, p, system.nu, n_prescribed=0)
        )
        bounds[places] = [[-m.voltage_limit, m.voltage_limit] for m in chosen.values()]
        return bounds

    return with_actuators(
        system,
        [f"{system.inputs[i]}_current" for i in places],
        lambda q, v, w, u, *p: (u[places] - r * w - k * n * speed(q, v, *p)) / inductance,
        effort,
        names,
        state_units=["A"] * len(places),
        input_units=units,
        input_limits=limits,
        lagrangian=lambda q, v, *p: ca.dot(n**2 * j / 2, speed(q, v, *p) ** 2),
    )


def _declared(function: Callable[..., Returned] | None) -> Callable[..., Returned]:
    if function is None:
        raise TypeError("a function that the system declares is needed")
    return function


def _chosen(system: System, given: Mapping[str, Any]) -> dict[int, Any]:
    """The values by the places of their inputs, in the order of the inputs."""
    unknown = [name for name in given if name not in system.inputs]
    if unknown or not given:
        raise ValueError(
            f"{system.name}: expected some of the inputs {system.inputs}, got {list(given)}"
        )
    return {i: given[name] for i, name in enumerate(system.inputs) if name in given}


def _padded(matrix: Returned, right: int = 0, below: int = 0) -> ca.SX:
    """A matrix with columns and rows of zeros after its own."""
    own = as_expression(matrix)
    rows, columns = own.shape
    return ca.blockcat([[own, ca.SX(rows, right)], [ca.SX(below, columns), ca.SX(below, right)]])
