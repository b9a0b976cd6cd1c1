"""The tilts and pushes from which Upkie recovers, in this package's plant and in MuJoCo's.

    pip install mujoco upkie-description
    python upkie_basin.py [--short]

Both plants have the bodies of one URDF, tires as discs with friction 0.8, the same gains, effort
limits and h, and no limits of joints. Tilts start at rest with the lower tire on the ground,
pushes of 0.2 s act at the base's origin; angles are headings, 0 forward and 90 to the left.
Upkie recovers ("+") if it is upright and at its height after 6 s; "!" is a step that fails.
Numbers after "here" and the cone are the steps in h.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
from contact_speed import urdf
from scipy.spatial.transform import Rotation
from sizes import sized

import nh_control as nh
from nh_control import scenarios
from nh_control.discrete.plant_steps import convert
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import PlantOptions
from nh_control.scenarios.disturbance import parse

sys.path.insert(0, str(Path(__file__).parents[2] / "resource/examples"))
import upkie
from upkie import FRICTION, MODEL, RADIUS, TIRES

DURATION, PUSH = 6.0, 0.2
HEADINGS = sized((0, 45, 90, 135, 180), (0,))
TILTS = sized(tuple(np.round(np.arange(0.05, 0.65, 0.05), 2)), (0.1,))
PUSHES = sized(tuple(range(5, 65, 5)), (10,))
KINDS = (
    ("Euler", "pyramidal", 1, 0.02),
    ("implicitfast", "elliptic", 1, 0.02),
    ("implicitfast", "elliptic", 5, 0.02),
    ("implicitfast", "elliptic", 5, 0.004),
)
"""MuJoCo's integrator, cone, steps in h, and time constant (s) of the contacts."""
NQ, JOINTS = MODEL.space.nq, MODEL.space.names[7:]


def experiment(substeps: int) -> Experiment:
    """Upkie under its gains, with forces on its base."""
    scenario = scenarios.get(f"{upkie.__file__}:UPKIE")
    pushed = (parse("base:constant:0,0,0"),)
    return Experiment.make(
        scenario, "stand", options=PlantOptions(disturbances=pushed, substeps=substeps)
    )


EXPERIMENT = experiment(1)
STILL = EXPERIMENT.tracker.reference.states[0]
STORED = STILL[NQ:] - EXPERIMENT.model.state(STILL[:NQ], MODEL.velocity())[NQ:]
"""The momentum at rest, that before the impulse of the ground: in proportion to the step."""


class Here:
    """This package's plant: the model with a force and a torque on the base."""

    def __init__(self, substeps: int):
        self.plant, self.substeps = experiment(substeps).plant, substeps
        self.stored = STORED / substeps

    def start(self, x: np.ndarray) -> np.ndarray:
        """The state at the start."""
        self.x = convert(x, EXPERIMENT.model, self.plant)
        self.x[NQ:] += self.stored - STORED
        return x

    def step(self, u: np.ndarray, force: np.ndarray) -> np.ndarray:
        """The state after h under efforts and a force on the base."""
        for _ in range(self.substeps):
            self.x = self.plant.step(self.x, np.concatenate([u, force, np.zeros(3)]))
        x = convert(self.x, self.plant, EXPERIMENT.model)
        x[NQ:] += STORED - self.stored
        return x


