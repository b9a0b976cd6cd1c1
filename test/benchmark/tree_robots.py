"""A variational step of robots, and its A and B, by the kernel in linear time, beside Pinocchio
(semi-implicit Euler with ABA; ABA's derivatives) and MuJoCo (step; transitionFD), in one run.

    pip install pin mujoco airo-models jvrc-description upkie-description
    python test/benchmark/tree_robots.py [--precision]

All read the same URDF, without joints that follow others, contacts, damping and friction; that
they accelerate the joints alike is asserted. All are called from Python, step by step, and take
turns; times are this thread's processor time, the best of several batches. Ours is also shown in
one native call of many steps, where a simulation spends its time. `--precision` prints errors of
the joints after 1 s against the time of computing for steps of many sizes.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
from sizes import sized

from nh_control.discrete.results import StepFailed
from nh_control.integrators import midpoint
from nh_control.integrators.composition import fractions
from nh_control.multibody import load_urdf
from nh_control.numerics.compiled import wait_for_compiler

H, BATCHES, CALLS = 1e-3, *sized((9, 40), (1, 2))
STEPS = sized((0.02, 0.01, 0.005, 0.002, 0.001, 0.0005), (0.01,))
ROBOTS = {
    "ur5e": ("airo_models", "arms/ur5e/ur5e.urdf", "fixed"),
    "upkie": ("upkie_description", "urdf/upkie.urdf", "floating"),
    "jvrc1": ("jvrc_description", "urdf/jvrc1.urdf", "floating"),
}
WHICH = sized([*ROBOTS, "tree"], ["tree"])
LEFT_OUT = "visual", "collision", "mimic", "dynamics", "transmission", "gazebo"


def robot(name: str) -> tuple[str, str]:
    """A robot's URDF and its base."""
    if name == "tree":
        return random_tree(sized(100, 5)), "fixed"
    package, file, base = ROBOTS[name]
    found = find_spec(package)
    assert found is not None, f"needs the package {package}"
    text = (Path(found.submodule_search_locations[0]) / file).read_text(encoding="utf-8")
    text = re.sub(r"<\?xml.*?\?>|<!--.*?-->", "", text, flags=re.S)
    for tag in LEFT_OUT:
        text = re.sub(rf"<{tag}\b[^>]*/>|<{tag}\b.*?</{tag}>", "", text, flags=re.S)
    return text, base


def random_tree(n: int) -> str:
    """n bodies on revolute joints in space, each on one of the ten before it."""
    rng = np.random.default_rng(0)

    def three(values: np.ndarray) -> str:
        return " ".join(f"{v:.6f}" for v in values)

    parts = ['<robot name="tree"><link name="base"/>']
    for i in range(n):
        a, b, c = rng.uniform(0.1, 0.15, 3)
        parent = f"b{rng.integers(max(0, i - 10), i)}" if i else "base"
        axis = rng.normal(size=3)
        parts.append(
            f'<link name="b{i}"><inertial><origin xyz="{three(rng.normal(size=3) / 5)}"/>'
            f'<mass value="{rng.uniform(0.5, 2):.6f}"/><inertia ixx="{a}" iyy="{b}" izz="{c}" '
            f'ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="q{i}" type="continuous">'
            f'<parent link="{parent}"/><child link="b{i}"/>'
            f'<origin xyz="{three(rng.normal(size=3) / 3)}"/>'
            f'<axis xyz="{three(axis / np.linalg.norm(axis))}"/></joint>'
        )
    return "".join([*parts, "</robot>"])


class Ours:
    """The variational midpoint rule."""

    def __init__(self, text: str, base: str):
        self.model = load_urdf(text, base, accept_any_inertia=True, space="SO3xR3")
        self.dsys = midpoint(self.model.system, H)
        rng, space = np.random.default_rng(10), self.model.space
        self.q = space.retract(space.origin, rng.uniform(-0.3, 0.3, space.nv))
        self.v = 0.3 * rng.normal(size=space.nw)
        self.x, self.u = self.dsys.state(self.q, self.v), np.zeros(self.dsys.nu)

    def accelerations(self) -> np.ndarray:
        h = 1e-6
        dsys = self.dsys.with_step(h)
        rates = (dsys.velocity(dsys.step(self.x, self.u)) - self.v) / h
        return rates[-len(self.model.tree.scalars) :]

    def step(self) -> None:
        self.dsys.step(self.x, self.u)

    def steps(self) -> None:
        self.dsys.simulate(self.x, self.u, steps=CALLS)

    def slopes(self) -> None:
        self.dsys.linearize(self.x, self.u)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quaternion)
    return out.reshape(3, 3)


