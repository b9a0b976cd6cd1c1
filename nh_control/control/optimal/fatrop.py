"""Nonlinear programs by fatrop, which knows their stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np


@dataclass(frozen=True)
class Stages:
    """The stages of the variables, of which the first `n_states` are states, and of the equations.
    The gap before a stage has the number of the stage less 1/2; `last` is the last stage.
    """

    variables: np.ndarray
    equations: np.ndarray
    n_states: int
    last: int

    @property
    def orders(self) -> tuple[np.ndarray, np.ndarray]:
        """Variables by stages, states first, and equations, gaps first."""
        inputs = np.arange(len(self.variables)) >= self.n_states
        return np.lexsort((inputs, self.variables)), np.argsort(self.equations, kind="stable")

    @property
    def structure(self) -> dict[str, Any]:
        """Numbers of states, inputs and further equations of every stage."""
        states, others = np.split(self.variables, [self.n_states])
        whole = self.equations[self.equations == np.floor(self.equations)]

        def counts(of: np.ndarray) -> list[int]:
            return np.bincount(of.astype(int), minlength=self.last + 1).tolist()

        sizes = {"nx": counts(states), "nu": counts(others), "ng": counts(whole)}
        return {"structure_detection": "manual", "N": self.last, **sizes}


class Staged:
    """A solver of the program {x, f, g} in its own order, by fatrop in that of its stages."""

    def __init__(
        self, program: dict[str, ca.MX], stages: Stages, equal: np.ndarray, options: dict[str, Any]
    ):
        self._v, self._g = stages.orders
        values = ca.Function("values", [program["x"]], [program["f"], program["g"]])
        v = ca.MX.sym("v", len(self._v))
        f, g = values(v[np.argsort(self._v).tolist()])
        self._solver = ca.nlpsol(
            "staged",
            "fatrop",
            {"x": v, "f": f, "g": g[self._g.tolist()]},
            {f"fatrop.{name}": value for name, value in options.items()}
            | {"equality": equal[self._g].tolist(), "print_time": False}
            | stages.structure,
        )
        self.stats = self._solver.stats

    def __call__(self, **given: Any) -> dict[str, Any]:
        order = {"x0": self._v, "lbx": self._v, "ubx": self._v, "lbg": self._g, "ubg": self._g}
        solution = self._solver(**{name: given[name][indices] for name, indices in order.items()})
        return {"f": solution["f"], "x": solution["x"][np.argsort(self._v).tolist()]}
