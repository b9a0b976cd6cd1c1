"""Robots with URDF files on PyPI, and a random tree, for the benchmarks.

pip install airo-models upkie-description jvrc-description
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint
from nh_control.multibody import load_urdf

H = 1e-3

ROBOTS = {
    "ur5e": ("airo_models", "arms/ur5e/ur5e.urdf", "fixed"),
    "upkie": ("upkie_description", "urdf/upkie.urdf", "floating"),
    "jvrc1": ("jvrc_description", "urdf/jvrc1.urdf", "floating"),
}
"""Package, file and base."""
UNREAD = "visual", "collision", "mimic", "dynamics", "transmission", "gazebo"
"""Elements of a URDF that are left out: the joints' friction and all that is not mechanics."""


def urdf(name: str) -> tuple[str, str]:
    """A robot's URDF and its base; raises ModuleNotFoundError without its package."""
    package, file, base = ROBOTS[name]
    found = find_spec(package)
    if found is None:
        raise ModuleNotFoundError(f"No module named '{package}'", name=package)
    text = (Path(found.submodule_search_locations[0]) / file).read_text(encoding="utf-8")
    text = re.sub(r"<\?xml.*?\?>|<!--.*?-->", "", text, flags=re.S)
    for tag in UNREAD:
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

    def steps(self, count: int, **how: bool) -> None:
        self.dsys.simulate(self.x, self.u, steps=count, **how)

    def slopes(self) -> None:
        self.dsys.linearize(self.x, self.u)

    def motion(self, count: int) -> Trajectory:
        return self.dsys.simulate(self.x, self.u, steps=count)


def agree(ours: Ours, *others: Any) -> None:
    """Check that the joints of others accelerate as ours."""
    expected = ours.accelerations()
    for other in others:
        found = other.accelerations()
        apart = np.abs(found - expected).max() / np.abs(expected).max()
        assert apart < 1e-3, f"{type(other).__name__} accelerates by another {apart:.1e}"
