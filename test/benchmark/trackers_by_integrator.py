"""One plant, tracked by LQR on models of different integrators: a table.

    python test/benchmark/trackers_by_integrator.py [SCENARIO] [--integrators gni rdp_exp ...]

SCENARIO is snakeboard (the default), satellite, quadrotor_payload, or any other. The plant is the
midpoint rule with four substeps; every tracker's model, reference and gains are by its own
integrator. Errors are largest local coordinates of the configuration that have a weight (m, rad),
at the start, over the run, rms over its second half and at the end. `radius` is the largest
eigenvalue of the model's closed loop over the middle third of the reference, `difference` the
largest distance of its eigenvalues from those of the first model. What a tracker leaves of an
error at the end is what its model and reference miss of the plant. Measured:

    satellite, slew         start  largest       rms       end   radius  difference
    h = 0.1 s   midpoint    0.173    0.174   3.3e-03   1.4e-04    1.000     0.0e+00
                slgi_half   0.173    0.174   3.3e-03   1.4e-04    1.000     1.1e-08
                rkmk4       0.173    0.174   3.3e-03   1.4e-04    1.000     2.5e-05
    quadrotor_payload, figure_of_eight
    h = 0.01 s  midpoint    0.100    0.100   8.3e-06   3.0e-08    0.013     0.0e+00
                slgi_half   0.100    0.100   7.0e-06   3.4e-08    0.013     1.4e-03
                rkmk4       0.100    0.100   5.8e-07   2.4e-09    0.013     5.6e-04
    h = 0.04 s  midpoint    0.100    0.100   1.3e-04   5.0e-07    0.017     0.0e+00
                slgi_half   0.100    0.100   1.1e-04   5.9e-07    0.015     1.6e-02
                rkmk4       0.100    0.100   8.6e-06   3.9e-08    0.013     1.2e-02

The satellite's eigenvalues of 1 are its total momentum and its wheels' angles, which nothing
steers.
"""

from __future__ import annotations

import argparse

import numpy as np
from sizes import sized

from nh_control.runs.tracker_models import track
from nh_control.scenarios import PlantOptions, get

ON_GROUPS = ("midpoint", "slgi_half", "rkmk4")
NAMES = {
    "snakeboard": (
        "midpoint",
        "rdp_exp",
        "gni_implicit",
        "si_dla",
        "spark_2",
        "spark_3",
        "gonzalez",
        "mean_value",
        "rk4",
    ),
}


def main() -> None:
    """Track and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario", nargs="?", default="snakeboard")
    parser.add_argument("--integrators", nargs="+")
    parser.add_argument("--reference", default="", help="default: the scenario's first")
    parser.add_argument("--step", type=float, default=0.02, help="of the models, s")
    args = parser.parse_args()
    names = args.integrators or NAMES.get(args.scenario, ON_GROUPS)[: sized(None, 2)]
    options = PlantOptions(integrator="midpoint", substeps=4)
    found = track(get(args.scenario), names, args.reference, options, args.step)
    heads = f"{'start':>7} {'largest':>8} {'rms':>9} {'end':>9} {'radius':>8} {'difference':>11}"
    print(f"{'model':24} {heads}")
    for one in found:
        radius, apart = np.abs(one.eigenvalues).max(), one.difference(found[0])
        numbers = f"{one.start:7.3f} {one.largest:8.3f} {one.rms:9.1e} {one.final:9.1e}"
        print(f"{one.integrator:24} {numbers} {radius:8.3f} {apart:11.1e}")


if __name__ == "__main__":
    main()
