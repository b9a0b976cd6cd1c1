"""A step as a JAX function with exact derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.interop.jacobians import StoredCoordinates

try:
    import jax
    import jax.numpy as jnp
except ImportError as missing:
    raise ImportError("nh.to_jax needs JAX: pip install jax, or the extra 'jax'") from missing

from nh_control.interop.jax_operations import JaxStep, by_matrices, translated


class JaxModel:
    """A discrete system for JAX: `step(x, u, p) -> x1`, `local(x0, x1) -> dx` and
    `retract(x, dx) -> x1` on float64 arrays, under `jit`, `vmap`, `grad`, `jacfwd` and `jvp`. The
    vector p (k) contains the values of the named `parameters`.

    The step runs on the host (`jax.pure_callback`). Its derivatives are exact, and `dx1/dx` is the
    derivative along the manifold of states (see `StoredCoordinates`). Second derivatives raise
    NotImplementedError. Raises ValueError for other shapes, and if JAX does not use 64 bits. A
    failed step raises a JAX error with the step's message.

    If `batched` is true, all three functions consist of JAX operations (see `JaxStep`), which
    `jit` compiles and `vmap` evaluates for a whole batch, and second derivatives are available. A
    failed step then returns NaN.
    """

    def __init__(
        self, dsys: DiscreteSystem, parameters: Sequence[str] = (), batched: bool = False
    ):
        self.dsys, self._coordinates = dsys, StoredCoordinates(dsys, parameters)
        if batched:
            self._step: Callable[..., jax.Array] = JaxStep(self._coordinates)
            self._local, self._retract = map(self._operations, ("local", "retract"))
            return
        d, coordinates, k = dsys, self._coordinates, len(self._coordinates.parameters)
        rows = partial(_step_rows, coordinates)
        self._step = _differentiable(rows, (d.nx, d.nu, k), d.nx)
        self._local = _differentiable(coordinates.local, (d.nx, d.nx), d.ndx)
        self._retract = _differentiable(coordinates.retract, (d.nx, d.ndx), d.nx)

    def __repr__(self) -> str:
        return f"JaxModel({self.dsys})"

    def _operations(self, name: str) -> Callable[..., jax.Array]:
        """`local` or `retract` as JAX operations."""
        function = translated(self._coordinates.expressions[name])
        return by_matrices(lambda a, b: function(a, b)[0], lambda a, b: function(a, b)[1:])

    def step(self, x: Any, u: Any, p: Any = None) -> jax.Array:
        """The state (nx) after a step from x (nx) under u (nu)."""
        d = self.dsys
        p = self._coordinates.nominal if p is None else p
        k = len(self._coordinates.parameters)
        return self._step(
            self._array("x", x, d.nx), self._array("u", u, d.nu), self._array("p", p, k)
        )

    def local(self, x0: Any, x1: Any) -> jax.Array:
        """Tangent vector (ndx) from the state x0 to x1 (nx)."""
        n = self.dsys.nx
        return self._local(self._array("x0", x0, n), self._array("x1", x1, n))

    def retract(self, x: Any, dx: Any) -> jax.Array:
        """State (nx) reached from x (nx) along dx (ndx)."""
        d = self.dsys
        return self._retract(self._array("x", x, d.nx), self._array("dx", dx, d.ndx))

    def _array(self, name: str, value: Any, n: int) -> jax.Array:
        """The value as a float64 array (n). Raises ValueError."""
        array = jnp.asarray(value, dtype=float)
        if array.shape != (n,):
            raise ValueError(
                f"{self.dsys}: {name} must have shape ({n},), got {array.shape}; use jax.vmap "
                "for a batch"
            )
        if array.dtype != jnp.float64:
            raise ValueError(
                f"{self.dsys}: JAX computes in 32 bits, which a step cannot use: "
                "jax.config.update('jax_enable_x64', True)"
            )
        return array


def _step_rows(
    coordinates: StoredCoordinates, x: np.ndarray, u: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The steps for a batch, row by row, with Jacobians. Parameters may differ between rows."""
    if len(p) == 0 or (p == p[0]).all():
        return coordinates.step_jacobians(x, u, p[0] if len(p) else coordinates.nominal)
    # a system has one set of parameters, so rows with different parameters are separate batches
    rows = [coordinates.step_jacobians(x[i : i + 1], u[i : i + 1], p[i]) for i in range(len(x))]
    return tuple(np.concatenate(parts) for parts in zip(*rows))


def _differentiable(
    rows: Callable[..., tuple[np.ndarray, ...]], sizes: Sequence[int], n: int
) -> Callable[..., jax.Array]:
    """The differentiable function (n) of vectors with the given sizes. `rows` computes its values
    and Jacobians for tables.
    """
    # the value, and its Jacobian with respect to each argument
    shapes = [(n,), *((n, size) for size in sizes)]

    def on_host(*arguments: Any) -> tuple[np.ndarray, ...]:
        # vmap adds leading dimensions to all arguments, and these become the rows of tables
        arrays = [np.asarray(argument) for argument in arguments]
        batch = arrays[0].shape[:-1]
        tables = [a.reshape(math.prod(batch), size) for a, size in zip(arrays, sizes)]
        results = rows(*tables)
        return tuple(np.reshape(part, (*batch, *shape)) for part, shape in zip(results, shapes))

    @jax.custom_jvp
    def with_jacobians(*arguments: jax.Array) -> tuple[jax.Array, ...]:
        results = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]
        return jax.pure_callback(on_host, results, *arguments, vmap_method="broadcast_all")

    @with_jacobians.defjvp
    def refused(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(
            "second derivatives of a step are not available in JAX; DiscreteSystem.hessian "
            "computes them exactly"
        )

    @jax.custom_jvp
    def function(*arguments: jax.Array) -> jax.Array:
        return with_jacobians(*arguments)[0]

    @function.defjvp
    def derivative(
        primals: Sequence[jax.Array], tangents: Sequence[jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        value, *jacobians = with_jacobians(*primals)
        # df = sum of J_i dx_i
        change = sum((J @ dx for J, dx in zip(jacobians, tangents)), jnp.zeros(n))
        return value, change

    return function
