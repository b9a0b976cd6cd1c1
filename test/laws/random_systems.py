"""Mechanical systems that nobody wrote: random functions on random spaces, regular by their form.

Accelerations are of order one, whatever the masses: what has mass m has forces of size m, and
depends only on what is at least as heavy, as a light body depends on the heavy one it hangs on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from hypothesis import strategies as st
from laws import Converted, Move, Subject, Units
from transforms3d.quaternions import axangle2quat, qmult, quat2mat

import nh_control as nh
from nh_control.geometry import S2, SE2, SE3, SO3, Product, Rn, Space, quaternion
from nh_control.mechanics.consistent_states import consistent_velocity, satisfy_constraints
from nh_control.mechanics.system import System

SPACES: dict[str, Callable[[str], Space]] = {
    "R1": lambda name: Rn(f"{name}1"),
    "R2": lambda name: Rn(*(f"{name}{i}" for i in range(2))),
    "R4": lambda name: Rn(*(f"{name}{i}" for i in range(4))),
    "SE2": lambda name: SE2([f"{name}{i}" for i in "txy"], [f"{name}_{i}" for i in "wfs"]),
    "S2": lambda name: S2(name),
    "S2 exp": lambda name: S2(name, "exp"),
    "SO3": lambda name: SO3(name),
    "SO3 cay": lambda name: SO3(name, "cay"),
    "SE3": lambda name: SE3(name),
    "SE3 cay": lambda name: SE3(name, "cay"),
}
BEND = 0.2
"""Size of what bends constraints, whose gradients are otherwise orthonormal."""
Function = Callable[[ca.SX], ca.SX]


@dataclass(frozen=True)
class Numbers(nh.Parameters):
    """Physical parameters of a random system."""

    coupling: float = nh.parameter(0.3)
    stiffness: float = nh.parameter(1.0)
    damping: float = nh.parameter(0.2, at_least=0.0)
    ground: float = nh.parameter(0.5, at_least=0.0)
    turning: float = nh.parameter(1.0, at_least=0.0)


@dataclass(frozen=True)
class Draw(Subject):
    """What is drawn of a system; simpler ones have smaller numbers, and spaces from the front.

    `holonomic` and `rolling` are numbers of constraints: as many are kept as leave a motion. A
    `rigid` system has a constant mass matrix and no forces of the velocities but damping, masses
    are spread over `decades`, and all random numbers follow from the `seed`. In an `unmarked`
    world nothing depends on where the first factor of the space is.
    """

    spaces: tuple[str, ...] = ("R1",)
    seed: int = 0
    decades: int = 0
    inputs: int = 0
    holonomic: int = 0
    rolling: int = 0
    damped: bool = False
    rigid: bool = False
    drifting: bool = False
    prescribed: bool = False
    first_order: bool = False
    unmarked: bool = False

    nonconservative = ("turning",)

    @classmethod
    def random(cls, rng: np.random.Generator, largest: int) -> Draw:
        """A draw with at most `largest` velocities beside driven coordinates and currents, since
        derivatives of many take long.
        """
        sizes = {name: make("").nw for name, make in SPACES.items()}
        first = rng.choice([name for name in SPACES if sizes[name] <= largest])
        left = largest - sizes[first]
        more = [name for name in SPACES if sizes[name] <= left]
        spaces = (str(first), *map(str, rng.choice(more, min(len(more), rng.integers(2)))))
        numbers = (rng.integers(1000), rng.integers(5), rng.integers(3))
        constraints = (max(0, rng.integers(-2, 3)) for _ in range(2))
        options = (bool(rng.random() < chance) for chance in (0.5, 0.5, *[0.25] * 3, 0.5))
        return cls(spaces, *map(int, (*numbers, *constraints)), *options)

    @cached_property
    def parts(self) -> list[Space]:
        """The factors of the space; the last one has currents and driven coordinates."""
        last = ["current"] * self.first_order + ["driven"] * self.prescribed
        parts = [SPACES[name]("ab"[i]) for i, name in enumerate(self.spaces)]
        return parts + ([Rn(*last)] if last else [])

    @cached_property
    def system(self) -> System:
        """The system of this draw."""
        return _system(self)

    def phase(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A configuration and a velocity of order one that satisfy the holonomic constraints."""
        system, space = self.system, self.system.space
        q = space.retract(space.origin, rng.uniform(-1, 1, space.nv))
        v = np.asarray(ca.DM(space.frame(ca.SX(q)))) @ rng.uniform(-1, 1, space.nv)
        if not system.n_holonomic_constraints:
            return q, v
        q = satisfy_constraints(system, q)
        return q, consistent_velocity(system, q, v)

    def world_motion(self, rng: np.random.Generator) -> Move | None:
        first, n = self.parts[0], self.parts[0].nq
        if not self.unmarked or isinstance(first, S2):
            return None
        shift, angle = rng.uniform(-3, 3, 4), rng.uniform(-3, 3)
        turn = axangle2quat(shift[:3], angle)

        def moved(q: np.ndarray) -> np.ndarray:
            if isinstance(first, SE2):
                c, s = np.cos(angle), np.sin(angle)
                return np.append(q[0] + angle, shift[:2] + np.array([[c, -s], [s, c]]) @ q[1:])
            if isinstance(first, SO3 | SE3):
                place = shift[:3] + quat2mat(turn) @ q[4:] if len(q) > 4 else []
                return np.append(qmult(turn, q[:4]), place)
            return q + shift[:n]

        return lambda q, v: (np.append(moved(q[:n]), q[n:]), v)

    def momentum(self, x: np.ndarray) -> np.ndarray:
        """The momentum of the first factor in the frame at rest, of a state (q, p)."""
        first = self.parts[0]
        q, p = x[: first.nq], x[self.system.space.nq :][: first.nw]
        if isinstance(first, SE2):
            c, s = np.cos(q[0]), np.sin(q[0])
            along = np.array([[c, -s], [s, c]]) @ p[1:]
            return np.append(p[0] + q[1] * along[1] - q[2] * along[0], along)
        if isinstance(first, SO3 | SE3):
            turned = [quat2mat(q[:4]) @ part for part in p.reshape(-1, 3)]
            orbital = np.cross(q[4:], turned[1]) if len(turned) > 1 else 0
            return np.concatenate([turned[0] + orbital, *turned[1:]])
        return p

    def in_units(self, units: Units) -> Converted:
        kg, m, s = units
        system, energy = self.system, kg * m**2 / s**2
        lengths = {SE2: ([1, m, m],) * 2, S2: ([1] * 3,) * 2, SO3: ([1] * 4, [1] * 3)}
        lengths |= {SE3: ([1] * 4 + [m] * 3, [1] * 3 + [m] * 3)}
        units_of = [lengths.get(type(part), ([m] * part.nq,) * 2) for part in self.parts]
        of_q, of_w = (np.concatenate(each) for each in zip(*units_of))
        at = lambda q: q / of_q
        own = {
            "lagrangian": lambda q, v, p: energy * system.lagrangian(at(q), v * s / of_w, p),
            "force": lambda q, v, u, p: energy / of_w * system.force(at(q), v * s / of_w, u, p),
        }
        if system.holonomic_constraint:
            own["holonomic_constraint"] = lambda q, p: m * system.holonomic_constraint(at(q), p)
        if system.velocity_constraint:
            own["velocity_constraint"] = lambda q, p: (
                system.velocity_constraint(at(q), p) @ ca.diag(1 / of_w)
            )
        if system.velocity_drift:
            own["velocity_drift"] = lambda q, p: system.velocity_drift(at(q), p) / s
        if system.first_order_rate:
            own["first_order_rate"] = lambda q, v, u, p: (
                m / s * system.first_order_rate(at(q), v * s / of_w, u, p)
            )
        of_u = np.append(np.ones(self.inputs), [m] * self.prescribed)
        return Converted(replace(system, **own), of_q, of_w / s, of_u)


