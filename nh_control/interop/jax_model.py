"""A step as a function of JAX with exact derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.interop.jacobians import StoredNumbers

try:
    import jax
    import jax.numpy as jnp
except ImportError as missing:
    raise ImportError("nh.to_jax needs JAX: pip install jax, or the extra 'jax'") from missing


class JaxModel:
    """A discrete system for JAX: `step(x, u, p) -> x1`, `local(x0, x1) -> dx` and
    `retract(x, dx) -> x1` on arrays of float64, under `jit`, `vmap`, `grad`, `jacfwd` and `jvp`; p
    (k) are the values of the named `parameters`.

    The step runs on the host (`jax.pure_callback`); derivatives are the exact ones of the step,
    `dx1/dx` along the manifold of states (see `StoredNumbers`). Second derivatives raise
    NotImplementedError. Raises ValueError for other shapes, and if JAX is not set to 64 bits; a
    failed step raises an error of JAX with its message.
    """

    def __init__(self, dsys: DiscreteSystem, parameters: Sequence[str] = ()):
        self.dsys, self._numbers = dsys, StoredNumbers(dsys, parameters)
        d, numbers, k = dsys, self._numbers, len(self._numbers.parameters)
        rows = partial(_step_rows, numbers)
        self._step = _differentiable(rows, (d.nx, d.nu, k), d.nx)
        self._local = _differentiable(numbers.local, (d.nx, d.nx), d.ndx)
        self._retract = _differentiable(numbers.retract, (d.nx, d.ndx), d.nx)

    def __repr__(self) -> str:
        return f"JaxModel({self.dsys})"

    def step(self, x: Any, u: Any, p: Any = None) -> jax.Array:
        """The state (nx) after a step from x (nx) under u (nu)."""
        d = self.dsys
        p = self._numbers.nominal if p is None else p
        k = len(self._numbers.parameters)
        return self._step(*self._checked({"x": (x, d.nx), "u": (u, d.nu), "p": (p, k)}))

    def local(self, x0: Any, x1: Any) -> jax.Array:
        """Tangent vector (ndx) from the state x0 to x1 (nx)."""
        n = self.dsys.nx
        return self._local(*self._checked({"x0": (x0, n), "x1": (x1, n)}))

    def retract(self, x: Any, dx: Any) -> jax.Array:
        """State (nx) reached from x (nx) along dx (ndx)."""
        d = self.dsys
        return self._retract(*self._checked({"x": (x, d.nx), "dx": (dx, d.ndx)}))

    def _checked(self, given: dict[str, tuple[Any, int]]) -> list[jax.Array]:
        arrays = [jnp.asarray(value, dtype=float) for value, _ in given.values()]
        for (name, (_, n)), array in zip(given.items(), arrays):
            if array.shape != (n,):
                raise ValueError(
                    f"{self.dsys}: {name} must have shape ({n},), got {array.shape}; use jax.vmap "
                    "for a batch"
                )
            if array.dtype != jnp.float64:
                raise ValueError(
                    f"{self.dsys}: JAX computes in 32 bits, too few for a step: "
                    "jax.config.update('jax_enable_x64', True)"
                )
        return arrays


def _step_rows(
    numbers: StoredNumbers, x: np.ndarray, u: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The steps of the rows of a batch, and their Jacobians; every row has its own parameters."""
    if len(p) == 0 or (p == p[0]).all():
        return numbers.step_jacobians(x, u, p[0] if len(p) else numbers.nominal)
    ones = (slice(i, i + 1) for i in range(len(x)))
    rows = [numbers.step_jacobians(x[one], u[one], p[one][0]) for one in ones]
    return tuple(np.concatenate(parts) for parts in zip(*rows))


def _differentiable(
    rows: Callable[..., tuple[np.ndarray, ...]], sizes: Sequence[int], n: int
) -> Callable[..., jax.Array]:
    """The differentiable function (n) of vectors of these sizes; `rows` gives its values and
    Jacobians for tables.
    """
    shapes = [(n,), *((n, size) for size in sizes)]

    def on_host(*arguments: Any) -> tuple[np.ndarray, ...]:
        given = [np.asarray(argument) for argument in arguments]
        batch = given[0].shape[:-1]
        tables = [a.reshape(math.prod(batch), size) for a, size in zip(given, sizes)]
        made = rows(*tables)
        return tuple(np.reshape(part, (*batch, *shape)) for part, shape in zip(made, shapes))

    @jax.custom_jvp
    def with_jacobians(*arguments: jax.Array) -> tuple[jax.Array, ...]:
        results = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]
        return jax.pure_callback(on_host, results, *arguments, vmap_method="broadcast_all")

    @with_jacobians.defjvp
    def refused(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(
            "second derivatives of a step are not available in JAX; DiscreteSystem.hessian has "
            "them exactly"
        )

    @jax.custom_jvp
    def function(*arguments: jax.Array) -> jax.Array:
        return with_jacobians(*arguments)[0]

    @function.defjvp
    def derivative(
        primals: Sequence[jax.Array], tangents: Sequence[jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        value, *jacobians = with_jacobians(*primals)
        change = sum((J @ dx for J, dx in zip(jacobians, tangents)), jnp.zeros(n))
        return value, change

    return function
