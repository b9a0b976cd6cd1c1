"""Discrete systems as python-control systems: exact linearizations for design and analysis, and
the nonlinear step for simulation and interconnection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.system import DiscreteSystem

if TYPE_CHECKING:
    from control import NonlinearIOSystem, StateSpace


def to_control(
    dsys: DiscreteSystem,
    x: ArrayLike,
    u: ArrayLike = (),
    outputs: Sequence[str] | Mapping[str, ArrayLike] | None = None,
) -> StateSpace:
    """The exact linearization at a state x (nx) and input u (nu) as a discrete-time
    `control.StateSpace` with step h, `dx1 = A dx + B du,  y = C dx`.

    States have the names of the local coordinates, and inputs have the names of the system's
    inputs. `outputs` are either names of local coordinates (by default, all of them) and of the
    system's declared outputs, with their exact C and D, or rows (ndx) of C by name. The impulses
    of holonomic constraints in x are those of a step under u (see
    `DiscreteSystem.with_impulses_of_step`). The result describes the system near an equilibrium,
    or near a motion that is constant in the body's axes; elsewhere, it is only a single step of a
    time-varying system. Raises ValueError for unknown names and wrong shapes, and the errors of
    `linearize`.
    """
    from control import ss  # takes a second to import

    x = dsys.with_impulses_of_step(x, u)
    names, lin = dsys.state_space.tangent_names, dsys.linearize(x, u)
    rows = _rows(dsys, names if outputs is None else outputs, x, u)
    CD = np.array(list(rows.values())).reshape(len(rows), dsys.ndx + dsys.nu)
    return ss(
        lin.A,
        lin.B,
        CD[:, : dsys.ndx],
        CD[:, dsys.ndx :],
        dsys.h,
        states=list(names),
        inputs=list(dsys.inputs),
        outputs=list(rows),
        name=dsys.system.name,
    )


def to_iosys(dsys: DiscreteSystem, x: ArrayLike | None = None) -> NonlinearIOSystem:
    """The step as a discrete-time `control.NonlinearIOSystem` in local coordinates about a state x
    (nx), by default the origin at rest: `dx1 = local(x, f(retract(x, dx), u)),  y = dx`.

    Inputs are absolute values, not changes. Raises ValueError if x has the wrong shape. The
    functions of the result raise the errors of `step`.
    """
    from control import nlsys

    space = dsys.system.space
    base = dsys.state(space.origin, np.zeros(space.nw)) if x is None else np.array(x, dtype=float)
    dsys.local(base, base)  # checks the shape

    def update(t: float, dx: np.ndarray, u: np.ndarray, parameters: Any) -> np.ndarray:
        return dsys.local(base, dsys.step(dsys.retract(base, dx), np.atleast_1d(u)))

    names = [*dsys.state_space.tangent_names]
    return nlsys(
        update,
        lambda t, dx, u, parameters: dx,
        states=names,
        inputs=[*dsys.inputs],
        outputs=[f"{name}_out" for name in names],
        dt=dsys.h,
        name=dsys.system.name,
    )


def _rows(
    dsys: DiscreteSystem,
    outputs: Sequence[str] | Mapping[str, ArrayLike],
    x: ArrayLike,
    u: ArrayLike,
) -> dict[str, np.ndarray]:
    """The rows (ndx + nu) of (C, D) by name."""
    names, n = dsys.state_space.tangent_names, dsys.ndx + dsys.nu
    if isinstance(outputs, Mapping):
        return {name: _row(dsys, name, row) for name, row in outputs.items()}
    declared = [output.name for output in dsys.system.outputs]
    if unknown := [name for name in outputs if name not in (*names, *declared)]:
        raise ValueError(f"{dsys}: unknown outputs {unknown}, choose from {[*names, *declared]}")
    rows: dict[str, np.ndarray] = {}
    for name in outputs:
        if name in names:
            rows[name] = np.eye(n)[names.index(name)]
            continue
        chosen = dsys.outputs(name)
        C, D = chosen.linearize(x, u)
        # outputs do not depend on the accelerations of prescribed coordinates
        prescribed = np.zeros((len(D), len(dsys.system.prescribed)))
        labels = chosen.names if len(chosen.names) == len(C) else chosen.space.tangent_names
        rows |= dict(zip(labels, np.hstack([C, D, prescribed])))
    return rows


def _row(dsys: DiscreteSystem, name: str, row: ArrayLike) -> np.ndarray:
    """A row (ndx) of C, with zeros for D."""
    values = np.asarray(row, dtype=float)
    if values.shape != (dsys.ndx,):
        raise ValueError(
            f"{dsys}: the output {name!r} must be a row of {dsys.ndx} numbers, one for each of "
            f"{list(dsys.state_space.tangent_names)}; got shape {values.shape}"
        )
    return np.append(values, np.zeros(dsys.nu))