def draws() -> st.SearchStrategy[Draw]:
    """Draws that shrink to a small system."""
    spaces = st.lists(st.sampled_from(list(SPACES)), min_size=1, max_size=2).map(tuple)
    few, perhaps = st.integers(0, 2), st.booleans()
    return st.builds(Draw, spaces, st.integers(0, 999), *[few] * 4, *[perhaps] * 6)


def _features(part: Space, q: ca.SX) -> ca.SX:
    """Bounded smooth functions of a configuration that tell all configurations near each other
    apart; a quaternion and its opposite are the same.
    """
    if isinstance(part, S2):
        return q
    if isinstance(part, SO3 | SE3):
        return ca.vertcat(ca.vec(quaternion.matrix(q[:4])), ca.sin(q[4:]))
    return ca.vertcat(ca.sin(q), ca.cos(q))


def _system(draw: Draw) -> System:
    rng, parts = np.random.default_rng(draw.seed), draw.parts
    space = Product(*parts) if len(parts) > 1 else parts[0]
    part_masses = 10.0 ** (draw.decades * rng.uniform(-0.5, 0.5, len(parts)))
    if draw.prescribed:
        part_masses[-1] = np.inf  # nothing moves what is driven
    masses = np.repeat(part_masses, [part.nw for part in parts])
    kinds = np.repeat([type(part).__name__ for part in parts], [part.nw for part in parts])
    first = np.cumsum([0, *(part.nq for part in parts)])
    has_mass = np.array([name != "current_dot" for name in space.velocity_names])
    moving = has_mass & (masses < np.inf)
    plain, flat = moving & (kinds == "Rn"), moving & (kinds != "S2")
    places = np.concatenate([np.resize(range(a, a + p.nq), p.nw) for a, p in zip(first, parts)])
    marked = np.arange(space.nw) >= parts[0].nw * draw.unmarked
    plain = plain & marked
    place = dict(zip(np.flatnonzero(plain), places[plain]))  # of coordinates in a configuration
    seen = parts[draw.unmarked :]

    def function(least_mass: float = 0.0) -> Function:
        """sin(w . features + phase) of the configuration of all that has at least this mass."""
        phase, terms = rng.uniform(-3, 3), []
        for part, mass, start in zip(parts, part_masses, first):
            at = list(range(start + (part.names[0] == "current"), start + part.nq))
            count = _features(part, ca.SX(len(at), 1)).numel()
            weights = rng.normal(size=count) / np.sqrt(max(1, count))
            if count and mass >= least_mass and part in seen:
                terms.append((part, at, weights))
        return lambda q: ca.sin(phase + sum(ca.dot(w, _features(p, q[at])) for p, at, w in terms))

    def direction(columns: np.ndarray) -> np.ndarray:
        vector = np.where(columns, rng.normal(size=space.nw), 0.0)
        return vector / np.linalg.norm(vector)

    bodies = []
    for k in np.flatnonzero(moving):
        heavier = has_mass & (masses >= masses[k])
        directions = [direction(heavier) for _ in range(3)]
        bodies.append((k, masses[k], *directions, *(function(masses[k]) for _ in range(3))))
    pushes = rng.uniform(-1, 1, (space.nw, draw.inputs + 1))

    def lagrangian(q: ca.SX, v: ca.SX, p: Numbers) -> ca.SX:
        energy = 0
        for k, mass, a, b, _, bend, height, _ in bodies:
            spring = q[place[k]] ** 2 / 2 if k in place else 0
            bent = 0 if draw.rigid else ca.dot(b, v) * bend(q)
            coupled = p.coupling * (ca.dot(a, v) + bent) ** 2
            energy += mass * ((v[k] ** 2 + coupled) / 2 - p.stiffness * (height(q) + spring))
        return energy

    def force(q: ca.SX, v: ca.SX, u: ca.SX, p: Numbers) -> ca.SX:
        total = ca.SX(space.nw, 1)
        current = q[first[-2]] if draw.first_order else 0
        for k, mass, _, _, c, _, _, turn in bodies:
            turning = p.turning * turn(q) * (1 if draw.rigid else ca.dot(c, v) ** 2)
            drag = p.damping * v[k] if draw.damped else 0
            total[k] = mass * (ca.dot(pushes[k], ca.vertcat(u, current)) + turning - drag)
        return total

    free = space.nv - draw.first_order - draw.prescribed - 1
    n_holonomic = min(draw.holonomic, plain.sum(), free)
    n_rolling = min(draw.rolling, flat.sum() - n_holonomic, free - n_holonomic)
    rows: list[np.ndarray] = []  # orthonormal: bent a little they stay independent
    for columns in [plain] * n_holonomic + [flat] * n_rolling:
        row = direction(columns)
        row -= sum((row @ other * columns * other for other in rows), np.zeros(space.nw))
        rows.append(row / np.linalg.norm(row))
    bends = [(function(), direction(has_mass), function()) for _ in rows]
    surfaces = list(zip(rows, bends))[:n_holonomic]
    rollings = list(zip(rows, bends))[n_holonomic:]

    def holonomic_constraint(q: ca.SX, p: Numbers) -> ca.SX:
        height = lambda row: sum(row[k] * q[at] for k, at in place.items())
        return ca.vertcat(*(height(row) + BEND * bend[0](q) for row, bend in surfaces))

    def velocity_constraint(q: ca.SX, p: Numbers) -> ca.SX:
        return ca.vertcat(
            *(ca.SX(row).T + BEND * f(q) * ca.SX(more).T for row, (f, more, _) in rollings)
        )

    def drift(q: ca.SX, p: Numbers) -> ca.SX:
        return ca.vertcat(*(p.ground * f(q) for _, (_, _, f) in rollings))

    driving, charge = direction(moving), function()

    def rate(q: ca.SX, v: ca.SX, u: ca.SX, p: Numbers) -> ca.SX:
        current = q[first[-2]]
        return ca.dot(driving, v) + charge(q) + ca.sum1(u) - current

    return System(
        name=f"{draw}",
        space=space,
        lagrangian=lagrangian,
        inputs=tuple(f"u{i}" for i in range(draw.inputs)),
        force=force,
        parameters=Numbers(),
        holonomic_constraint=holonomic_constraint if surfaces else None,
        velocity_constraint=velocity_constraint if rollings else None,
        velocity_drift=drift if rollings and draw.drifting else None,
        prescribed=("driven",) * draw.prescribed,
        first_order=("current",) * draw.first_order,
        first_order_rate=rate if draw.first_order else None,
    )
