"""The shapes of links in a URDF file: boxes, cylinders, spheres, and meshes from files (STL, OBJ,
Collada, glTF), which are read with trimesh.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from nh_control.multibody.urdf_elements import attribute, number, numbers, origin_of, vector
from nh_control.multibody.urdf_source import (
    PACKAGE,
    XACRO,
    UrdfError,
    described,
    located,
    robot_element,
    urdf_path,
)
from nh_control.scenarios.visual_model import STEEL, Color, Mesh, Shape

log = logging.getLogger(__name__)
TRIANGLES = 20000
"""Approximate maximum number of triangles of a robot. If a robot has more, all its meshes are
simplified by the same factor.
"""
CELLS, ENOUGH = (96, 64, 48, 32, 24), 1.5
FEWEST = 60
"""Number of triangles that each mesh may always have, regardless of the total number."""
LARGEST_BYTES = 64 * 2**20
"""Maximum size (bytes) of a mesh file that is read."""
AROUND = 16
"""Number of segments around cylinders and capsules."""
FILE = "file://"


class MeshError(ValueError):
    """A mesh cannot be read. The message names the file and suggests a remedy."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A surface on a link, with its vertices (m) in the link's axes, a color and an opacity."""

    link: str
    vertices: np.ndarray
    triangles: np.ndarray
    color: Color
    opacity: float


def shapes(source: str | Path) -> tuple[Shape, ...]:
    """The shapes of all visual elements in a URDF, in the frames of their links. Meshes that
    cannot be read are omitted with a warning.
    """
    return _shapes(str(source))


@cache
def _shapes(source: str) -> tuple[Shape, ...]:
    path = urdf_path(source)
    try:
        surfaces = list(_surfaces(robot_element(source), path.parent if path else None))
    except UrdfError as error:
        raise UrdfError(f"{described(source)}: {error}") from error
    total = sum(len(surface.triangles) for surface in surfaces)
    part = min(1.0, TRIANGLES / max(total, 1))
    if part < 1:
        surfaces = [_simplified(surface, part) for surface in surfaces]
    return tuple(_shape(surface) for surface in surfaces)


def _surfaces(robot: Element, folder: Path | None) -> Iterator[Surface]:
    colors = {
        material.get("name", ""): color
        for material in robot.iter("material")
        if (color := _rgba(material))
    }
    for link in robot.findall("link"):
        name = attribute(link, "name", "a link")
        for element in link.findall("visual"):
            material = element.find("material")
            declared = None
            if material is not None:
                declared = _rgba(material) or colors.get(material.get("name", ""))
            try:
                yield from _visual(name, element, folder, declared)
            except MeshError as reason:
                log.warning("link %s: %s", name, reason)


def _rgba(material: Element) -> tuple[Color, float] | None:
    """The color and the opacity of a material, or None if it does not declare a color."""
    color = material.find("color")
    if color is None:
        return None
    where = f"material {material.get('name')!r}: <color rgba>"
    r, g, b, a = np.clip(numbers(color.get("rgba", ""), 4, where), 0.0, 1.0).tolist()
    return (r, g, b), a


def _visual(
    link: str, element: Element, folder: Path | None, declared: tuple[Color, float] | None
) -> Iterator[Surface]:
    """The surfaces of a visual element."""
    where = f"visual of {link!r}"
    position, rotation = origin_of(element, where)
    geometry = element.find("geometry")
    kind = next(iter(geometry), None) if geometry is not None else None
    if kind is None:
        raise UrdfError(f"{where}: expected a geometry, got none")
    color, opacity = declared or (STEEL, 1.0)
    if kind.tag == "mesh":
        scale = vector(kind, "scale", where, "1 1 1")
        file = mesh_path(attribute(kind, "filename", where), folder)
        for vertices, triangles, file_color in _read(file):
            placed = position + (vertices * scale) @ rotation.T
            # A reflection reverses the orientation of the triangles.
            turned = triangles[:, ::-1] if np.prod(scale) < 0 else triangles
            shown = color if declared else file_color or color
            yield Surface(link, placed, turned, shown, opacity)
        return
    vertices, triangles = _primitive(kind, where)
    if len(triangles):  # a primitive of size 0 has no triangles
        yield Surface(link, position + vertices @ rotation.T, triangles, color, opacity)


