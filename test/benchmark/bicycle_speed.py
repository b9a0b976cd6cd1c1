"""The benchmark bicycle: a step, and one with A and B, by wheels in the linear-time kernel and by
hand-written rows in generated code, and MuJoCo's step and finite differences.

    pip install mujoco
    python test/benchmark/bicycle_speed.py

MuJoCo's wheels are ellipsoids, 2 cm wide, in contact with a plane; it differentiates by centered
differences. All are called from Python, in turns; printed are the smallest times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import casadi as ca
import numpy as np
from sizes import sized

import nh_control as nh
from nh_control.systems.bicycle import BicycleParameters, bicycle_model

H, SPEED, P = 0.01, 5.0, BicycleParameters()
CALLS, ROUNDS = sized((2000, 7), (2, 1))


def by_hand() -> nh.System:
    """The same rows, written with the model's kinematics."""
    tree = replace(bicycle_model(), wheels=())
    radii = {"rear_wheel": P.rear_radius, "front_wheel": P.front_radius}

    def arm(k: nh.multibody.Kinematics, wheel: str) -> ca.SX:
        axle = k.rotation(wheel)[:, 1]
        down = ca.vertcat(0, 0, -1) + axle[2] * axle
        return radii[wheel] * down / ca.norm_2(down)

    def rows(q: ca.SX) -> ca.SX:
        v = ca.SX.sym("v", tree.space.nw)
        k = tree.kinematics(q, v)
        slips = [k.velocity(w) + ca.cross(k.angular_velocity(w), arm(k, w)) for w in radii]
        return ca.jacobian(ca.vertcat(*(slip[:2] for slip in slips)), v)

    def height(q: ca.SX) -> ca.SX:
        k = tree.kinematics(q, ca.SX(tree.space.nw, 1))
        return (k.position("front_wheel") + arm(k, "front_wheel"))[2]

    return replace(tree.system, velocity_constraint=rows, holonomic_constraint=height)


def ours(system: nh.System) -> dict[str, Callable[[], object]]:
    dsys = nh.nonholonomic_midpoint(system, H).prepare()
    tree = bicycle_model()
    rates = {"rear_wheel_dot": SPEED / P.rear_radius, "front_wheel_dot": SPEED / P.front_radius}
    x = dsys.state(tree.configuration(), tree.velocity({"contact_v_forward": SPEED, **rates}))
    still = np.zeros(dsys.nu)
    return {"step": lambda: dsys.step(x, still), "A, B": lambda: dsys.linearize(x, still)}


def mjcf() -> str:
    """The bodies of the model at its nominal pose, in MuJoCo's words."""
    tree = bicycle_model()
    pose = tree.poses(tree.configuration())
    inertias = {part.frame: part for part in tree.spatial_inertias}
    steering = pose["steering"].rotation[:, 2]

    def inertial(frame: str) -> str:
        part, (rotation, _) = inertias[frame], pose[frame]
        J = rotation @ np.asarray(part.inertia, dtype=float) @ rotation.T
        numbers = J[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        full, center = " ".join(map(str, numbers)), " ".join(map(str, rotation @ part.center))
        return f'<inertial pos="{center}" mass="{part.mass}" fullinertia="{full}"/>'

    def wheel(frame: str, radius: float, at: np.ndarray) -> str:
        size, place = f"{radius} 0.01 {radius}", " ".join(map(str, at))
        geom = f'<geom type="ellipsoid" size="{size}" friction="1 0 0"/>'
        return f'<body pos="{place}"><joint axis="0 1 0"/>{inertial(frame)}{geom}</body>'

    rear, front, fork = (pose[name].position for name in ("frame", "front_wheel", "steering"))
    return f"""<mujoco><option timestep="{H}"/><worldbody>
      <geom type="plane" size="1 1 1"/>
      <body pos="{" ".join(map(str, rear))}"><freejoint/>{inertial("frame")}
        {wheel("rear_wheel", P.rear_radius, np.zeros(3))}
        <body pos="{" ".join(map(str, fork - rear))}">
          <joint axis="{" ".join(map(str, steering))}"/>{inertial("steering")}
          {wheel("front_wheel", P.front_radius, front - fork)}
        </body></body></worldbody></mujoco>"""


def mujocos() -> dict[str, Callable[[], object]]:
    import mujoco

    model = mujoco.MjModel.from_xml_string(mjcf())
    data, n = mujoco.MjData(model), 2 * model.nv
    data.qvel[0], data.qvel[[6, 8]] = SPEED, (SPEED / P.rear_radius, SPEED / P.front_radius)
    start, A = mujoco.mjtState.mjSTATE_INTEGRATION, np.zeros((n, n))
    saved = np.empty(mujoco.mj_stateSize(model, start))
    mujoco.mj_getState(model, data, saved, start)

    def step() -> None:
        mujoco.mj_setState(model, data, saved, start)
        mujoco.mj_step(model, data)

    def differentiate() -> None:
        mujoco.mj_setState(model, data, saved, start)
        mujoco.mjd_transitionFD(model, data, 1e-6, True, A, None, None, None)

    step()
    print(f"MuJoCo: {data.ncon} contacts")
    return {"step": step, "A, B": differentiate}


def main() -> None:
    """Time all in turns and print a table in us."""
    programs = {"wheels": ours(bicycle_model().system), "rows by hand": ours(by_hand())}
    try:
        programs["MuJoCo"] = mujocos()
    except ImportError:
        print("MuJoCo is not installed")
    best = {(name, what): np.inf for name, calls in programs.items() for what in calls}
    for _ in range(ROUNDS):
        for name, what in best:
            call, begin = programs[name][what], time.process_time()
            for _ in range(CALLS):
                call()
            best[name, what] = min(best[name, what], (time.process_time() - begin) / CALLS)
    for name in programs:
        print(
            f"{name:14}", *(f"{what} {1e6 * best[name, what]:7.1f} us" for what in programs[name])
        )


if __name__ == "__main__":
    main()
