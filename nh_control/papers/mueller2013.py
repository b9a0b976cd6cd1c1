"""[mueller2013]: is there an optimal choice of configuration space for Lie group integration
schemes applied to constrained MBS?
"""

from __future__ import annotations

from nh_control.papers import mueller2013_beyond, mueller2013_gravity, mueller2013_joints
from nh_control.papers.mueller2013_figures import FIGURES
from nh_control.papers.paper import Experiment, Paper

# The paper's figures, and named experiments that go beyond them.
PAPER = Paper(
    "mueller2013",
    "Müller, Terze: Is there an optimal choice of configuration space for Lie group integration "
    "schemes applied to constrained MBS?",
    (
        *(Experiment(number, title, compute) for number, title, compute in FIGURES),
        Experiment("gravity", "the top in gravity", mueller2013_gravity.gravity),
        Experiment("joints", "joints of all kinds", mueller2013_joints.joints),
        Experiment("screw", "screw joints", mueller2013_joints.screw_joints),
        Experiment("mixed", "a space for every body", mueller2013_beyond.mixed_spaces),
        Experiment(
            "formulations",
            "stabilization, the variational integrator and joint coordinates side by side",
            mueller2013_beyond.compare_formulations,
        ),
    ),
)
