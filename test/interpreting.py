"""Tests choose between the two ways of the package, native and without a C compiler, only by these
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

import pytest

NATIVELY = pytest.mark.parametrize("interpreted", [False], ids=["native"], indirect=True)
"""For a test too long for CasADi's virtual machine in a file whose others run both ways."""


@contextmanager
def without_compiler() -> Iterator[None]:
    """Objects made in this context run in CasADi's virtual machine, as without a C compiler."""
    from nh_control.numerics import compiled  # not before conftest.py has set the cache

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "compiler", lambda: None)
        yield


def made_once_each_way(make: Callable[..., Any]) -> Callable[..., Any]:
    """`functools.cache` with separate caches for native and interpreted tests."""
    from nh_control.numerics import compiled

    @cache
    def made(_compiler: str | None, *args: Any) -> Any:
        return make(*args)

    return wraps(make)(lambda *args: made(compiled.compiler(), *args))
