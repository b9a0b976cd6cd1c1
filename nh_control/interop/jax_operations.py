"""A step as JAX operations: the translated functions in its equations, and the solution of the
equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import casadi as ca
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf

from nh_control.discrete.equations import StepEquations
from nh_control.discrete.system import DiscreteSystem
from nh_control.interop.jacobians import StoredCoordinates
from nh_control.numerics.instructions import instructions
from nh_control.numerics.newton import ACCEPT, LEAST, MAX_HALVINGS, MAX_ITERATIONS, TOLERANCE

# operations that JAX has under the same or a similar name
SAME = {name: name for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "floor", "ceil")}
SAME |= {name: name for name in ("sinh", "cosh", "tanh", "log1p", "expm1", "sign", "hypot")}
SAME |= {name: f"arc{name[1:]}" for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}
SAME |= {"atan2": "arctan2", "fmod": "fmod", "copysign": "copysign", "fabs": "abs"}
SAME |= {"fmin": "fmin", "fmax": "fmax", "pow": "power", "constpow": "power"}
OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(jnp, jax_name) for name, jax_name in SAME.items()},
    "assign": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "sq": lambda a: a * a,
    "twice": lambda a: 2.0 * a,
    "inv": lambda a: 1.0 / a,
    "lt": lambda a, b: jnp.where(a < b, 1.0, 0.0),
    "le": lambda a, b: jnp.where(a <= b, 1.0, 0.0),
    "eq": lambda a, b: jnp.where(a == b, 1.0, 0.0),
    "ne": lambda a, b: jnp.where(a != b, 1.0, 0.0),
    "not": lambda a: jnp.where(a == 0.0, 1.0, 0.0),
    "and": lambda a, b: jnp.where((a != 0.0) & (b != 0.0), 1.0, 0.0),
    "or": lambda a, b: jnp.where((a != 0.0) | (b != 0.0), 1.0, 0.0),
    "if_else_zero": lambda a, b: jnp.where(a != 0.0, b, 0.0),
    "erf": erf,
}
"""JAX operations, by the names in `instructions`."""


def translated(f: ca.Function) -> Callable[..., tuple[jax.Array, ...]]:
    """Translate the CasADi function `f` of column vectors, operation by operation, into a function
    of JAX arrays that returns dense vectors or matrices. Raises ValueError for operations that JAX
    does not have.
    """
    # SX functions have scalar instructions
    scalar = f if f.is_a("SXFunction") else f.expand()
    code = [*instructions(scalar)]
    # rows and columns of the structural nonzeros of every output
    places = [tuple(map(np.array, scalar.sparsity_out(k).get_triplet())) for k in range(f.n_out())]
    shapes = [f.size_out(k) for k in range(f.n_out())]

    def function(*arguments: jax.Array) -> tuple[jax.Array, ...]:
        registers = dict[int, Any]()
        results: list[dict[int, Any]] = [{} for _ in shapes]
        for name, target, operands, value in code:
            # operands are the register and the index of the nonzero
            if name == "output":
                results[target][operands[1]] = registers[operands[0]]
            elif name == "const":
                registers[target] = value
            elif name == "input":
                registers[target] = arguments[operands[0]][operands[1]]
            else:
                registers[target] = OPERATIONS[name](*(registers[k] for k in operands))
        return tuple(map(_dense, results, places, shapes))

    return function


def _dense(values: dict[int, Any], places: Any, shape: tuple[int, int]) -> jax.Array:
    """A dense vector or matrix with the given values at their (rows, columns)."""
    size = shape[:1] if shape[1] == 1 else shape
    zeros = jnp.zeros(size)
    if not values:
        return zeros
    numbers = jnp.stack([jnp.asarray(values[k], dtype=zeros.dtype) for k in range(len(values))])
    rows, columns = places
    return zeros.at[rows if len(size) == 1 else (rows, columns)].set(numbers)


def solution(a: jax.Array, b: jax.Array) -> jax.Array:
    """The solution y of a y = b for a small a (n, n) and b (n), by Gaussian elimination with
    partial pivoting. It uses array operations, because JAX calls LAPACK for each matrix in a batch
    in turn.
    """
    n, eliminated = len(b), list[jax.Array]()
    rows = jnp.concatenate([a, b[:, None]], axis=1)
    for k in range(n):
        top, below = rows[0], rows[1:]
        if k < n - 1:  # exchange the first row with the row that has the largest pivot
            here = jnp.arange(n - k) == jnp.argmax(jnp.abs(rows[:, k]))
            top = jnp.where(here[:, None], rows, 0.0).sum(axis=0)
            below = jnp.where(here[1:, None], rows[0], rows[1:])
        # eliminate column k below the pivot
        rows = below - (below[:, k] / top[k])[:, None] * top
        eliminated.append(top)
    # back substitution: y_k = (b_k - sum over j > k of a_kj y_j) / a_kk
    y = jnp.zeros(0)
    for k in reversed(range(n)):
        top = eliminated[k]
        y = jnp.concatenate([((top[n] - top[k + 1 : n] @ y) / top[k])[None], y])
    return y


def by_matrices(
    value: Callable[..., jax.Array], matrices: Callable[..., Sequence[jax.Array]]
) -> Callable[..., jax.Array]:
    """The function `value` of vectors. Its derivatives with respect to each vector are `matrices`,
    in forward and reverse mode. (JAX's default reverse mode returns NaN if the branch that is not
    taken is NaN.)
    """

    @jax.custom_jvp
    def function(*arguments: jax.Array) -> jax.Array:
        return value(*arguments)

    @function.defjvp
    def derivative(
        primals: Sequence[jax.Array], tangents: Sequence[jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        after = function(*primals)
        change = jnp.zeros_like(after)
        for J, dx in zip(matrices(*primals), tangents):
            change = change + J @ dx
        return after, change

    return function


class JaxStep:
    """The step `x1 = g(x, u, z, p)` with `r(x, u, z, p) = 0` of a discrete system without contacts
    or redundant constraints. The equations are solved by a damped Newton's method, with a new
    Jacobian in every iteration and the tolerances of `numerics/newton.py`. Under `vmap`, states
    that have converged wait for the others. A step that has no solution, or that leaves the
    model's domain, is NaN.

    Derivatives follow from `dz = -r_z^{-1} (r_x dx + r_u du + r_p dp)` and the derivatives of g,
    along the manifold of states (see `StoredCoordinates`). Raises ValueError for other systems.
    """

    def __init__(self, coordinates: StoredCoordinates):
        d = coordinates.dsys
        _require_translatable(d)
        equations = StepEquations(d.system, replace(d.method, substeps=(1.0,)), str(d))
        functions = {f.name(): f for f in equations.step}
        names = "start", "residual", "jacobian", "readout"
        self._start, self._residual, self._r_z, self._readout = (
            translated(functions[name]) for name in names
        )
        self._tangent = translated(coordinates.expressions["tangent"])
        self._n, self._fractions = equations.nz, d.method.substeps
        self._values, self._indices = d.parameter_values, np.array(coordinates.indices, dtype=int)
        self._is_flat = d.nx == d.ndx
        self._unknowns = by_matrices(
            lambda x, u, p: self._solved(x, u, p)[0],
            lambda x, u, p: self._matrices(x, u, p)[0],
        )
        self._substep = by_matrices(self._after, lambda x, u, p: self._matrices(x, u, p)[1])

    def __call__(self, x: jax.Array, u: jax.Array, p: jax.Array) -> jax.Array:
        """The state (nx) after a step from x (nx) under u (nu) with the parameters p (k)."""
        # named parameters replace the system's values, and the step size is the last parameter
        values = jnp.asarray(self._values).at[self._indices].set(p)
        if len(self._fractions) == 1:
            return self._substep(x, u, values)

        def substep(x: jax.Array, fraction: jax.Array) -> tuple[jax.Array, None]:
            return self._substep(x, u, values.at[-1].multiply(fraction)), None

        return lax.scan(substep, x, jnp.array(self._fractions))[0]

    def _after(self, x: jax.Array, u: jax.Array, p: jax.Array) -> jax.Array:
        """The state after a substep. The vector p (n) contains all parameters and the step
        size.
        """
        z, solved = self._solved(x, u, p)
        x1, domain = self._readout(x, u, z, p)
        return jnp.where(solved & (domain > 0.0).all() & jnp.isfinite(x1).all(), x1, jnp.nan)

    def _solved(self, x: jax.Array, u: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The unknowns z (n), and whether they solve the equations."""
        z = jnp.zeros(self._n)
        if not self._n:
            return z, jnp.array(True)
        terms, r, J = self._start(x, u, p)
        J = J.reshape(self._n, self._n)
        # sizes of the residual's terms, to which errors are relative: |terms| + |J| |z|
        fixed = jnp.where(jnp.isfinite(terms), terms, 0.0)

        def sizes(J: jax.Array, z: jax.Array) -> jax.Array:
            return jnp.maximum(fixed + jnp.abs(J) @ jnp.abs(z), LEAST)

        def iterate(at: _Iterate) -> _Iterate:
            trial = at.z + at.t * at.dz
            (r,), J = self._residual(x, u, trial, p), self._jacobian(x, u, trial, p)
            size = sizes(J, trial)
            error = jnp.max(jnp.abs(r) / size)
            # sufficient decrease (Armijo) of the relative error
            shrinks = jnp.max(jnp.abs(r) / jnp.maximum(size, at.size)) < (
                (1.0 - 1e-4 * at.t) * at.error
            )
            # round-off is reached if the error is acceptable and has stopped decreasing
            settled = (error <= ACCEPT) & (error > 0.25 * at.least)
            advanced = _Iterate(
                z=trial,
                dz=solution(J, -r),
                size=size,
                error=error,
                least=jnp.minimum(error, at.least),
                t=jnp.ones(()),
                steps=at.steps + 1,
                converged=(error <= TOLERANCE) | settled,
            )
            # a rejected trial halves the fraction of the correction
            unchanged = at._replace(t=at.t / 2)
            accepted = shrinks | (error <= ACCEPT)
            return jax.tree_util.tree_map(
                lambda a, b: jnp.where(accepted, a, b), advanced, unchanged
            )

        def continues(at: _Iterate) -> jax.Array:
            allowed = (at.steps < MAX_ITERATIONS) & (at.t >= 0.5**MAX_HALVINGS)
            return ~at.converged & allowed & jnp.isfinite(at.dz).all()

        size = sizes(J, z)
        error = jnp.max(jnp.abs(r) / size)
        first = _Iterate(
            z=z,
            dz=solution(J, -r),
            size=size,
            error=error,
            least=error,
            t=jnp.ones(()),
            steps=jnp.zeros(()),
            converged=error <= TOLERANCE,
        )
        last = lax.while_loop(continues, iterate, first)
        # the last correction is applied without another test, as in newton.h
        return last.z + last.dz, last.converged

    def _jacobian(self, x: jax.Array, u: jax.Array, z: jax.Array, p: jax.Array) -> jax.Array:
        """r_z (n, n), which a translated function returns as a vector for n = 1."""
        return self._r_z(x, u, z, p)[0].reshape(self._n, self._n)

    def _matrices(
        self, x: jax.Array, u: jax.Array, p: jax.Array
    ) -> tuple[list[jax.Array], list[jax.Array]]:
        """Jacobians of the unknowns and of the next state with respect to (x, u, p). They are zero
        for parameters that are not named.
        """
        z = self._unknowns(x, u, p)
        J = self._jacobian(x, u, z, p)

        # parameters that are not named are constants, whose derivatives may not exist
        named = bool(len(self._indices))

        def along(dx: jax.Array, du: jax.Array, dp: jax.Array) -> tuple[jax.Array, jax.Array]:
            arguments, changes = ((x, u, p), (dx, du, dp)) if named else ((x, u), (dx, du))

            def residual(x: jax.Array, u: jax.Array, p: jax.Array = p) -> jax.Array:
                return self._residual(x, u, z, p)[0]

            def read(z: jax.Array, x: jax.Array, u: jax.Array, p: jax.Array = p) -> jax.Array:
                return self._readout(x, u, z, p)[0]

            # implicit function theorem: r_z dz = -(r_x dx + r_u du + r_p dp)
            dz = -solution(J, jax.jvp(residual, arguments, changes)[1])
            return dz, jax.jvp(read, (z, *arguments), (dz, *changes))[1]

        # one direction for each component of x, of u, and of the named parameters
        units = np.eye(len(p))[self._indices]
        directions = [np.eye(len(x)), np.eye(len(u)), units]
        counts = [len(rows) for rows in directions]
        blocks = [
            jnp.concatenate(
                [
                    jnp.asarray(rows) if i == k else jnp.zeros((n, rows.shape[1]))
                    for i, n in enumerate(counts)
                ]
            )
            for k, rows in enumerate(directions)
        ]
        by_state, by_input, by_parameter = blocks
        dz, dx1 = (columns.T for columns in jax.vmap(along)(by_state, by_input, by_parameter))
        ends = np.cumsum(counts)
        spread = []
        for rows in (dz, dx1):
            # directions in the order of the blocks
            by_x, by_u, by_p, _ = jnp.split(rows, ends, axis=1)
            spread.append([self._along_manifold(x, by_x), by_u, by_p @ units])
        return spread[0], spread[1]

    def _along_manifold(self, x: jax.Array, by_x: jax.Array) -> jax.Array:
        """A Jacobian with respect to the stored coordinates of x, times the projection T T^+ onto
        the tangent space at x.
        """
        # on a vector space, T is the identity
        if self._is_flat:
            return by_x
        (T,) = self._tangent(x)
        return by_x @ T @ jnp.linalg.solve(T.T @ T, T.T)  # T^+ = (T^T T)^{-1} T^T


class _Iterate(NamedTuple):
    """An iterate `z` of Newton's method, its correction `dz`, the sizes of the terms and the
    relative error of r at z, the `least` error so far, the fraction `t` of the correction to try
    next, the number of `steps` so far, and whether z has `converged`.
    """

    z: jax.Array
    dz: jax.Array
    size: jax.Array
    error: jax.Array
    least: jax.Array
    t: jax.Array
    steps: jax.Array
    converged: jax.Array


def _require_translatable(dsys: DiscreteSystem) -> None:
    if dsys.method.contacts is not None or dsys.system.n_redundant:
        what = "contacts" if dsys.method.contacts is not None else "redundant constraints"
        raise ValueError(
            f"{dsys}: steps of JAX operations do not support {what}; leave out `batched`, so that "
            "steps run on the host"
        )
