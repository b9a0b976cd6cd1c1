"""The two ways of the package, natively and without a C compiler: tests choose by these alone."""

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
    """What is made inside runs in CasADi's virtual machine, as where there is no C compiler."""
    from nh_control.numerics import compiled  # not before conftest.py has set the cache

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "compiler", lambda: None)
        yield


def made_once_each_way(make: Callable[..., Any]) -> Callable[..., Any]:
    """`functools.cache` for tests that have native twins: none finds what another one interpreted,
    nor the other way round.
    """
    from nh_control.numerics import compiled

    @cache
    def made(_compiler: str | None, *args: Any) -> Any:
        return make(*args)

    return wraps(make)(lambda *args: made(compiled.compiler(), *args))
