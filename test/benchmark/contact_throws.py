"""Boxes, capsules and chains thrown at random: failures, depths, gains of energy, cones and drift,
beside MuJoCo's box where it is installed.

    python contact_throws.py [COUNT]

Each is thrown from 0.3 m to 1.3 m with 2 m/s and 5 rad/s (deviations) and moves for 2 s at
h = 10 ms, the chain at 2.5 ms. The first three failures are printed with their reasons.
"""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sizes import sized

sys.path.append(str(Path(__file__).parents[1] / "contact"))
from bodies import chain

import nh_control as nh
from nh_control.multibody import Body, Multibody, floating

DURATION, FRICTION, HALF = 2.0, 0.5, 0.1
STEPS = {"box": 200, "capsule": 200, "chain": 800}
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else sized(1000, 2)


def single(name: str, shape: nh.BoxCorners | nh.Capsule, inertia: tuple) -> Multibody:
    """A free body of 1 kg."""
    contact = nh.Contact(name, shape, FRICTION)
    frame, body = floating(name, space="SO3xR3"), Body(name, 1.0, inertia=inertia)
    return Multibody(name, [frame], [body], contacts=[contact])


CASES = {
    "box": single("box", nh.BoxCorners((2 * HALF,) * 3), (2 * HALF**2 / 3,) * 3),
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


def study(name: str) -> None:
    """Print the row of a case."""
    dsys, rng = nh.midpoint(CASES[name], DURATION / STEPS[name]), np.random.default_rng(0)
    readout, failures, gaps, gains, cones, drift = nh.ContactReadout(dsys), 0, [], [], [], []
    start = time.process_time()
    for k in range(COUNT):
        x = thrown(dsys, rng)
        try:
            run = dsys.simulate(x, steps=STEPS[name])
        except nh.StepFailed as failure:
            failures += 1
            if failures <= 3:
                print(f"{name} {k}: {failure}")
            continue
        gains.append(np.diff(run.energies).max())
        if k % max(1, COUNT // 50) == 0:  # reading is slower than stepping
            table = readout.table(run.states[:-1], np.zeros((STEPS[name], 0)))
            gaps.append(table.gap.min())
            cones.append(-table.margin.min())
            drift.append(np.abs(run.states[-1] - run.states[-11])[: dsys.system.space.nq].max())
    spent = (time.process_time() - start) / max(COUNT, 1)
    print(
        f"{name:8}{COUNT:7}{failures:9}{-min(gaps):10.1e}{max(gains):10.1e}{max(cones):10.1e}"
        f"{np.median(drift):10.1e}{spent * 1e3:8.1f}",
        flush=True,
    )


def mujoco_box() -> None:
    """Print the row of MuJoCo's box: soft contacts, pyramidal and elliptic cones alike."""
    import mujoco

    h = DURATION / STEPS["box"]
    text = f"""<mujoco><option timestep="{h}" cone="elliptic" integrator="implicitfast"/>
      <worldbody>
      <geom type="plane" size="9 9 1" friction="{FRICTION} 0 0"/>
      <body name="box"><freejoint/><geom type="box" size="{HALF} {HALF} {HALF}" mass="1"
        friction="{FRICTION} 0 0"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    dsys = nh.midpoint(CASES["box"], DURATION / STEPS["box"])
    deepest, gain, drift = 0.0, 0.0, []
    for _ in range(sized(200, 2)):
        x = thrown(dsys, rng)
        mujoco.mj_resetData(model, data)
        v = dsys.velocity(x)
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, x[:4])
        data.qpos[:] = np.hstack([x[4:7], x[:4]])
        data.qvel[:] = np.hstack([v[3:], v[:3]])
        positions, energies = [], []
        for _ in range(STEPS["box"]):
            mujoco.mj_step(model, data)
            deepest = max([deepest, *(-data.contact.dist)])
            positions.append(np.array(data.qpos))
            w, u = data.qvel[3:], data.qvel[:3]
            energies.append((u @ u + 2 * HALF**2 / 3 * w @ w) / 2 + 9.81 * data.qpos[2])
        gain = max(gain, np.diff(energies).max())
        drift.append(np.abs(positions[-1] - positions[-11]).max())
    print(
        f"{'MuJoCo':8}{len(drift):7}{0:9}{deepest:10.1e}{gain:10.1e}{'':10}{np.median(drift):10.1e}"
    )


if __name__ == "__main__":
    print(f"{'':8}{'throws':>7}{'failures':>9}{'depth/m':>10}{'gain/J':>10}{'cone':>10}"
          f"{'drift/m':>10}{'ms':>8}")  # fmt: skip
    for case in CASES:
        study(case)
    if find_spec("mujoco"):
        mujoco_box()
