"""[kobilarov2010]: simulating nonholonomic dynamics."""

from __future__ import annotations

from nh_control.papers import kobilarov2010_motions, kobilarov2010_structure
from nh_control.papers.paper import Experiment, Paper

PAPER = Paper(
    "kobilarov2010",
    "Kobilarov, Martín de Diego, Ferraro: Simulating nonholonomic dynamics",
    (
        Experiment("2", "path and energy of the sleigh", kobilarov2010_motions.figure_2),
        Experiment("3", "a typical path of the snakeboard", kobilarov2010_motions.figure_3),
        Experiment("4", "the snakeboard in 128 steps", kobilarov2010_motions.figure_4),
        Experiment("orders", "orders on sleigh and snakeboard", kobilarov2010_structure.orders),
        Experiment("structure", "energy and momenta", kobilarov2010_structure.structure),
        Experiment("oscillation", "multipliers of GNI", kobilarov2010_structure.oscillation),
    ),
)