class MuJoCo:
    """MuJoCo's plant. States, which here are those before an impulse, have the momentum of its
    velocity and that which is stored at rest.
    """

    def __init__(self, integrator: str, cone: str, substeps: int, constant: float):
        robot = ElementTree.fromstring(urdf("upkie"))
        options = '<mujoco><compiler fusestatic="false"/></mujoco>'
        robot.append(ElementTree.fromstring(options))
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding="unicode"))
        spec.body("base").add_freejoint()
        friction = {"friction": [FRICTION, 0, 0], "condim": 3}
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        spec.worldbody.add_geom(type=plane, size=[99, 99, 1], **friction)
        for tire in TIRES:
            disc = {"type": mujoco.mjtGeom.mjGEOM_CYLINDER, "size": [RADIUS, 1e-3, 0]}
            spec.body(tire.at.frame).add_geom(
                mass=0.0, contype=2, conaffinity=1, **disc, **friction
            )
        self.made = spec.compile()
        self.substeps = substeps
        self.made.opt.timestep = EXPERIMENT.model.h / substeps
        self.made.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        self.made.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
        self.made.geom_solref[:, 0] = constant
        self.made.jnt_limited[:] = False
        self.data = mujoco.MjData(self.made)
        joints = [self.made.joint(name) for name in JOINTS]
        self.at = [int(joint.qposadr[0]) for joint in joints]
        self.rates = [int(joint.dofadr[0]) for joint in joints]
        self.inputs = [
            int(self.made.joint(n.removesuffix("_torque")).dofadr[0]) for n in MODEL.system.inputs
        ]
        self.base = self.made.body("base").id

    def start(self, x: np.ndarray) -> np.ndarray:
        """The state at the start, at rest."""
        mujoco.mj_resetData(self.made, self.data)
        self.data.qpos[:7] = np.concatenate([x[4:7], x[:4]])
        self.data.qpos[self.at] = x[7:NQ]
        return self.state()

    def step(self, u: np.ndarray, force: np.ndarray) -> np.ndarray:
        """The state after h under efforts and a force on the base."""
        self.data.qfrc_applied[self.inputs] = u
        self.data.xfrc_applied[self.base, :3] = force
        mujoco.mj_step(self.made, self.data, self.substeps)
        return self.state()

    def state(self) -> np.ndarray:
        """The state in the coordinates of the model."""
        q, v = self.data.qpos, self.data.qvel
        x = EXPERIMENT.model.state(
            np.concatenate([q[3:7], q[:3], q[self.at]]),
            np.concatenate([v[3:6], v[:3], v[self.rates]]),
        )
        x[NQ:] += STORED
        return x

    def mass_error(self) -> float:
        """The largest difference of both mass matrices at the start, of the largest entry."""
        mujoco.mj_forward(self.made, self.data)
        full = np.zeros((self.made.nv, self.made.nv))
        mujoco.mj_fullM(self.made, self.data, full)
        order = [3, 4, 5, 0, 1, 2, *self.rates]
        own = MODEL.mass_matrix(self.state()[:NQ])
        return np.abs(full[np.ix_(order, order)] - own).max() / np.abs(own).max()


def tilted(heading: float, tilt: float) -> np.ndarray:
    """The state at rest with a tilt (rad) towards a heading, its lower tire on the ground."""
    turn = Rotation.from_rotvec(tilt * np.array([-np.sin(heading), np.cos(heading), 0]))
    q = STILL[:NQ].copy()
    q[[1, 2, 3, 0]] = (turn * Rotation.from_quat(q[[1, 2, 3, 0]])).as_quat()
    q[4:7] = turn.apply(q[4:7])
    poses = [MODEL.pose(q, tire.at.frame) for tire in TIRES]
    # a disc about the axis a reaches down by r sqrt(1 - a_z^2)
    q[6] -= min(p.position[2] - RADIUS * np.sqrt(1 - p.rotation[2, 2] ** 2) for p in poses) - 1e-6
    x = EXPERIMENT.model.state(q, MODEL.velocity())
    x[NQ:] += STORED
    return x


def outcome(plant: Here | MuJoCo, x: np.ndarray, force: np.ndarray) -> str:
    """Whether it recovers from a state under a push (N): "+", "-", or "!" if a step fails."""
    tracker, h = EXPERIMENT.tracker, EXPERIMENT.model.h
    x = plant.start(x)
    for k in range(round(DURATION / h)):
        if x[6] < STILL[6] / 2:
            return "-"
        try:
            x = plant.step(tracker.command(k, x).u, force if k * h < PUSH else np.zeros(3))
        except nh.StepFailed:
            return "!"
    upright = 1 - 2 * (x[1] ** 2 + x[2] ** 2)  # cosine of the tilt
    return "+" if upright > np.cos(0.1) and abs(x[6] - STILL[6]) < 0.02 else "-"


def main() -> None:
    """Print a row of outcomes, of growing tilts and pushes, for each heading and plant."""
    plants: dict[str, Here | MuJoCo] = {f"here {n}": Here(n) for n in (1, 5)}
    plants |= {f"MuJoCo {' '.join(map(str, kind))}": MuJoCo(*kind) for kind in KINDS}
    error = max(p.mass_error() for p in plants.values() if isinstance(p, MuJoCo))
    print(f"mujoco {mujoco.__version__}, mass matrices differ by {error:.1e}")
    studies = ("tilts", "rad", TILTS), ("pushes", "N", PUSHES)
    for (study, unit, sizes), heading in product(studies, HEADINGS):
        print(f"{study} of {sizes[0]} to {sizes[-1]} {unit} towards {heading} degrees")
        angle = np.radians(heading)
        for name, plant in plants.items():
            row = ""
            for size in sizes:
                push = study == "pushes"
                force = size * push * np.array([np.cos(angle), np.sin(angle), 0])
                row += outcome(plant, tilted(angle, 0 if push else size), force)
            print(f"  {name:38}{row}  {row.count('+')}", flush=True)


if __name__ == "__main__":
    main()
