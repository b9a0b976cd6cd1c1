"""Boxes, capsules and chains thrown at random, and a box that rests and slides on slopes, beside
MuJoCo's and Drake's box where they are installed.

    python contact_throws.py [COUNT] [--first NUMBER] [--cases CASE ...]

Each is thrown from 0.9 m to 1.9 m with 2 m/s and 5 rad/s (deviations) and moves for 2 s at
h = 10 ms, the chain at 2.5 ms. The number of a throw is the seed of its random state: `1 --first
NUMBER` repeats it. All failures are printed with their numbers and reasons. The energies
are those of every tenth throw; "contact" is the largest gain in a step beyond the error of its
free flight. `--cases` throws only these bodies of this package. The peers have their default
contacts, Drake points at the corners (balls of 0.1 mm) by SAP. Slopes are a tilted gravity, along
the diagonal of the ground's axes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation
from sizes import sized

sys.path.append(str(Path(__file__).parents[1] / "contact"))
from bodies import chain, heights_of_corners

import nh_control as nh
from nh_control.multibody import Body, Multibody, floating
from nh_control.numerics.compiled import wait_for_compiler

DURATION, FRICTION, HALF, INERTIA, G = 2.0, 0.5, 0.1, 2 * 0.1**2 / 3, 9.81
STICKS, SLIDES, REST, SLIDE = 0.3, 0.6, 10.0, 1.0
"""Slopes, as tangents, and times (s) on them."""
STEPS = {"box": 200, "capsule": 200, "chain": 800}
ENERGIES, READOUTS = 10, 50
"""Energies of every tenth throw, gaps and friction of the first of these."""


def single(
    name: str, shape: nh.BoxCorners | nh.Capsule, inertia: tuple, gravity: tuple = (0, 0, -G)
) -> Multibody:
    """A free body of 1 kg."""
    contact = nh.Contact(name, shape, FRICTION)
    frame, body = floating(name, space="SO3xR3"), Body(name, 1.0, inertia=inertia)
    return Multibody(name, [frame], [body], contacts=[contact], gravity=gravity)


def box(gravity: tuple = (0, 0, -G)) -> Multibody:
    """The cube that the peers have, too."""
    return single("box", nh.BoxCorners((2 * HALF,) * 3), (INERTIA,) * 3, gravity)


CASES = {
    "box": box(),
    "capsule": single("capsule", nh.Capsule(0.05, 0.2, axis="x"), (0.002, 0.004, 0.003)),
    "chain": chain(4),
}


def thrown(dsys: nh.DiscreteSystem, rng: np.random.Generator) -> np.ndarray:
    """A random state above the ground."""
    space = dsys.system.space
    q = np.array(space.origin)
    turn = np.zeros(space.nv)
    turn[:3] = rng.normal(size=3)
    q[space.names.index(next(n for n in space.names if n.endswith("_z")))] = 0.9 + rng.random()
    v = np.zeros(space.nw)
    v[:3], v[3:6] = 5 * rng.normal(size=3), 2 * rng.normal(size=3)
    return dsys.state(space.retract(q, turn), v)


def contact_gain(readout: nh.ContactReadout, run: nh.Trajectory, k: int) -> float:
    """The energy (J) that step k gains beyond its flight.

    A step is the impulses at its start, from v to 2 w - v with w the velocity halfway through
    them, and a flight, whose own gain is the midpoint rule's error in free motion.
    """
    dsys, x = readout.dsys, run.states[k]
    halfway = readout.velocities([x], [[]])[0]
    after = dsys.state(x[: dsys.system.space.nq], 2 * halfway - dsys.velocity(x))
    flight = run.energies[k + 1] - dsys.energy(after)
    return run.energies[k + 1] - run.energies[k] - max(flight, 0.0)


def study(name: str, first: int, count: int) -> None:
    """Print the row of a case from its throws number `first` to `first + count - 1`."""
    dsys = nh.midpoint(CASES[name], DURATION / STEPS[name])
    readout, failures, gaps, gains, cones, drift = nh.ContactReadout(dsys), 0, [], [], [], []
    wait_for_compiler()
    start, by_contact = time.process_time(), 0.0
    for k in range(first, first + count):
        x = thrown(dsys, np.random.default_rng(k))
        try:
            run = dsys.simulate(x, steps=STEPS[name])
        except nh.StepFailed as failure:
            failures += 1
            print(f"{name} {k}: {failure}")
            continue
        if (k - first) % ENERGIES:  # energies take longer than steps
            continue
        gained = np.diff(run.energies)
        gains.append(gained.max())
        for step in np.flatnonzero(gained > by_contact):
            by_contact = max(by_contact, contact_gain(readout, run, step))
        if len(gains) <= READOUTS:  # of a step takes longer than all its energies
            table = readout.table(run.states[:-1], np.zeros((STEPS[name], 0)))
            gaps.append(table.gap.min())
            cones.append(-table.margin.min())
            drift.append(np.abs(run.states[-1] - run.states[-11])[: dsys.system.space.nq].max())
    spent = (time.process_time() - start) / count
    print(
        f"{name:32}{count:7}{failures:9}{-min(gaps):10.1e}{max(gains):10.1e}{by_contact:10.1e}"
        f"{max(cones):10.1e}{np.median(drift):10.1e}{spent * 1e3:8.1f}",
        flush=True,
    )


class Motion(NamedTuple):
    """Poses (N + 1, 7), quaternion and position, and velocities (N + 1, 6), angular in the box
    and linear in the world; sums over contacts of the normal and friction forces (N) of N steps.
    """

    poses: np.ndarray
    velocities: np.ndarray
    normal: np.ndarray
    friction: np.ndarray

    @property
    def kinetic(self) -> np.ndarray:
        """The kinetic energies (N + 1, J)."""
        return self.velocities**2 @ ([INERTIA] * 3 + [1.0] * 3) / 2


Engine = Callable[[np.ndarray, np.ndarray, int], Motion]
"""The motion from a pose and a velocity in a number of steps."""
Maker = Callable[[np.ndarray, float], Engine]
"""The engine with a gravity (3) and a step h."""


def here(gravity: np.ndarray, h: float, smoothing: float) -> Engine:
    """This package's box; velocities are those halfway through the impulses."""
    dsys = nh.midpoint(box(tuple(gravity)), h).with_smoothing(smoothing)
    readout = nh.ContactReadout(dsys)

    def run(q: np.ndarray, v: np.ndarray, steps: int) -> Motion:
        states = dsys.simulate(dsys.measured_state(q, v), steps=steps).states
        nothing = np.zeros((steps + 1, 0))
        table = readout.table(states[:-1], nothing[1:])
        friction = np.linalg.norm(table.friction, axis=2).sum(axis=1)
        velocities = readout.velocities(states, nothing)
        return Motion(states[:, :7], velocities, table.normal.sum(axis=1), friction)

    return run


