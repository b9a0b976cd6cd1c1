"""[kobilarov2010]: simulating nonholonomic dynamics."""

from __future__ import annotations

import numpy as np

from nh_control.papers import (
    kobilarov2010_claims,
    kobilarov2010_cusps,
    kobilarov2010_maps,
    kobilarov2010_motions,
    kobilarov2010_structure,
    sketch,
)
from nh_control.papers.paper import Experiment, Paper
from nh_control.scenarios import chaplygin_sleigh_visual

# The skate is at (x_s, y_s), and the body's frame is at the center of mass.
SLEIGH = sketch.Sketched(
    "Chaplygin sleigh",
    chaplygin_sleigh_visual.visual_model(kobilarov2010_motions.SLEIGH),
    kobilarov2010_motions.SLEIGH,
    np.array([0.5, 0.0, 0.0]),
    {"body": "θ, (x, y)", "skate": "(xₛ, yₛ)"},
    sketch.PLAN,
)
PAPER = Paper(
    "kobilarov2010",
    "Kobilarov, Martín de Diego, Ferraro: Simulating nonholonomic dynamics",
    (
        sketch.experiment("1", "the Chaplygin sleigh", SLEIGH),
        Experiment("2", "path and energy of the sleigh", kobilarov2010_motions.figure_2),
        Experiment("3", "the snakeboard and a typical path", kobilarov2010_motions.figure_3),
        Experiment("4", "the snakeboard in 128 steps", kobilarov2010_motions.figure_4),
        Experiment("cusps", "the cusps of Fig. 4 and the printed data", kobilarov2010_cusps.cusps),
        Experiment("orders", "orders on sleigh and snakeboard", kobilarov2010_structure.orders),
        Experiment("structure", "energy and momenta", kobilarov2010_structure.structure),
        Experiment("theorem_1", "energy of GNI on a Lie group", kobilarov2010_claims.theorem_1),
        Experiment("run_times", "run times of a step", kobilarov2010_claims.run_times),
        Experiment("oscillation", "multipliers of GNI", kobilarov2010_structure.oscillation),
        Experiment("maps", "retraction maps on SE(2), App. B", kobilarov2010_maps.maps),
    ),
)
