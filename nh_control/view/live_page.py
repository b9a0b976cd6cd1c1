"""The live page of a running plant. It shows the states that a server sends, and it sends requests
to the server.
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
"""The additional module of a live page."""
HINTS = {
    "fault": "fault: delay=0.005 ...",
    "disturb": "disturb: target:gust:2,0,start=5 ...",
}
"""The parameters that have an input field in the page, each with a hint that contains an example.
"""


@dataclass(frozen=True)
class Offers:
    """The requests that a live page offers: `buttons` with their requests by name, `changes` to
    the plant's parameters, `targets` that can be pulled, and whether `goals` can be set.
    """

    buttons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    changes: Sequence[str] = ()
    targets: Sequence[str] = ()
    goals: bool = False


def live_page(animation: Animation, offers: Offers = Offers()) -> str:
    """The live page for a server. Its view is that of the animation. The page begins with the
    first frame and then shows the states that its server sends.
    """
    # The view covers the whole reference, but the data begin with a single frame.
    whole, first = payload(animation), payload(_first_frame(animation))
    shared = {name: whole[name] for name in ("view", "loadRange")}
    frames = animation.run.names
    pulled = {name: _frame(name, frames, animation.visual.trail) for name in offers.targets}
    requests = {
        "pulled": {name: frames.index(frame) for name, frame in pulled.items() if frame},
        "goals": offers.goals,
        "paces": "speed_factor" in offers.changes,
    }
    data = {**first, **shared, **requests, "reference": first["run"]}
    return filled(data, (*MODULES, LIVE), "connect-src 'self'; ", controls(offers, pulled))


def controls(offers: Offers, pulled: Mapping[str, str]) -> str:
    """The HTML of the controls with which the page sends requests."""
    parts = [
        f'<button type="button" data-ask="{html.escape(json.dumps(request), quote=True)}">'
        f"{html.escape(name)}</button>"
        for name, request in offers.buttons.items()
    ]
    mice = ["turn", *["pull"] * any(pulled.values()), *["goal"] * offers.goals]
    # If no requests are made with the mouse, there are no modes to choose from.
    if len(mice) > 1:
        titles = {
            "turn": "the mouse turns the camera",
            "pull": "press near a body and drag to pull it",
            "goal": "click or drag to set the body's goal; with shift: up and down",
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
    status = '<p id="plant" role="status"></p><ul id="nodes"></ul>'
    return f'{status}<div id="asks">{"".join(parts)}</div><p id="answer" role="status"></p>'


def _frame(target: str, frames: Sequence[str], trail: str) -> str:
    """The frame at which a target is pulled. This is the frame with the target's name, or the
    frame with the longest name that is a suffix of the target's name, or the frame of the trail.
    "" if there is none.
    """
    ends = [name for name in frames if target == name or target.endswith(f"_{name}")]
    # Use the longest match, so that "quad1_arm" is pulled at "quad1_arm", not at "arm".
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