def mujoco(gravity: np.ndarray, h: float, options: str) -> Engine:
    """MuJoCo's box with its soft contact."""
    import mujoco

    text = f"""<mujoco><option timestep="{h}" {options}
      gravity="{" ".join(map(str, gravity))}"/><worldbody>
      <geom type="plane" size="9 9 1" friction="{FRICTION} 0 0"/>
      <body name="box"><freejoint/><geom type="box" size="{HALF} {HALF} {HALF}" mass="1"
        friction="{FRICTION} 0 0"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)

    def forces() -> tuple[float, float]:
        found = np.zeros((data.ncon, 6))
        for i, row in enumerate(found):
            mujoco.mj_contactForce(model, data, i, row)
        return found[:, 0].sum(), np.linalg.norm(found[:, 1:3], axis=1).sum()

    def run(q: np.ndarray, v: np.ndarray, steps: int) -> Motion:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = np.hstack([q[4:], q[:4]]), np.hstack([v[3:], v[:3]])
        rows = [(np.array(data.qpos), np.array(data.qvel), (0.0, 0.0))]
        for _ in range(steps):
            mujoco.mj_step(model, data)
            rows.append((np.array(data.qpos), np.array(data.qvel), forces()))
        poses, velocities, read = (np.array(column) for column in zip(*rows))
        turned = np.hstack([poses[:, 3:], poses[:, :3]])
        return Motion(turned, np.roll(velocities, 3, axis=1), *read[1:].T)

    return run


def drake(gravity: np.ndarray, h: float) -> Engine:
    """Drake's box of a discrete plant with the SAP solver and its default compliance."""
    from pydrake.geometry import HalfSpace, Sphere
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import (
        AddMultibodyPlantSceneGraph,
        ContactModel,
        CoulombFriction,
        DiscreteContactApproximation,
    )
    from pydrake.multibody.tree import SpatialInertia
    from pydrake.systems.analysis import Simulator
    from pydrake.systems.framework import DiagramBuilder

    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, h)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    plant.set_contact_model(ContactModel.kPoint)
    plant.mutable_gravity_field().set_gravity_vector(gravity)
    cube = plant.AddRigidBody("box", SpatialInertia.SolidBoxWithMass(1.0, *(2 * HALF,) * 3))
    friction, ball = CoulombFriction(FRICTION, FRICTION), Sphere(1e-4)
    for i, corner in enumerate(product((-1, 1), repeat=3)):
        at = RigidTransform((HALF - 1e-4) * np.array(corner))
        plant.RegisterCollisionGeometry(cube, at, ball, f"corner_{i}", friction)
    ground = plant.world_body(), RigidTransform(), HalfSpace(), "ground", friction
    plant.RegisterCollisionGeometry(*ground)
    plant.Finalize()
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    contacts = plant.get_contact_results_output_port()

    def forces() -> tuple[float, float]:
        found = contacts.Eval(context)
        count = found.num_point_pair_contacts()
        read = np.array([found.point_pair_contact_info(i).contact_force() for i in range(count)])
        read = read.reshape(-1, 3)
        return abs(read[:, 2]).sum(), np.linalg.norm(read[:, :2], axis=1).sum()

    def run(q: np.ndarray, v: np.ndarray, steps: int) -> Motion:
        simulator.get_mutable_context().SetTime(0.0)
        spin = Rotation.from_quat(q[[1, 2, 3, 0]]).apply(v[:3])
        plant.SetPositionsAndVelocities(context, np.hstack([q, spin, v[3:]]))
        simulator.Initialize()
        rows = [(plant.GetPositionsAndVelocities(context), (0.0, 0.0))]
        for k in range(steps):
            simulator.AdvanceTo((k + 1) * h)
            rows.append((plant.GetPositionsAndVelocities(context), forces()))
        states, read = (np.array(column) for column in zip(*rows))
        turns = Rotation.from_quat(states[:, [1, 2, 3, 0]])
        spins = turns.apply(states[:, 7:10], inverse=True)
        return Motion(states[:, :7], np.hstack([spins, states[:, 10:]]), *read[1:].T)

    return run


