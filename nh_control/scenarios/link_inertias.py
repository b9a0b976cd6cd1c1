"""Inertias of a scenario's links, derived from its kinetic energy: every system has a mass matrix,
but only a `Multibody` declares bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.scenarios.frame_tree import FIXED, FrameTree, ScenarioFrames
from nh_control.scenarios.visual_model import Pose

SAMPLES, SPREAD, SEED = 4, 0.5, 3
"""Configurations at which the mass matrix is compared, their distance, and how they are drawn."""
STEP = 1e-5
"""Step of the difference quotients of poses."""
TOWARDS_SHAPES, MOST_ITERATIONS = 1e-3, 200
"""Weight of the difference from solids of the shapes at first: it decides what no motion
determines; and how long to search.
"""
EXACT = 1e-5
"""Relative error of the mass matrix above which no inertias are given."""
THINNEST_M = 0.01
LEAST = 1e-6
"""Fraction of the total mass below which a link gets no inertia."""
ENTRIES = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (3, 3)]
"""Of the pseudo-inertia P, in the order of parameters: second moments, first moments, mass."""


class LinkInertia(NamedTuple):
    """A link's `mass` (kg), `center` of mass (3, m) and `inertia` (3, 3) about it, in its axes."""

    link: str
    mass: float
    center: np.ndarray
    inertia: np.ndarray


def link_inertias(frames: ScenarioFrames, tree: FrameTree) -> list[LinkInertia]:
    """Inertias of the links with the kinetic energy of the system, `M(q) = sum J^T G J`. If
    several fit, they are close to those of solids of the links' shapes. Frames that are fixed on
    each other are one link. Empty if no such links have the energy of the system.

    The pseudo-inertias `P = [[S, m c], [m c^T, m]] = L L^T` are positive by construction, so every
    link is physically possible; `M` is linear in P. Least squares in L.
    """
    from scipy.optimize import least_squares

    links = _links(frames, tree)
    if not links:
        return []
    system = ContinuousSystem(frames.scenario.make_system(frames.parameters))
    rows, wanted = list[np.ndarray](), list[np.ndarray]()
    for q in _configurations(frames):
        rows.append(_energy_rows(frames, links, q))
        M = system.mass_matrix(q)
        wanted.append(M[np.triu_indices(len(M))])
    A, b = np.concatenate(rows), np.concatenate(wanted)
    scale = np.maximum(np.abs(b), 1e-3 * np.abs(b).max())
    start = _solids(frames, tree, links, np.abs(b).max())
    prior = _parameters(start)
    size = np.maximum(np.abs(prior), 1e-3 * np.abs(prior).max())

    def residual(L: np.ndarray, weight: float) -> np.ndarray:
        p = _parameters(L)
        return np.concatenate([(A @ p - b) / scale, weight * (p - prior) / size])

    L = start
    for weight in (TOWARDS_SHAPES, 0.0):  # near the shapes first, then exact from there
        method = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": MOST_ITERATIONS}
        L = least_squares(partial(residual, weight=weight), L, **method).x
    p = _parameters(L)
    if np.abs((A @ p - b) / scale).max() > EXACT:
        return []
    total = p.reshape(-1, 10)[:, 9].sum()
    made = [_inertia(link, part) for link, part in zip(links, p.reshape(-1, 10))]
    return [one for one in made if one.mass > LEAST * total]


def _links(frames: ScenarioFrames, tree: FrameTree) -> list[str]:
    """The first frame of every rigid part that moves."""
    return [part.frame for part in tree.parts if part.kind != FIXED]


def _configurations(frames: ScenarioFrames) -> list[np.ndarray]:
    random, space = np.random.default_rng(SEED), frames.space
    draws = (SPREAD * random.uniform(-1, 1, space.nv) for _ in range(SAMPLES))
    return [np.asarray(space.retract(space.origin, change), dtype=float) for change in draws]


def _energy_rows(frames: ScenarioFrames, links: Sequence[str], q: np.ndarray) -> np.ndarray:
    """The entries of the upper triangle of M(q) for unit parameters of every link."""
    space, n = frames.space, frames.space.nv
    upper = np.triu_indices(n)
    here = frames.poses(q)
    moved = [
        [frames.poses(np.asarray(space.retract(q, sign * STEP * e))) for sign in (1, -1)]
        for e in np.eye(n)
    ]
    columns = []
    for link in links:
        J = np.array([_twist(here[link], ahead[link], back[link]) for ahead, back in moved])
        for i, j in ENTRIES:
            P = np.zeros((4, 4))
            P[i, j] = P[j, i] = 1.0
            columns.append((J @ _spatial(P) @ J.T)[upper])
    return np.array(columns).T


def _twist(here: Pose, ahead: Pose, back: Pose) -> np.ndarray:
    """Angular and linear velocity (6) of a frame in its axes, by a central difference."""
    angular = here.rotation.T @ (ahead.rotation - back.rotation) / (2 * STEP)
    linear = here.rotation.T @ (ahead.position - back.position) / (2 * STEP)
    return np.array([angular[2, 1], angular[0, 2], angular[1, 0], *linear])


def _spatial(P: np.ndarray) -> np.ndarray:
    """The spatial inertia (6, 6), `[[tr(S) 1 - S, [m c]x], [-[m c]x, m 1]]`."""
    S, (x, y, z), m = P[:3, :3], P[:3, 3], P[3, 3]
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.block([[np.trace(S) * np.eye(3) - S, cross], [-cross, m * np.eye(3)]])


def _pseudo(p: np.ndarray) -> np.ndarray:
    P = np.zeros((4, 4))
    for (i, j), value in zip(ENTRIES, p):
        P[i, j] = P[j, i] = value
    return P


def _parameters(L: np.ndarray) -> np.ndarray:
    """Parameters of all links from the entries of their triangular factors."""
    out = []
    for part in L.reshape(-1, 10):
        factor = np.zeros((4, 4))
        factor[np.tril_indices(4)] = part
        P = factor @ factor.T
        out.append([P[i, j] for i, j in ENTRIES])
    return np.concatenate(out)


def _solids(frames: ScenarioFrames, tree: FrameTree, links: list[str], scale: float) -> np.ndarray:
    """The factors (10 n) of bodies that fill the boxes about the links' shapes, with masses in
    proportion to their volumes, together of the size of `scale`.
    """
    boxes = np.array([_box(frames, tree, link) for link in links])
    masses = scale * boxes.prod(axis=1) / boxes.prod(axis=1).sum()
    factors = [np.diag([*np.sqrt(m / 12) * box, np.sqrt(m)]) for m, box in zip(masses, boxes)]
    return np.concatenate([factor[np.tril_indices(4)] for factor in factors])


def _box(frames: ScenarioFrames, tree: FrameTree, link: str) -> np.ndarray:
    """The sizes (3) of the largest shape of a link, and of what is fixed on it."""
    rigid = {link}
    for part in tree.parts:
        if part.kind == FIXED and part.parent in rigid:
            rigid.add(part.frame)
    sizes = [shape.extents for shape in frames.visual.shapes if shape.frame in rigid]
    return np.maximum(np.array(sizes or [(0.1, 0.1, 0.1)]).max(axis=0), THINNEST_M)


def _inertia(link: str, p: np.ndarray) -> LinkInertia:
    P = _pseudo(p)
    mass = P[3, 3]
    center = P[:3, 3] / mass if mass > 0 else np.zeros(3)
    S = P[:3, :3] - mass * np.outer(center, center)  # about the center of mass
    return LinkInertia(link, float(mass), center, np.trace(S) * np.eye(3) - S)
