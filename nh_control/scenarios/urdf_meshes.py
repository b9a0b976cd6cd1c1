"""Pictures of a URDF file's links: boxes, cylinders, spheres and meshes of files (STL, OBJ,
Collada, glTF), by trimesh.
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
"""About the most triangles of a robot; finer meshes are simplified, each by the same factor."""
CELLS, ENOUGH = (96, 64, 48, 32, 24), 1.5
FEWEST = 60
"""Number of triangles that every mesh may have."""
LARGEST_BYTES = 64 * 2**20
"""Size of the largest file that is read."""
AROUND = 16
"""Number of corners around cylinders."""
FILE = "file://"


class MeshError(ValueError):
    """A mesh that cannot be read; the message names its file and the remedy."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A surface on a link, in the link's axes in m, with a color and an opacity."""

    link: str
    vertices: np.ndarray
    triangles: np.ndarray
    color: Color
    opacity: float


def shapes(source: str | Path) -> tuple[Shape, ...]:
    """The shapes of all visual elements of a URDF, in the frames of their links; a mesh that
    cannot be read is left out, and a warning says why.
    """
    return _shapes(str(source))


@cache
def _shapes(source: str) -> tuple[Shape, ...]:
    path = urdf_path(source)
    try:
        surfaces = list(_surfaces(robot_element(source), path.parent if path else None))
    except UrdfError as error:
        raise UrdfError(f"{described(source)}: {error}") from error
    total = sum(len(one.triangles) for one in surfaces)
    part = min(1.0, TRIANGLES / max(total, 1))
    return tuple(_shape(one if part == 1 else _simplified(one, part)) for one in surfaces)


def _surfaces(robot: Element, folder: Path | None) -> Iterator[Surface]:
    colors = {
        one.get("name", ""): color for one in robot.iter("material") if (color := _rgba(one))
    }
    for link in robot.findall("link"):
        name = attribute(link, "name", "a link")
        for element in link.findall("visual"):
            material = element.find("material")
            given = None
            if material is not None:
                given = _rgba(material) or colors.get(material.get("name", ""))
            try:
                yield from _visual(name, element, folder, given)
            except MeshError as reason:
                log.warning("link %s: %s", name, reason)


def _rgba(material: Element) -> tuple[Color, float] | None:
    """Color and opacity that a material declares."""
    color = material.find("color")
    if color is None:
        return None
    where = f"material {material.get('name')!r}: <color rgba>"
    r, g, b, a = np.clip(numbers(color.get("rgba", ""), 4, where), 0.0, 1.0).tolist()
    return (r, g, b), a


def _visual(
    link: str, element: Element, folder: Path | None, given: tuple[Color, float] | None
) -> Iterator[Surface]:
    """The surfaces of a visual element."""
    where = f"visual of {link!r}"
    position, rotation = origin_of(element, where)
    geometry = element.find("geometry")
    kind = next(iter(geometry), None) if geometry is not None else None
    if kind is None:
        raise UrdfError(f"{where}: expected a geometry, got none")
    color, opacity = given or (STEEL, 1.0)
    if kind.tag == "mesh":
        scale = vector(kind, "scale", where, "1 1 1")
        for vertices, triangles, own in _read(_path(attribute(kind, "filename", where), folder)):
            placed = position + (vertices * scale) @ rotation.T
            turned = triangles[:, ::-1] if np.prod(scale) < 0 else triangles
            yield Surface(link, placed, turned, color if given else own or color, opacity)
        return
    vertices, triangles = _primitive(kind, where)
    if len(triangles):  # none of a size of 0
        yield Surface(link, position + vertices @ rotation.T, triangles, color, opacity)


