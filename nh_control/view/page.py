"""The page: a self-contained HTML file with the scene, the plots and the timeline of an animation.
The modules in page/ draw it with WebGL 2 and do not send requests to any host.
"""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.view import meshes
from nh_control.view.animation import Animation, Poses
from nh_control.view.camera import FIELD, SUN, first_view

PAGE = Path(__file__).parent / "page"
MODULES = ("vectors", "renderer", "curves", "scene", "timeline", "app")
"""The JavaScript modules in import order."""
GROUND = np.array([[[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]])
HEIGHT_PX = 520
"""The height (px) of a page in a notebook."""


def page(animation: Animation) -> str:
    """The HTML of the page."""
    return filled(payload(animation), controls=_legend(animation))


def filled(
    data: dict[str, Any], modules: tuple[str, ...] = MODULES, sources: str = "", controls: str = ""
) -> str:
    """The page with the given data and modules, and with `controls` below its title. The page may
    only send requests to `sources`.
    """
    text = (PAGE / "page.html").read_text(encoding="utf-8")
    inside = {
        "title": html.escape(data["title"]),
        "sources": sources,
        "controls": controls,
        "style": (PAGE / "page.css").read_text(encoding="utf-8"),
        "vertex": (PAGE / "vertex.glsl").read_text(encoding="utf-8"),
        "fragment": (PAGE / "fragment.glsl").read_text(encoding="utf-8"),
        "data": _json(data),
        "script": script(modules),
    }
    return re.sub(r"<!--(\w+)-->", lambda match: inside[match[1]], text)


def _legend(animation: Animation) -> str:
    """The HTML of the legend for the shaded intervals in the plots."""
    return "".join(
        f'<p class="shade" style="border-color:{shade.color}">'
        f"{html.escape(shade.label)}, {shade.start:g} to {shade.stop:g} s</p>"
        for shade in animation.intervals
    )


def page_of_runs(runs: Mapping[str, Animation]) -> str:
    """A page for several animations, with a menu from which one of them is chosen by name."""
    (_, first), *others = runs.items()
    names = "".join(f"<option>{html.escape(name)}</option>" for name in runs)
    scripts = "".join(
        f'<script type="application/json" class="run">{_json(payload(run))}</script>'
        for _, run in others
    )
    chooser = f'<select id="runs" aria-label="run">{names}</select>{scripts}'
    return filled(payload(first), controls=chooser + _legend(first))


def _json(data: dict[str, Any]) -> str:
    """The data as JSON for a script element in a page."""
    numbers = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # A "</script>" in a text must not end the script element.
    return numbers.replace("<", "\\u003c")


def in_a_notebook(animation: Animation) -> str:
    """The page for a notebook, as an inline frame that does not load anything from other hosts."""
    source = html.escape(page(animation), quote=True)
    style = f"width: 100%; height: {HEIGHT_PX}px; border: 1px solid #dde1e6"
    return f'<iframe srcdoc="{source}" style="{style}" title="nh_control"></iframe>'


def payload(animation: Animation) -> dict[str, Any]:
    """The contents of the page for JSON, in which the numbers are packed."""
    visual, loads = animation.visual, animation.load_range
    # The page refers to frames by number.
    frames = {name: i for i, name in enumerate(animation.run.names)}
    reference = animation.reference if animation.differs else None
    by_mesh = {id(s.mesh): s for s in visual.shapes if s.mesh is not None}
    surfaces = {key: f"mesh {i}" for i, key in enumerate(by_mesh)}
    return {
        "title": animation.title,
        "frames": animation.run.names,
        "shapes": [
            {
                "mesh": s.kind if s.mesh is None else surfaces[id(s.mesh)],
                "extents": s.extents,
                "color": s.color,
                "frame": frames[s.frame],
                "offset": s.offset,
                "roll": s.roll,
                "opacity": s.opacity,
            }
            for s in visual.shapes
        ],
        "meshes": {
            **{kind: _surface(meshes.solid(kind, meshes.PAGE)) for kind in meshes.SOLIDS},
            "ground": _surface(GROUND),
            **{
                surfaces[key]: _surface(meshes.quadrilaterals(s.mesh), s.extents)
                for key, s in by_mesh.items()
                if s.mesh is not None
            },
        },
        "cables": [
            {"start": frames[c.start], "end": frames[c.end], "diameter": c.diameter}
            for c in visual.cables
        ],
        "arrows": [{"frame": frames[a.frame], "offset": a.offset} for a in visual.arrows],
        "outline": [frames[name] for name in visual.outline if name in frames],
        "trail": frames.get(visual.trail),
        "loadRange": loads,
        "view": {**asdict(first_view(animation)), "field": FIELD, "sun": SUN.tolist()},
        "intervals": [asdict(interval) for interval in animation.intervals],
        "curves": [
            {
                "label": c.label,
                "names": c.names,
                "logarithmic": c.logarithmic,
                "values": packed(c.values),
            }
            for c in animation.curves
        ],
        "times": packed(animation.times),
        "run": packed(_numbers(animation.run)),
        "reference": None if reference is None else packed(_numbers(reference)),
        "loads": packed(animation.loads),
        "arrowLengths": packed(animation.arrows),
    }


def _surface(faces: np.ndarray, extents: Sequence[float] = (1.0, 1.0, 1.0)) -> dict[str, str]:
    """The packed surface with the faces (n, 4, 3), which is drawn with the given extents."""
    corners, triangles = meshes.shaded(faces * extents)
    # Positions scale with the extents, and normals with their inverse: n' ~ n / extents.
    corners[:, :3] /= extents
    corners[:, 3:] *= extents
    corners[:, 3:] /= np.maximum(np.linalg.norm(corners[:, 3:], axis=1, keepdims=True), 1e-12)
    return {"corners": packed(corners), "triangles": packed(triangles)}


def packed(values: np.ndarray) -> str:
    """The numbers as little-endian 32-bit floats in base64. Bytes of equal significance are stored
    together and deflated, because they differ little from one number to the next.
    """
    flat = np.ascontiguousarray(values, dtype="<f4").ravel()
    planes = flat.view("u1").reshape(-1, 4).T.tobytes()
    return base64.b64encode(zlib.compress(planes, 9)).decode()


def unpacked(text: str) -> np.ndarray:
    """The numbers in a text that `packed` returned, as the page reads them."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="u1")
    return np.ascontiguousarray(planes.reshape(4, -1).T).view("<f4").ravel()


@cache
def script(modules: tuple[str, ...] = MODULES) -> str:
    """All modules in a single script, so that the page works as a local file."""
    parts = [(PAGE / f"{name}.js").read_text(encoding="utf-8") for name in modules]
    plain = [re.sub(r"^import .*\n", "", part, flags=re.M) for part in parts]
    # In a single script the modules need no imports and exports, so these are removed.
    return re.sub(r"^export ", "", "\n".join(plain), flags=re.M)


def _numbers(poses: Poses) -> np.ndarray:
    return np.concatenate([poses.position, poses.wxyz], axis=2)
