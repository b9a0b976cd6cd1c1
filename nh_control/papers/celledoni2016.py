"""[celledoni2016]: energy-preserving integrators applied to nonholonomic systems."""

from __future__ import annotations

from nh_control.papers import (
    celledoni2016_chaotic,
    celledoni2016_cost,
    celledoni2016_disk,
    celledoni2016_gearbox,
    celledoni2016_sleigh,
    celledoni2016_yaw,
)
from nh_control.papers.paper import Experiment, Paper

PAPER = Paper(
    "celledoni2016",
    "Celledoni, Farré Puiggalí, Høiseth, Martín de Diego: Energy-preserving integrators applied "
    "to nonholonomic systems",
    (
        Experiment("1", "the rolling disk, (2) to (8)", celledoni2016_disk.figure_1),
        # Named experiments are not figures in the paper. They test claims made in its text.
        Experiment("yaw", "the disk's free yaw by variational methods", celledoni2016_yaw.yaw),
        Experiment("cost", "unknowns and cost, Remark 3.4", celledoni2016_cost.cost),
        Experiment(
            "2",
            "a chaotic system by five integrators",
            celledoni2016_chaotic.figure_2,
            celledoni2016_chaotic.short_figure_2,
            celledoni2016_chaotic.long_figure_2,
        ),
        Experiment(
            "3", "the sleigh leaves an unstable equilibrium", celledoni2016_sleigh.figure_3
        ),
        Experiment(
            "stability", "equilibria of the sleigh, Prop. 4.1", celledoni2016_sleigh.proposition
        ),
        Experiment("suslov", "momenta of the Suslov problem", celledoni2016_sleigh.suslov_problem),
        Experiment(
            "4",
            "a gearbox over half a million steps",
            celledoni2016_gearbox.figure_4,
            celledoni2016_gearbox.short_figure_4,
        ),
    ),
)