def _primitive(kind: Element, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a box, cylinder, capsule or sphere."""
    creation = _trimesh(f"{where}: <{kind.tag}>").creation
    if kind.tag == "box":
        made = creation.box(vector(kind, "size", where))
    elif kind.tag == "sphere":
        made = creation.icosphere(2, number(kind, "radius", where))
    elif kind.tag in ("cylinder", "capsule"):
        size = number(kind, "radius", where), number(kind, "length", where)
        if kind.tag == "cylinder":
            made = creation.cylinder(*size, sections=AROUND)
        else:
            made = creation.capsule(radius=size[0], height=size[1], count=(AROUND, AROUND))
            made.apply_translation(-made.bounds.mean(axis=0))
    else:
        raise UrdfError(f"{where}: unknown geometry <{kind.tag}>")
    return np.array(made.vertices), np.array(made.faces)


def _path(name: str, folder: Path | None) -> Path:
    """The file of `package://`, `file://`, a path, or one relative to the URDF's folder."""
    if XACRO.search(name):
        raise MeshError(f"mesh {name} is an expression of xacro: run xacro on the file")
    if name.startswith(PACKAGE):
        try:
            return located(name)
        except UrdfError as reason:
            raise MeshError(str(reason)) from reason
    path = Path(name.removeprefix(FILE))
    if path.is_absolute():
        return path
    if folder is None:
        raise MeshError(f"mesh {name}: the URDF is no file; give an absolute path or package://")
    return folder / path


@cache
def _read(file: Path) -> list[tuple[np.ndarray, np.ndarray, Color | None]]:
    """Vertices, triangles and color of all parts of a file; raises MeshError."""
    trimesh = _trimesh(str(file))
    if not file.is_file():
        raise MeshError(f"mesh {file}: there is no such file")
    if file.stat().st_size > LARGEST_BYTES:
        size, most = file.stat().st_size / 2**20, LARGEST_BYTES / 2**20
        raise MeshError(f"mesh {file} of {size:.0f} MB: at most {most:.0f} MB are read")
    try:
        scene = trimesh.load_scene(file, process=True)
        parts = scene.dump()
    except Exception as error:  # every format has errors of its own
        raise MeshError(f"mesh {file} cannot be read: {error or type(error).__name__}") from error
    surfaces = [
        (np.array(one.vertices), np.array(one.faces), _main_color(one))
        for one in parts
        if isinstance(one, trimesh.Trimesh) and len(one.faces)
    ]
    if not surfaces or not all(np.isfinite(vertices).all() for vertices, _, _ in surfaces):
        raise MeshError(f"mesh {file} has no surface of finite numbers")
    return surfaces


def _main_color(mesh: Any) -> Color | None:
    """The color of a mesh's material, None without one."""
    if not mesh.visual.defined:
        return None
    material = getattr(mesh.visual, "material", None)
    rgba = mesh.visual.main_color if material is None else material.main_color
    r, g, b = (np.asarray(rgba, dtype=float)[:3] / 255).tolist()
    return r, g, b


def _trimesh(wanted: str) -> Any:
    try:
        import trimesh
    except ImportError as missing:
        raise MeshError(
            f"{wanted} is not drawn without trimesh: pip install 'nh_control[mesh]'"
        ) from missing
    return trimesh


def _simplified(surface: Surface, part: float) -> Surface:
    """The surface with about this part of its triangles."""
    wanted = max(FEWEST, round(part * len(surface.triangles)))
    if len(surface.triangles) <= wanted:
        return surface
    trimesh = _trimesh(surface.link)
    mesh = trimesh.Trimesh(surface.vertices, surface.triangles, process=True)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    try:
        fewer = mesh.simplify_quadric_decimation(face_count=wanted)
    except ImportError as missing:
        raise MeshError(f"simpler meshes need {missing}: pip install 'nh_control[mesh]'") from None
    vertices, triangles = np.array(fewer.vertices), np.array(fewer.faces)
    for cells in CELLS:  # of many loose parts, whose edges stay
        if len(triangles) > ENOUGH * wanted:
            vertices, triangles = _clustered(vertices, triangles, cells)
    return replace(surface, vertices=vertices, triangles=triangles)


def _clustered(
    vertices: np.ndarray, triangles: np.ndarray, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """The surface with all vertices in a cube of the longest side over `cells` in one."""
    low, size = vertices.min(axis=0), np.ptp(vertices, axis=0).max()
    cubes = np.floor((vertices - low) / size * cells)
    _, of = np.unique(cubes, axis=0, return_inverse=True)
    of = of.ravel()
    count = np.bincount(of)[:, None]
    middles = np.column_stack([np.bincount(of, column) for column in vertices.T]) / count
    a, b, c = (moved := of[triangles]).T
    return middles, moved[(a != b) & (b != c) & (c != a)]


def _shape(surface: Surface) -> Shape:
    """The shape with the extents of the surface."""
    used, triangles = np.unique(surface.triangles, return_inverse=True)
    vertices = surface.vertices[used]
    low, high = vertices.min(axis=0), vertices.max(axis=0)
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
