"""Pictures of an animation, painted without a display, a GPU or a browser. Faces and their shadows
are painted from far to near, at twice the size of the picture, with the same camera and light as
in the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw
from scipy.spatial.transform import Rotation

from nh_control.scenarios.visual_model import Color, Shape
from nh_control.view import meshes
from nh_control.view.animation import Animation, Poses
from nh_control.view.camera import FIELD, SUN, View, first_view, placement

SKY, FLOOR, LINE = (249, 250, 252), (238, 240, 244), (205, 210, 218)
SHADOW, PATH, TRAIL = (196, 200, 207), (115, 128, 153, 180), (242, 115, 13)
SLACK, ARROW, OUTLINE = (0.45, 0.47, 0.5), (0.1, 0.6, 0.25), (0.55, 0.57, 0.6)
OVER = 2
"""Size of the painted image divided by the size of the picture."""
GHOST, THROUGH, TRAIL_S, NEAR = 0.28, 0.5, 5.0, 0.003
"""Opacities of the reference and of arrows inside bodies, length of the trail (s), and distance
above which the reference is drawn, as a fraction of the motion's size. The page uses the same
values.
"""
FINE, MOST_PIECES = 0.004, 2000
"""Length of the pieces of a path, as a fraction of the motion's size, and maximum number of
pieces.
"""


class Face(NamedTuple):
    """Quadrilaterals (n, 4, 3) in m, with their colors (n, 4) from 0 to 255."""

    corners: np.ndarray
    fill: np.ndarray


class Camera:
    """A camera at `eye` that looks at `center`, for a picture of `size` (width, height) pixels."""

    def __init__(self, eye: np.ndarray, center: np.ndarray, size: tuple[int, int]):
        forward = (center - eye) / np.linalg.norm(center - eye)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        self.eye, self._axes = eye, np.array([right, np.cross(right, forward), forward])
        self._size, self._scale = np.array(size), size[1] / 2 / np.tan(FIELD / 2)

    def see(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pixels (..., 2) and depths (...) in m of points (..., 3) in a perspective
        projection.
        """
        local = (points - self.eye) @ self._axes.T
        depth = np.maximum(local[..., 2], 1e-3)
        pixels = self._scale * local[..., :2] / depth[..., None] * [1, -1] + self._size / 2
        return pixels, local[..., 2]


