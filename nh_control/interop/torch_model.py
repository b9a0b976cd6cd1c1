"""A step as a PyTorch function with exact vector-Jacobian products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.interop.jacobians import StoredCoordinates

try:
    import torch
except ImportError as missing:
    raise ImportError(
        "nh.to_torch needs PyTorch: pip install torch, or the extra 'torch'"
    ) from missing


class TorchModel:
    """A discrete system for PyTorch: `step(x, u, p) -> x1`, `local(x0, x1) -> dx` and
    `retract(x, dx) -> x1` on float64 tensors. Leading dimensions are batch dimensions, which are
    broadcast. The vector p (k) contains the values of the named `parameters` for the whole batch.

    The backward pass uses the exact derivatives of the step, with `dx1/dx` along the manifold of
    states (see `StoredCoordinates`), not an unrolled iteration. Second derivatives raise
    NotImplementedError. Raises StepFailed, and ValueError for tensors with other shapes or types.
    """

    def __init__(self, dsys: DiscreteSystem, parameters: Sequence[str] = ()):
        self.dsys, self._coordinates = dsys, StoredCoordinates(dsys, parameters)

    def __repr__(self) -> str:
        return f"TorchModel({self.dsys})"

    def step(
        self, x: torch.Tensor, u: torch.Tensor, p: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The states (..., nx) after a step from x (..., nx) under u (..., nu)."""
        coordinates, d = self._coordinates, self.dsys
        if p is None:
            p = torch.as_tensor(coordinates.nominal)
        (x_rows, u_rows), batch = self._rows({"x": (x, d.nx), "u": (u, d.nu)})
        self._rows({"p": (p, len(coordinates.parameters))})
        if p.ndim != 1:
            raise ValueError(
                f"{d}: parameters must have one value for the whole batch, got the shape {p.shape}"
            )
        return _Step.apply(coordinates, x_rows, u_rows, p).reshape(*batch, d.nx)

    def local(self, x0: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        """Tangent vectors (..., ndx) from the states x0 to x1 (..., nx)."""
        d = self.dsys
        (x0_rows, x1_rows), batch = self._rows({"x0": (x0, d.nx), "x1": (x1, d.nx)})
        return _Pair.apply(self._coordinates.local, x0_rows, x1_rows).reshape(*batch, d.ndx)

    def retract(self, x: torch.Tensor, dx: torch.Tensor) -> torch.Tensor:
        """States (..., nx) reached from x (..., nx) along dx (..., ndx)."""
        d = self.dsys
        (x_rows, dx_rows), batch = self._rows({"x": (x, d.nx), "dx": (dx, d.ndx)})
        return _Pair.apply(self._coordinates.retract, x_rows, dx_rows).reshape(*batch, d.nx)

    def _rows(
        self, arguments: dict[str, tuple[torch.Tensor, int]]
    ) -> tuple[list[torch.Tensor], torch.Size]:
        """The tensors, broadcast and reshaped to tables, and the batch shape."""
        for name, (tensor, n) in arguments.items():
            if tensor.dtype != torch.float64 or tensor.ndim < 1 or tensor.shape[-1] != n:
                raise ValueError(
                    f"{self.dsys}: {name} must be a float64 tensor of shape (..., {n}), got "
                    f"{tensor.dtype} of shape {tuple(tensor.shape)}"
                )
        # leading dimensions become rows, and are restored after the step
        batch = torch.broadcast_shapes(*(tensor.shape[:-1] for tensor, _ in arguments.values()))
        rows = batch.numel()
        return [t.expand(*batch, n).reshape(rows, n) for t, n in arguments.values()], batch


class _Step(torch.autograd.Function):
    """The next states x1 (N, nx) as a function of x (N, nx), u (N, nu) and p (k)."""

    @staticmethod
    def forward(
        ctx: Any,
        coordinates: StoredCoordinates,
        x: torch.Tensor,
        u: torch.Tensor,
        p: torch.Tensor,
    ) -> torch.Tensor:
        # Jacobians are computed in the forward pass, but only if a gradient is required
        if not any(ctx.needs_input_grad):
            return x.new_tensor(coordinates.step(_array(x), _array(u), _array(p)))
        result = coordinates.step_jacobians(_array(x), _array(u), _array(p))
        by_x, by_u, by_p = map(x.new_tensor, (result.by_x, result.by_u, result.by_p))
        ctx.save_for_backward(x, u, p, by_x, by_u, by_p)
        return x.new_tensor(result.x1)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        by_x, by_u, by_p = _products(gradient, ctx.saved_tensors)
        return None, by_x, by_u, by_p.sum(dim=0)  # all rows have the same parameters


class _Pair(torch.autograd.Function):
    """A function of two tables, row by row."""

    @staticmethod
    def forward(
        ctx: Any, function: Callable[..., Any], a: torch.Tensor, b: torch.Tensor
    ) -> torch.Tensor:
        result = function(_array(a), _array(b))
        ctx.save_for_backward(a, b, a.new_tensor(result.by_a), a.new_tensor(result.by_b))
        return a.new_tensor(result.value)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        by_a, by_b = _products(gradient, ctx.saved_tensors)
        return None, by_a, by_b


def _products(gradient: torch.Tensor, saved: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The products J^T g for every row. `saved` contains a function's arguments, followed by its
    Jacobians J.
    """
    n = len(saved) // 2
    return [
        _Once.apply(torch.einsum("ni,nij->nj", gradient, jacobian), *saved[:n])
        for jacobian in saved[n:]
    ]


class _Once(torch.autograd.Function):
    """The identity for a gradient, which refuses second derivatives."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, *arguments: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        raise NotImplementedError(
            "second derivatives of a step are not available in PyTorch; DiscreteSystem.hessian "
            "computes them exactly"
        )


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