class Pinocchio:
    """Semi-implicit Euler with the articulated body algorithm."""

    def __init__(self, text: str, base: str, ours: Ours):
        free = [pinocchio.JointModelFreeFlyer()] if base == "floating" else []
        self.model = pinocchio.buildModelFromXML(text, *free)
        self.data, self.ours = self.model.createData(), ours.model
        self.q, self.v = pinocchio.neutral(self.model), np.zeros(self.model.nv)
        self.tau = np.zeros(self.model.nv)
        for joint, name in zip(self.model.joints[1:], list(self.model.names)[1:]):
            if name == "root_joint":
                q, v, turn = ours.q, ours.v, rotation(ours.q[:4])
                self.q[:7], self.v[:6] = [*q[4:7], *q[1:4], q[0]], [*(turn.T @ v[3:6]), *v[:3]]
                continue
            i, j = ours.model.tree.scalar_indices(name)
            angle = ours.q[i]
            self.q[joint.idx_q : joint.idx_q + joint.nq] = (
                angle if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
            )
            self.v[joint.idx_v] = ours.v[j]

    def accelerations(self) -> np.ndarray:
        rates = pinocchio.aba(self.model, self.data, self.q, self.v, self.tau)
        ids = (self.model.getJointId(name) for name in self.ours.tree.scalars)
        return np.array([rates[self.model.joints[i].idx_v] for i in ids])

    def step(self) -> None:
        v = self.v + H * pinocchio.aba(self.model, self.data, self.q, self.v, self.tau)
        pinocchio.integrate(self.model, self.q, H * v)

    def slopes(self) -> None:
        pinocchio.computeABADerivatives(self.model, self.data, self.q, self.v, self.tau)

    def after(self, h: float) -> np.ndarray:
        """Joints after 1 s."""
        q, v = self.q.copy(), self.v.copy()
        for _ in range(round(1 / h)):
            v = v + h * pinocchio.aba(self.model, self.data, q, v, self.tau)
            q = pinocchio.integrate(self.model, q, h * v)
        joints = [self.model.joints[self.model.getJointId(n)] for n in self.ours.tree.scalars]
        return np.array(
            [q[j.idx_q] if j.nq == 1 else np.arctan2(q[j.idx_q + 1], q[j.idx_q]) for j in joints]
        )


class MuJoCo:
    """Its default integrator, semi-implicit Euler, or RK4."""

    def __init__(self, text: str, base: str, ours: Ours):
        head = '<mujoco><compiler fusestatic="true" balanceinertia="true"/></mujoco>'
        if base == "floating":
            root = ours.model.frames[0].name
            head += '<link name="nh_world"/><joint name="root" type="floating"><parent '
            head += f'link="nh_world"/><child link="{root}"/></joint>'
        text = re.sub(r"(<robot\b[^>]*>)", lambda m: m.group(1) + head, text, count=1)
        self.model = mujoco.MjModel.from_xml_string(text)
        self.model.opt.timestep = H
        off = mujoco.mjtDisableBit
        self.model.opt.disableflags |= int(off.mjDSBL_CONTACT | off.mjDSBL_CONSTRAINT)
        self.data, self.names = mujoco.MjData(self.model), ours.model.tree.scalars
        q, v = np.zeros(self.model.nq), np.zeros(self.model.nv)
        if base == "floating":
            q[:7], v[:6] = [*ours.q[4:7], *ours.q[:4]], [*ours.v[3:6], *ours.v[:3]]
        for name in self.names:
            i, j = ours.model.tree.scalar_indices(name)
            joint = self.model.joint(name)
            q[joint.qposadr[0]], v[joint.dofadr[0]] = ours.q[i], ours.v[j]
        self.q, self.v = q, v
        self.A = np.zeros((2 * self.model.nv, 2 * self.model.nv))
        self.reset()

    def reset(self) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.q, self.v

    def accelerations(self) -> np.ndarray:
        self.reset()
        mujoco.mj_forward(self.model, self.data)
        return np.array([self.data.qacc[self.model.joint(name).dofadr[0]] for name in self.names])

    def step(self) -> None:
        mujoco.mj_step(self.model, self.data)

    def slopes(self) -> None:
        mujoco.mjd_transitionFD(self.model, self.data, 1e-6, False, self.A, None, None, None)

    def after(self, h: float) -> np.ndarray:
        """Joints after 1 s."""
        self.reset()
        self.model.opt.timestep = h
        for _ in range(round(1 / h)):
            mujoco.mj_step(self.model, self.data)
        return np.array([self.data.qpos[self.model.joint(name).qposadr[0]] for name in self.names])


