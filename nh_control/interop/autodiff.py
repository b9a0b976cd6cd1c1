"""Discrete systems for automatic differentiation by PyTorch and JAX, which are optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nh_control.discrete.system import DiscreteSystem

if TYPE_CHECKING:
    from nh_control.interop.jax_model import JaxModel
    from nh_control.interop.torch_model import TorchModel


def to_torch(dsys: DiscreteSystem, parameters: Sequence[str] = ()) -> TorchModel:
    """The step as a function of PyTorch with exact vector-Jacobian products, by some of
    `dsys.parameter_names`, too, if they are named. Raises ImportError without the package torch
    (extra `torch`), and ValueError for an unknown parameter.
    """
    from nh_control.interop.torch_model import TorchModel

    return TorchModel(dsys, parameters)


def to_jax(dsys: DiscreteSystem, parameters: Sequence[str] = ()) -> JaxModel:
    """The step as a function of JAX with exact derivatives, by some of `dsys.parameter_names`,
    too, if they are named. Raises ImportError without the package jax (extra `jax`), and
    ValueError for an unknown parameter.
    """
    from nh_control.interop.jax_model import JaxModel

    return JaxModel(dsys, parameters)
