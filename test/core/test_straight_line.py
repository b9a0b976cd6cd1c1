"""Long generated functions are cut into pieces, which compute the same bits."""

import logging
import re

import casadi as ca
import numpy as np
import pytest
from cases import SYSTEMS, random_point
from tiers import needs_compiler, with_compiler

from nh_control.integrators import INTEGRATORS
from nh_control.numerics import compiled, straight_line
from nh_control.numerics.compiled import Functions
from nh_control.numerics.generated_c import by_rows, source
from nh_control.numerics.straight_line import in_pieces

PIECE = re.compile(r"^static __attribute__\(\(noinline\)\) void casadi_f\d+_\d+\(", re.MULTILINE)


def web(n, seed=0):
    """A function of n random operations of values far apart, with branches and sparse results."""
    rng, q = np.random.default_rng(seed), ca.SX.sym("q", 4)
    values = ca.vertsplit(q)
    for _ in range(n):
        a, b = (values[i] for i in rng.integers(len(values), size=2))
        kinds = a + b, a * b / 2, ca.sin(a) - b, ca.fabs(a), ca.fmin(a, b), ca.if_else(a > b, a, b)
        values.append(kinds[rng.integers(len(kinds))] / 2)
    results = ca.SX(3, 5)
    results[0, 1], results[2, 4], results[1, 1] = values[-1], values[-2], sum(values[::7])
    return ca.Function("web", [q], [results, ca.vertcat(*values[-5:])])


@pytest.fixture
def cut_small(monkeypatch, tmp_path):
    """Pieces of 7 statements, with a cache of their own."""
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path))
    monkeypatch.setattr(straight_line, "LONG", 10)
    monkeypatch.setattr(straight_line, "PIECE", 7)


@needs_compiler()
@pytest.mark.parametrize("on_stack", (10_000, 1))
def test_pieces_have_the_bits_of_the_whole(cut_small, on_stack, monkeypatch):
    monkeypatch.setattr(straight_line, "ON_STACK", on_stack)
    f = web(300)
    assert len(PIECE.findall(source([by_rows(f)]))) > 30
    virtual = Functions("web", [f], compiled=False)
    with with_compiler():
        native = Functions("web", [f])
    native.direct("web")
    assert native.is_compiled
    for q in np.random.default_rng(1).normal(size=(20, 4)):
        for mine, theirs in zip(native("web", q), virtual("web", q)):
            assert mine.tobytes() == theirs.tobytes()


@needs_compiler()
@pytest.mark.parametrize(
    "system, method",
    [
        pytest.param("snakeboard", "nonholonomic_midpoint", marks=pytest.mark.slow),
        ("pendulum", "rk4"),
        pytest.param("sleigh", "nonholonomic_midpoint", marks=pytest.mark.slow),
        ("pendulum", "midpoint"),
    ],
)
def test_systems_in_pieces_have_the_bits_of_the_virtual_machine(cut_small, system, method):
    make = lambda: INTEGRATORS[method](SYSTEMS[system](), 0.01)  # noqa: E731
    virtual = make()
    with with_compiler():
        native = make().prepare(hessian=True)
    assert native.engine.is_compiled and not virtual.engine.is_compiled
    x, u = random_point(virtual, np.random.default_rng(0))
    lam = np.random.default_rng(1).normal(size=virtual.ndx)
    for mine, theirs in zip(
        (*native.linearize(x, u), native.hessian(x, u, lam), native.step(x, u)),
        (*virtual.linearize(x, u), virtual.hessian(x, u, lam), virtual.step(x, u)),
    ):
        assert mine.tobytes() == theirs.tobytes()


def test_functions_that_are_short_or_have_other_statements_stay_whole(monkeypatch):
    monkeypatch.setattr(straight_line, "LONG", 200)
    assert not PIECE.search(source([by_rows(web(20))]))
    text = source([by_rows(web(300))])
    assert PIECE.search(text)
    monkeypatch.setattr(straight_line, "LONG", 10**6)
    whole = source([by_rows(web(300))])
    monkeypatch.setattr(straight_line, "LONG", 200)
    place = whole.index("  a", whole.index("casadi_f0(const"))
    other = whole[:place] + "  for (;;) break;\n" + whole[place:]
    assert in_pieces(other) == other and in_pieces(whole) == text


@needs_compiler()
def test_a_long_compilation_tells_its_time_and_what_avoids_it(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path))
    monkeypatch.setattr(compiled, "LARGE", 100)
    f = web(300)
    with caplog.at_level(logging.WARNING), with_compiler():
        Functions("web", [f]).direct("web")
        Functions("web", [f])  # from the cache
    (told,) = [record.getMessage() for record in caplog.records]
    assert re.search(r"compiling web-\w+, of \d+ instructions, takes about 0 s", told)
    assert "Multibody" in told