def best(calls: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Microseconds of each call, in turns."""
    times = dict.fromkeys(calls, np.inf)
    for _ in range(BATCHES):
        for name, call in calls.items():
            wait_for_compiler()
            start = time.thread_time()
            for _ in range(CALLS):
                call()
            times[name] = min(times[name], (time.thread_time() - start) * 1e6 / CALLS)
    return times


def agree(ours: Ours, *others: Pinocchio | MuJoCo) -> None:
    expected = ours.accelerations()
    for other in others:
        found = other.accelerations()
        apart = np.abs(found - expected).max() / np.abs(expected).max()
        assert apart < 1e-3, f"{type(other).__name__} accelerates by another {apart:.1e}"


def times(name: str) -> None:
    text, base = robot(name)
    ours = Ours(text, base)
    other, third = Pinocchio(text, base, ours), MuJoCo(text, base, ours)
    agree(ours, other, third)
    calls = {
        "step": ours.step,
        "steps": ours.steps,
        "A, B": ours.slopes,
        "aba": other.step,
        "aba slopes": other.slopes,
        "mj_step": third.step,
        "transitionFD": third.slopes,
    }
    found = best(calls)
    found["steps"] /= CALLS
    numbers = " ".join(f"{found[c]:12.1f}" for c in calls)
    print(f"{name:>6} {ours.model.space.nv:4d} {numbers}", flush=True)


def precision(name: str) -> None:
    text, base = robot(name)
    ours = Ours(text, base)
    exact = ours_after(ours, 4, 2e-4)
    runs: list[tuple[str, Callable[[float], np.ndarray]]] = [
        ("midpoint", lambda h: ours_after(ours, 2, h)),
        ("midpoint, order 4", lambda h: ours_after(ours, 4, h)),
        ("Pinocchio, ABA + Euler", Pinocchio(text, base, ours).after),
        ("MuJoCo, Euler", MuJoCo(text, base, ours).after),
        ("MuJoCo, RK4", runge_kutta(text, base, ours).after),
    ]
    for label, run in runs:
        for h in STEPS:
            wait_for_compiler()
            start = time.thread_time()
            try:
                error = np.abs(np.sin((run(h) - exact) / 2)).max() * 2
            except StepFailed:
                error = np.nan
            spent = (time.thread_time() - start) * 1e3
            print(f"{name:>6} {label:>24} {h:8.4f} {error:10.1e} {spent:10.2f}", flush=True)


def runge_kutta(text: str, base: str, ours: Ours) -> MuJoCo:
    made = MuJoCo(text, base, ours)
    made.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    return made


def ours_after(ours: Ours, order: int, h: float) -> np.ndarray:
    """Joints after 1 s, in one native call."""
    dsys = ours.dsys.with_step(h)
    if order == 4:
        dsys = dsys.composed(fractions(4, 5), "order 4")
    end = dsys.simulate(ours.x, ours.u, steps=round(1 / h)).states[-1]
    n = len(ours.model.tree.scalars)
    return dsys.configuration(end)[-n:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="+", default=WHICH)
    parser.add_argument("--precision", action="store_true")
    options = parser.parse_args()
    heads = (
        "step",
        "in one call",
        "A and B",
        "ABA + Euler",
        "ABA slopes",
        "mj_step",
        "transitionFD",
    )
    print("us      dof " + " ".join(f"{head:>12}" for head in heads))
    for name in options.robots:
        times(name)
    if options.precision:
        print("\n robot                   method        h      error         ms")
        for name in options.robots:
            precision(name)


if __name__ == "__main__":
    main()
