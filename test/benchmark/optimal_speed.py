"""Time of trajectory optimization: descents of [johnson2014 VIII-A], and optimized references from
a warm cache.

    python test/benchmark/optimal_speed.py

The paper reports 28.5 ms for a first-order and 55.8 ms for a second-order descent direction on an
i7-3770K; this benchmark measures a whole iteration with its line search.
"""

import time

import numpy as np
from sizes import sized

from nh_control.control.costs import quadratic_cost
from nh_control.control.optimize import optimize
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.papers import johnson2014
from nh_control.scenarios import get

MOST, RUNS = sized((60, 3), (2, 1))
"""Iterations of a run, and runs."""
PAPER_MS = {"steepest": 28.5, "newton": 55.8}
REFERENCES = (
    ("pendulum_swing_up", "swing_up"),
    ("cart_pole", "swing_up"),
    ("snakeboard", "parking_optimal"),
)[: sized(None, 1)]


def time_an_iteration(method):
    dsys = johnson2014.model()
    hanging = Trajectory(0.1, np.zeros((101, 2)), np.zeros((100, 1)))
    cost = quadratic_cost(dsys, johnson2014.infeasible_reference(), johnson2014.Q, johnson2014.R)

    def run():
        wait_for_compiler()
        start = time.thread_time()
        result = optimize(dsys, cost, hanging, np.eye(2), np.eye(1), method, max_iterations=MOST)
        return 1e3 * (time.thread_time() - start) / len(result.history)

    run()
    milliseconds = float(np.median([run() for _ in range(RUNS)]))
    print(
        f"{method}: {milliseconds:.1f} ms an iteration of 100 steps; the paper's descent "
        f"direction alone {PAPER_MS[method]} ms"
    )


def time_a_reference(name, reference):
    scenario = get(name)
    model = scenario.model()
    scenario.reference(model, reference)
    wait_for_compiler()
    start = time.thread_time()
    steps = len(scenario.reference(model, reference))
    seconds = time.thread_time() - start
    print(f"{name} {reference}, {steps} steps: {seconds:.2f} s")


if __name__ == "__main__":
    for method in PAPER_MS:
        time_an_iteration(method)
    for name, reference in REFERENCES:
        time_a_reference(name, reference)
