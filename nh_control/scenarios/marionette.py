"""The marionette scenario: a body that hangs on six strings moves its limbs. LQR tracks the motion
by moving the strings.
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
"""`published` is the motion in [johnson2014 VIII-B]. `step` lifts the legs and arms in turn, and
`sway` moves the hands and legs back and forth. Both start from rest.
"""

WEIGHTS = np.diag([100.0] * 40 + [1.0] * 40), np.eye(18), None
"""The weights from [johnson2014 VIII-B], on the whole state [q; p; v_k] (80).

Twelve of the state's directions violate the constraints. They need not be eliminated. A step
annihilates a change in p that is due to constraint impulses, `A (0, Dh^T mu) = 0`, so the gains
for this change are zero. A step also returns the configuration to the constraints. Since these
directions decay without feedback, the problem is stabilizable and the gains are unique.
"""


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: PlanarPerturbation
) -> np.ndarray:
    """The state x (nx) with the torso displaced by `position` and rotated by `heading` about the
    vertical, and all momenta scaled. The other coordinates change as little as the string lengths
    allow.

    For seed < 0 the torso moves along y. Raises NotConsistent if the strings do not allow the
    error.
    """
    system = model.system
    direction, signs = perturbation.draw_direction_and_signs(1 + system.nrho)
    changes = {
        "torso_tx": perturbation.position * direction[0],
        "torso_ty": perturbation.position * direction[1],
        "torso_rz": signs[0] * perturbation.heading,
    }
    state, q = np.array(x, dtype=float), model.configuration(x)
    for name, change in changes.items():
        q[system.space.names.index(name)] += change
    # The torso keeps its error, the strings keep their lengths, and the limbs are corrected.
    state[: len(q)] = (
        satisfy_constraints(system, q, (*changes, *system.prescribed))
        if any(changes.values())
        else q
    )
    state[len(q) :][: system.nrho] *= 1 + perturbation.momentum * signs[1:]
    return state


def on_limbs(_: System) -> tuple[ForceTarget, ...]:
    """The disturbance targets: all bodies with mass."""
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
    meanings={
        "published": "the motion of the strings of [johnson2014 VIII-B]",
        "step": "legs and arms lifted in turn, from rest",
        "sway": "hands and legs moved back and forth, from rest",
    },
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
