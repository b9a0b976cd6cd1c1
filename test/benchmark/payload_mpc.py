"""Model predictive control of a payload on two quadrotors beside LQR, its links at 30 degrees.

    python test/benchmark/payload_mpc.py [gusts masses late recovery time loops] [--basin FILE.png]

gusts: 4 N on the payload for 1 s along each axis. masses: payloads that differ from the model's.
late: solves that come too late, at random, in the gust along x. recovery: large initial errors,
with the limits of the scenario and with tight ones; with --basin also 200 random starts with each,
drawn in a figure. time: of a step with 2 iterations, in parts of a linearization of the horizon
(solving its steps included) and of a Riccati sweep. loops: of a step of whole closed loops, in
native code and from Python, of this payload and of a cart-pole.

MPC has 40 nodes of 20 ms, LQR a step of 10 ms; both estimate a disturbance, but not in recoveries.
A run succeeds if its payload is within 5 cm in the end. Tensions are those of the nodes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sizes import sized

import nh_control as nh
from nh_control.control import ControllerTracker
from nh_control.control.closed_loop import ClosedLoopRunner, LoopRecord
from nh_control.control.trackers import Tracker
from nh_control.discrete.plant_steps import convert
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.scenarios import get
from nh_control.scenarios.payload_flatness import flat_reference
from nh_control.scenarios.quadrotor_payload import PATHS, PayloadPerturbation, perturbed
from nh_control.systems import Formation, cart_pole, link_tensions, quadrotor_payload

SCENARIO = get("quadrotor_payload")
Q, R, _ = SCENARIO.weights
PLANT_STEP = 0.005
BASIN_STARTS = sized(200, 1)
LIMITS: dict[str, dict[str, float]] = {
    "limits of the scenario": {},
    "tight limits": dict(thrust_limit=16.0, torque_limit=2.0),
}
PARTS = ("gusts", "masses", "late", "recovery", "time", "loops")


@dataclass(frozen=True)
class Run:
    """Errors of the payload (N + 1, 3) in m, least tension in N, whether all steps were taken."""

    errors: np.ndarray
    tension: float
    whole: bool

    @property
    def succeeded(self) -> bool:
        """Whether it ends within 5 cm."""
        return self.whole and bool(np.linalg.norm(self.errors[-1]) < 0.05)

    def __str__(self) -> str:
        worst = "  ".join(f"{100 * e:6.1f}" for e in np.abs(self.errors).max(axis=0))
        end = 100 * np.linalg.norm(self.errors[-1])
        return f"errors {worst} cm, at the end {end:5.2f} cm, least tension {self.tension:6.2f} N"


class Late:
    """An `MpcTracker` whose solves are late at random in a `part` of the steps."""

    def __init__(self, mpc: nh.MpcTracker, part: float):
        self._mpc, self._part, self._draw = mpc, part, np.random.default_rng(1)
        self.reset()

    def reset(self) -> None:
        """Begin without a plan."""
        self._plan: Any = None

    def command(self, k: int, x: np.ndarray) -> np.ndarray:
        """The inputs, by the last plan where the solve is late."""
        is_late = self._plan is not None and self._draw.random() < self._part
        command = (self._mpc.late if is_late else self._mpc.command)(k, x, self._plan)
        self._plan = command.memory
        return command.u


def hover(h: float, **parameters: float) -> tuple[nh.DiscreteSystem, nh.Trajectory]:
    """The model with a step h and its rest."""
    model = SCENARIO.model(step_s=h)
    model = model.with_parameters(**parameters) if parameters else model
    formation = Formation(np.radians(30))
    return model, flat_reference(model, PATHS["hover"](), formation, name="hover")


def mpc(gain: float = 0.8, iterations: int = 3, **parameters: float) -> nh.MpcTracker:
    """The predictive tracker with taut cables."""
    model, rest = hover(0.02, **parameters)
    taut = nh.tension_limit(model, 1.0, weight=10.0)
    return nh.MpcTracker(
        *(model, rest, Q, R),
        **dict(horizon_s=0.8, hold=True, disturbance_gain=gain, barrier=0.1),
        **dict(iterations=iterations, constraints=[taut]),
    )


def lqr(gain: float = 0.5, **parameters: float) -> nh.LqrTracker:
    """The linear tracker."""
    return nh.LqrTracker(*hover(0.01, **parameters), Q, R, hold=True, disturbance_gain=gain)


def run(
    controller: Tracker,
    seconds: float,
    x0: np.ndarray | None = None,
    mass: float | None = None,
    gust: tuple[int, float] = (0, 0.0),
) -> Run:
    """A run of the plant, with a force (axis, N) from 1 s to 2 s."""
    model, rest = controller.dsys, controller.reference
    carried = {} if mass is None else {"payload_mass": mass}
    p = replace(model.system.parameters, **carried)
    plant = nh.midpoint(quadrotor_payload(p, wind=True), PLANT_STEP)
    steps, per_s = round(seconds / model.h), round(1 / model.h)
    force = np.zeros((steps, plant.nu - model.nu))
    force[per_s : 2 * per_s, gust[0]] = gust[1]
    start = convert(rest.states[0] if x0 is None else x0, model, plant)
    given = dict(steps=steps, disturbances=force, substeps=round(model.h / PLANT_STEP))
    found = nh.rollout(plant, start, controller, **given, threads=1)
    taken = int(found.steps[0])
    pulls = [
        link_tensions(p, model.configuration(x), model.velocity(x), np.append(u, w)).min()
        for x, u, w in zip(found.states[0, :taken], found.inputs[0], force)
    ]
    errors = found.states[0, : taken + 1, :3] - rest.states[0, :3]
    return Run(errors, min(pulls), taken == steps)


def gusts(seconds: float) -> None:
    """Errors and tensions in gusts."""
    for name, controller in (("LQR", lqr()), ("MPC", mpc())):
        for axis, letter in enumerate("xyz"):
            print(f"{name}, gust in {letter}: {run(controller, seconds, gust=(axis, 4.0))}")


def masses(seconds: float) -> None:
    """Other payloads than the model's."""
    nominal = SCENARIO.parameters.payload_mass
    for name, controller in (("LQR", lqr()), ("MPC", mpc())):
        for part in (0.7, 1.3):
            for force in (0.0, 4.0):
                found = run(controller, seconds, mass=part * nominal, gust=(0, force))
                print(f"{name}, {part:g} of the payload, gust of {force:g} N in x: {found}")


