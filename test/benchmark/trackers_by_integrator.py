"""One snakeboard plant, tracked by LQR on models of different integrators: a table.

    python test/benchmark/trackers_by_integrator.py [--integrators gni rdp_exp ...]

The plant is the midpoint rule with four substeps; every tracker's model, reference and gains are
by its own integrator. Errors are largest local coordinates of the configuration (m, rad), at the
start, over the run and at the end. `radius` is the largest eigenvalue of the model's closed loop
over the middle third of the parking maneuver, `difference` the largest distance of its eigenvalues
from those of the first model.
"""

from __future__ import annotations

import argparse

import numpy as np

from nh_control.runs.tracker_models import track
from nh_control.scenarios import PlantOptions, get

NAMES = (
    "midpoint",
    "rdp_exp",
    "gni_implicit",
    "si_dla",
    "spark_2",
    "spark_3",
    "gonzalez",
    "mean_value",
    "rk4",
)


def main() -> None:
    """Track and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--integrators", nargs="+", default=NAMES)
    args = parser.parse_args()
    options = PlantOptions(integrator="midpoint", substeps=4)
    found = track(get("snakeboard"), args.integrators, options=options, step_s=0.02)
    print(f"{'model':24} {'start':>7} {'largest':>8} {'end':>9} {'radius':>8} {'difference':>11}")
    for one in found:
        radius, apart = np.abs(one.eigenvalues).max(), one.difference(found[0])
        numbers = f"{one.start:7.3f} {one.largest:8.3f} {one.final:9.1e} {radius:8.3f}"
        print(f"{one.integrator:24} {numbers} {apart:11.1e}")


if __name__ == "__main__":
    main()
