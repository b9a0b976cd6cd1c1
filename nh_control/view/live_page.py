"""The page of a plant that is running: it follows what a server sends, and asks for what the nodes
offer.
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
"""The module that a page has besides if it follows a plant that is running."""
HINTS = {
    "fault": "fault: delay=0.005 ...",
    "disturb": "disturb: target:gust:2,0,start=5 ...",
}
"""Parameters that have a field in the page, with an example."""


@dataclass(frozen=True)
class Offers:
    """What a live page can ask for: buttons of requests by their names, `changes` of the plant's
    parameters, `targets` that can be pulled, and whether there are `goals`.
    """

    buttons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    changes: Sequence[str] = ()
    targets: Sequence[str] = ()
    goals: bool = False


def live_page(animation: Animation, offers: Offers = Offers()) -> str:
    """The page for a server of the states of a plant that is running: it has the animation's view,
    begins with its first frame, and shows what comes from where the page comes from.
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
    """The part of the page that asks, as HTML."""
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
    """The frame at which a target is pulled: that of its name, one whose name its name ends with,
    or the one that leaves a trail; "" without any.
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