def late(seconds: float) -> None:
    """Errors with late solves, in parts of the error without."""
    tracker = mpc()
    none = run(tracker, seconds, gust=(0, 4.0))
    for part in (0.0, 0.3, 0.7):
        own = ControllerTracker(tracker.dsys, Late(tracker, part), tracker.reference, hold=True)
        found = run(own, seconds, gust=(0, 4.0))
        ratio = np.abs(found.errors).max() / np.abs(none.errors).max()
        print(f"MPC, {part:.0%} of the solves late: {found}, {ratio:.2f} of the error of none")


def recovery(seconds: float) -> None:
    """Runs from large initial errors that end at rest."""
    swing, tilt = 0.9, np.pi / 2
    for seeds, (words, limits) in zip((8, 5), LIMITS.items()):
        for name, make in (("LQR", lqr), ("MPC", mpc)):
            controller = make(0.0, **limits)
            runs = [
                run(controller, seconds, start(controller, s, swing, tilt)) for s in range(seeds)
            ]
            good = sum(r.succeeded for r in runs)
            print(
                f"{name}, links turned by {swing:g} rad, quadrotors by {tilt:.2f} rad, "
                f"{words}: {good} of {seeds}, "
                f"least tension {min(r.tension for r in runs):.1f} N",
                flush=True,
            )


def start(controller: Tracker, seed: int, swing: float, tilt: float) -> np.ndarray:
    """A perturbed state of rest."""
    error = PayloadPerturbation(position=0.5, swing=swing, tilt=tilt, seed=seed)
    return perturbed(controller.dsys, controller.reference.states[0], error)


def basin(file: str, seconds: float) -> None:
    """Random swings and tilts: from which of them the trackers recover."""
    from matplotlib.figure import Figure

    draw = np.random.default_rng(0)
    starts = np.column_stack(
        [draw.uniform(0, 1.5, BASIN_STARTS), draw.uniform(0, 3.1, BASIN_STARTS)]
    )
    figure = Figure(figsize=(8, 7), layout="constrained")
    rows = figure.subplots(2, 2, sharex=True, sharey=True)
    for (words, limits), both in zip(LIMITS.items(), rows):
        for axes, (name, make) in zip(both, (("LQR", lqr), ("MPC", mpc))):
            controller = make(0.0, **limits)
            good = np.array(
                [
                    run(controller, seconds, start(controller, seed, *at)).succeeded
                    for seed, at in enumerate(starts)
                ]
            )
            for which, marker, label in ((good, "o", "recovers"), (~good, "x", "does not")):
                axes.plot(*np.degrees(starts[which].T), marker, markersize=4, label=label)
            axes.set(title=f"{name}, {words}: {good.sum()} of {len(good)}")
            text = f"{name}, {words}: recovers from {good.sum()} of {len(good)} random starts"
            print(text, flush=True)
        both[0].set_ylabel("turn of the quadrotors (deg)")
    for axes in rows[1]:
        axes.set_xlabel("turn of the links (deg)")
    rows[0, 0].legend(loc="upper left")
    figure.savefig(file)