class Painter:
    """Paints pictures of an animation. Their `size` is (width, height) in pixels."""

    def __init__(self, animation: Animation, size: tuple[int, int]):
        self._animation, self._size = animation, (OVER * size[0], OVER * size[1])
        self._view: View = first_view(animation)
        self._eye = self._view.eye(size[0] / size[1])
        self._camera = Camera(self._eye, np.array(self._view.center), self._size)
        self._floor = self._painted_floor(np.array(self._view.center))
        self._heat = animation.load_range
        self._meshes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._local = [placement(shape) for shape in animation.visual.shapes]
        shown, trail = animation.reference or animation.run, animation.visual.trail
        self._path = _thinned(shown.track(trail), FINE * self._view.size) if trail else np.empty(0)

    def showing(self, animation: Animation) -> Painter:
        """A painter with the same view for another animation of the same visual model."""
        other = copy(self)
        other._animation = animation
        return other

    def picture(self, k: int) -> Image.Image:
        """Paint frame k."""
        a = self._animation
        if self._view.follow:
            center = a.run.track(a.visual.trail)[k]
            eye = center + 0.3 * (self._eye - np.array(self._view.center))
            self._camera = Camera(eye, center, self._size)
            image = self._painted_floor(center)
        else:
            image = self._floor.copy()
        draw = ImageDraw.Draw(image, "RGBA")
        faces, arrows = list(self._faces(a.run, k)), list(self._arrows(k))
        for face in (*faces, *arrows):
            # The shadow of a point lies along the direction of the light, at the height of the
            # ground.
            down = face.corners - SUN * ((face.corners[:, :, 2:] - self._view.ground) / SUN[2])
            for shape in self._camera.see(down)[0]:
                draw.polygon(shape.ravel().tolist(), SHADOW)
        self._lines(draw, k)
        if a.reference is not None:
            faces += self._ghosts(faces, list(self._faces(a.reference, k)))
        self._paint(draw, [*faces, *arrows])
        # Paint the arrows again with transparency, so that those inside bodies are visible.
        self._paint(draw, [_fainter(face, THROUGH) for face in arrows])
        return image.reduce(OVER)

    def _lines(self, draw: ImageDraw.ImageDraw, k: int) -> None:
        """Draw the path of the reference and the trail of the run."""
        a = self._animation
        if not a.visual.trail:
            return
        self._line(draw, self._path, [PATH] * len(self._path))
        first = int(np.searchsorted(a.times, a.times[k] - TRAIL_S))
        recent = a.run.track(a.visual.trail)[first : k + 1]
        fade = 255 * np.arange(len(recent)) // max(1, len(recent))
        self._line(draw, recent, [(*TRAIL, int(alpha)) for alpha in fade])

    def _line(self, draw: ImageDraw.ImageDraw, points: np.ndarray, colors: list) -> None:
        pixels, depth = self._camera.see(points)
        for i in range(1, len(pixels)):
            if depth[i - 1 : i + 1].min() > 0.05 * self._view.size:
                draw.line([tuple(pixels[i - 1]), tuple(pixels[i])], colors[i], width=2 * OVER)

    def _ghosts(self, run: list[Face], reference: list[Face]) -> list[Face]:
        """The faces of the reference that differ from the faces of the run, made transparent."""
        ghosts = []
        for here, there in zip(run, reference):
            same = here.corners.shape == there.corners.shape
            moved = np.abs(here.corners - there.corners).max(initial=0.0) if same else np.inf
            if moved > NEAR * self._view.size:
                ghosts.append(_fainter(there, GHOST))
        return ghosts

    def _faces(self, poses: Poses, k: int) -> Iterator[Face]:
        visual = self._animation.visual
        turns = Rotation.from_quat(np.roll(poses.wxyz[k], -1, axis=1)).as_matrix()
        index = {name: i for i, name in enumerate(poses.names)}
        for shape, (roll, offset) in zip(visual.shapes, self._local):
            i = index[shape.frame]
            center = poses.position[k, i] + turns[i] @ offset
            rotation = turns[i] @ roll
            faces = self._surfaces(shape)
            yield self._placed(faces, shape.extents, rotation, center, shape.color, shape.opacity)
        position = {name: poses.position[k, i] for name, i in index.items()}
        for i, cable in enumerate(visual.cables):
            color = self._color(i, k)
            yield self._rod(
                "box", position[cable.start], position[cable.end], cable.diameter, color
            )
        for name, following in zip(visual.outline, (*visual.outline[1:], *visual.outline[:1])):
            thick = 0.004 * self._view.size
            yield self._rod("box", position[name], position[following], thick, OUTLINE)

    def _arrows(self, k: int) -> Iterator[Face]:
        run, thick = self._animation.run, 0.012 * self._view.size + 0.008
        for arrow, length in zip(self._animation.visual.arrows, self._animation.arrows[k]):
            if abs(length) > thick / 4:
                i = run.names.index(arrow.frame)
                z = Rotation.from_quat(np.roll(run.wxyz[k, i], -1)).as_matrix()[:, 2]
                start = run.position[k, i] + arrow.offset * z
                # The cone has a fixed size, and the cylinder takes up the rest of the length.
                neck = start + z * np.sign(length) * max(abs(length) - 4 * thick, 0.0)
                yield self._rod("cylinder", start, neck, thick, ARROW)
                yield self._rod("cone", neck, start + length * z, 2.5 * thick, ARROW)

    def _color(self, cable: int, k: int) -> Color:
        load = self._animation.loads[k, cable]
        if self._heat is None or not load > 0:
            return SLACK
        low, high = self._heat
        part = float(np.clip((load - low) / ((high - low) or 1.0), 0, 1))
        return (0.16 + 0.69 * part, 0.35 - 0.2 * part, 0.8 - 0.7 * part)

    def _rod(self, kind: str, a: np.ndarray, b: np.ndarray, thick: float, color: Color) -> Face:
        length = float(np.linalg.norm(b - a))
        z = (b - a) / length if length > 0 else np.array([0.0, 0.0, 1.0])
        x = np.cross([0.0, 0.0, 1.0] if abs(z[2]) < 0.9 else [1.0, 0.0, 0.0], z)
        x /= np.linalg.norm(x)
        rotation = np.column_stack([x, np.cross(z, x), z])
        extents = thick, thick, max(length, 1e-9)
        return self._placed(_solid(kind), extents, rotation, (a + b) / 2, color, 1.0)

    def _placed(
        self,
        surface: tuple[np.ndarray, np.ndarray],
        extents: tuple[float, float, float],
        rotation: np.ndarray,
        center: np.ndarray,
        color: Color,
        opacity: float,
    ) -> Face:
        """The visible faces of a solid, with their lighting."""
        quads, normals = surface
        corners = center + (quads * extents) @ rotation.T
        # Normals transform with the inverse of the extents.
        facing = (normals / extents) @ rotation.T
        facing /= np.maximum(np.linalg.norm(facing, axis=1, keepdims=True), 1e-12)
        toward = self._camera.eye - corners.mean(axis=1)
        toward /= np.linalg.norm(toward, axis=1, keepdims=True)
        seen = (facing * toward).sum(axis=1) > 0
        corners, facing, toward = corners[seen], facing[seen], toward[seen]
        # Ambient light, diffuse light, and a highlight (n . half)^40 (Blinn-Phong).
        half = SUN + toward
        half /= np.linalg.norm(half, axis=1, keepdims=True)
        lit = np.clip(facing @ SUN, 0, 1)[:, None]
        light = 0.24 + 0.33 * (0.5 + 0.5 * facing[:, 2:]) + 0.6 * lit
        shine = 0.15 * np.clip((facing * half).sum(axis=1), 0, 1)[:, None] ** 40
        # Light is added in a linear color space, with a gamma of 2.2.
        rgb = np.clip(np.array(color) ** 2.2 * light + shine, 0, 1) ** (1 / 2.2)
        fill = np.column_stack([255 * rgb, np.full(len(rgb), 255 * opacity)]).astype(int)
        return Face(corners, fill)

    def _paint(self, draw: ImageDraw.ImageDraw, faces: list[Face]) -> None:
        """Paint the faces from far to near, except those that reach behind the camera."""
        corners = np.concatenate([np.empty((0, 4, 3)), *(face.corners for face in faces)])
        fill = np.concatenate([np.empty((0, 4), dtype=int), *(face.fill for face in faces)])
        pixels, depth = self._camera.see(corners)
        # Painter's algorithm: sort the faces by the mean depth of their corners.
        order = np.argsort(-depth.mean(axis=1))
        order = order[depth[order].min(axis=1) > 1e-2 * self._view.size]
        shapes = pixels[order].reshape(len(order), 8).tolist()
        for shape, color in zip(shapes, fill[order].tolist()):
            draw.polygon(shape, tuple(color))

    def _surfaces(self, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """The faces of a shape and their normals."""
        if shape.mesh is None:
            return _solid(shape.kind)
        if id(shape.mesh) not in self._meshes:
            faces = meshes.quadrilaterals(shape.mesh)
            facing = meshes.normals(faces * shape.extents) * shape.extents
            self._meshes[id(shape.mesh)] = faces, facing
        return self._meshes[id(shape.mesh)]

    def _painted_floor(self, middle: np.ndarray) -> Image.Image:
        """The ground with the same lines as in the page, which fade into the background."""
        image = Image.new("RGB", self._size, SKY)
        draw, distance = ImageDraw.Draw(image), float(np.linalg.norm(self._camera.eye - middle))
        reach, cell = 3.5 * max(self._view.size, distance / 2), 2.0 ** round(np.log2(distance / 6))
        cells = np.arange(-int(reach / cell) - 1, int(reach / cell) + 1)
        x, y = (cell * (np.floor(middle[axis] / cell) + cells) for axis in (0, 1))
        low = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
        far = np.linalg.norm(low + cell / 2 - middle[:2], axis=1) / reach
        low, far = low[far <= 1], far[far <= 1, None]
        corners = low[:, None] + cell * np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        ground = np.full((len(low), 4, 1), self._view.ground)
        pixels, depth = self._camera.see(np.concatenate([corners, ground], axis=2))
        beside = (pixels.max(axis=1) < 0) | (pixels.min(axis=1) > self._size)
        seen = (depth.min(axis=1) >= 0.02 * distance) & ~beside.any(axis=1)
        shapes, far = pixels[seen].reshape(-1, 8).tolist(), far[seen]
        floor, line = (
            (np.array(SKY) * far + np.array(color) * (1 - far)).astype(int).tolist()
            for color in (FLOOR, LINE)
        )
        for shape, color in zip(shapes, floor):
            draw.polygon(shape, tuple(color))
        for shape, color in zip(shapes, line):
            draw.line([*shape, *shape[:2]], tuple(color), width=OVER)
        return image


def _thinned(path: np.ndarray, piece: float) -> np.ndarray:
    """Points that are at least `piece` apart along a path (n, 3), with at most MOST_PIECES
    pieces.
    """
    along = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1)))
    pieces = np.floor(along / max(piece, along[-1] / MOST_PIECES))
    first = np.append(True, np.diff(pieces) > 0)
    first[-1] = True
    return path[first]


def _fainter(face: Face, opacity: float) -> Face:
    """The face with its opacity multiplied by the given factor."""
    return Face(face.corners, (face.fill * np.array([1, 1, 1, opacity])).astype(int))


def _solid(kind: str) -> tuple[np.ndarray, np.ndarray]:
    faces = meshes.solid(kind)
    return faces, meshes.normals(faces)
