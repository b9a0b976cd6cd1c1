"""A variational step of robots, and its A and B, by the kernel in linear time, beside Pinocchio
(semi-implicit Euler with ABA; ABA's derivatives) and MuJoCo (step; transitionFD), in one run.

    pip install pin cmeel-eigen mujoco airo-models jvrc-description upkie-description
    python test/benchmark/tree_robots.py [--precision]

All read the same URDF, without joints that follow others, contacts, damping and friction; that
they accelerate the joints alike is asserted. Ours and MuJoCo's are called from Python, step by
step, Pinocchio's are a C++ program (`pinocchio_steps.py`), called once for all steps. All take
turns; times are this thread's processor time, the best of several batches. Ours is also shown in
one native call of many steps, where a simulation spends its time. `--precision` prints errors of
the joints after 1 s against the time of computing for steps of many sizes.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable

import mujoco
import numpy as np
from pinocchio_steps import Pinocchio
from robots import ROBOTS, H, Ours, agree, random_tree, urdf
from sizes import sized

from nh_control.discrete.results import StepFailed
from nh_control.integrators.composition import fractions
from nh_control.numerics.compiled import wait_for_compiler

BATCHES, CALLS = sized((9, 40), (1, 2))
STEPS = sized((0.02, 0.01, 0.005, 0.002, 0.001, 0.0005), (0.01,))
WHICH = sized([*ROBOTS, "tree"], ["tree"])


def robot(name: str) -> tuple[str, str]:
    """A robot's URDF and its base."""
    return (random_tree(sized(100, 5)), "fixed") if name == "tree" else urdf(name)


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


def times(name: str) -> None:
    text, base = robot(name)
    ours = Ours(text, base)
    other, third = Pinocchio(ours.model, ours.q, ours.v), MuJoCo(text, base, ours)
    agree(ours, other, third)
    calls = {
        "step": ours.step,
        "steps": lambda: ours.steps(CALLS),
        "A, B": ours.slopes,
        "aba": lambda: other.euler(H, CALLS),
        "aba slopes": lambda: other.derivatives(CALLS),
        "mj_step": third.step,
        "transitionFD": third.slopes,
    }
    found = best(calls)
    for whole in ("steps", "aba", "aba slopes"):
        found[whole] /= CALLS
    numbers = " ".join(f"{found[c]:12.1f}" for c in calls)
    print(f"{name:>6} {ours.model.space.nv:4d} {numbers}", flush=True)


def precision(name: str) -> None:
    text, base = robot(name)
    ours = Ours(text, base)
    exact = ours_after(ours, 4, 2e-4)
    other = Pinocchio(ours.model, ours.q, ours.v)

    def pinocchio_after(h: float) -> np.ndarray:
        other.euler(h, round(1 / h))
        return other.joints()

    runs: list[tuple[str, Callable[[float], np.ndarray]]] = [
        ("midpoint", lambda h: ours_after(ours, 2, h)),
        ("midpoint, order 4", lambda h: ours_after(ours, 4, h)),
        ("Pinocchio, ABA + Euler", pinocchio_after),
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
