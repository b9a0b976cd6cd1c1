"""Checks of physical parameters."""

from __future__ import annotations

from dataclasses import fields

import numpy as np


def require_positive(parameters, *names: str) -> None:
    """Raise ValueError unless every named field (all, if none is named) is a positive finite
    number.
    """
    for name in names or [f.name for f in fields(parameters)]:
        value = getattr(parameters, name)
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"{type(parameters).__name__}.{name} must be positive and finite, got {value}"
            )
