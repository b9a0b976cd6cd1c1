"""Runs that are stepped several at once by vector instructions have the bits of single runs."""

import ctypes

import numpy as np
import pytest
from cases import FITTING, SYSTEMS, random_point
from operations import every_operation
from tiers import needs_compiler, with_compiler

import nh_control as nh
from nh_control import multibody as mb
from nh_control.control.parallel_steps import step_all
from nh_control.discrete.lanes import LANES
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.numerics.compiled import Native, wait_for_compiler
from nh_control.numerics.generated_c import by_rows
from nh_control.numerics.instructions import NAMES, instructions
from nh_control.numerics.lane_code import lane_source
from nh_control.systems import wet_snakeboard
from nh_control.systems.cart_pole import cart_pole

pytestmark = needs_compiler()
CASES = [("pendulum", "midpoint_order4"), ("sleigh", "nonholonomic_midpoint")]
for place, (name, methods) in enumerate(FITTING.items()):
    CASES.append((name, methods[place * 7 % len(methods)]))
"""One of every system's methods; which, changes from system to system."""


def in_lanes(dsys):
    """The system with the code for lanes compiled, and nothing else."""
    with with_compiler():
        code = dsys.substep_engine.lane_code
        wait_for_compiler()
    if isinstance(code, str):
        pytest.skip(code)
    assert dsys.vectorization.lanes in (4, 8) and not dsys.vectorization.reason
    return dsys


def by_itself(dsys, x, u, **parameters):
    """The states of a run and why it ended."""
    table = np.full((len(u) + 1, dsys.nx), np.nan)
    table[0] = x
    try:
        own = dsys.with_parameters(**parameters) if parameters else dsys
        done, failure = own.steps_into(table, u)
    except ValueError as refused:
        done, failure = 0, refused
    table[done + 1 :] = np.nan
    return table, failure


@pytest.mark.parametrize(
    "system, method",
    [*CASES[:2], *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES[2:])],
)
def test_every_method_has_the_bits_of_single_runs(system, method):
    dsys = INTEGRATORS[method](SYSTEMS[system](), 0.05)
    rng = np.random.default_rng(0)
    points = [random_point(dsys, rng) for _ in range(LANES + 3)]
    starts = np.array([x for x, _ in points])
    inputs = np.array([np.tile(u, (20, 1)) for _, u in points])
    runs = nh.rollout(in_lanes(dsys), starts, inputs, threads=1)
    assert runs.vectorization.lanes > 1
    for run, (x, u) in enumerate(zip(starts, inputs)):
        table, failure = by_itself(dsys, x, u)
        np.testing.assert_array_equal(runs.states[run], table)
        assert str(runs.failures.get(run)) == str(failure and failure.at_step(runs.steps[run]))


@pytest.fixture(scope="module")
def cart():
    return in_lanes(midpoint(cart_pole(), 0.02))


def test_lanes_that_iterate_longer_or_fail_leave_the_others_alone(cart):
    """Motions from slow to so fast that steps are halved, and beyond what has a solution."""
    rng = np.random.default_rng(1)
    speeds = np.tile([0.1, 1.0, 10.0, 30.0, 100.0, 1e3, 1e160], 4)
    starts = rng.normal(size=(len(speeds), 4)) * np.array([1, 3, *speeds[:2]])
    starts[:, 2:] *= speeds[:, None]
    inputs = rng.normal(size=(len(speeds), 8, 1))
    masses = np.where(np.arange(len(speeds)) == 5, -1.0, rng.uniform(0.05, 0.2, len(speeds)))
    runs = nh.rollout(cart, starts, inputs, parameters={"m_pole": masses}, threads=2)
    for run, (x, u) in enumerate(zip(starts, inputs)):
        table, failure = by_itself(cart, x, u, m_pole=masses[run])
        np.testing.assert_array_equal(runs.states[run], table)
        known = runs.failures.get(run)
        assert type(known) is type(failure)
        assert getattr(known, "reason", "") == getattr(failure, "reason", "")
    assert isinstance(runs.failures[5], ValueError)
    assert 4 < len(runs.failures) < len(speeds) / 2


