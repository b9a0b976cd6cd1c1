"""Random URDF files with the irregularities of real ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from xml.sax.saxutils import quoteattr

import numpy as np
from hypothesis import strategies as st
from transforms3d.euler import mat2euler

KINDS = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")
MODELLED = (
    "mimic", "followers of followers", "massless links", "turned inertias", "negative axes",
    "long axes", "no axis", "no effort", "dynamics", "transmission", "dummy root", "point masses",
)  # fmt: skip
"""Irregularities that say something of the robot."""
WRITTEN = (
    "comments", "shuffled", "line breaks in numbers", "exponents", "shapes", "unknown elements",
    "odd names", "declaration", "blank first line", "no origins of zero", "infinite limits",
)  # fmt: skip
"""Irregularities of the text alone: the robot is the same."""


@dataclass(frozen=True)
class Robot:
    """What is drawn of a robot: types of its joints, its irregularities, and a seed of numbers."""

    kinds: tuple[str, ...] = ("continuous",)
    quirks: frozenset[str] = frozenset()
    base: str = "fixed"
    seed: int = 0

    @classmethod
    def random(cls, rng: np.random.Generator, joints: int) -> Robot:
        chances = [0.3, 0.2, 0.2, 0.2, 0.05, 0.05]
        kinds = ["continuous", *rng.choice(KINDS, joints - 1, p=chances)]
        quirks = [quirk for quirk in (*MODELLED, *WRITTEN) if rng.random() < 0.4]
        base = "floating" if rng.random() < 0.3 else "fixed"
        return cls(tuple(map(str, kinds)), frozenset(quirks), base, int(rng.integers(1000)))

    @property
    def plain(self) -> Robot:
        """The same robot in a regular text."""
        return replace(self, quirks=self.quirks - set(WRITTEN))

    def name(self, kind: str, k: int) -> str:
        """The name of a joint or link."""
        return f"{k} {kind}-é.1" if "odd names" in self.quirks else f"{kind}_{k}"

    @cached_property
    def masses(self) -> dict[int, float]:
        """The masses of the links that have some, by their numbers; link 0 is the root."""
        rng = np.random.default_rng(self.seed)
        numbers = rng.uniform(0.5, 3, len(self.kinds) + 1)
        light = range(2, len(self.kinds), 2) if "massless links" in self.quirks else ()
        light = [k for k in light if self.kinds[k - 1] not in ("planar", "floating")]
        first = 1 if "dummy root" in self.quirks and self.base == "fixed" else 0
        return {k: numbers[k] for k in range(first, len(numbers)) if k not in light}

    def text(self) -> str:
        """The file."""
        rng, quirks = np.random.default_rng(self.seed + 1), self.quirks
        order = np.random.default_rng(self.seed + 2)
        links = [self._link(k, rng) for k in range(len(self.kinds) + 1)]
        joints = [self._joint(k, rng) for k in range(len(self.kinds))]
        more = [self._transmission()] if "transmission" in quirks else []
        elements = links + joints + more
        if "shuffled" in quirks:
            elements = [elements[k] for k in order.permutation(len(elements))]
        if "unknown elements" in quirks:
            elements.insert(1, '<gazebo reference="x"><material>Gazebo/Grey</material></gazebo>')
            elements.append('<material name="grey"><color rgba="1 1 1 1"/></material>')
        if "comments" in quirks:
            elements = [part for one in elements for part in ("<!-- a <link> -->", one)]
        head = '<?xml version="1.0" encoding="utf-8"?>\n' if "declaration" in quirks else ""
        head = "\n" + head if "blank first line" in quirks else head
        return head + '<robot name="random robot">\n' + "\n".join(elements) + "\n</robot>"

    def _numbers(self, values) -> str:
        form = "{:+.17e}" if "exponents" in self.quirks else "{!r}"
        space = "\n\t " if "line breaks in numbers" in self.quirks else " "
        return space.join(form.format(float(value)) for value in np.atleast_1d(values))

    def _origin(self, position, angles) -> str:
        if "no origins of zero" in self.quirks and not np.any([position, angles]):
            return ""
        return f'<origin xyz="{self._numbers(position)}" rpy="{self._numbers(angles)}"/>'

    def _link(self, k: int, rng: np.random.Generator) -> str:
        name, quirks = quoteattr(self.name("link", k)), self.quirks
        q, r = np.linalg.qr(rng.normal(size=(3, 3)))
        turn = q * np.linalg.det(q)
        principal, center = rng.uniform(0.01, 0.015, 3), rng.uniform(-0.2, 0.2, 3)
        tensor = np.diag(principal)
        angles = np.zeros(3)
        if "turned inertias" in quirks:
            tensor = turn @ tensor @ turn.T if k % 2 else tensor
            angles = np.zeros(3) if k % 2 else np.array(mat2euler(turn))
        if k not in self.masses:
            return f"<link name={name}/>"
        last = k == len(self.kinds) > 1 and self.kinds[-1] not in ("planar", "floating")
        if "point masses" in quirks and last:
            tensor, center = 0 * tensor, center + 0.3
        places = zip(("xx", "xy", "xz", "yy", "yz", "zz"), tensor[np.triu_indices(3)])
        inertia = " ".join(f'i{at}="{self._numbers(value)}"' for at, value in places)
        shape = '<geometry><sphere radius="0.1"/></geometry>'
        shapes = f"<visual>{shape}</visual><collision>{shape}</collision>"
        return (
            f"<link name={name}>{shapes if 'shapes' in quirks else ''}<inertial>"
            f'{self._origin(center, angles)}<mass value="{self._numbers(self.masses[k])}"/>'
            f"<inertia {inertia}/></inertial></link>"
        )

    @cached_property
    def parents(self) -> list[int]:
        """The parent links of joint k, which moves link k + 1."""
        rng = np.random.default_rng(self.seed + 3)
        return [int(rng.integers(max(0, k - 1), k + 1)) for k in range(len(self.kinds))]

    def leader(self, k: int) -> int | None:
        """The joint that joint k follows."""
        scalar = [i for i in range(k) if self.kinds[i] in KINDS[:3]]
        if "mimic" not in self.quirks or self.kinds[k] not in KINDS[:3] or k % 2 == 0:
            return 0 if self._follows_too(k) else None
        return scalar[-1] if "followers of followers" in self.quirks else 0

    def _follows_too(self, k: int) -> bool:
        chain = {"mimic", "followers of followers"} <= self.quirks
        return chain and k > 3 and self.kinds[k] in KINDS[:3]

    def _joint(self, k: int, rng: np.random.Generator) -> str:
        kind, quirks = self.kinds[k], self.quirks
        position, angles, axis = rng.uniform(-0.4, 0.4, 3), rng.uniform(-1, 1, 3), np.eye(3)[k % 3]
        scale = -1.0 if "negative axes" in quirks and k % 2 else 1.0
        if "long axes" in quirks:
            axis, scale = axis + [0.3, -0.2, 0.1], 7 * scale
        axis = "" if "no axis" in quirks and k % 3 == 1 else (
            f'<axis xyz="{self._numbers(scale * axis)}"/>'
        )  # fmt: skip
        if k % 3 == 2:
            position, angles = 0 * position, 0 * angles
        parts = [
            f"<parent link={quoteattr(self.name('link', self.parents[k]))}/>",
            f"<child link={quoteattr(self.name('link', k + 1))}/>",
            self._origin(position, angles),
            "" if kind in ("fixed", "floating") else axis,
        ]
        effort = 0.0 if "no effort" in quirks and k == 1 else 20.0
        if kind in ("revolute", "prismatic"):
            low, high = ("-inf", "inf") if "infinite limits" in quirks else ("-9e9", "9e9")
            parts.append(f'<limit lower="{low}" upper="{high}" effort="{effort}" velocity="9"/>')
        if "dynamics" in quirks and kind in KINDS[:3]:
            parts.append(f'<dynamics damping="{self._numbers(rng.uniform(0.1, 0.3))}"/>')
        leader = self.leader(k)
        if leader is not None:
            followed = quoteattr(self.name("joint", leader))
            ratio, offset = map(self._numbers, rng.uniform(-2, 2, 2))
            parts.append(f'<mimic joint={followed} multiplier="{ratio}" offset="{offset}"/>')
        if "shuffled" in quirks:
            parts.reverse()
        name = quoteattr(self.name("joint", k))
        return f'<joint name={name} type="{kind}">{"".join(parts)}</joint>'

    def _transmission(self) -> str:
        joint = quoteattr(self.name("joint", 0))
        motor = '<actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator>'
        return f'<transmission name="t"><joint name={joint}/>{motor}</transmission>'


def robots() -> st.SearchStrategy[Robot]:
    """Robots that shrink to one hinge without irregularities."""
    kinds = st.lists(st.sampled_from(KINDS), max_size=5).map(lambda more: ("continuous", *more))
    quirks, bases = st.frozensets(st.sampled_from([*MODELLED, *WRITTEN])), ["fixed", "floating"]
    return st.builds(Robot, kinds, quirks, st.sampled_from(bases), st.integers(0, 99))
