"""Discrete systems as systems of python-control: exact linearizations for its design and analysis,
and the step itself for its simulation and interconnection.
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

    States are the local coordinates by their names, inputs those of the system. `outputs` are
    names of local coordinates (all without them), or rows (ndx) of C by name. At an equilibrium,
    or a motion that looks the same in the body's axes, this is the system near there; elsewhere
    it is one step of a time-varying system. Raises ValueError for unknown names and other shapes,
    and as `linearize` does.
    """
    from control import ss  # takes a second to import

    names, lin = dsys.state_space.tangent_names, dsys.linearize(x, u)
    rows = _rows(dsys, names if outputs is None else outputs)
    C = np.array(list(rows.values())).reshape(len(rows), dsys.ndx)
    return ss(
        lin.A,
        lin.B,
        C,
        np.zeros((len(rows), dsys.nu)),
        dsys.h,
        states=list(names),
        inputs=list(dsys.inputs),
        outputs=list(rows),
        name=dsys.system.name,
    )


def to_iosys(dsys: DiscreteSystem, x: ArrayLike | None = None) -> NonlinearIOSystem:
    """The step as a discrete-time `control.NonlinearIOSystem` in local coordinates about a state x
    (nx), by default the origin at rest: `dx1 = local(x, f(retract(x, dx), u)),  y = dx`.

    Inputs are whole inputs, not changes. Raises ValueError for another shape of x; its functions
    raise as `step` does.
    """
    from control import nlsys

    space = dsys.system.space
    base = dsys.state(space.origin, np.zeros(space.nw)) if x is None else np.array(x, dtype=float)
    dsys.local(base, base)  # refuses another shape

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
    dsys: DiscreteSystem, outputs: Sequence[str] | Mapping[str, ArrayLike]
) -> dict[str, np.ndarray]:
    """Rows (ndx) of C by name."""
    names = dsys.state_space.tangent_names
    if not isinstance(outputs, Mapping):
        if unknown := [name for name in outputs if name not in names]:
            raise ValueError(f"{dsys}: unknown outputs {unknown}, choose of {list(names)}")
        return {name: np.eye(dsys.ndx)[names.index(name)] for name in outputs}
    rows = {name: np.asarray(row, dtype=float) for name, row in outputs.items()}
    for name, row in rows.items():
        if row.shape != (dsys.ndx,):
            raise ValueError(
                f"{dsys}: the output {name!r} must be a row of {dsys.ndx} numbers, one for each "
                f"of {list(names)}, got shape {row.shape}"
            )
    return rows
