"""Effect of 2 N of wind on the payload along the figure of eight, by the angle of the links: with
a 30 % error of its mass, and with a gust that is known from its start.

Run with `python test/benchmark/gust_formations.py [--angles 30 60 80]`. The gust starts at 6 s and
lasts 3 s. Printed are the stiffness of the payload against motion across the plane of the links,
due to the tensions, the thrust in hover, and the largest payload errors over both signs. `known`
gives the tracker the gust's momentum per step from its first step on, with the right mass;
`estimated` also has the right mass. The difference is the gain of a perfect estimate.
"""

from __future__ import annotations

import argparse

import numpy as np
from sizes import sized

from nh_control.control import DisturbanceEstimate, LqrTracker
from nh_control.discrete.plant_steps import convert
from nh_control.discrete.system import DiscreteSystem
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import Constant, Disturbance, PlantOptions
from nh_control.scenarios.payload_flatness import flat_reference
from nh_control.scenarios.quadrotor_payload import PATHS, QUADROTOR_PAYLOAD
from nh_control.systems import Formation

PATH = PATHS["figure_of_eight"]()
GUST_N, FROM_S, TO_S, END_S = 2.0, 6.0, 9.0, 12.0
AXES = sized({"across": 0, "along": 1, "up": 2}, {"along": 1})


class Knowing:
    """A controller whose estimate is the true gust."""

    def __init__(self, tracker: LqrTracker, force: np.ndarray):
        self.targets, self._tracker = tracker.reference.states, tracker
        self._disturbance = np.zeros((len(force), tracker.dsys.system.nrho))
        self._disturbance[:, :3] = tracker.dsys.h * force[:, :3]

    def command(self, k: int, x: np.ndarray) -> np.ndarray:
        """The tracker's inputs, given the gust."""
        gust = DisturbanceEstimate(self._disturbance[min(k, len(self._disturbance) - 1)])
        return self._tracker.command(k, x, gust).u


def worst(plant: DiscreteSystem, tracker: LqrTracker, axis: int, known: bool = False) -> float:
    """Return the largest distance in cm of the payload from its path, in gusts of both signs along
    a world axis.
    """
    model, steps = tracker.dsys, round(END_S / tracker.dsys.h)
    times, errors = tracker.reference.times[: steps + 1], []
    for sign in (1, -1):
        force = np.zeros((steps, plant.nu - model.nu))
        force[(times[:-1] >= FROM_S) & (times[:-1] < TO_S), axis] = sign * GUST_N
        controller = Knowing(tracker, force) if known else tracker
        run = closed_loop(
            plant,
            controller,
            convert(tracker.reference.states[0], model, plant),
            steps,
            disturbance=force,
            model=model,
        )
        way = PATH.jets(times[: len(run.trajectory.states)])[:, 0]
        errors.append(
            np.inf
            if run.failure
            else 100 * np.linalg.norm(run.trajectory.states[:, :3] - way, axis=1).max()
        )
    return max(errors)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--angles",
        type=float,
        nargs="+",
        default=sized([30.0, 60.0, 80.0], [60.0]),
        help="of the links from the vertical in degrees",
    )
    angles, model = parser.parse_args().angles, QUADROTOR_PAYLOAD.model()
    p, (Q, R, _) = model.system.parameters, QUADROTOR_PAYLOAD.weights
    plants = [
        (
            name,
            QUADROTOR_PAYLOAD.plant(
                model,
                PlantOptions(
                    parameters={"payload_mass": factor * p.payload_mass},
                    disturbances=(Disturbance("payload", Constant((0.0, 0.0, 0.0))),),
                ),
            ),
            known,
        )
        for name, factor, known in (
            ("-30 %", 0.7, False),
            ("+30 %", 1.3, False),
            ("estimated", 1.0, False),
            ("known", 1.0, True),
        )
    ]
    print(
        f"{'angle':>6} {'stiffness':>10} {'thrust':>8} {'gust':>8}"
        + "".join(f"{name:>11}" for name, *_ in plants)
    )
    for angle in angles:
        tracker = LqrTracker(
            model,
            flat_reference(model, PATH, Formation(np.radians(angle))),
            Q,
            R,
            disturbance_gain=QUADROTOR_PAYLOAD.disturbance_gain,
            hold=True,
        )
        stiffness = (
            p.payload_mass
            * p.g
            * np.sum(1 / np.array(p.lengths))
            / (p.n * np.cos(np.radians(angle)))
        )
        for axis in AXES:
            errors = "".join(
                f"{worst(plant, tracker, AXES[axis], known):8.1f} cm" for _, plant, known in plants
            )
            print(
                f"{angle:4.0f}° {stiffness:8.1f} N/m {tracker.reference.inputs[-1, 0]:6.1f} N "
                f"{axis:>8}{errors}",
                flush=True,
            )


if __name__ == "__main__":
    main()
