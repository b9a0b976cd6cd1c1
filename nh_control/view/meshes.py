"""Surfaces for drawing, the same for pages and films: faces of four corners, of which
triangles repeat the last one, and triangles with the normals of corners.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.sparse import csr_matrix

from nh_control.scenarios.visual_model import Mesh

SOLIDS = ("box", "cylinder", "cone", "sphere")
FILM, PAGE = (24, 12), (36, 18)
"""Numbers of corners around round solids and of rows of spheres, in films and in pages."""
CREASE = np.cos(np.radians(40))
"""Angle between faces above which their common edge is sharp."""
SAME = 1e-6
"""Distance, as a fraction of the size, below which corners are one."""


@cache
def solid(kind: str, fineness: tuple[int, int] = FILM) -> np.ndarray:
    """Faces (n, 4, 3) of a solid of unit size about the origin, counter-clockwise from outside."""
    if kind == "box":
        square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
        sides = [
            np.insert(square, axis, side / 2, axis=1) for axis in range(3) for side in (-1, 1)
        ]
        return _outward(np.array(sides))
    around, rows = fineness
    ring = np.linspace(0, 2 * np.pi, around + 1)
    angles = np.linspace(-np.pi / 2, np.pi / 2, rows + 1)
    profiles = {
        "sphere": [(np.cos(t) / 2, np.sin(t) / 2) for t in angles],
        "cylinder": [(0, -0.5), (0.5, -0.5), (0.5, 0.5), (0, 0.5)],
        "cone": [(0, -0.5), (0.5, -0.5), (0, 0.5)],
    }
    rings = [
        np.column_stack([r * np.cos(ring), r * np.sin(ring), np.full(len(ring), z)])
        for r, z in profiles[kind]
    ]
    sides = [
        np.array([p[j], p[j + 1], q[j + 1], q[j]])
        for p, q in zip(rings, rings[1:])
        for j in range(around)
    ]
    return _outward(np.array(sides))


def normals(faces: np.ndarray) -> np.ndarray:
    """Unit normals (n, 3) of faces (n, 4, 3), 0 for a face without area."""
    products = np.cross(faces[:, 2] - faces[:, 0], faces[:, 3] - faces[:, 1])
    length = np.linalg.norm(products, axis=1, keepdims=True)
    return np.divide(products, length, out=np.zeros_like(products), where=length > 0)


def quadrilaterals(mesh: Mesh) -> np.ndarray:
    """Faces (n, 4, 3) of the triangles of a mesh."""
    return mesh.vertices[mesh.triangles[:, [0, 1, 2, 2]]]


def shaded(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners (m, 6), as positions and unit normals, and triangles (k, 3) of them, of faces (n, 4,
    3). The normal of a corner is the mean over the adjacent faces whose normals are within CREASE
    of the normal of its own face.
    """
    corners, flat = faces.reshape(-1, 3), normals(faces)
    size = np.ptp(corners, axis=0).max(initial=0.0) or 1.0
    own = np.repeat(np.arange(len(faces)), 4)
    _, vertex = np.unique(np.round(corners / (SAME * size)), axis=0, return_inverse=True)
    vertex = vertex.ravel()
    ones = np.ones(len(vertex))
    incidence = csr_matrix((ones, (np.arange(len(vertex)), vertex)))  # corner to vertex
    around = csr_matrix((ones, (vertex, own)))  # vertex to faces
    corner, face = (incidence @ around).nonzero()
    areas = np.linalg.norm(
        np.cross(faces[:, 2] - faces[:, 0], faces[:, 3] - faces[:, 1]), axis=1, keepdims=True
    )
    smooth = (flat[own[corner]] * flat[face]).sum(axis=1) > CREASE
    summed = np.zeros_like(corners)
    np.add.at(summed, corner[smooth], (areas * flat)[face[smooth]])
    length = np.linalg.norm(summed, axis=1, keepdims=True)
    summed = np.divide(summed, length, out=np.zeros_like(summed), where=length > 0)
    both = np.hstack([corners, summed])
    rounded = np.round(both / np.repeat([SAME * size, 1e-3], 3))
    _, first, number = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    quads = number.ravel().reshape(-1, 4)
    triangles = np.vstack([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    a, b, c = triangles.T
    return both[first], triangles[(a != b) & (b != c) & (c != a)]


def _outward(faces: np.ndarray) -> np.ndarray:
    """Faces of a convex solid about the origin, turned to the outside."""
    inward = (normals(faces) * faces.mean(axis=1)).sum(axis=1) < 0
    return np.where(inward[:, None, None], faces[:, ::-1], faces)
