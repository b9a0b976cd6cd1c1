"""Measured quantities of a system by name: coordinates, velocities and outputs. Their derivatives
with respect to the state and to parameters are exact.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.discrete.outputs import velocity_expression
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Product, Rn, Space
from nh_control.mechanics.outputs import Output
from nh_control.numerics.compiled import Functions


class MeasuredValues:
    """The measured quantities `names` (ny) of a discrete system: coordinates of its space,
    velocities, and components of its outputs. The parameters of the system may have any values.

    On a space other than Rn, such as SO3, the errors are in local coordinates if all coordinates
    are measured. Their `error_names` (m) are then the tangent names of the space. The errors of
    other quantities are differences, and have the names of the quantities. Raises ValueError for
    an unknown name, for duplicate names, and if an output on a space is measured only partly.
    """

    def __init__(self, dsys: DiscreteSystem, names: Sequence[str]):
        self.names, self._space = tuple(names), dsys.system.space
        known = quantities(dsys)
        for name in self.names:
            if name not in known:
                raise ValueError(f"{dsys}: no quantity {name!r}{meant(name, known)}")
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(
                f"{dsys}: expected one or more different measured quantities, got {self.names}"
            )
        self._place = {name: i for i, name in enumerate(self.names)}
        # the rows of local(q, q*) that have all their coordinates measured, and single quantities
        self._rows: list[int] = []
        single: list[str] = []
        start = 0
        for leaf in leaves(self._space):
            measured = [name for name in leaf.names if name in self._place]
            if isinstance(leaf, Rn):
                # on Rn every coordinate has an error
                places = [leaf.names.index(name) for name in measured]
                self._rows += [start + i for i in places]
            elif len(measured) == leaf.nq:
                # all coordinates of a manifold are measured: errors in local coordinates
                self._rows += range(start, start + leaf.nv)
            else:
                # only some coordinates of a manifold are measured: differences of coordinates
                single += measured
            start += leaf.nv
        single += [name for name in dsys.system.space.velocity_names if name in self._place]
        self._single = tuple(single)
        self._outputs = _measured_outputs(dsys, self._place)
        self._of_q = [i for i, name in enumerate(self._space.names) if name in self._place]
        self._from_y = [self._place[self._space.names[i]] for i in self._of_q]
        self._other = [self._place[name] for name in self._single]
        for output in self._outputs:
            self._other += [self._place[name] for name in output.names]
        self.error_names = (
            *(self._space.tangent_names[i] for i in self._rows),
            *self._single,
            *(name for output in self._outputs for name in output.error_names),
        )
        self._functions = self._compile(dsys) if self._other else None

    def __len__(self) -> int:
        return len(self.error_names)

    def errors(
        self, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        """The errors (m) of the measured values y (ny) at the state x (nx) under the inputs u
        (nu). An error is NaN if a value is not measured. `dsys` is the system with its current
        parameters.
        """
        n = self._space.nq
        # local(q, q*), where q* contains the measured coordinates and, for the others, those of x
        q, measured = x[:n].copy(), y[self._from_y]
        valid = ~np.isnan(measured)
        q[np.array(self._of_q, dtype=int)[valid]] = measured[valid]
        rows = dsys.local(x, np.concatenate([q, x[n:]]))[self._rows]
        rows[~self.present(y)[: len(self._rows)]] = np.nan
        if self._functions is None:
            return rows
        arguments = x, u[: dsys.system.nu], dsys.system.parameter_values, y[self._other]
        return np.concatenate([rows, self._functions("error", *arguments)[0][:, 0]])

    def slopes(
        self,
        dsys: DiscreteSystem,
        x: np.ndarray,
        u: np.ndarray,
        X: np.ndarray,
        S: np.ndarray,
        parameters: Sequence[str],
    ) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives (m, n) and (m, k) of the errors with respect to n variables and k
        `parameters`, up to terms of the size of the errors. X (ndx, n) and S (ndx, k) are the
        derivatives of the state with respect to the variables and the parameters.
        """
        by_x, by_p = -X[self._rows], -S[self._rows]
        if self._functions is None:
            return by_x, by_p
        arguments = x, u[: dsys.system.nu], dsys.system.parameter_values
        # de = -(C dx + C_theta dtheta) for e = local(c(x, theta), y) near 0
        C, C_p = self._functions("slopes", *arguments)
        columns = [dsys.system.parameter_names.index(name) for name in parameters]
        return (
            np.vstack([by_x, -C @ X]),
            np.vstack([by_p, -C @ S - C_p[:, columns]]),
        )

    def guess(
        self, dsys: DiscreteSystem, times_s: np.ndarray, y: np.ndarray, x: np.ndarray
    ) -> np.ndarray:
        """A guess of the state (nx) at the first of the times (n), from measured values y (n, ny)
        at these times. The guess contains the first measured values. Velocities that are not
        measured are computed from differences, and all quantities without a measurement are taken
        from the state x.
        """
        space = self._space
        q0, v = dsys.configuration(x), dsys.velocity(x)
        interval_s, q1 = times_s[1] - times_s[0], q0.copy()
        for i, j in zip(self._of_q, self._from_y):
            rows = np.flatnonzero(~np.isnan(y[:, j]))
            if len(rows):
                q0[i] = q1[i] = y[rows[0], j]
            if len(rows) > 1:
                a, b = rows[:2]
                q1[i] += (y[b, j] - y[a, j]) * interval_s / (times_s[b] - times_s[a])
        differenced = np.zeros(space.nw, dtype=bool)
        start = 0
        for leaf in leaves(space):
            known = [name in self._place for name in leaf.names]
            size = leaf.nw
            differenced[start : start + size] = known if isinstance(leaf, Rn) else all(known)
            start += size
        v = np.where(differenced, space.velocity(q0, q1) / interval_s, v)
        for i, name in enumerate(space.velocity_names):
            if name in self._place:
                values = y[:, self._place[name]]
                v[i] = next(iter(values[~np.isnan(values)]), v[i])
        return dsys.measured_state(q0, v)

    def present(self, y: np.ndarray) -> np.ndarray:
        """The mask (m) of errors that depend only on measured values in y (ny)."""
        return self._presence @ np.isnan(y) == 0

    @cached_property
    def _presence(self) -> np.ndarray:
        """The incidence matrix (m, ny) of errors and the values on which they depend."""
        needs = np.zeros((len(self), len(self.names)), dtype=int)
        start = 0
        for leaf in leaves(self._space):
            for j, name in enumerate(leaf.names):
                if name not in self._place:
                    continue
                rows = [start + j] if isinstance(leaf, Rn) else range(start, start + leaf.nv)
                for row in set(rows) & set(self._rows):
                    needs[self._rows.index(row), self._place[name]] = 1
            start += leaf.nv
        return needs

    def _compile(self, dsys: DiscreteSystem) -> Functions:
        """The functions `error(x, u, theta, y) -> e` and `slopes(x, u, theta) -> C, C_theta`, with
        the parameters theta, for the quantities that are not local coordinates of the
        configuration.
        """
        system = dsys.system
        space = dsys.method.state_space(system)
        x, e, u = ca.SX.sym("x", dsys.nx), ca.SX.sym("e", dsys.ndx), system.symbols[2]
        theta = system.parameter_symbols
        here, y = self._values(dsys, x, u), ca.SX.sym("y", len(self._other))
        varied = self._values(dsys, space.retract(x, e), u)
        parts: list[Space] = [Rn(*self._single)] if self._single else []
        values = Product(*parts, *(output.space for output in self._outputs))
        # derivatives of local(y, c(retract(x, e), theta)) at e = 0 and y = c(x, theta)
        change = values.local(y, varied)
        jacobians = [ca.jacobian(change, e), ca.jacobian(change, theta)]
        slopes = ca.substitute(jacobians, [e, y], [ca.SX.zeros(dsys.ndx), here])
        error = ca.Function("error", [x, u, theta, y], [ca.densify(values.local(here, y))])
        derivative = ca.Function(
            "slopes", [x, u, theta], [ca.densify(part) for part in slopes], {"cse": True}
        )
        return Functions(f"{system.name}_measured", [error, derivative], compiled=False)

    def _values(self, dsys: DiscreteSystem, x: ca.SX, u: ca.SX) -> ca.SX:
        system, space = dsys.system, self._space
        velocity = velocity_expression(system, x)
        q, values = x[: space.nq], []
        for name in self._single:
            if name in space.names:
                values.append(q[space.names.index(name)])
            else:
                values.append(velocity[space.velocity_names.index(name)])
        for measured in self._outputs:
            values.append(measured.output.of(system, q, velocity, u)[list(measured.places)])
        return ca.vertcat(*values)


