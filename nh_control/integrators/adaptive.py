"""Adaptive runs of Lie group methods, with the interface of `scipy.integrate.solve_ivp`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import casadi as ca
from numpy.typing import ArrayLike

from nh_control.integrators import lie_pairs
from nh_control.integrators.adaptive_results import Solution
from nh_control.integrators.adaptive_run import AdaptiveRun, Request
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
    """Integrate `x' = generator(x) f(t, x)` from x0 (nx) at t_span[0] to t_span[1], with steps of
    variable size that stay on the manifold. The arguments and the result are as in
    `scipy.integrate.solve_ivp`.

    The function builds an `AdaptiveIntegrator` and runs it once. For many runs, build one and
    reuse it.
    """
    integrator = AdaptiveIntegrator(equations, method, u if callable(u) else None, events)
    inputs = () if callable(u) else u
    return integrator.solve(
        t_span, x0, inputs, t_eval, dense_output, rtol, atol, first_step, max_step, p
    )


class AdaptiveIntegrator:
    """An embedded pair of Lie group methods for a problem, compiled once for many runs with
    `solve`.

    `equations` is a `System`, its `LieEquations` (with states (q, rho)), or a pair of an action
    and a field. The field is a function f(t, x) of CasADi expressions that returns an algebra
    element, or a `ca.Function` f(x, u, p) of the state, inputs and parameters. `u` may be a
    function u(t, x) of expressions. If these functions use the time, the time becomes the last
    component of the state, and R^1 acts on it.

    The accelerations of prescribed coordinates follow the system's inputs. The momentum in x0 may
    contain impulses of holonomic constraints, as in the states of discrete systems. These impulses
    are removed.

    `method` is a key of `METHODS`: "rkmk54" and "rkmk853" by Dormand and Prince, or the
    commutator-free "cf32", "cf32_third_stage" and "cf43". It may also be a table with an embedded
    method. `munthe_kaas` converts any Butcher tableau to such a table.

    `events` are functions g(t, x) with SciPy's attributes `terminal` and `direction`. The run
    locates their zeros. The functions take CasADi expressions and are evaluated in the native
    loop. With the attribute `numeric = True`, they take numbers and are called after each batch of
    steps. A zero at the initial time does not count. Two zeros of one event within a step are
    missed. In this case, use a smaller `max_step`.

    The error of a step is the difference between x1 and the embedded solution in the components of
    the state. To first order, it is a tangent vector. Its norm is the angle for unit vectors, and
    half the angle for quaternions. The scale is `s_i = atol_i + rtol |block of i|` with the norms
    of whole vectors (the `blocks` of the action), so it does not depend on the frame. A direction
    or a quaternion has the norm 1, and each component of R^n is a block, as in SciPy. See
    `numerics.adaptive` for the step size control.

    Within a step, the solution is `tau(v(theta)) . x` with a polynomial v in the algebra. For
    Dormand and Prince's methods, v is their dense output of degree 4 or 7. For other methods, it
    is a Hermite cubic.

    Raises ValueError for an unknown method, and in the same cases as `LieEquations` and
    `declared_events`.
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
        # compiled events are evaluated in the native loop
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
        """One run from x0 (nx) with constant inputs u (nu) and the parameter values p, which
        default to the system's values. `atol` is a number or has shape (nx,).

        A failure does not raise an error. Instead, `status` is -1, and the result contains the
        solution up to the failure. Raises ValueError for arguments with wrong shapes or values.
        """
        request = Request.checked(
            self.problem, t_span, x0, u, t_eval, dense_output, rtol, atol, first_step, max_step, p
        )
        # interpolation needs additional stages
        between = dense_output or t_eval is not None or bool(self.events)
        steps, evaluations = self._dense_steps if between else self._steps
        run = AdaptiveRun(request, self.problem, steps, self._functions, self.events)
        return run.solution(evaluations)

    @cached_property
    def _steps(self) -> tuple[AdaptiveSteps, int]:
        return self._compiled(False)

    @cached_property
    def _dense_steps(self) -> tuple[AdaptiveSteps, int]:
        return self._compiled(True)

    def _compiled(self, dense: bool) -> tuple[AdaptiveSteps, int]:
        """The steps, and the number of evaluations of the field in each trial."""
        problem, pair, evaluations = self.problem, self._pair, 0
        # small fields are inlined as SX expressions, and large ones are called from MX graphs
        inline = problem.field.n_instructions() <= INLINE
        action = problem.action if inline else CalledAction(problem.action)
        kind: Any = ca.SX if inline else ca.MX
        x, f, u, p, h = (kind.sym(name, n) for name, n in zip("xfuph", self._sizes))

        def field(x: Graph) -> Graph:
            nonlocal evaluations
            evaluations += 1
            return problem.field(x, u, p)

        step = lie_pairs.trial(pair, action, field, x, f, h, dense)
        outputs = [ca.densify(v) for v in (step.x1, step.f1, step.errors, step.dense)]
        steps = AdaptiveSteps(
            f"{problem.name}_{self._pair.table.name}",
            ca.Function("nh_trial", [x, f, u, p, h], outputs),
            self._point(outputs[-1].numel()),
            self._symbolic_events,
            self._start,
            problem.blocks,
            pair.order,
        )
        return steps, evaluations

    def _point(self, n: int) -> ca.Function:
        """`nh_point(x, curve, theta)` for curves with n coefficients. It returns x if n is 0."""
        x, curve, theta = self._symbols[0], ca.SX.sym("curve", n), ca.SX.sym("theta")
        point = lie_pairs.point(self._pair, self.problem.action, x, curve, theta) if n else x
        return ca.Function("nh_point", [x, curve, theta], [ca.densify(point)])

    @cached_property
    def _sizes(self) -> tuple[int, int, int, int, int]:
        """Sizes of the state, algebra, inputs, parameters and h."""
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
    def _start(self) -> ca.Function:
        """`nh_start(x, f, u, p, h)` returns the field and the rate of x at `tau(h f) . x`."""
        action, (x, u, p) = self.problem.action, self._symbols
        f, h = ca.SX.sym("f", action.dim), ca.SX.sym("h")
        moved = action.act(h * f, x)
        there = self.problem.field(moved, u, p)
        # x' = generator(x) f
        rate = ca.densify(action.generator(moved) @ there)
        return ca.Function("nh_start", [x, f, u, p, h], [ca.densify(there), rate])

    @cached_property
    def _functions(self) -> Functions:
        """`nh_settle(x, p)` and the events. The first result of `nh_settle` is x without impulses
        of holonomic constraints, and the second one is also on the manifold.
        """
        problem, (x, _, p) = self.problem, self._symbols
        settled = x
        if problem.start is not None:
            settled = ca.vertcat(problem.start(x[: problem.nx], p), x[problem.nx :])
        normal = ca.densify(problem.action.normalize(settled))
        settle = ca.Function("nh_settle", [x, p], [ca.densify(settled), normal])
        return Functions(f"{problem.name}_start", [settle, self._symbolic_events])


INLINE = 150
"""Maximum number of instructions in a field for a step to be one expression. One expression runs
faster (0.7 us instead of 1.1 us for a heavy top with "rkmk54"), but takes long to compile if it is
large.
"""
METHODS = lie_pairs.pairs()
"""Embedded pairs by name."""


def _chosen(method: str | Table) -> lie_pairs.Pair:
    if not isinstance(method, str):
        return lie_pairs.pair_of(method)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}, choose one of {', '.join(METHODS)}")
    return METHODS[method]
