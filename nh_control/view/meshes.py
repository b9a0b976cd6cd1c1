"""Surfaces for drawing, which pages and films share. They consist of faces with four corners,
where triangles repeat the last corner, or of triangles with a normal at each corner.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.sparse import csr_matrix

from nh_control.scenarios.visual_model import Mesh

SOLIDS = ("box", "cylinder", "cone", "sphere")
FILM, PAGE = (24, 12), (36, 18)
"""Number of segments around round solids, and number of rows on spheres, in films and in pages."""
CREASE = np.cos(np.radians(40))
"""Cosine of the angle between two faces above which their common edge is sharp."""
SAME = 1e-6
"""Distance below which corners are merged, as a fraction of the size."""


@cache
def solid(kind: str, fineness: tuple[int, int] = FILM) -> np.ndarray:
    """The faces (n, 4, 3) of a solid of unit size around the origin, counterclockwise as seen from
    outside.
    """
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
        np.array([low[j], low[j + 1], high[j + 1], high[j]])
        for low, high in zip(rings, rings[1:])
        for j in range(around)
    ]
    return _outward(np.array(sides))


def normals(faces: np.ndarray) -> np.ndarray:
    """The unit normals (n, 3) of faces (n, 4, 3), which are 0 for faces without area."""
    # The cross product of the diagonals is normal to the face, and its magnitude is twice the
    # area.
    products = np.cross(faces[:, 2] - faces[:, 0], faces[:, 3] - faces[:, 1])
    length = np.linalg.norm(products, axis=1, keepdims=True)
    return np.divide(products, length, out=np.zeros_like(products), where=length > 0)


def quadrilaterals(mesh: Mesh) -> np.ndarray:
    """The triangles of a mesh as faces (n, 4, 3)."""
    return mesh.vertices[mesh.triangles[:, [0, 1, 2, 2]]]


def shaded(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners (m, 6), which consist of positions and unit normals, and the triangles (k, 3) of
    faces (n, 4, 3). The normal at a corner is an area-weighted mean of the normals of the adjacent
    faces. Only faces whose normals are within CREASE of the normal of the corner's own face
    contribute.
    """
    corners, flat = faces.reshape(-1, 3), normals(faces)
    size = np.ptp(corners, axis=0).max(initial=0.0) or 1.0
    face_of_corner = np.repeat(np.arange(len(faces)), 4)
    # Corners at the same place belong to one vertex.
    _, vertex = np.unique(np.round(corners / (SAME * size)), axis=0, return_inverse=True)
    vertex = vertex.ravel()
    ones = np.ones(len(vertex))
    incidence = csr_matrix((ones, (np.arange(len(vertex)), vertex)))  # from corners to vertices
    around = csr_matrix((ones, (vertex, face_of_corner)))  # from vertices to faces
    # All pairs of a corner and a face that share a vertex.
    corner, face = (incidence @ around).nonzero()
    areas = np.linalg.norm(
        np.cross(faces[:, 2] - faces[:, 0], faces[:, 3] - faces[:, 1]), axis=1, keepdims=True
    )
    smooth = (flat[face_of_corner[corner]] * flat[face]).sum(axis=1) > CREASE
    summed = np.zeros_like(corners)
    np.add.at(summed, corner[smooth], (areas * flat)[face[smooth]])
    length = np.linalg.norm(summed, axis=1, keepdims=True)
    summed = np.divide(summed, length, out=np.zeros_like(summed), where=length > 0)
    both = np.hstack([corners, summed])
    # Merge corners with equal positions and normals.
    rounded = np.round(both / np.repeat([SAME * size, 1e-3], 3))
    _, first, number = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    quads = number.ravel().reshape(-1, 4)
    triangles = np.vstack([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    a, b, c = triangles.T
    return both[first], triangles[(a != b) & (b != c) & (c != a)]


def _outward(faces: np.ndarray) -> np.ndarray:
    """Orient the faces of a convex solid around the origin so that they face outward."""
    inward = (normals(faces) * faces.mean(axis=1)).sum(axis=1) < 0
    return np.where(inward[:, None, None], faces[:, ::-1], faces)