def timing(steps: int) -> None:
    """Milliseconds of the phases of a step, and of their parts."""
    tracker = mpc(iterations=2)
    model = tracker.dsys
    x = model.retract(tracker.reference.states[0], np.full(model.ndx, 0.01))
    command, rows = tracker.command(0, x), []
    for _ in range(steps):
        x = model.step(x, command.u)
        wait_for_compiler()
        begin = time.thread_time()
        prepared = tracker.prepare(command.memory)
        middle = time.thread_time()
        command = tracker.feedback(prepared, x)
        rows.append((middle - begin, time.thread_time() - middle))
    phases = 1e3 * np.array(rows[1:] or rows)
    solver = tracker._idle[0]
    factorize, substitute, prepare = (
        _ms(partial(solver.call, f"nh_ocp_{name}"))
        for name in ("factorize", "substitute", "prepare")
    )
    factor, linearization = factorize + substitute, prepare - factorize
    whole = phases.sum(axis=1)
    floor = linearization + factor
    print(
        f"a linearization {linearization:.3f} ms, a Riccati sweep {factor:.3f} ms; a step: median "
        f"{np.median(whole):.3f} ms, 99 % {np.percentile(whole, 99):.3f} ms = "
        f"{np.percentile(whole, 99) / floor:.2f} of one of each; feedback "
        f"{np.median(phases[:, 1]) / np.median(whole):.0%}"
    )


def loops(steps: int) -> None:
    """Milliseconds of a step of closed loops, native and from Python."""
    trackers = {"payload, 40 nodes, 2 iterations": mpc(iterations=2)}
    model = nh.midpoint(cart_pole(), 0.02)
    up = np.tile([0.0, np.pi, 0.0, 0.0], (steps + 1, 1))
    rest = nh.Trajectory(model.h, up, np.zeros((steps, 1)), model.state_names, model.inputs)
    weights = np.diag([10.0, 10.0, 1.0, 1.0]), 0.01 * np.eye(1)
    for nodes in (20, 50):
        trackers[f"cart-pole, {nodes} nodes, 3 iterations"] = nh.MpcTracker(
            *(model, rest, *weights), horizon_s=nodes * model.h, hold=True
        )
    for name, tracker in trackers.items():
        x0, one = tracker.reference.states[0], tracker.dsys
        start = one.retract(x0, np.full(one.ndx, 0.01))
        spent = {how: _loop_ms(tracker, start, steps, how) for how in ("native", "Python")}
        print(name, *(f"{how} {ms:.3f} ms a step" for how, ms in spent.items()), sep=", ")


def _loop_ms(tracker: nh.MpcTracker, x0: np.ndarray, steps: int, how: str) -> float:
    """Median milliseconds of a step of a loop that runs natively or from Python."""
    model, no_forces = tracker.dsys, np.zeros((steps, 0))

    def run() -> None:
        record = LoopRecord.empty(model, model, steps)
        ClosedLoopRunner(model, tracker, x0, record, no_forces, native=how == "native").run()

    return _ms(run, 5) / steps


def _ms(routine: Callable[[], object], runs: int = 50) -> float:
    """Median milliseconds of a call."""
    spent = []
    for _ in range(runs):
        wait_for_compiler()
        begin = time.thread_time()
        routine()
        spent.append(time.thread_time() - begin)
    return 1e3 * float(np.median(spent))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=sized(list(PARTS), ["gusts", "time", "loops"]))
    parser.add_argument("--basin", metavar="FILE")
    parser.add_argument("--seconds", type=float, default=sized(6.0, 0.1))
    options = parser.parse_args()
    does = {"gusts": gusts, "masses": masses, "late": late, "recovery": recovery}
    for part in options.parts:
        if part == "time":
            timing(sized(1000, 3))
        elif part == "loops":
            loops(sized(200, 3))
        else:
            does[part](options.seconds)
    if options.basin:
        basin(options.basin, options.seconds)


if __name__ == "__main__":
    main()
