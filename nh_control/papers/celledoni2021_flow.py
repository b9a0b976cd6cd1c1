"""Motions in [celledoni2021]: motions with constant steps, computed by the paper's methods and by
classical methods, and accurate motions, computed by SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from nh_control.geometry.homogeneous import HomogeneousSpace, ProductAction, TranslationAction
from nh_control.integrators.lie_group import lie_step
from nh_control.integrators.lie_tableaux import TABLES, Table
from nh_control.numerics.compiled import Functions
from nh_control.papers import measure

TIGHTEST = 1e-13
METHODS = {
    "Lie-Euler": "lie_euler",
    "Lie-Euler-Heun": "lie_euler_heun",
    "RKMK3": "rkmk3",
    "RKMK4": "rkmk4",
    "RKMK4, two commutators": "rkmk4_two_commutators",
    "CF4": "cf43",
}
"""Names of the constant-step methods in the figures."""
ORDERS = {
    "Lie-Euler": 1,
    "Lie-Euler-Heun": 2,
    "RKMK3": 3,
    "RKMK4": 4,
    "RKMK4, two commutators": 4,
    "RKMK4, series": 4,
    "CF4": 4,
    "RKMK5": 5,
}


class Untouched(ProductAction):
    """A product action that does not normalize points after a step. It shows how accurately the
    methods themselves stay on the manifold.
    """

    def normalize(self, x: ca.SX) -> ca.SX:
        return x


class Truncated(ProductAction):
    """A product action with dexp^{-1} truncated before ad^5, which suffices for order 5."""

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self.dexp_inverse_series(u, v)


@dataclass(frozen=True)
class Problem:
    """The problem `x' = generator(x) f(x, p)` with x = x0 at t = 0 and the parameters p in
    `numbers`.
    """

    name: str
    action: HomogeneousSpace
    field: ca.Function
    numbers: np.ndarray
    x0: np.ndarray

    def on(self, kind: type[ProductAction]) -> Problem:
        """Return the same problem with a different kind of product of the same actions."""
        if not isinstance(self.action, ProductAction):
            raise TypeError(f"{self.name}: expected a product of actions, got {self.action}")
        action = kind(*self.action.factors, places=self.action.places)
        return Problem(self.name, action, self.field, self.numbers, self.x0)

    @property
    def flat(self) -> Problem:
        """The problem in R^nx, without its geometry. In R^nx, Munthe-Kaas methods are classical
        Runge-Kutta methods.
        """
        # x' = generator(x) f(x) as a field on R^nx, on which translations act.
        x, p = ca.SX.sym("x", self.action.nx), ca.SX.sym("p", len(self.numbers))
        rate = self.action.generator(x) @ self.field(x, ca.SX(0, 1), p)
        arguments = [x, ca.SX.sym("u", 0), p]
        return Problem(
            self.name,
            TranslationAction(*self.action.names),
            ca.Function(
                "field", arguments, [ca.densify(rate)], ["x", "u", "p"], ["f"], {"cse": True}
            ),
            self.numbers,
            self.x0,
        )

    @cached_property
    def rate(self) -> Callable[[float, np.ndarray], np.ndarray]:
        """The compiled right-hand side x'(t, x) for ODE solvers."""
        call = self.flat.compiled().direct("field")
        # The call reads from and writes to fixed buffers. Only x changes between evaluations.
        call.inputs[1][:] = self.numbers

        def rate(_: float, x: np.ndarray) -> np.ndarray:
            call.inputs[0][:] = x
            call.run()
            return call.outputs[0][:, 0].copy()

        return rate

    def compiled(self) -> Functions:
        """Return the compiled `field(x, p)`."""
        x, p = ca.SX.sym("x", self.action.nx), ca.SX.sym("p", len(self.numbers))
        f = ca.Function("field", [x, p], [self.field(x, ca.SX(0, 1), p)], ["x", "p"], ["f"])
        return Functions(f"{self.name}_field", [f])

    def accurate(
        self, times: np.ndarray, tolerance: float = TIGHTEST, solver: str = "DOP853"
    ) -> np.ndarray:
        """Return the states (N, nx) at times (N), computed by one of SciPy's solvers in R^nx.
        Raises RuntimeError if the solver fails.
        """
        span = (0.0, float(times[-1]))
        run = solve_ivp(
            self.rate, span, self.x0, solver, t_eval=times, rtol=tolerance, atol=tolerance
        )
        if not run.success:
            raise RuntimeError(f"{self.name} by {solver} at {tolerance}: {run.message}")
        return run.y.T


class Steps:
    """Compiled steps of methods applied to problems. Each name maps to a problem and to a tableau
    or the name of an embedded pair. For a pair, the main method is used. All problems have the
    same number of parameters.
    """

    def __init__(self, name: str, methods: Mapping[str, tuple[str | Table, Problem]]):
        functions = []
        for k, (method, problem) in enumerate(methods.values()):
            table = TABLES[method].main if isinstance(method, str) else method
            functions.append(_step(f"step{k}", table, problem))
        compiled = Functions(name, functions)
        self._calls = {m: compiled.direct(f"step{k}") for k, m in enumerate(methods)}

    def run(self, method: str, problem: Problem, h: float, steps: int) -> np.ndarray:
        """Return the states (steps + 1, nx) of a problem. It may differ from the method's problem
        only in its parameters and its initial state.
        """
        call = self._calls[method]
        states = np.empty((steps + 1, len(problem.x0)))
        states[0] = call.inputs[0][:] = problem.x0
        call.inputs[1][:], call.inputs[2][:] = h, problem.numbers
        for k in range(steps):
            call.run()
            # The new state is the input to the next step.
            states[k + 1] = call.inputs[0][:] = call.outputs[0][:, 0]
        return states

    def errors(
        self,
        method: str,
        problem: Problem,
        end: np.ndarray,
        duration: float,
        counts: Sequence[int],
    ) -> np.ndarray:
        """Return the Euclidean errors in the final states, one for each number of steps."""
        runs = [self.run(method, problem, duration / n, n)[-1] for n in counts]
        return np.array([np.linalg.norm(x - end) for x in runs])


def _step(name: str, table: Table, problem: Problem) -> ca.Function:
    x, h = ca.SX.sym("x", problem.action.nx), ca.SX.sym("h")
    p = ca.SX.sym("p", len(problem.numbers))
    # The fields have no inputs, and the pair's error estimate is not used.
    end, _ = lie_step(table, problem.action, lambda y: problem.field(y, ca.SX(0, 1), p), x, h)
    return ca.Function(name, [x, h, p], [end], ["x", "h", "p"], ["x1"], {"cse": True})


def order_figure(h: np.ndarray, errors_by_name: dict[str, np.ndarray], title: str) -> Figure:
    """Plot the errors of methods of orders 1 to 4 against the step size."""
    figure = Figure(figsize=(5.2, 4.0), layout="constrained")
    axes = figure.add_subplot()
    measure.plot_orders(axes, h, errors_by_name, (1, 2, 3, 4))
    axes.legend(fontsize=7)
    axes.set_title(title)
    return figure
