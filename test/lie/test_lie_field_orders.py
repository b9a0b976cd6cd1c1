"""Orders of all Lie group methods, component by component, on the systems that are given as
fields, against DOP853 at 1e-13 in R^nx.
"""

from functools import cache

import numpy as np
import pytest

from nh_control.integrators.lie_tableaux import TABLES
from nh_control.mechanics import parametric
from nh_control.papers import celledoni2021_payload_model as payload
from nh_control.papers import celledoni2021_pendulums as pendulums
from nh_control.papers import celledoni2021_top as top
from nh_control.papers.celledoni2021_flow import Problem, Steps
from nh_control.systems.pendulum_chain import pendulum_chain_momenta
from nh_control.systems.rigid_body_fields import rigid_body_attitude
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters

pytestmark = pytest.mark.slow

FINEST, FITTED, SEEN = 1024, 4, 30
"""Most steps, how many step sizes make a slope, and how much larger than the reference's own
uncertainty the errors are.
"""


def chain_momenta():
    p = SphericalPendulumParameters(masses=(1.0, 0.5), lengths=(0.8, 1.2))
    q, v = np.split(pendulums.IN_SPACE[:2], 2, axis=1)
    x0 = np.hstack([q, np.cross(q, v)])
    return Problem("momenta", *pendulum_chain_momenta(p), parametric.values(p), x0.ravel())


def turning_body():
    x0 = np.array([0.8, 0.36, 0.48, 0.0, 3.0, 4.5, -2.4])
    return Problem("body", *rigid_body_attitude(top.FREE), parametric.values(top.FREE), x0)


def mild_top(name):
    """A top slower than the paper's, so that coarse steps have an order, too."""
    problem = top.formulations()[name]
    x0 = problem.x0.copy()
    momentum = slice(0, 3) if name == "coadjoint" else slice(4, 7)
    x0[momentum] *= 0.1
    return Problem(problem.name, problem.action, problem.field, problem.numbers, x0)


CASES = {
    "two pendulums": (
        lambda: pendulums.chain(2, start=pendulums.IN_SPACE[:2]),
        0.8,
        {"q": [0, 1, 2, 6, 7, 8], "w": [3, 4, 5, 9, 10, 11]},
    ),
    "two pendulums, momenta": (
        chain_momenta,
        0.5,
        {"q": [0, 1, 2, 6, 7, 8], "pi": [3, 4, 5, 9, 10, 11]},
    ),
    "payload": (
        payload.without_attitudes,
        1.0,
        {"y": [0, 1, 2], "v": [3, 4, 5], "q": [6, 7, 8, 12, 13, 14], "w": [9, 10, 11, 15, 16, 17]},
    ),
    "rigid body": (turning_body, 2.0, {"Q": [0, 1, 2, 3]}),
    "top, cotangent": (lambda: mild_top("cotangent"), 0.12, {"Q": [0, 1, 2, 3], "pi": [4, 5, 6]}),
    "top, coadjoint": (lambda: mild_top("coadjoint"), 0.12, {"Pi": [0, 1, 2], "Gamma": [3, 4, 5]}),
    "top, quadratic": (
        lambda: mild_top("quadratic"),
        0.12,
        {"Q": [0, 1, 2, 3], "pi": [4, 5, 6], "q": [10, 11, 12]},
    ),
}


@cache
def reference(case):
    """The problem, its accurate end, and what that is known to."""
    make, duration, _ = CASES[case]
    problem, times = make(), np.array([0.0, duration])
    end, again = (problem.accurate(times, tolerance)[-1] for tolerance in (1e-13, 1e-12))
    return problem, end, np.abs(end - again).max()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("case", CASES)
def test_every_component_has_the_order_at_least(case, table):
    problem, end, floor = reference(case)
    _, duration, components = CASES[case]
    steps = Steps("order", {"it": (table, problem)})
    counts, errors, n = [], [], FINEST
    while len(counts) < FITTED:
        last = steps.run("it", problem, duration / n, n)[-1]
        error = [np.linalg.norm(last[at] - end[at]) for at in components.values()]
        if min(error) > SEEN * floor:
            counts.append(n)
            errors.append(error)
        n = round(n / 1.4)
    slopes = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    order = TABLES[table].order
    for name, slope in zip(components, slopes):
        assert slope > order - 0.25, (name, slopes, errors)