def peers() -> dict[str, Maker]:
    """The installed peers; names the others."""
    found = dict[str, Maker]()
    if find_spec("mujoco"):
        kinds = ("Euler", "pyramidal"), ("implicitfast", "pyramidal"), ("implicitfast", "elliptic")
        for integrator, cone in kinds:
            options = f'integrator="{integrator}" cone="{cone}"'
            found[f"MuJoCo {integrator}, {cone}"] = partial(mujoco, options=options)
    if find_spec("pydrake"):
        found["Drake SAP"] = drake
    for name, module in (("mujoco", "mujoco"), ("drake", "pydrake")):
        state = version(name) if find_spec(module) else "is not installed: no row"
        print(f"{name} {state}")
    return found


def thrown_peer(name: str, engine: Engine) -> None:
    """Print the row of a peer's box that is thrown as that of this package."""
    h, rng = DURATION / STEPS["box"], np.random.default_rng(0)
    dsys, depths, gains, drift = nh.midpoint(CASES["box"], h), [], [], []
    count = sized(200, 2)
    for _ in range(count):
        x = thrown(dsys, rng)
        motion = engine(x[:7], dsys.velocity(x), STEPS["box"])
        depths.append(-heights_of_corners(motion.poses).min())
        gains.append(np.diff(motion.kinetic + G * motion.poses[:, 6]).max())
        drift.append(np.abs(motion.poses[-1] - motion.poses[-11]).max())
    print(
        f"{name:32}{count:7}{0:9}{max(depths):10.1e}{max(gains):10.1e}{'':20}"
        f"{np.median(drift):10.1e}"
    )


