"""Residuals of the shadow on emulated hardware, and their causes.

As `hardware_in_the_loop.py`, with the filter and compensated delays, and a shadow that receives
the messages of the tracker. A residual is the difference of a measurement and its prediction from
the filter's previous state. Prints its root mean square, largest mean and largest size over RUNS
runs, in mm and mrad. Then prints the root mean square in one run without noise (the effect of
jitter of the stamps), without noise and jitter (the effect of the model's steps against DOP853),
and in addition with a mass error of 10 %, or with commands that act 5 ms later than the shadow
assumes.

    python test/benchmark/shadow_residuals.py [RUNS]
"""

from __future__ import annotations

import sys

import numpy as np
from hardware_in_the_loop import CASES, RUNS, emulator, flight

from nh_control import scenarios
from nh_control.loop.hardware_estimate import FilteredState
from nh_control.loop.shadow import Shadow
from nh_control.scenarios import PlantOptions

PARTS = {
    "snakeboard": {"rotor, trucks": (0, 1), "heading": (2,), "position": (3, 4)},
    "quadrotor_payload": {
        "payload's position": range(3),
        "attitudes": range(3, 9),
        "links' directions": range(9, 13),
    },
    "cart_pole": {"cart": (0,), "pole": (1,)},
}
"""Places of a residual's numbers."""
MASSES = {"snakeboard": "m", "quadrotor_payload": "payload_mass", "cart_pole": "m_pole"}
LATE_S = 5e-3
KNOWN = {"noise": emulator.NOISE, "jitter": emulator.JITTER_S}


def statistics(case, seed, noise=True, jitter=True, mass=1.0, late_s=0.0):
    """Return the running statistics of a flight's residuals at its end."""
    name, reference, seconds = case
    emulator.NOISE, emulator.JITTER_S = noise * KNOWN["noise"], jitter * KNOWN["jitter"]
    scenario = scenarios.get(name)
    other = {MASSES[name]: mass * getattr(scenario.parameters, MASSES[name])} if mass != 1 else {}
    known = scenario.plant(scenario.model(), PlantOptions(parameters=other))
    shadow = Shadow(known, FilteredState(known, 1e-3, 1.0))
    flight(name, reference, seconds, "kalman", True, seed, shadow, late_s)
    shadow.settle()
    return shadow.statistics


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print("| robot | residual of | rms | mean | max | jitter | steps | mass | delay |")
    print("|---|---|---|---|---|---|---|---|---|")
    exact = {"noise": False, "jitter": False}
    alone = [{"noise": False}, exact, exact | {"mass": 1.1}, exact | {"late_s": LATE_S}]
    for case in CASES:
        seeds = np.random.SeedSequence().generate_state(runs)
        found = [[statistics(case, seed) for seed in seeds]]
        found += [[statistics(case, seeds[0], **what)] for what in alone]
        for part, places in PARTS[case[0]].items():
            at = list(places)
            first = f"{rms(found[0], at)} | {size(found[0], 'mean', at)}"
            others = " | ".join(rms(one, at) for one in found[1:])
            print(
                f"| `{case[0]}` | {part} | {first} | {size(found[0], 'largest', at)} | {others} |",
                flush=True,
            )


def rms(found, places):
    """Return the root mean square over runs and positions, in thousandths."""
    squares = [s.deviation[places] ** 2 + s.mean[places] ** 2 for s in found]
    return f"{1e3 * np.sqrt(np.mean(squares)):.3g}"


def size(found, what, places):
    """Return the largest value over runs and positions, in thousandths."""
    return f"{1e3 * np.max([np.abs(getattr(s, what)[places]) for s in found]):.3g}"


if __name__ == "__main__":
    main()
