"""Times of one checkout, which `against_commit.py` runs for two of them in turns.

    PYTHONPATH=CHECKOUT python measured_speed.py SETTINGS

SETTINGS is JSON. The last line of the output is JSON, too: processor time in us by name, the
smallest of several batches. "first start" is a process from its start to its first step, with
everything compiled before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from robots import urdf

from nh_control import integrators, scenarios
from nh_control.control.rollout import rollout
from nh_control.multibody import Body, Multibody, load_urdf, revolute
from nh_control.numerics import compiled
from nh_control.systems import quadrotor_payload, snakeboard
from nh_control.systems.marionette import initial_configuration, marionette

ROBOTS = "ur5e", "jvrc1"
CLOSED_LOOPS = "snakeboard", "quadrotor_payload"
STARTS = {
    "snakeboard": """
from nh_control.systems import snakeboard
from nh_control.integrators import nonholonomic_midpoint
dsys, q = nonholonomic_midpoint(snakeboard(), 0.01), [0.1, 0.4, 0.2, 0, 0]
""",
    "payload": """
from nh_control.systems import quadrotor_payload
from nh_control.integrators import midpoint
system = quadrotor_payload()
dsys, q = midpoint(system, 0.01), system.space.origin
""",
    "marionette": """
from nh_control.systems.marionette import initial_configuration, marionette
from nh_control.integrators import midpoint
dsys, q = midpoint(marionette(), 0.01, "left"), initial_configuration()
""",
}
FIRST_STEP = """
import time
x = dsys.state(q, [0.0] * len(dsys.system.space.velocity_names))
dsys.step(x, dsys.idle(x))
print(time.process_time())
"""


def chain(n: int) -> Multibody:
    """n links of 1 m with 1 kg at their ends, in a plane."""
    frames = [revolute(f"q{i}", f"q{i - 1}", "y", (0, 0, -1)) for i in range(1, n)]
    bodies = [Body(f"q{i}", 1.0, (0, 0, -1)) for i in range(n)]
    return Multibody(f"chain_{n}", [revolute("q0", axis="y"), *frames], bodies)


def robot(name: str) -> Multibody | None:
    """A robot of ROBOTS, None where its package is not installed."""
    try:
        text, base = urdf(name)
    except ModuleNotFoundError:
        return None
    return load_urdf(text, base, accept_any_inertia=True, space="SO3xR3")


def cases(links: list[int]) -> dict[str, tuple]:
    """Discrete systems with a configuration and a velocity, by name."""
    board, load, midpoint = snakeboard(), quadrotor_payload(), integrators.midpoint
    turned = np.array([0.1, 0.4, 0.2, 0, 0])
    found = {
        "snakeboard": (integrators.nonholonomic_midpoint(board, 0.01), turned, np.ones(5)),
        "snakeboard rdp": (integrators.rdp(board, 0.01), turned, np.ones(5)),
        "payload": (
            midpoint(load, 0.01),
            load.space.origin,
            0.2 * np.ones(len(load.space.velocity_names)),
        ),
        "marionette": (
            midpoint(marionette(), 0.01, "left"),
            initial_configuration(),
            np.zeros(40),
        ),
    }
    trees = {f"chain {n}": chain(n) for n in links} | {name: robot(name) for name in ROBOTS}
    for name, model in trees.items():
        if model is not None:
            space = model.system.space
            q = space.retract(space.origin, 0.1 * np.ones(space.nv))
            found[name] = midpoint(model.system, 1e-3), q, 0.1 * np.ones(len(space.velocity_names))
    return found


def smallest(call: Callable[[], object], batches: int, batch_s: float) -> float:
    """Processor time of a call in us: the smallest mean of the batches, each of about batch_s."""
    call()
    getattr(compiled, "wait_for_compiler", lambda: None)()  # an older commit has waited already
    start = time.process_time()
    call()
    calls = max(1, round(batch_s / max(time.process_time() - start, 1e-6)))
    best = np.inf
    for _ in range(batches):
        start = time.process_time()
        for _ in range(calls):
            call()
        best = min(best, (time.process_time() - start) / calls)
    return 1e6 * best


def closed_loop(name: str, batches: int, batch_s: float) -> float:
    """Processor time in us of a step of a scenario's closed loop."""
    scenario = scenarios.get(name)
    model = scenario.model()
    reference = scenario.reference(model)
    tracker = scenario.tracker(model, reference)
    run = lambda: rollout(model, reference.states[0], tracker, threads=1)  # noqa: E731
    return smallest(run, batches, batch_s) / len(reference)


def first_start(name: str) -> float:
    """Processor time in us of a process from its start to its first step."""
    done = subprocess.run(
        [sys.executable, "-c", STARTS[name] + FIRST_STEP],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    return 1e6 * float(done.stdout)


def main() -> None:
    """Measure and print."""
    settings = json.loads(sys.argv[1])
    batches, batch_s = settings["batches"], settings["batch_s"]
    times = {}
    for name, (dsys, q, v) in cases(settings["links"]).items():
        x = dsys.state(q, v)
        u = dsys.idle(x)
        times[name] = smallest(lambda: dsys.step(x, u), batches, batch_s)
        times[f"{name}, A, B"] = smallest(lambda: dsys.linearize(x, u), batches, batch_s)
        if name not in settings["without_hessian"]:
            adjoint = np.linspace(-1, 1, dsys.ndx)
            hessian = lambda: dsys.hessian(x, u, adjoint)  # noqa: E731
            times[f"{name}, Hessian"] = smallest(hessian, batches, batch_s)
    for name in settings["closed_loops"]:
        times[f"{name}, closed loop"] = closed_loop(name, batches, batch_s)
    for name in settings["starts"]:
        times[f"{name}, first start"] = min(first_start(name) for _ in range(batches))
    print(json.dumps(times))


if __name__ == "__main__":
    main()