def on_slope(made: Maker, slope: float, seconds: float, h: float) -> tuple[Motion, np.ndarray]:
    """The motion of the box from rest on a slope, and the direction that falls."""
    along, steps = np.array([1, 1, 0]) / np.sqrt(2), round(seconds / h) // sized(1, 5)
    gravity = G / np.hypot(1, slope) * (slope * along - [0, 0, 1])
    pose = np.array([1.0, 0, 0, 0, 0, 0, HALF + 1e-9])
    return made(gravity, h)(pose, np.zeros(6), steps), along


def slopes(name: str, made: Maker, h: float) -> None:
    """Print the row of a box that rests for 10 s on a slope, and slides for 1 s on a steeper one;
    all but the depth and the kinetic energy, which are of the end, are of the second half.
    """
    rest, along = on_slope(made, STICKS, REST, h)
    half = len(rest.poses) // 2
    creep = np.diff(rest.poses[[half, -1], 4:] @ along)[0] / (h * (len(rest.poses) - 1 - half))
    depth = -heights_of_corners(rest.poses[-1:]).min()

    slide, along = on_slope(made, SLIDES, SLIDE, h)
    half = len(slide.poses) // 2
    gap = heights_of_corners(slide.poses[half:]).min(axis=1)
    cone = slide.friction[half:].sum() / (FRICTION * slide.normal[half:].sum()) - 1
    speeds = slide.velocities[[half, -1], 3:] @ along
    measured = np.diff(speeds)[0] / (h * (len(slide.poses) - 1 - half))
    exact = G / np.hypot(1, SLIDES) * (SLIDES - FRICTION)
    print(
        f"{name:32}{depth:10.1e}{creep:10.1e}{rest.kinetic[-1]:10.1e}"
        f"{gap.min():10.1e}{gap.max():10.1e}{cone:10.1e}{measured / exact - 1:10.1e}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=sized(1000, 2))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", nargs="+", choices=CASES)
    arguments = parser.parse_args()
    print(f"{'':32}{'throws':>7}{'failures':>9}{'depth/m':>10}{'gain/J':>10}"
          f"{'contact/J':>10}{'cone':>10}{'drift/m':>10}{'ms':>8}")  # fmt: skip
    for case in arguments.cases or CASES:
        study(case, arguments.first, arguments.count)
    if arguments.cases:
        sys.exit()
    engines = peers()
    for name, made in engines.items():
        thrown_peer(name, made(np.array([0, 0, -G]), DURATION / STEPS["box"]))
    own = {f"here, kappa = {kappa:g} J": partial(here, smoothing=kappa) for kappa in (1e-8, 1e-10)}
    for h in (0.01, 0.002):
        title = f"rests, slides, h = {h:g} s"
        print(f"{title:32}{'depth/m':>10}{'creep m/s':>10}{'kinetic/J':>10}{'gap from':>10}"
              f"{'to/m':>10}{'cone':>10}{'accel':>10}")  # fmt: skip
        for name, made in {**own, **engines}.items():
            slopes(name, made, h)
