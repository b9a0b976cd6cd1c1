"""Tests run in CasADi's virtual machine, which compiles nothing and computes the same bits
(test_two_tiers.py). Tests of compiled code ask for it by these functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def c_compiler() -> str | None:
    """The C compiler that the package would use outside of tests."""
    from nh_control.numerics import compiled  # not before conftest.py has set the cache

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NH_CONTROL_CC", raising=False)
        return compiled.compiler.__wrapped__()


def needs_compiler() -> pytest.MarkDecorator:
    """The mark of tests that are skipped without a C compiler."""
    return pytest.mark.skipif(c_compiler() is None, reason="needs a C compiler")


@contextmanager
def with_compiler() -> Iterator[None]:
    """Functions that are made in this context are compiled; skips a test without a compiler."""
    from nh_control.numerics import compiled

    path = c_compiler()
    if path is None:
        pytest.skip("needs a C compiler")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "compiler", lambda: path)
        yield
