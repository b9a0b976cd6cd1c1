"""Pinocchio as a C++ program beside our trees: its headers are compiled once with `-O3
-march=native`, for a few minutes, and the library is kept beside them.

    pip install pin cmeel-eigen
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from nh_control.multibody import Multibody
from nh_control.multibody.frames import WORLD, Frame
from nh_control.multibody.joint_types import Floating, Prismatic, Revolute

SOURCE = Path(__file__).with_suffix(".cpp")
KINDS = {Floating: 0, Revolute: 1, Prismatic: 2}
COMPILE = ("g++", "-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-shared", "-fPIC")
LISTS = ("-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS")
"""As Pinocchio's own build sets them for its variants of joints."""


def headers() -> Path:
    """The folder of the wheels' headers."""
    for path in sys.path:
        found = Path(path) / "cmeel.prefix" / "include"
        if (found / "pinocchio").is_dir() and (found / "eigen3").is_dir():
            return found
    raise ModuleNotFoundError("No module named 'pinocchio' with the headers of cmeel-eigen")


def library() -> ctypes.CDLL:
    """The compiled program."""
    place = headers()
    known = SOURCE.read_bytes() + (place / "pinocchio" / "config.hpp").read_bytes()
    file = place.parent / f"pinocchio_{hashlib.sha256(known).hexdigest()[:16]}.so"
    if not file.is_file():
        if shutil.which("g++") is None:
            raise ModuleNotFoundError("No module named 'g++', the C++ compiler")
        folders = f"-I{place}", f"-I{place / 'eigen3'}"
        made = file.with_suffix(".tmp")
        subprocess.run([*COMPILE, *LISTS, *folders, SOURCE, "-o", made], check=True)
        made.replace(file)
    return ctypes.CDLL(str(file))


def array(values: object) -> np.ndarray:
    """Numbers as the program takes them."""
    return np.ascontiguousarray(values, dtype=float)


def at(values: np.ndarray) -> ctypes.c_void_p:
    """Where they are."""
    return ctypes.c_void_p(values.ctypes.data)


class Pinocchio:
    """A tree of revolute and prismatic joints, with or without a floating base in SO3xR3, in the
    state (q, v) of ours. Its joints are numbered branch by branch, as Pinocchio needs them.
    """

    def __init__(self, model: Multibody, q: np.ndarray, v: np.ndarray):
        self._program, places = library(), {WORLD: (0, np.zeros(3), np.eye(3))}
        self._program.tree_new.restype = ctypes.c_void_p
        parents, kinds, numbers, self._order = [], [], [], list[int]()
        at_q, at_v = list[float](), list[float]()
        for frame in by_branch(model.frames):
            number, position, rotation = places[frame.parent]
            position = position + rotation @ np.array(frame.position)
            rotation = rotation @ np.array(frame.rotation)
            if not frame.is_fixed:
                parents.append(number)
                kinds.append(KINDS[type(frame.joint)])
                axis = getattr(frame.joint, "axis", (0.0, 0.0, 0.0))
                numbers.append([*position, *rotation.ravel(), *axis])
                number, position, rotation = len(parents), np.zeros(3), np.eye(3)
                if kinds[-1]:
                    i, j = model.tree.scalar_indices(frame.coordinate)
                    at_q.append(q[i])
                    at_v.append(v[j])
                    self._order.append(j)
                else:
                    back = quaternion_matrix(q[:4]).T
                    at_q += [*q[4:7], *q[1:4], q[0]]
                    at_v += [*(back @ v[3:6]), *v[:3]]
            places[frame.name] = number, position, rotation
        given = [np.array(values, dtype=np.intc) for values in (parents, kinds)]
        given.append(array(numbers))
        gravity = ctypes.c_double(-float(np.array(model.gravity)[2]))
        made = self._program.tree_new(len(parents), *map(at, given), gravity)
        self._tree = ctypes.c_void_p(made)
        for body in model.bodies:
            number, position, rotation = places[body.frame]
            given = array([*position, *rotation.ravel()]), array(body.center), array(body.inertia)
            place, center, inertia = map(at, given)
            mass = ctypes.c_double(body.mass)
            self._program.tree_body(self._tree, number, place, mass, center, inertia)
        self.start = array(at_q), array(at_v)
        self.q, self.v = array(at_q).copy(), array(at_v).copy()

    def reset(self) -> None:
        """Return to the start."""
        self.q[:], self.v[:] = self.start

    def accelerations(self) -> np.ndarray:
        """Of the joints at the start, in our order."""
        found = np.zeros(self._program.tree_nv(self._tree))
        self._program.tree_accelerations(self._tree, *map(at, self.start), at(found))
        return self._in_our_order(found)

    def joints(self) -> np.ndarray:
        """Coordinates of the joints where the last steps ended, in our order."""
        return self._in_our_order(self.q)

    def _in_our_order(self, values: np.ndarray) -> np.ndarray:
        return values[-len(self._order) :][np.argsort(self._order)]

    def euler(self, h: float, steps: int) -> None:
        """Steps of semi-implicit Euler from the start."""
        self._steps(self._program.tree_steps, h, steps)

    def runge_kutta(self, h: float, steps: int) -> None:
        """Steps of order 4 of a tree without a floating base from the start."""
        self._steps(self._program.tree_runge_kutta, h, steps)

    def _steps(self, routine: Callable, h: float, steps: int) -> None:
        self.reset()
        routine(self._tree, at(self.q), at(self.v), ctypes.c_double(h), steps)

    def derivatives(self, times: int) -> None:
        """Derivatives of the accelerations at the start."""
        self._program.tree_derivatives(self._tree, *map(at, self.start), times)


def by_branch(frames: Sequence[Frame]) -> Iterator[Frame]:
    """Frames such that each is followed by everything on it."""

    def below(name: str) -> Iterator[Frame]:
        for frame in frames:
            if frame.parent == name:
                yield frame
                yield from below(frame.name)

    return below(WORLD)


def quaternion_matrix(turn: np.ndarray) -> np.ndarray:
    """The rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = turn
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross
