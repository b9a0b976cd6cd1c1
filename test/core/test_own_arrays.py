"""No two threads write to the same numbers: told by their places, not by a race that may be."""

from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
from cases import discrete

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
