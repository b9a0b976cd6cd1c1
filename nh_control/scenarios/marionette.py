"""The marionette scenario: a body on six strings follows a motion of its limbs, tracked by LQR
through the strings.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators import midpoint
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.mechanics.external_forces import ForceTarget
from nh_control.mechanics.system import System
from nh_control.scenarios.frames import on_frames
from nh_control.scenarios.marionette_visual import visual_model
from nh_control.scenarios.perturbation import PlanarPerturbation
from nh_control.scenarios.scenario import Joint, Scenario
from nh_control.systems.marionette import (
    MarionetteParameters,
    marionette,
    marionette_model,
    model_data,
)
from nh_control.systems.marionette_motion import LIMBS, PUBLISHED, StringMotion

SWAY = {
    f"{side}_{limb}_string-{axis}": a
    for side in ("left", "right")
    for limb, axis, a in (("arm", "y", 0.1), ("leg", "x", 0.05))
}

MOTIONS = {
    "published": PUBLISHED,
    "step": StringMotion(LIMBS, frequency=0.8 * np.pi, duration=10.0, ramp=2.0, from_rest=True),
    "sway": StringMotion(SWAY, frequency=0.8 * np.pi, duration=7.5, ramp=2.0, from_rest=True),
}
"""published is that of [johnson2014 VIII-B]; step lifts legs and arms in turn, sway moves hands
and legs to and fro, both from rest.
"""

WEIGHTS = np.diag([100.0] * 40 + [1.0] * 40), np.eye(18), None
"""The weights of [johnson2014 VIII-B], on the whole state [q; p; v_k] (80).

12 of these directions lead off the constraints. They need no reduction: the step annihilates a
change of p by constraint impulses, `A (0, Dh^T mu) = 0`, so that its gains are zero, and returns a
configuration off the constraints to them at once. Such directions decay by themselves: the problem
is stabilizable, and its gains are unique.
"""


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: PlanarPerturbation
) -> np.ndarray:
    """State x (nx) with the torso moved by `position` and turned by `heading` about the vertical,
    the smallest motion of the other coordinates that keeps the strings taut, and every momentum
    scaled.

    With seed < 0 the torso moves along y. Raises NotConsistent if the strings do not allow the
    error.
    """
    p, system = perturbation, model.system
    direction, signs = p.draw_direction_and_signs(1 + system.nrho)
    changes = {
        "torso_tx": p.position * direction[0],
        "torso_ty": p.position * direction[1],
        "torso_rz": signs[0] * p.heading,
    }
    state, q = np.array(x, dtype=float), model.configuration(x)
    for name, change in changes.items():
        q[system.space.names.index(name)] += change
    state[: len(q)] = (
        satisfy_constraints(system, q, (*changes, *system.prescribed))
        if any(changes.values())
        else q
    )
    state[len(q) :][: system.nrho] *= 1 + p.momentum * signs[1:]
    return state


def on_limbs(_: System) -> tuple[ForceTarget, ...]:
    """Disturbances act on all bodies with mass."""
    model = marionette_model()
    return on_frames(model, (body.frame for body in model.bodies))


def _unit(coordinate: str) -> str:
    return "m" if coordinate.startswith("torso_t") or "string" in coordinate else "rad"


MARIONETTE = Scenario(
    name="marionette",
    title="Marionette on six strings",
    parameters=MarionetteParameters(),
    make_system=marionette,
    integrators={"midpoint_left": partial(midpoint, forcing="left"), "midpoint": midpoint},
    references={name: motion.reference for name, motion in MOTIONS.items()},
    weights=WEIGHTS,
    perturbation=PlanarPerturbation(position=0.1, heading=0.1, momentum=0.1),
    perturb=perturbed,
    external=on_limbs,
    joints=tuple(
        Joint(name, name, unit=_unit(name))
        for key in ("dynamic_configs", "kinematic_configs")
        for name in model_data()[key]
    ),
    visual=visual_model,
)
