"""Steps of the commanded body rates of a quadrotor under Betaflight, beside the model of its rate
loop that our outer loop has. `python test/autopilots/rate_steps.py FILE.png` draws them.
"""

from __future__ import annotations

import sys
from contextlib import closing

import numpy as np

from nh_control import scenarios
from nh_control.autopilots.flown_plant import make_flown_plant
from nh_control.scenarios import PlantOptions

AXES = ("roll", "pitch", "yaw")
REPEATS = 3


def rate_step(
    axis: int, size: float, steps: int = 100
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times (N), body rates (N, 3) and the modelled rates (N) for N time steps after a step of
    the commanded rate of an axis to `size` rad/s, at hover and without sensor noise. The rates
    are medians of REPEATS runs: the firmware's clock follows wall time, and a busy computer
    disturbs it.
    """
    scenario = scenarios.get("quadrotor", autopilot="betaflight:noise=0")
    model = scenario.model()
    reference = scenario.reference(model, "hover")
    start = reference.states[0]
    given = scenario, model, scenario.plant(model), start, PlantOptions(), reference
    hover = np.array([9.81, 0.0, 0.0, 0.0])
    rates = np.empty((REPEATS, steps, 3))
    with closing(make_flown_plant(*given)) as plant:
        for of_step in rates:
            for _ in range(20):
                plant.advance(hover)
            for row in of_step:
                plant.advance(hover + size * np.eye(4)[1 + axis])
                row[:] = plant.velocity[3:]
            for _ in range(steps):  # back, which empties the integrals
                plant.advance(hover)
            plant.place(plant.initial, 0)
    times = model.h * np.arange(1, steps + 1)
    modelled = size * (1 - np.exp(-times / scenario.flight.time_constant))
    return times, np.median(rates, axis=0), modelled


def time_to(part: float, times: np.ndarray, rates: np.ndarray, size: float) -> float:
    """Time at which the rates (N) first reach a part of the step."""
    return float(np.interp(part, np.maximum.accumulate(rates / size), times))


def draw(file: str, size: float = 1.0) -> None:
    """Draw the steps of all axes."""
    from matplotlib.figure import Figure

    figure = Figure((9, 2.8), layout="constrained")
    for axis, part in enumerate(figure.subplots(1, 3, sharey=True)):
        times, rates, modelled = rate_step(axis, size)
        part.plot(times, modelled, "--", label="model of the outer loop")
        part.plot(times, rates[:, axis], label="Betaflight")
        part.set(title=AXES[axis], xlabel="time after the step (s)")
        part.grid(alpha=0.3)
        if axis == 0:
            part.set_ylabel("rate (rad/s)")
            part.legend()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    draw(sys.argv[1])
