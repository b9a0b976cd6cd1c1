"""The marionette in [johnson2014 VIII-B], a tree of ten bodies on six strings. The upper ends and
the lengths of the strings are prescribed.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.multibody import (
    WORLD,
    Body,
    Distance,
    Frame,
    JointDamper,
    Multibody,
    fixed,
    prismatic,
    revolute,
)

JOINTS = {"T": prismatic, "R": revolute}
PARTS = ("pelvis", "head", "femur", "tibia", "humerus", "radius")


@cache
def model_data() -> dict:
    """The published data for the model. They contain the frames, the bodies, the strings, the
    coordinates in order, and the experiment. The keys are self-explanatory.
    """
    return json.loads(resources.files("nh_control").joinpath("data/marionette.json").read_text())


@dataclass(frozen=True)
class MarionetteParameters(Parameters):
    """Masses of the parts, equal on both sides. The inertias are proportional to the masses."""

    pelvis: float = parameter(10.0, "kg", "mass of the trunk")
    head: float = parameter(0.75, "kg", "mass of the head")
    femur: float = parameter(1.5, "kg", "mass of a thigh")
    tibia: float = parameter(1.5, "kg", "mass of a shin")
    humerus: float = parameter(0.5, "kg", "mass of an upper arm")
    radius: float = parameter(0.5, "kg", "mass of a forearm")
    damping: float = parameter(
        0.2, "N m s/rad", "damping of every joint (N s/m along a line)", at_least=0.0
    )
    g: float = parameter(9.8, "m/s^2", "gravity", above=-math.inf)


def marionette(parameters: MarionetteParameters = MarionetteParameters()) -> System:
    """The marionette as a `System` with 22 body coordinates, 6 strings and 18 prescribed
    coordinates. There are no force inputs.
    """
    return marionette_model(parameters).system


def marionette_model(parameters: MarionetteParameters = MarionetteParameters()) -> Multibody:
    """The tree of frames. The upper end of each string slides along x and y in the plane z = 2 m.
    The length of the string occurs only in its constraint.
    """
    data, names = model_data(), frame_names()
    frames = [_frame(entry, names) for entry in data["frames"][1:]]
    bodies = [
        _body(names[entry["index"]], entry["inertia"], parameters)
        for entry in data["frames"]
        if "inertia" in entry
    ]
    strings = [
        Distance(c["name"], c["frame1"], c["frame2"], c["distance_config"])
        for c in data["constraints"]
    ]
    return Multibody(
        name="marionette",
        frames=frames,
        bodies=bodies,
        elements=[JointDamper(name, parameters.damping) for name in data["dynamic_configs"]],
        constraints=strings,
        prescribed=data["kinematic_configs"],
        gravity=(0.0, 0.0, -parameters.g),
    )


def initial_configuration() -> np.ndarray:
    """The published initial configuration (40). The limbs are bent, and every string is vertical
    and taut.
    """
    return np.array(model_data()["initial_configuration"]["q0"])


def frame_names() -> list[str]:
    """Names of the frames, in the order of the data. A frame without a name is named after its
    coordinate or its number.
    """
    return [
        WORLD,
        *(
            entry["name"] or entry.get("config") or f"frame_{entry['index']}"
            for entry in model_data()["frames"][1:]
        ),
    ]


def _frame(entry: dict, names: list[str]) -> Frame:
    from scipy.spatial.transform import Rotation  # slow to import

    name, parent, kind = names[entry["index"]], names[entry["parent"]], entry["type"]
    if kind == "CONST_TXYZ":
        return fixed(name, parent, entry["xyz"])
    make, axis = JOINTS[kind[0]], kind[1].lower()
    if "config" in entry:
        return make(name, parent, axis, coordinate=entry["config"])
    # entries without a coordinate are constant transforms
    along = np.eye(3)["xyz".index(axis)]
    if kind[0] == "T":
        return fixed(name, parent, entry["value"] * along)
    return fixed(name, parent, rotation=Rotation.from_rotvec(entry["value"] * along).as_matrix())


def _body(frame: str, published: dict, parameters: MarionetteParameters) -> Body:
    mass = next(getattr(parameters, part) for part in PARTS if part in frame)
    return Body(
        frame,
        mass,
        inertia=[published[key] * mass / published["m"] for key in ("Ixx", "Iyy", "Izz")],
    )
