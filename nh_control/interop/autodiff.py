"""Discrete systems as differentiable PyTorch and JAX functions. Both packages are optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nh_control.discrete.system import DiscreteSystem

if TYPE_CHECKING:
    from nh_control.interop.jax_model import JaxModel
    from nh_control.interop.torch_model import TorchModel


def to_torch(dsys: DiscreteSystem, parameters: Sequence[str] = ()) -> TorchModel:
    """The step as a PyTorch function with exact vector-Jacobian products, including those with
    respect to the named `parameters` from `dsys.parameter_names`. Raises ImportError if the
    package torch (extra `torch`) is missing, and ValueError for an unknown parameter.
    """
    from nh_control.interop.torch_model import TorchModel

    return TorchModel(dsys, parameters)


def to_jax(
    dsys: DiscreteSystem, parameters: Sequence[str] = (), *, batched: bool = False
) -> JaxModel:
    """The step as a JAX function with exact derivatives, including those with respect to the named
    `parameters` from `dsys.parameter_names`. The step calls this package's native code on the
    host. With `batched`, the step instead consists of JAX operations, for
    `jax.jit(jax.vmap(...))`.

    Raises ImportError if the package jax (extra `jax`) is missing. Raises ValueError for an
    unknown parameter, or if `batched` is true and the system has contacts or redundant
    constraints.
    """
    from nh_control.interop.jax_model import JaxModel

    return JaxModel(dsys, parameters, batched)