def _primitive(kind: Element, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The vertices and triangles of a box, cylinder, capsule or sphere."""
    creation = _trimesh(f"{where}: <{kind.tag}>").creation
    if kind.tag == "box":
        solid = creation.box(vector(kind, "size", where))
    elif kind.tag == "sphere":
        solid = creation.icosphere(2, number(kind, "radius", where))
    elif kind.tag in ("cylinder", "capsule"):
        radius, length = number(kind, "radius", where), number(kind, "length", where)
        if kind.tag == "cylinder":
            solid = creation.cylinder(radius, length, sections=AROUND)
        else:
            solid = creation.capsule(radius=radius, height=length, count=(AROUND, AROUND))
            solid.apply_translation(-solid.bounds.mean(axis=0))
    else:
        raise UrdfError(f"{where}: unknown geometry <{kind.tag}>")
    return np.array(solid.vertices), np.array(solid.faces)


def mesh_path(name: str, folder: Path | None) -> Path:
    """The file with the given name. The name is a `package://` or `file://` address, an absolute
    path, or a path relative to the URDF's folder. Raises MeshError.
    """
    if XACRO.search(name):
        raise MeshError(f"mesh {name} is a xacro expression: run xacro on the file")
    if name.startswith(PACKAGE):
        try:
            return located(name)
        except UrdfError as reason:
            raise MeshError(str(reason)) from reason
    path = Path(name.removeprefix(FILE))
    if path.is_absolute():
        return path
    if folder is None:
        raise MeshError(f"mesh {name}: the URDF is not a file; use an absolute path or package://")
    return folder / path


@cache
def _read(file: Path) -> list[tuple[np.ndarray, np.ndarray, Color | None]]:
    """The vertices, triangles and color of each part of a file. Raises MeshError."""
    trimesh = _trimesh(str(file))
    if not file.is_file():
        raise MeshError(f"mesh {file}: the file does not exist")
    if file.stat().st_size > LARGEST_BYTES:
        size, most = file.stat().st_size / 2**20, LARGEST_BYTES / 2**20
        raise MeshError(f"mesh {file} has {size:.0f} MB; the limit is {most:.0f} MB")
    try:
        scene = trimesh.load_scene(file, process=True)
        parts = scene.dump()
    except Exception as error:  # each format raises different errors
        raise MeshError(f"mesh {file} cannot be read: {error or type(error).__name__}") from error
    surfaces = [
        (np.array(mesh.vertices), np.array(mesh.faces), _main_color(mesh))
        for mesh in parts
        if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)
    ]
    if not surfaces or not all(np.isfinite(vertices).all() for vertices, _, _ in surfaces):
        raise MeshError(f"mesh {file} contains no surface with finite vertices")
    return surfaces


def _main_color(mesh: Any) -> Color | None:
    """The color of a mesh's material, or None if there is none."""
    if not mesh.visual.defined:
        return None
    material = getattr(mesh.visual, "material", None)
    rgba = mesh.visual.main_color if material is None else material.main_color
    r, g, b = (np.asarray(rgba, dtype=float)[:3] / 255).tolist()
    return r, g, b


def _trimesh(what: str) -> Any:
    try:
        import trimesh
    except ImportError as missing:
        raise MeshError(
            f"{what} needs trimesh to be drawn: pip install 'nh_control[mesh]'"
        ) from missing
    return trimesh


def _simplified(surface: Surface, part: float) -> Surface:
    """The surface with approximately the given fraction of its triangles."""
    count = max(FEWEST, round(part * len(surface.triangles)))
    if len(surface.triangles) <= count:
        return surface
    trimesh = _trimesh(surface.link)
    mesh = trimesh.Trimesh(surface.vertices, surface.triangles, process=True)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    try:
        fewer = mesh.simplify_quadric_decimation(face_count=count)
    except ImportError as missing:
        raise MeshError(f"simpler meshes need {missing}: pip install 'nh_control[mesh]'") from None
    vertices, triangles = np.array(fewer.vertices), np.array(fewer.faces)
    for cells in CELLS:  # decimation keeps the edges of many loose parts
        if len(triangles) > ENOUGH * count:
            vertices, triangles = _clustered(vertices, triangles, cells)
    return replace(surface, vertices=vertices, triangles=triangles)


def _clustered(
    vertices: np.ndarray, triangles: np.ndarray, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """Simplify a surface by vertex clustering: replace all vertices in each cube by their mean.
    The side of a cube is 1 / `cells` of the longest extent.
    """
    low, size = vertices.min(axis=0), np.ptp(vertices, axis=0).max()
    cubes = np.floor((vertices - low) / size * cells)
    _, of = np.unique(cubes, axis=0, return_inverse=True)
    of = of.ravel()
    count = np.bincount(of)[:, None]
    middles = np.column_stack([np.bincount(of, column) for column in vertices.T]) / count
    # Drop triangles that have two corners in the same cube.
    a, b, c = (clustered := of[triangles]).T
    return middles, clustered[(a != b) & (b != c) & (c != a)]


def _shape(surface: Surface) -> Shape:
    """The surface as a mesh shape with vertices that are scaled to unit extents."""
    used, triangles = np.unique(surface.triangles, return_inverse=True)
    vertices = surface.vertices[used]
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    # A flat surface gets a small thickness to keep the scaling finite.
    size = np.maximum(high - low, 1e-6 * max(1e-3, float((high - low).max())))
    middle = (low + high) / 2
    return Shape(
        "mesh",
        (float(size[0]), float(size[1]), float(size[2])),
        surface.color,
        surface.link,
        (float(middle[0]), float(middle[1]), float(middle[2])),
        opacity=surface.opacity,
        mesh=Mesh((vertices - middle) / size, triangles.reshape(-1, 3)),
    )
