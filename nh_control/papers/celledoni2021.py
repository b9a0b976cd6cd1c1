"""[celledoni2021]: Lie group integrators for mechanical systems."""

from __future__ import annotations

from nh_control.papers import (
    celledoni2021_chains,
    celledoni2021_pairs,
    celledoni2021_payload,
    celledoni2021_pendulums,
    celledoni2021_top,
)
from nh_control.papers.celledoni2021_sketches import FIGURE_1, FIGURE_12
from nh_control.papers.paper import Experiment, Paper

PAPER = Paper(
    "celledoni2021",
    "Celledoni, Çokaj, Leone, Murari, Owren: Lie group integrators for mechanical systems",
    (
        # Experiments in the paper's order. Named experiments test claims made in its text.
        Experiment("rigid_body", "coadjoint orbits, Example 1", celledoni2021_top.rigid_body),
        FIGURE_1,
        Experiment("2", "the heavy top by symplectic methods", celledoni2021_top.figure_2),
        Experiment("3", "its energy over 6000 steps", celledoni2021_top.figure_3),
        Experiment("heavy_top", "its three formulations, 3.4", celledoni2021_top.heavy_top_orders),
        Experiment("pairs", "embedded pairs, 4", celledoni2021_pairs.pairs),
        Experiment("4", "a chain of three pendulums", celledoni2021_pendulums.figure_4),
        Experiment("5", "orders on two pendulums", celledoni2021_pendulums.figure_5),
        Experiment("6", "unit vectors keep their length", celledoni2021_pendulums.figure_6),
        Experiment("7", "velocities stay tangent", celledoni2021_pendulums.figure_7),
        Experiment("8", "variable steps, links of 1 m", celledoni2021_chains.figure_8),
        Experiment("9", "components of two pendulums", celledoni2021_chains.figure_9),
        Experiment("10", "variable steps, chains of 5 m", celledoni2021_chains.figure_10),
        Experiment("11", "steps on two pendulums", celledoni2021_chains.figure_11),
        Experiment("scaling", "cost over the number of links", celledoni2021_chains.scaling),
        FIGURE_12,
        Experiment("13", "orders on the payload", celledoni2021_payload.figure_13),
        Experiment("14", "snapshots of the payload", celledoni2021_payload.figure_14),
        Experiment("15", "position of the payload", celledoni2021_payload.figure_15),
        Experiment("16", "its deviation", celledoni2021_payload.figure_16),
        Experiment("17", "direction errors of the links", celledoni2021_payload.figure_17),
        Experiment("18", "unit vectors keep their length", celledoni2021_payload.figure_18),
    ),
)
