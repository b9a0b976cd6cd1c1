"""Adaptive runs of Lie group methods, with the interface of `scipy.integrate.solve_ivp`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.integrators import lie_pairs
from nh_control.integrators.adaptive_results import Solution
from nh_control.integrators.adaptive_run import Request, Run
from nh_control.integrators.called_action import CalledAction
from nh_control.integrators.events import UserEvent, declared_events, event_expression
from nh_control.integrators.lie_problem import Equations, Input, lie_problem
from nh_control.integrators.lie_tableaux import Table
from nh_control.numerics.adaptive import AdaptiveSteps
from nh_control.numerics.compiled import Functions
from nh_control.numerics.expressions import Graph


def solve_ivp(
    equations: Equations,
    t_span: Sequence[float],
    x0: ArrayLike,
    u: Input = (),
    method: str | Table = "rkmk54",
    t_eval: ArrayLike | None = None,
    dense_output: bool = False,
    events: UserEvent | Sequence[UserEvent] | None = None,
    rtol: float = 1e-6,
    atol: ArrayLike = 1e-9,
    first_step: float | None = None,
    max_step: float = math.inf,
    p: ArrayLike | None = None,
) -> Solution:
    """Integrate `x' = generator(x) f(t, x)` from x0 (nx) at t_span[0] to t_span[1] with steps of
    variable size that stay on the manifold; arguments and result as `scipy.integrate.solve_ivp`.

    It makes an `AdaptiveIntegrator` and runs it once; for many runs, make one and keep it.
    """
    integrator = AdaptiveIntegrator(equations, method, u if callable(u) else None, events)
    inputs = () if callable(u) else u
    return integrator.solve(
        t_span, x0, inputs, t_eval, dense_output, rtol, atol, first_step, max_step, p
    )


class AdaptiveIntegrator:
    """An embedded pair of Lie group methods on a problem, compiled once for many runs: `solve`.

    `equations` are a `System`, its `LieEquations` (states (q, rho)), or a pair of an action and a
    field. The field is a function f(t, x) of CasADi expressions that gives an algebra element, or
    a `ca.Function` f(x, u, p) of state, inputs and parameters. `u` may be a function u(t, x) of
    expressions. If the time is used, it is one more number of the state, on which R^1 acts.

    Inputs of a system are its own, then the accelerations of prescribed coordinates. Impulses of
    holonomic constraints in the momentum of x0, as states of discrete systems have them, are
    taken out.

    `method` is a key of `METHODS`: "rkmk54" and "rkmk853" of Dormand and Prince, the
    commutator-free "cf32", "cf32_third_stage" and "cf43"; or a table with an embedded method, such
    as `munthe_kaas` makes of any Butcher tableau.

    `events` are functions g(t, x) whose zeros are located, with SciPy's attributes `terminal` and
    `direction`. They take CasADi expressions and are evaluated in the native loop, or, with the
    attribute `numeric = True`, numbers; numeric ones are called for the ends of steps after some
    steps. A zero at the start of the run does not count. Two zeros of one event within a step are
    missed; `max_step` helps.

    The error of a step is the difference of x1 and the embedded solution in the stored numbers, to
    first order a tangent vector: on unit vectors the angle, on quaternions half of it. It is
    relative to vectors as a whole, `s_i = atol_i + rtol |block of i|`, with the `blocks` of the
    action, so it does not depend on the frame: a direction or a quaternion counts as 1, each
    number of R^n alone, as in SciPy. See `numerics.adaptive` for the control of steps.

    Between steps the solution is `tau(v(theta)) . x` with a polynomial v of the algebra: of degree
    4 and 7 for the methods of Dormand and Prince (their own curves), Hermite's cubic for others.

    Raises ValueError for an unknown method, and as `LieEquations` and `declared_events` do.
    """

    def __init__(
        self,
        equations: Equations,
        method: str | Table = "rkmk54",
        u: Any = None,
        events: UserEvent | Sequence[UserEvent] | None = None,
    ):
        self._pair = _chosen(method)
        self.problem = lie_problem(equations, () if u is None else u)
        self.events = tuple(declared_events(events))
        t, (x, u, p) = ca.SX.sym("t"), self._symbols
        values = event_expression(self.events, t, x[: self.problem.nx])
        self._symbolic_events = ca.Function("nh_events", [t, x, u, p], [values])

    def solve(
        self,
        t_span: Sequence[float],
        x0: ArrayLike,
        u: ArrayLike = (),
        t_eval: ArrayLike | None = None,
        dense_output: bool = False,
        rtol: float = 1e-6,
        atol: ArrayLike = 1e-9,
        first_step: float | None = None,
        max_step: float = math.inf,
        p: ArrayLike | None = None,
    ) -> Solution:
        """One run from x0 (nx) under constant inputs u (nu), with the values p of the parameters,
        by default the system's; atol is one number or (nx).

        A failure is not raised: `status` is -1, and the solution up to there is kept. Raises
        ValueError for values that do not fit.
        """
        problem = self.problem
        request = Request.checked(
            problem, t_span, x0, u, t_eval, dense_output, rtol, atol, first_step, max_step, p
        )
        if problem.start is not None:
            x = request.x0[: problem.nx]
            settled = np.asarray(problem.start(x, request.p))[:, 0]
            request = replace(request, x0=np.concatenate([settled, request.x0[problem.nx :]]))
        between = dense_output or t_eval is not None or bool(self.events)
        steps, evaluations = self._dense_steps if between else self._steps
        run = Run(request, problem, steps, self._functions, self.events, self._pair.order)
        return run.solution(evaluations)

    @cached_property
    def _steps(self) -> tuple[AdaptiveSteps, int]:
        return self._compiled(False)

    @cached_property
    def _dense_steps(self) -> tuple[AdaptiveSteps, int]:
        return self._compiled(True)

    def _compiled(self, dense: bool) -> tuple[AdaptiveSteps, int]:
        """The steps, and how often each trial evaluates the field."""
        problem, pair, evaluations = self.problem, self._pair, 0
        inline = problem.field.n_instructions() <= INLINE
        action = problem.action if inline else CalledAction(problem.action)
        kind: Any = ca.SX if inline else ca.MX
        x, f, u, p, h = (kind.sym(name, n) for name, n in zip("xfuph", self._sizes))

        def field(x: Graph) -> Graph:
            nonlocal evaluations
            evaluations += 1
            return problem.field(x, u, p)

        one = lie_pairs.trial(pair, action, field, x, f, h, dense)
        outputs = [ca.densify(v) for v in (one.x1, one.f1, one.errors, one.dense)]
        functions = (
            ca.Function("nh_trial", [x, f, u, p, h], outputs),
            self._point(outputs[-1].numel()),
            self._symbolic_events,
        )
        name = f"{problem.name}_{self._pair.table.name}"
        return AdaptiveSteps(name, *functions, problem.blocks, pair.order), evaluations

    def _point(self, n: int) -> ca.Function:
        """`nh_point(x, curve, theta)` of curves in n numbers; x itself where there are none."""
        x, curve, theta = self._symbols[0], ca.SX.sym("curve", n), ca.SX.sym("theta")
        point = lie_pairs.point(self._pair, self.problem.action, x, curve, theta) if n else x
        return ca.Function("nh_point", [x, curve, theta], [ca.densify(point)])

    @cached_property
    def _sizes(self) -> tuple[int, int, int, int, int]:
        """Sizes of state, algebra, inputs, parameters and h."""
        field = self.problem.field
        nu, n_parameters = field.size1_in(1), field.size1_in(2)
        return self.problem.action.nx, self.problem.action.dim, nu, n_parameters, 1

    @cached_property
    def _symbols(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """State, inputs and parameters."""
        function = self.problem.field
        x, u, p = (ca.SX.sym(name, function.size1_in(k)) for k, name in enumerate("xup"))
        return x, u, p

    @cached_property
    def _functions(self) -> Functions:
        """`nh_start(x, f, u, p, h)`, the field and the rate of x at `tau(h f) . x`,
        `nh_normalize(x)` and the events.
        """
        action, (x, u, p) = self.problem.action, self._symbols
        f, h = ca.SX.sym("f", action.dim), ca.SX.sym("h")
        moved = action.act(h * f, x)
        there = self.problem.field(moved, u, p)
        rate = ca.densify(action.generator(moved) @ there)
        functions = [
            ca.Function("nh_start", [x, f, u, p, h], [there, rate]),
            ca.Function("nh_normalize", [x], [ca.densify(action.normalize(x))]),
            self._symbolic_events,
        ]
        return Functions(f"{self.problem.name}_start", functions)


INLINE = 150
"""Instructions of a field up to which a step is one expression: faster to run (0.7 us instead of
1.1 for a heavy top by "rkmk54"), while a large one takes long to compile.
"""
METHODS = lie_pairs.pairs()
"""Embedded pairs by name."""


def _chosen(method: str | Table) -> lie_pairs.Pair:
    if not isinstance(method, str):
        return lie_pairs.pair_of(method)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}, choose one of {', '.join(METHODS)}")
    return METHODS[method]
