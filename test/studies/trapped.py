"""A hanging pendulum whose runs fail on demand: a file `trap.json` beside a copy of this file says
how.
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
    """Perturb as the pendulum does. At one angle send a signal to this process or its parent, once
    or always; raise above an angle of 2.
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
    """At rest: this reference needs no computation."""
    return Trajectory(dsys.h, np.zeros((51, 2)), np.zeros((50, 1)))


SCENARIO = replace(
    PENDULUM_SWING_UP, name="trapped", perturb=perturb, references={"hanging": hanging}
)
