"""Time of a step in contact beside MuJoCo's, in one run: a box, Upkie and JVRC-1 on eight points.

    pip install mujoco upkie-description jvrc-description
    python contact_speed.py [--short] [CASE ...]

Both step the same bodies by the same h, from standing, without efforts; MuJoCo's contacts are soft
points (balls of 0.1 mm), its integrators Euler and implicitfast. Both run in their own loops of
compiled code, called once for all steps.
"flight" is this package's step half a meter above the ground, "free" that of the same body without
contacts. Times are processor time in us, the smallest of several batches.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from xml.etree import ElementTree

import mujoco
import numpy as np
from robots import urdf
from sizes import SHORT, sized

import nh_control as nh
from nh_control.multibody import Body, Multibody, Point, floating
from nh_control.numerics.compiled import wait_for_compiler

H, STEPS, BATCHES = 0.001, sized(50, 5), sized(5, 2)
FRICTION, SIZE, TINY = 0.8, 0.2, 1e-4
CORNERS = np.array(np.meshgrid((-1, 1), (-1, 1), (-1, 1))).reshape(3, 8).T
FEET = {
    "upkie": ("left_wheel_tire", "right_wheel_tire"),
    "jvrc1": ("L_ANKLE_P_S", "R_ANKLE_P_S"),
}
SOLE = {"upkie": (0.05, 0.02, 0.05), "jvrc1": (0.1, 0.05, 0.1)}
"""Half lengths, half widths and depths (m) of a foot's four points in the axes of the root."""


def points(name: str, model: Multibody) -> list[Point]:
    """Eight points under the feet, in the axes of their links where all joints are at zero."""
    found, (length, width, depth) = list[Point](), SOLE[name]
    for foot in FEET[name]:
        rotation = model.pose(model.configuration(), foot).rotation
        for x, y in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            found.append(Point(foot, tuple(rotation.T @ [x * length, y * width, -depth])))
    return found


def body(name: str) -> tuple[Multibody, list[Point], str]:
    """A case without contacts, its points, and its URDF; that of the box is empty."""
    if name == "box":
        inertia = (SIZE**2 / 6,) * 3
        frame = floating("box", space="SO3xR3")
        model = Multibody("box", [frame], [Body("box", 1.0, inertia=inertia)])
        return model, [Point("box", tuple(SIZE / 2 * c)) for c in CORNERS], ""
    text, _ = urdf(name)
    model = nh.load_urdf(text, "floating", space="SO3xR3")
    return model, points(name, model), text


def peer(model: Multibody, text: str, at: list[Point], height: float, kind: str):
    """MuJoCo's model and data of a case, with its root at a height."""
    if text:
        robot = ElementTree.fromstring(text)
        options = '<mujoco><compiler balanceinertia="true" fusestatic="false"/></mujoco>'
        robot.append(ElementTree.fromstring(options))
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding="unicode"))
        spec.body(model.frames[0].name).add_freejoint()
    else:
        spec = mujoco.MjSpec()
        box = spec.worldbody.add_body(name="box", mass=1.0, inertia=[SIZE**2 / 6] * 3)
        box.explicitinertial = True
        box.add_freejoint()
    ground = {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": [1, 1, 1], "friction": [FRICTION, 0, 0]}
    spec.worldbody.add_geom(**ground)
    for point in at:
        spec.body(point.frame).add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[TINY, 0, 0], pos=point.position, mass=0.0,
            friction=[FRICTION, 0, 0], condim=3,
        )  # fmt: skip
    made = spec.compile()
    made.opt.timestep = H
    made.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{kind.upper()}")
    data = mujoco.MjData(made)
    data.qpos[2] = height + TINY
    return made, data


def smallest(run) -> float:
    """Processor time of a step (us), the smallest of several batches of `run()`."""
    times = list[float]()
    for _ in range(BATCHES):
        wait_for_compiler()
        start = time.process_time()
        run()
        times.append((time.process_time() - start) / STEPS * 1e6)
    return min(times)


def ours(model: Multibody, q: np.ndarray) -> float:
    """Time of a step (us) of a model from a configuration at rest."""
    dsys = nh.midpoint(model, H)
    x, inputs = dsys.state(q, model.velocity()), np.zeros((STEPS, dsys.nu))
    dsys.simulate(x, inputs)  # compiles
    return smallest(lambda: dsys.simulate(x, inputs))


def theirs(model: Multibody, text: str, at: list[Point], height: float, kind: str) -> float:
    """Time of a step (us) of MuJoCo."""
    made, data = peer(model, text, at, height, kind)
    start = data.qpos.copy()

    def run() -> None:
        mujoco.mj_resetData(made, data)
        data.qpos[:] = start
        mujoco.mj_step(made, data, STEPS)

    run()
    if not data.ncon:
        raise RuntimeError(f"{model.name}: no contact in MuJoCo after {STEPS} steps")
    return smallest(run)


def standing(name: str) -> dict[str, float]:
    """Times of a step (us) of a case in contact, in flight and without contacts, and of MuJoCo's
    integrators.
    """
    model, at, text = body(name)
    contacts = tuple(
        nh.Contact(p, nh.Corner(), FRICTION, name=f"point_{i}") for i, p in enumerate(at)
    )
    touching, q = replace(model, contacts=contacts), model.configuration()
    root = model.space.names.index(f"{model.frames[0].name}_z")
    q[root] -= min(model.point(q, p)[2] for p in at) - 1e-6
    found, high = {"contact": ours(touching, q)}, q.copy()
    high[root] += 0.5
    found |= {"flight": ours(touching, high), "free": ours(model, q)}
    return found | {k: theirs(model, text, at, q[root], k) for k in ("Euler", "implicitfast")}


def main(cases: list[str]) -> None:
    """Print the table of some cases."""
    print(f"h = {H:g} s, {STEPS} steps; us a step")
    print(
        f"{'':8}{'contact':>9}{'flight':>9}{'free':>9}{'Euler':>9}{'implicit':>9}"
        f"{'ratio':>7}{'h / step':>10}"
    )
    for name in cases:
        found = standing(name)
        own, peers = found["contact"], (found["Euler"], found["implicitfast"])
        times = "".join(f"{time:9.1f}" for time in found.values())
        print(f"{name:8}{times}{own / min(peers):9.1f}{H * 1e6 / own:9.1f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=["box"] if SHORT else ["box", *FEET])
    main(parser.parse_args().cases)