def test_a_run_that_leaves_the_domain_ends():
    system = nh.System(
        "limited", nh.Rn("x"), lambda q, v: v[0] ** 2 / 2, domain=lambda q: 1 - q[0]
    )
    dsys = in_lanes(midpoint(system, 0.1))
    starts = np.array([[0.0, 0.3 * k] for k in range(6)])
    runs = nh.rollout(dsys, starts, 20)
    for run, x in enumerate(starts):
        table, failure = by_itself(dsys, x, np.empty((20, 0)))
        np.testing.assert_array_equal(runs.states[run], table)
        assert str(runs.failures.get(run)) == str(failure and failure.at_step(runs.steps[run]))
    assert sorted(runs.failures) == [2, 3, 4, 5]


def test_a_thread_steps_many_runs_in_a_call(cart):
    """With parameters that are refused and steps that fail among them."""
    rng, ended = np.random.default_rng(4), []
    x, u, masses = rng.normal(size=(200, 4)), rng.normal(size=(5, 1)), rng.uniform(1, 2, 200)
    x[70, 2:], masses[[0, 130]] = 1e160, -1.0
    runs = nh.rollout(cart, x, u, parameters={"m_cart": masses}, threads=1, progress=ended.append)
    assert ended[-1] == 200 and len(ended) < 200 / LANES
    assert sorted(runs.failures) == [0, 70, 130]
    for run in range(200):
        table, failure = by_itself(cart, x[run], u, m_cart=masses[run])
        np.testing.assert_array_equal(runs.states[run], table)
        known = runs.failures.get(run)
        assert type(known) is type(failure) and runs.steps[run] == (0 if known else 5)


def test_one_step_of_many_states(cart):
    rng = np.random.default_rng(2)
    x, u = rng.normal(size=(21, 4)), rng.normal(size=(21, 1))
    x[9, 2:] = 1e160
    after, failures = step_all(cart, x, u)
    assert list(failures) == [9] and np.isnan(after[9]).all()
    for row in sorted({*range(21)} - {9}):
        np.testing.assert_array_equal(after[row], cart.step(x[row], u[row]))


def test_what_steps_one_run_after_another_says_why(cart):
    chain = mb.Multibody(
        "arm", [mb.revolute("joint", axis="y")], [mb.Body("joint", 1.0, (0, 0, -0.4))]
    )
    for dsys, reason in (
        (midpoint(chain.system, 0.01), "kernel of trees"),
        (midpoint(wet_snakeboard(), 0.01), "contacts"),
    ):
        assert dsys.vectorization.lanes == 1 and reason in dsys.vectorization.reason
    few = nh.rollout(cart, np.zeros(4), np.zeros((2, 1)))
    assert str(few.vectorization) == "one run after another: only 1 runs"


def test_every_operation_has_the_bits_of_the_virtual_machine():
    f = by_rows(every_operation(), dense=True)
    assert {one.name for one in instructions(f)} == {*NAMES.values()} - {"assign"}
    more = "void run(const lanes *x, const lanes *y, lanes *out) { lane_all(x, y, out); }"
    with with_compiler():
        native = Native("operations", [f], more, ("-Wno-psabi", "-fno-math-errno"), lane_source)
        library = native.wait()
    rng = np.random.default_rng(3)
    special = [0.0, -0.0, 0.5, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-310, 1e300]
    x, y = np.array([*special, *rng.normal(size=90)]), np.array([*rng.normal(size=90), *special])
    for begin in range(0, 100, 4):
        arrays = x[begin : begin + 4].copy(), y[begin : begin + 4].copy()
        out = np.empty((f.size1_out(0) * f.size2_out(0), 4))
        aligned = [_aligned(array) for array in (*arrays, out)]
        library["run"](*(ctypes.c_void_p(array.ctypes.data) for array in aligned))
        for lane in range(4):
            wanted = f(arrays[0][lane], arrays[1][lane]).full().ravel()
            np.testing.assert_array_equal(aligned[2][:, lane], wanted)


def _aligned(array):
    """A copy at an address for vectors of 4 numbers."""
    room = np.empty(array.size + 4)
    start = (-room.ctypes.data // 8) % 4
    copied = room[start : start + array.size].reshape(array.shape)
    copied[...] = array
    return copied
