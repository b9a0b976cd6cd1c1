"""Tracking errors on emulated hardware, with and without filter and compensation of the delay.

The robots of `test/ros/hardware_emulator.py` and the tracker's logic for hardware run in simulated
time, without ROS and without waiting, with the emulator's delays, jitter, noise and losses, drawn
anew in each run. Prints a table: largest position error in m, over the run and over the last
second.

    python test/benchmark/hardware_in_the_loop.py [RUNS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "ros"))

import hardware_emulator as emulator  # noqa: E402
from sizes import sized  # noqa: E402
from test_nodes_hardware import initial, place  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.discrete.results import StepFailed  # noqa: E402
from nh_control.loop.hardware_estimate import FilteredState, MeasuredState  # noqa: E402
from nh_control.loop.hardware_tracker import (  # noqa: E402
    HardwareTracker,
    StateRefused,
    Timing,
)
from nh_control.loop.reference_sequence import ReferenceSequence  # noqa: E402
from nh_control.ros.messages.state_codecs import JointCodec, codecs  # noqa: E402

RUNS = sized(3, 1)
CASES = [
    ("snakeboard", "parking_optimal", sized(6.0, 0.5)),
    ("quadrotor_payload", "figure_of_eight", 6.0),
    ("cart_pole", "swing_up", 6.0),
][: sized(None, 1)]
"""Robots with their references and seconds."""
THINKING_S = 1e-3
"""From a state's arrival to its command's."""


def flight(name, reference, seconds, estimator, compensate, seed, shadow=None, actuation_s=0.0):
    """Return position errors (m) over a run; the `shadow` receives measurements and commands.
    Commands act `actuation_s` after they are sent; tracker and shadow do not know this time.
    """
    scenario = scenarios.get(name)
    dsys = scenario.model()
    motion = scenario.reference(dsys, reference)
    estimate = FilteredState(dsys, 1e-3, 1.0) if estimator == "kalman" else MeasuredState(dsys)
    sequence = ReferenceSequence(scenario.tracker(dsys, motion))
    tracker = HardwareTracker(sequence, estimate, Timing(compensate=compensate))
    rng = np.random.default_rng(seed)
    robot = emulator.Emulator(
        emulator.ROBOTS[name](), initial(name, dsys, motion.states[0]), dsys.h, rng, 1.0
    )
    shown = codecs(scenario, dsys)
    q, v = list(dsys.configuration(motion.states[0])), [0.0] * dsys.system.space.nw
    step, now, events = round(dsys.h * 1e9), robot.zero, []
    tracker.start(now)
    robot.u, robot.at = dsys.idle(motion.states[0]), now
    for k in range(round(seconds / dsys.h)):
        at = now + k * step
        if rng.random() > emulator.LOSS:
            spread = emulator.DELAY_SPREAD_S * rng.uniform(-1, 1)
            events.append((at, "measure", at + round((emulator.DELAY_S + spread) * 1e9)))
    rows = []
    while events:
        events.sort(key=lambda event: event[0])
        at, what, more = events.pop(0)
        robot.advance(at)
        if what == "measure":
            rows.append(np.concatenate([[(at - now) * 1e-9], robot.state]))
            stamp = at + round(emulator.JITTER_S * 1e9 * rng.normal())
            events.append((more, "arrive", (stamp, robot.robot.messages(robot.state, rng))))
        elif what == "arrive":
            stamp, messages = more
            read(shown, messages, q, v)
            if shadow is not None:
                shadow.measured(stamp, q, None)
            try:
                command = tracker.answer(stamp, q, None, at).command
            except (StateRefused, StepFailed):
                continue
            sent = at + round(THINKING_S * 1e9)
            tracker.add_input(command.u, sent)
            events.append((sent + round(actuation_s * 1e9), "act", command.u))
            if shadow is not None:
                shadow.command(command.u, sent, stamp)
        else:
            robot.u = more
    rows = np.array(rows)
    steps = np.minimum(np.round(rows[:, 0] / dsys.h).astype(int), len(motion))
    wanted = np.array([initial(name, dsys, motion.states[j]) for j in steps])
    (at, _), (there, _) = place(name, rows[:, 1:]), place(name, wanted)
    return np.linalg.norm(at - there, axis=1)


def read(shown, messages, q, v):
    """Combine the messages of a state."""
    for codec in shown:
        parts = [m for m in messages if isinstance(m, codec.message_type)]
        if isinstance(codec, JointCodec):
            joined = type(parts[0])()
            joined.name = [name for part in parts for name in part.name]
            joined.position = [value for part in parts for value in part.position]
            parts = [joined]
        codec.read(parts[0], q, v)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print("| robot | estimator | delay compensated | largest error | over the last second |")
    print("|---|---|---|---|---|")
    for name, reference, seconds in CASES:
        for estimator in ("none", "kalman"):
            for compensate in (False, True):
                found = []
                for seed in np.random.SeedSequence().generate_state(runs):
                    error = flight(name, reference, seconds, estimator, compensate, seed)
                    found.append((error.max(), error[-100:].max()))
                worst, last = np.max(found, axis=0)
                answer = "yes" if compensate else "no"
                print(
                    f"| `{name}` | {estimator} | {answer} | {worst:.4f} | {last:.4f} |", flush=True
                )


if __name__ == "__main__":
    main()
