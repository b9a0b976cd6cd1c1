"""No two threads write to the same numbers: told by their places, not by a race that may be."""

from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
from cases import discrete

import nh_control as nh
from nh_control.numerics import compiled


def places(dsys):
    """Where this thread's numbers of steps, of derivatives by parameters and of velocities lie."""
    found = set()
    for arrays in (dsys._arrays, dsys._functions.parametric_arrays):
        values = vars(arrays.work).values()
        found |= {a.ctypes.data for a in values if isinstance(a, np.ndarray) and a.size}
    return found | {dsys.state_map.motion.data.room}


@pytest.mark.parametrize("case", [("pendulum", "midpoint"), ("snakeboard", "dla")])
def test_every_thread_has_arrays_of_its_own(case):
    dsys = discrete(*case, 0.1)

    def used():
        assert dsys.state_map.motion.data is not None
        return places(dsys)

    here = used()
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(used).result()
    assert len(here) == len(there) > 10 and not here & there
    assert used() == here


def test_copies_of_a_system_share_the_functions_of_a_thread_and_no_numbers():
    """Steps in turn are those of systems that were made alone."""
    dsys = discrete("pendulum", "midpoint", 0.1)
    other = dsys.with_step(0.2).with_parameters(m=2.0)
    x, u = np.array([0.4, -0.3]), np.array([0.5])
    expected = [nh.midpoint(d.system, d.h).linearize(x, u) for d in (dsys, other)]
    for _ in range(2):
        for d, alone in zip((dsys, other), expected):
            for mine, theirs in zip((d.step(x, u), *d.linearize(x, u)), (alone.x1, *alone)):
                np.testing.assert_array_equal(mine, theirs)
    assert dsys._arrays.work.system is other._arrays.work.system
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(lambda: dsys._arrays.work.system).result()
    assert there is not dsys._arrays.work.system


def test_functions_have_arrays_for_every_thread_and_for_every_loop():
    a = ca.SX.sym("a", 2)
    functions = compiled.Functions("twice", [ca.Function("twice", [a], [2 * a, a.T])])
    one, other = functions.direct("twice"), functions.direct("twice")

    def used(loop):
        return {array.ctypes.data for array in (*loop.inputs, *loop.outputs)}

    def run(loop, value):
        loop.inputs[0][:] = value
        loop.run()
        return loop.outputs[0][:, 0].tolist()

    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(used, one).result()
        assert pool.submit(run, one, 5.0).result() == [10.0, 10.0]
    assert not used(one) & there and not used(one) & used(other)
    assert run(one, 3.0) == [6.0, 6.0] and run(other, 4.0) == [8.0, 8.0]
    assert one.outputs[0][0, 0] == 6.0 and one.outputs[1].tolist() == [[3.0, 3.0]]