def quantities(dsys: DiscreteSystem) -> tuple[str, ...]:
    """The names of all measurable quantities of a system."""
    space = dsys.system.space
    outputs = [name for output in dsys.system.outputs for name in output.names]
    return tuple(dict.fromkeys([*space.names, *space.velocity_names, *outputs]))


def meant(name: str, known: Sequence[str]) -> str:
    """The last part of a message about an unknown name: the most similar known name, and all
    names.
    """
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"{hint}, choose from {', '.join(known)}"


def leaves(space: Space) -> Iterator[Space]:
    """The elementary factors of a space, which are not products."""
    if isinstance(space, Product):
        for factor in space.factors:
            yield from leaves(factor)
    else:
        yield space


@dataclass(frozen=True)
class _MeasuredOutput:
    """An output and the indices of its measured components. If the output is on a space, all its
    components are measured.
    """

    output: Output
    places: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the measured components."""
        return tuple(self.output.names[i] for i in self.places)

    @property
    def space(self) -> Space:
        """The space of the measured components."""
        return Rn(*self.names) if self.output.space is None else self.output.space

    @property
    def error_names(self) -> tuple[str, ...]:
        """Names of the components of an error."""
        if self.output.space is None:
            return self.names
        return tuple(f"{self.output.name}_{name}" for name in self.space.tangent_names)


def _measured_outputs(dsys: DiscreteSystem, places: dict[str, int]) -> list[_MeasuredOutput]:
    out = []
    # coordinates and velocities take precedence over outputs of the same name
    reserved = {*dsys.system.space.names, *dsys.system.space.velocity_names}
    for output in dsys.system.outputs:
        measured = [i for i, n in enumerate(output.names) if n in places and n not in reserved]
        if output.space is not None and 0 < len(measured) < len(output.names):
            raise ValueError(
                f"{dsys}: all components of the output {output.name} must be measured together, "
                f"{', '.join(output.names)}; got only {[output.names[i] for i in measured]}"
            )
        if measured:
            out.append(_MeasuredOutput(output, tuple(measured)))
    return out
