"""The live page of a running plant: it shows the states that a server sends, and sends
requests.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nh_control.view.animation import Animation, Poses
from nh_control.view.page import MODULES, filled, payload

LIVE = "live"
"""Additional module of a live page."""
HINTS = {
    "fault": "fault: delay=0.005 ...",
    "disturb": "disturb: target:gust:2,0,start=5 ...",
}
"""Parameters with a field in the page, and an example of a value."""


@dataclass(frozen=True)
class Offers:
    """The requests that a live page offers: buttons of requests by their names, `changes` of the
    plant's parameters, `targets` that can be pulled, and whether there are `goals`.
    """

    buttons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    changes: Sequence[str] = ()
    targets: Sequence[str] = ()
    goals: bool = False


def live_page(animation: Animation, offers: Offers = Offers()) -> str:
    """The live page for a server. It has the animation's view, begins with its first frame, and
    shows the states that its own server sends.
    """
    whole, first = payload(animation), payload(_first_frame(animation))
    kept = {name: whole[name] for name in ("view", "loadRange")}
    frames = animation.run.names
    pulled = {name: _frame(name, frames, animation.visual.trail) for name in offers.targets}
    asks = {
        "pulled": {name: frames.index(one) for name, one in pulled.items() if one},
        "goals": offers.goals,
        "paces": "speed_factor" in offers.changes,
    }
    data = {**first, **kept, **asks, "reference": first["run"]}
    return filled(data, (*MODULES, LIVE), "connect-src 'self'; ", controls(offers, pulled))


def controls(offers: Offers, pulled: Mapping[str, str]) -> str:
    """The part of the page for requests, as HTML."""
    parts = [
        f'<button type="button" data-ask="{html.escape(json.dumps(request), quote=True)}">'
        f"{html.escape(name)}</button>"
        for name, request in offers.buttons.items()
    ]
    mice = ["turn", *["pull"] * any(pulled.values()), *["goal"] * offers.goals]
    if len(mice) > 1:
        titles = {
            "turn": "the mouse turns the camera",
            "pull": "press near a body and drag: it is pulled that way",
            "goal": "click or drag: where the body is to go; with shift: up and down",
        }
        parts += [
            f'<label title="{titles[name]}"><input type="radio" name="mouse" value="{name}"'
            f"{' checked' * (name == 'turn')}> {name}</label>"
            for name in mice
        ]
    if offers.goals:
        parts.append('<input id="goal" placeholder="goal: x y z" aria-label="goal: x y z">')
    parts += [
        f'<input data-change="{name}" placeholder="{HINTS[name]}" aria-label="{name}">'
        for name in offers.changes
        if name in HINTS
    ]
    said = '<p id="plant" role="status"></p><ul id="nodes"></ul>'
    return f'{said}<div id="asks">{"".join(parts)}</div><p id="answer" role="status"></p>'


def _frame(target: str, frames: Sequence[str], trail: str) -> str:
    """The frame at which a target is pulled: the frame of its name, a frame whose name is the end
    of the target's name, or the frame of the trail; "" without any.
    """
    ends = [name for name in frames if target == name or target.endswith(f"_{name}")]
    return max(ends, key=len, default=trail)


def _first_frame(animation: Animation) -> Animation:
    run = animation.run
    return replace(
        animation,
        times=animation.times[:1],
        run=Poses(run.names, run.position[:1], run.wxyz[:1]),
        reference=None,
        curves=tuple(replace(curve, values=curve.values[:1]) for curve in animation.curves),
        loads=animation.loads[:1],
        arrows=animation.arrows[:1],
        intervals=(),
    )
