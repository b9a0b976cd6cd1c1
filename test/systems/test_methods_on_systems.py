"""Every registered method up to order 4 that takes a system converges on it with its order, to the
motion by hand: a method or a system is tested by being there.

Higher orders reach round-off here after too few steps for a slope.
"""

from functools import cache

import numpy as np
import pytest
from test_nonholonomic_systems import HAND, start

from nh_control import systems
from nh_control.discrete.results import StepFailed
from nh_control.integrators import INTEGRATORS

END = 0.4
COUNTS = (2, 4, 6, 8, 12, 16, 22, 32, 46, 64, 90, 128)
"""Even, because what a method with a memory of impulses gets wrong may alternate."""
PLATEAU, FITTED, HIGHEST = {True: 1e-12, False: 1e-10}, 4, 4
"""Round-off of explicit methods and of implicit ones, points of a slope, highest order."""
FEW = (("gearbox", "si_dla"), ("rolling_disk", "gni"), ("suslov", "gonzalez"))
EVERYWHERE = ("nonholonomic_midpoint", "gni_implicit", "spark_2", "gonzalez")
"""Pairs that run by default, and methods that run over all systems with the long studies."""


@cache
def system(name):
    return getattr(systems, name)()


@cache
def made(name, method):
    return INTEGRATORS[method].make(system(name), END)


@cache
def motion(name):
    """Start, inputs and end of a forced motion by hand."""
    q, v, u = start(system(name), 2)
    return q, v, u, HAND[name](system(name).parameters).solve(q, v, lambda t: u, END)


def error(name, method, n):
    """Largest error of (q, v) at the end after n steps, by components of the velocity's size."""
    q, v, u, (q1, v1) = motion(name)
    dsys = made(name, method).with_step(END / n)
    x = dsys.simulate(dsys.state(q, v, u), np.tile(u, (n, 1))).states[-1]
    off = np.concatenate(
        [system(name).space.local(q1, dsys.configuration(x)), dsys.velocity(x) - v1]
    )
    return np.abs(off).max() / (1 + np.abs(v1).max())


def slope(name, method):
    """Order over the last steps whose error stands above the plateau."""
    found, plateau = [], PLATEAU[INTEGRATORS[method].explicit]
    for n in COUNTS:
        try:
            found.append((n, error(name, method, n)))
        except StepFailed:
            found.clear()
            continue
        if found[-1][1] < plateau:
            found.pop()
            break
    counts, errors = np.array(found[-FITTED:]).T
    if len(counts) < FITTED and errors[-1] < 1e3 * plateau:
        pytest.skip(f"round-off after {len(counts)} step sizes: {found}")
    assert len(counts) == FITTED, found
    return -np.polyfit(np.log(counts), np.log(errors), 1)[0]


def pairs():
    for name in HAND:
        for method, one in INTEGRATORS.fitting(system(name)).items():
            if one.order > HIGHEST:
                continue
            often = pytest.mark.slow if method in EVERYWHERE else pytest.mark.exhaustive
            yield pytest.param(name, method, marks=() if (name, method) in FEW else often)


@pytest.mark.parametrize("name, method", list(pairs()))
def test_order(name, method):
    order = INTEGRATORS[method].order
    assert order - 0.3 <= slope(name, method) <= order + 1.2
