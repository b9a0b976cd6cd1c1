"""Rooms register systems, and with them all integrators that take these are under all laws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import islice
from zlib import crc32

import casadi as ca
import numpy as np
from laws import Case, Law, Subject
from random_robots import Robot
from random_systems import Draw
from random_trees import (
    JOINTS,
    KINDS,
    constrained_model,
    random_tree,
    with_followers,
    with_wheels,
    with_wrenches,
)

import nh_control as nh
from nh_control import systems
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators import INTEGRATORS, Integrator, nonholonomic_midpoint
from nh_control.mechanics.consistent_states import consistent_velocity
from nh_control.mechanics.system import System
from nh_control.multibody import Body, JointSpring, Multibody, Point, floating, revolute


@dataclass(frozen=True)
class Room:
    """A name, and a function from a number to a system (the same one each time), from 0 to `size`;
    `methods` are the names of the integrators, each of which is tested on `each` systems. If the
    systems are `alike`, the methods take all of them, and a law that is not about a system is not
    tested on another one instead: no other system has to be made to find one.
    """

    name: str
    make: Callable[[int], Subject]
    size: int
    methods: tuple[str, ...]
    each: int = 3
    alike: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "make", cache(self.make))

    def fitting(self, entry: Integrator) -> Iterator[Subject]:
        """The systems that an integrator takes, in the order of `at`."""
        pool = (self.at(entry, k) for k in range(self.size))
        return (subject for subject in pool if self.alike or entry.takes(subject.system))

    def at(self, entry: Integrator, number: int) -> Subject:
        """The system of this number, counted from another one on for every method."""
        return self.make((crc32(entry.name.encode()) + number) % self.size)


ROOMS: dict[str, Room] = {}


def register(room: Room) -> None:
    """Put the systems of a room under all laws."""
    ROOMS[room.name] = room


@lru_cache(maxsize=4)
def _case(room: str, entry: Integrator, number: int) -> Case | None:
    if ROOMS[room].alike:
        return Case(ROOMS[room].at(entry, number), entry, number)
    subject = next(islice(ROOMS[room].fitting(entry), number, None), None)
    return subject and Case(subject, entry, number)


def case_of(room: str, entry: Integrator, number: int, law: Law | None = None) -> Case | None:
    """The case of this number, from 0, of a room and an integrator, or the next one that a law is
    about; None if there is none.
    """
    case = _case(room, entry, number)
    if case is None or law is None or law.applies(case):
        return case
    if not law.knows(case) or ROOMS[room].alike:
        return None
    others = (Case(subject, entry, number) for subject in ROOMS[room].fitting(entry))
    return next(filter(law.applies, others), None)


# --- systems of the package ----------------------------------------------------------------------


class BuiltIn(Subject):
    """A system of `nh_control.systems` with its default parameters."""

    h = 0.02

    def __init__(self, name: str):
        self.name, self.system = name, getattr(systems, name)()
        self.smooth = not self.system.has_contacts

    def __repr__(self) -> str:
        return self.name

    def phase(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        space, symbol = self.system.space, self.system.symbols[0]
        q = space.retract(space.origin, rng.uniform(-1, 1, space.nv))
        mechanics = self.system.mechanics
        (basis,) = mechanics.at_signs([mechanics.admissible_basis(symbol)], symbol)
        basis = self.system.value(ca.densify(basis), q)
        return q, basis @ rng.uniform(-1, 1, basis.shape[1])


SYSTEMS = tuple(
    name
    for name in systems.__all__
    if name[0].islower() and name not in ("link_tensions", "quadrotor_payload", "with_rotors")
)
register(Room("systems", lambda k: BuiltIn(SYSTEMS[k]), len(SYSTEMS), tuple(INTEGRATORS), 99))

# --- random systems ------------------------------------------------------------------------------

LARGE = ("energy", "gonzalez", "itoh", "nonholonomic_gauss", "nprk", "spark", "variational_gauss")
"""Starts of names of methods whose equations are large: their first systems are on R^1 or R^2."""
SYMMETRIC = tuple(name for name in INTEGRATORS if not name.startswith("rdp"))
"""Methods that need no declared symmetry."""


def draw(k: int, largest: int) -> Draw:
    return Draw.random(np.random.default_rng(k), largest)


for _name, _largest, _methods, _each in (
    ("small", 3, [name for name in SYMMETRIC if not name.startswith(LARGE)], 1),
    ("tiny", 2, [name for name in SYMMETRIC if name.startswith(LARGE)], 1),
    ("random", 5, SYMMETRIC, 2),
):
    _make = lambda k, largest=_largest: draw(k, largest)
    register(Room(_name, _make, 60, tuple(_methods), _each))

# --- trees ---------------------------------------------------------------------------------------


class OfBodies(Subject):
    """A model of bodies; it is `smooth` to all orders."""

    model: Multibody

    @cached_property
    def system(self) -> System:
        return self.model.system

    def reversible(self, dsys: DiscreteSystem) -> DiscreteSystem:
        kept = [one for one in self.model.elements if isinstance(one, JointSpring)]
        return nonholonomic_midpoint(replace(self.model, elements=kept).system, dsys.h)

    def __repr__(self) -> str:
        return self.model.name


class Tree(OfBodies):
    """A random tree of bodies, with followers and wrenches, and with constraints if some are
    named.
    """

    h = 0.02

    def __init__(self, seed: int, joints: int, constraints: Iterable[str] = (), scalar=False):
        rng = np.random.default_rng(seed)
        kinds = [int(rng.integers(2 if scalar else len(JOINTS))) for _ in range(joints)]
        model = random_tree(kinds, rng)
        if set(kinds) & {0, 1} and rng.random() < 0.5:
            model = with_followers(model, 1, rng)
        if rng.random() < 0.5:
            model = with_wrenches(model, 2, rng)
        self.q = None
        if constraints:
            model, self.q = constrained_model(model, constraints, rng)
            self.h, self.spacing = 0.005, 1e-4
        self.model = replace(model, name=f"tree_{seed}_of_{joints}_{'_'.join(constraints)}")

    def phase(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        space = self.system.space
        if self.q is None:
            q = space.retract(space.origin, rng.uniform(-1, 1, space.nv))
            return q, rng.uniform(-1, 1, space.nw)
        v = rng.uniform(-1, 1, space.nw)
        v[space.nw - len(self.system.prescribed) :] = 0
        return self.q, consistent_velocity(self.system, self.q, v)


def loops(k: int) -> Tree:
    """A tree whose constraints leave a motion of order one."""
    rng = np.random.default_rng(k)
    while True:
        kinds = [str(kind) for kind in rng.choice(KINDS[: 4 if k < 4 else 8], 1 + k % 2)]
        with suppress(ValueError, np.linalg.LinAlgError):
            tree = Tree(int(rng.integers(2**16)), 3 if k < 4 else 4, kinds, scalar=k < 4)
            if np.abs(tree.phase(rng)[1]).max() < 2:
                return tree


register(Room("trees", lambda k: Tree(k, 1 + k % 4, scalar=k < 4), 24, ("midpoint",), 24, True))
register(Room("loops", loops, 16, ("midpoint",), 16, True))


class Wheeled(Tree):
    """A random tree that rolls on one or two wheels, balls or skates, one tree of three with a
    closed loop.
    """

    def __init__(self, seed: int, scalar: bool):
        loop = ["plane"] if seed % 3 == 2 else []
        super().__init__(seed, 3 if scalar else 2 + seed % 2, loop, scalar=scalar)
        self.h, self.spacing = 0.005, 1e-4
        rng = np.random.default_rng(seed)
        if self.q is None:
            space = self.model.space
            self.q = space.retract(space.origin, rng.uniform(-1, 1, space.nv))
        self.model = replace(
            with_wheels(self.model, self.q, 1 + seed % 2, rng), name=f"wheeled_{seed}"
        )

    def reversible(self, dsys: DiscreteSystem) -> DiscreteSystem:
        still = (
            replace(wheel, ground=replace(wheel.ground, surface_velocity=(0, 0, 0), turn_rate=0.0))
            for wheel in self.model.wheels
        )
        kept = [one for one in self.model.elements if isinstance(one, JointSpring)]
        model = replace(self.model, elements=kept, wheels=tuple(still))
        return nonholonomic_midpoint(model.system, dsys.h)


def wheeled(k: int) -> Wheeled:
    """A tree whose wheels leave a motion of order one."""
    for seed in range(1000 * k, 1000 * k + 1000):
        with suppress(ValueError, np.linalg.LinAlgError):
            tree = Wheeled(seed, k % 2 == 0)
            if np.abs(tree.phase(np.random.default_rng(k))[1]).max() < 2:
                return tree
    raise ValueError(f"no tree for the number {k}")


register(Room("wheels", wheeled, 16, ("nonholonomic_midpoint",), 16, True))

# --- contacts ------------------------------------------------------------------------------------


class Touching(OfBodies):
    """A random body, or one with an arm, that lands on the ground within the step."""

    h, spacing, smooth = 0.01, 2e-4, False

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.radius = rng.uniform(0.1, 0.3)
        frames = [floating("body", space="SO3xR3")]
        bodies = [Body("body", rng.uniform(0.5, 2), inertia=rng.uniform(0.01, 0.015, 3))]
        friction, restitution = rng.uniform(0.2, 0.8), rng.choice([0.0, 0.5])
        shape = nh.Sphere(self.radius)
        contacts = [nh.Contact("body", shape, friction=friction, restitution=restitution)]
        if seed % 2:
            frames.append(revolute("arm", "body", rng.normal(size=3), position=(0.1, 0.2, 0.5)))
            bodies.append(Body("arm", 0.3, (0.1, 0, 0), (0.002, 0.003, 0.004)))
            contacts.append(nh.Contact(Point("arm", (0.2, 0.0, 0.0)), friction=0.3))
        smoothing = 10.0 ** rng.integers(-4, -1)
        self.model = Multibody(
            f"touching_{seed}", frames, bodies, contacts=contacts, smoothing=smoothing
        )

    def phase(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        space = self.system.space
        q = space.retract(space.origin, rng.uniform(-0.2, 0.2, space.nv))
        q[space.names.index("body_z")] = self.radius + 0.003
        v = rng.uniform(-1, 1, space.nw)
        v[space.velocity_names.index("body_v_z")] = -0.6
        return q, v


register(Room("contacts", Touching, 6, ("midpoint",), 6, True))

# --- robots of URDF files ------------------------------------------------------------------------


class UrdfRobot(OfBodies):
    """A random robot of a URDF file."""

    h, spacing = 0.01, 0.005

    def __init__(self, robot: Robot):
        self.robot, self.model = robot, nh.load_urdf(robot.text(), robot.base)

    def __repr__(self) -> str:
        return repr(self.robot)

    def phase(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        space = self.system.space
        q = space.retract(space.origin, rng.uniform(-1, 1, space.nv))
        return q, rng.uniform(-1, 1, space.nw)


ROBOTS = 20
register(
    Room(
        "robots",
        lambda k: UrdfRobot(Robot.random(np.random.default_rng(k), 2 + k % 4)),
        ROBOTS,
        ("midpoint",),
        ROBOTS,
        True,
    )
)
