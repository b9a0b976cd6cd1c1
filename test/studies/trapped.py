"""A pendulum that hangs, whose runs can be made to fail, by a file `trap.json` beside a copy of
this one.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from nh_control import Trajectory
from nh_control.scenarios.joints import perturbed
from nh_control.scenarios.pendulum_swing_up import PENDULUM_SWING_UP

TRAP = Path(__file__).parent / "trap.json"


def perturb(model, x, perturbation):
    """As the pendulum's, but for an angle from which a signal goes to this process or its parent,
    once or always, and for angles above 2, which raise.
    """
    if TRAP.exists():
        trap = json.loads(TRAP.read_text())
        if perturbation.angle == trap["angle"]:
            if trap["once"]:
                TRAP.unlink()
            os.kill(os.getppid() if trap["parent"] else os.getpid(), trap["signal"])
    if perturbation.angle > 2:
        raise ValueError(f"too far: {perturbation.angle}")
    return perturbed(model, x, perturbation)


def hanging(dsys):
    """At rest: a reference that takes no time to find."""
    return Trajectory(dsys.h, np.zeros((51, 2)), np.zeros((50, 1)))


SCENARIO = replace(
    PENDULUM_SWING_UP, name="trapped", perturb=perturb, references={"hanging": hanging}
)
