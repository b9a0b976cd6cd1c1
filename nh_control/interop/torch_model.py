"""A step as a function of PyTorch with exact vector-Jacobian products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.interop.jacobians import StoredNumbers

try:
    import torch
except ImportError as missing:
    raise ImportError(
        "nh.to_torch needs PyTorch: pip install torch, or the extra 'torch'"
    ) from missing


class TorchModel:
    """A discrete system for PyTorch: `step(x, u, p) -> x1`, `local(x0, x1) -> dx` and
    `retract(x, dx) -> x1` on tensors of float64. Their leading dimensions are a batch, or are
    broadcast; p (k) are the values of the named `parameters`, one for the whole batch.

    Backward uses the exact derivatives of the step, `dx1/dx` along the manifold of states (see
    `StoredNumbers`), not an unrolled iteration; second derivatives raise NotImplementedError.
    Raises StepFailed, and ValueError for tensors of other shapes or types.
    """

    def __init__(self, dsys: DiscreteSystem, parameters: Sequence[str] = ()):
        self.dsys, self._numbers = dsys, StoredNumbers(dsys, parameters)

    def __repr__(self) -> str:
        return f"TorchModel({self.dsys})"

    def step(
        self, x: torch.Tensor, u: torch.Tensor, p: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The states (..., nx) after a step from x (..., nx) under u (..., nu)."""
        numbers, d = self._numbers, self.dsys
        if p is None:
            p = torch.as_tensor(numbers.nominal)
        rows, batch = self._rows({"x": (x, d.nx), "u": (u, d.nu)})
        self._rows({"p": (p, len(numbers.parameters))})
        if p.ndim != 1:
            raise ValueError(f"{d}: parameters have one value for the whole batch, got {p.shape}")
        return _Step.apply(numbers, *rows, p).reshape(*batch, d.nx)

    def local(self, x0: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        """Tangent vectors (..., ndx) from the states x0 to x1 (..., nx)."""
        rows, batch = self._rows({"x0": (x0, self.dsys.nx), "x1": (x1, self.dsys.nx)})
        return _Pair.apply(self._numbers.local, *rows).reshape(*batch, self.dsys.ndx)

    def retract(self, x: torch.Tensor, dx: torch.Tensor) -> torch.Tensor:
        """States (..., nx) reached from x (..., nx) along dx (..., ndx)."""
        rows, batch = self._rows({"x": (x, self.dsys.nx), "dx": (dx, self.dsys.ndx)})
        return _Pair.apply(self._numbers.retract, *rows).reshape(*batch, self.dsys.nx)

    def _rows(
        self, given: dict[str, tuple[torch.Tensor, int]]
    ) -> tuple[list[torch.Tensor], torch.Size]:
        """Tensors as tables with equal numbers of rows, and the shape of the batch."""
        for name, (tensor, n) in given.items():
            if tensor.dtype != torch.float64 or tensor.ndim < 1 or tensor.shape[-1] != n:
                raise ValueError(
                    f"{self.dsys}: {name} must be a float64 tensor of shape (..., {n}), got "
                    f"{tensor.dtype} of shape {tuple(tensor.shape)}"
                )
        batch = torch.broadcast_shapes(*(tensor.shape[:-1] for tensor, _ in given.values()))
        rows = batch.numel()
        return [t.expand(*batch, n).reshape(rows, n) for t, n in given.values()], batch


class _Step(torch.autograd.Function):
    """x1 (N, nx) of x (N, nx), u (N, nu) and p (k)."""

    @staticmethod
    def forward(
        ctx: Any, numbers: StoredNumbers, x: torch.Tensor, u: torch.Tensor, p: torch.Tensor
    ) -> torch.Tensor:
        arguments = _array(x), _array(u), _array(p)
        if not any(ctx.needs_input_grad):
            return x.new_tensor(numbers.step(*arguments))
        made = numbers.step_jacobians(*arguments)
        ctx.save_for_backward(x, u, p, *(x.new_tensor(part) for part in made[1:]))
        return x.new_tensor(made.x1)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        by_x, by_u, by_p = _products(gradient, ctx.saved_tensors)
        return None, by_x, by_u, by_p.sum(dim=0)


class _Pair(torch.autograd.Function):
    """A function of two tables, row by row."""

    @staticmethod
    def forward(
        ctx: Any, function: Callable[..., Any], a: torch.Tensor, b: torch.Tensor
    ) -> torch.Tensor:
        made = function(_array(a), _array(b))
        ctx.save_for_backward(a, b, a.new_tensor(made.by_a), a.new_tensor(made.by_b))
        return a.new_tensor(made.value)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, *_products(gradient, ctx.saved_tensors)


def _products(gradient: torch.Tensor, saved: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """J^T g of every row; the arguments are those of a function, then its Jacobians J."""
    n = len(saved) // 2
    return [
        _Once.apply(torch.einsum("ni,nij->nj", gradient, jacobian), *saved[:n])
        for jacobian in saved[n:]
    ]


class _Once(torch.autograd.Function):
    """The identity for a gradient; it refuses second derivatives."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, *arguments: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        raise NotImplementedError(
            "second derivatives of a step are not available in PyTorch; DiscreteSystem.hessian "
            "has them exactly"
        )


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
