"""Solution of nonlinear programs by fatrop, which exploits the stages of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np


@dataclass(frozen=True)
class Stages:
    """The stages of the variables and of the equations. The first `n_states` variables are states.
    The stage of a gap is the number of the next stage minus 1/2; `last` is the last stage.
    """

    variables: np.ndarray
    equations: np.ndarray
    n_states: int
    last: int

    @property
    def orders(self) -> tuple[np.ndarray, np.ndarray]:
        """The order of the variables, by stages with states first, and the order of the equations,
        by stages with gaps first.
        """
        inputs = np.arange(len(self.variables)) >= self.n_states
        return np.lexsort((inputs, self.variables)), np.argsort(self.equations, kind="stable")

    @property
    def structure(self) -> dict[str, Any]:
        """The numbers of states, inputs and other equations in every stage."""
        states, others = np.split(self.variables, [self.n_states])
        # gaps have half-integer stages and are not counted
        whole = self.equations[self.equations == np.floor(self.equations)]

        def counts(of: np.ndarray) -> list[int]:
            return np.bincount(of.astype(int), minlength=self.last + 1).tolist()

        sizes = {"nx": counts(states), "nu": counts(others), "ng": counts(whole)}
        return {"structure_detection": "manual", "N": self.last, **sizes}


class Staged:
    """A solver that accepts the program {x, f, g} in its original order. Fatrop solves the program
    in the order of the stages.
    """

    def __init__(
        self, program: dict[str, ca.MX], stages: Stages, equal: np.ndarray, options: dict[str, Any]
    ):
        self._v, self._g = stages.orders
        values = ca.Function("values", [program["x"]], [program["f"], program["g"]])
        v = ca.MX.sym("v", len(self._v))
        # v is x in the order of the stages
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

    def __call__(self, **arguments: Any) -> dict[str, Any]:
        order = {"x0": self._v, "lbx": self._v, "ubx": self._v, "lbg": self._g, "ubg": self._g}
        solution = self._solver(
            **{name: arguments[name][indices] for name, indices in order.items()}
        )
        return {"f": solution["f"], "x": solution["x"][np.argsort(self._v).tolist()]}
