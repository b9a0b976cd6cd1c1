"""Actuators with first-order dynamics. Their efforts are the inputs of a system."""

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
    """A geared motor with current i and voltage u on a joint with speed omega:
    `L i' = u - R i - K n omega`. The torque on the joint is `n K i - n^2 b omega`, and the rotor
    adds the kinetic energy `n^2 J omega^2 / 2`.

    For a prismatic joint, n is in rad/m.
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
    """The system with actuators at its inputs: `w' = rate(q, v, w, u)`,
    `f = force(q, v, effort(q, v, w, u))`.

    w (n) contains the actuator states named in `states`, which follow the system's coordinates q.
    v is the system's velocity. u contains the new `inputs`, which have their own units and limits
    (nu, 2). If the system has parameters p, `rate`, `effort` and `lagrangian` take p as their last
    argument. `lagrangian(q, v)`, for example the kinetic energy of a rotor, is added to the
    system's Lagrangian. The new system declares no symmetry.

    Raises ValueError for a system without inputs, and for one with prescribed or first-order
    coordinates.
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
    """The functions of a system whose actuators have n states w. Their arguments are (q, w), (v,
    w') and the actuator inputs u.
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
        """The system's inputs `effort(q, v, w, u)`; raises ValueError for a wrong number of
        inputs.
        """
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
        q0, v0 = q[: system.space.nq], v[: system.space.nw]
        f = as_expression(_declared(system.force)(q0, v0, efforts, *p))
        # no force on w: first-order coordinates move only by their rates
        return ca.vertcat(f, ca.SX(self.n, 1))

    def energy(self, q: ca.SX, v: ca.SX, *p: Any) -> ca.SX:
        q0, v0 = q[: self.system.space.nq], v[: self.system.space.nw]
        added = 0.0 if self.lagrangian is None else self.lagrangian(q0, v0, *p)
        return as_expression(self.system.lagrangian(q0, v0, *p)) + added

    def at(self, function: Callable[..., Returned], q: ca.SX, *p: Any) -> Returned:
        """The value of a function of the configuration without the actuators' states."""
        return function(q[: self.system.space.nq], *p)

    def of_configuration(
        self, function: Callable[..., Returned] | None
    ) -> Callable[..., Returned] | None:
        return function and partial(self.at, function)


def with_lag(system: System, time_constants: Mapping[str, float]) -> System:
    """The system in which the inputs in `time_constants` (s) follow their commands u with a lag,
    `tau w' = u - w`. The acting effort w is the coordinate `<input>_actual`. The names, units and
    limits of the inputs do not change.

    Raises ValueError for unknown inputs, for constants that are not positive, and for systems that
    `with_actuators` rejects.
    """
    # w' = (u - w) / tau for the chosen inputs
    taus = _chosen(system, time_constants)
    if not all(np.isfinite(tau) and tau > 0 for tau in taus.values()):
        raise ValueError(
            f"{system.name}: time constants must be positive and finite (s), got "
            f"{dict(time_constants)}; omit inputs without a lag"
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
    """The system in which motors (see `DcMotor`) produce the inputs in `motors`. The voltage
    `<input>_voltage` is the new input, and the current `<input>_current` is a first-order
    coordinate.

    The speed of the joint is conjugate to the input, `omega = (df/du_i)^T v`. Raises ValueError
    for unknown inputs, for forces that are not linear in the inputs, and for systems that
    `with_actuators` rejects.
    """
    chosen = _chosen(system, motors)
    # rows of motor constants, in input order
    places, n = list(chosen), ca.DM([motor.gear for motor in chosen.values()])
    r, inductance, k, b, j = (
        ca.DM([getattr(motor, name) for motor in chosen.values()])
        for name in ("resistance", "inductance", "torque_constant", "friction", "rotor_inertia")
    )

    def speed(q: ca.SX, v: ca.SX, *p: Any) -> ca.SX:
        u = ca.SX.sym("u", system.nu)
        f = as_expression(_declared(system.force)(q, v, u, *p))
        # power of input i: u_i omega_i = (df/du_i)^T v u_i
        slope = ca.jacobian(f, u)
        if ca.depends_on(slope, u):
            raise ValueError(
                f"{system.name}: force must be linear in the inputs {system.inputs}, so "
                "that motors can drive them"
            )
        return slope[:, places].T @ v

    def effort(q: ca.SX, v: ca.SX, w: ca.SX, u: ca.SX, *p: Any) -> ca.SX:
        acting = ca.SX(u)
        # torque n K i - n^2 b omega
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
        raise TypeError("expected a function that the system declares, got None")
    return function


def _chosen(system: System, values: Mapping[str, Any]) -> dict[int, Any]:
    """The values by input index, in input order."""
    unknown = [name for name in values if name not in system.inputs]
    if unknown or not values:
        raise ValueError(
            f"{system.name}: expected some of the inputs {system.inputs}, got {list(values)}"
        )
    return {i: values[name] for i, name in enumerate(system.inputs) if name in values}


def _padded(matrix: Returned, right: int = 0, below: int = 0) -> ca.SX:
    """The matrix with columns and rows of zeros appended."""
    block = as_expression(matrix)
    rows, columns = block.shape
    return ca.blockcat([[block, ca.SX(rows, right)], [ca.SX(below, columns), ca.SX(below, right)]])
