"""Joints of all kinds on the configuration spaces in [mueller2013]: joints on the ground, where
the bodies move on motion subgroups, and screws, which only SE(3) represents [mueller2013 2].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from nh_control.figures.style import AXES, RUN, WIDTH, positive
from nh_control.multibody import (
    Body,
    Multibody,
    cylindrical,
    helical,
    maximal_coordinates,
    maximal_state,
    planar,
    prismatic,
    revolute,
    spherical,
    universal,
)
from nh_control.multibody.frames import Frame
from nh_control.numerics.progress import Progress
from nh_control.papers.mueller2013_figures import ROUND_OFF, bars
from nh_control.papers.mueller2013_runs import (
    METHOD,
    METHODS,
    SPACES,
    STEP_S,
    MeasuredRun,
    measured,
)
from nh_control.papers.paper import Outcome, Statement
from nh_control.systems.linkages import LINK

AXIS, TILT = (1.0, -2.0, 0.5), ((0.0, -0.6, 0.8), (1.0, 0.0, 0.0), (0.0, 0.8, 0.6))
PITCH = 0.05
"""Pitch of the screws in m/rad. The paper has no screw joint."""
GROUNDED: Mapping[str, Sequence[Frame]] = {
    "spherical": (spherical("body", position=(0.1, 0.0, 0.2), rotation=TILT),),
    "revolute": (revolute("body", axis=AXIS, rotation=TILT),),
    "prismatic": (prismatic("body", axis=AXIS, rotation=TILT),),
    "helical": (helical("body", axis=AXIS, rotation=TILT, pitch=PITCH),),
    "cylindrical": cylindrical("body", axis=AXIS, rotation=TILT),
    "planar": (planar("body", axis=AXIS, rotation=TILT),),
    "universal": universal("body", axes=("x", "y"), rotation=TILT),
}
SUBGROUPS = {
    "SE3": ("spherical", "revolute", "prismatic", "helical", "cylindrical", "planar"),
    "SO3xR3": ("prismatic", "planar"),
}
"""Joints whose bodies move on a subgroup of SE(3) or of SO(3) x R^3."""
RATE = 10.0
"""Initial rate of the first coordinate in rad/s or m/s. The rate of the last coordinate is 1.5
times as large.
"""


def link(frame: str) -> Body:
    """Return a body whose center of mass does not lie on the axes of its joint."""
    return Body(frame, 2.7, (LINK[0] / 2, 0.03, 0.02), (0.003, 0.009, 0.011))


def grounded(
    kind: str, space: str, method: str = METHOD, steps: int = 1000, h: float = STEP_S
) -> MeasuredRun:
    """Return the motion of a link under gravity. A joint of the given kind connects the link to
    the ground, away from its center of mass.
    """
    model = Multibody(f"link_on_{kind}", GROUNDED[kind], [link("body")])
    return _run(model, space, method, steps, h)


def screws(space: str, method: str = METHOD, steps: int = 1000, h: float = STEP_S) -> MeasuredRun:
    """Return the motion of two links under gravity: "body" on a screw that is fixed to the ground,
    and "nut" on a screw that is fixed to the first link and has a different axis.
    """
    frames = [
        *GROUNDED["helical"],
        helical("nut", "body", axis="y", position=(LINK[0], 0.0, 0.0), pitch=-PITCH),
    ]
    model = Multibody("screws", frames, [link("body"), link("nut")])
    return _run(model, space, method, steps, h)


def _run(model: Multibody, space: str, method: str, steps: int, h: float) -> MeasuredRun:
    maximal = maximal_coordinates(model, space)
    # All coordinates have different rates.
    v = RATE * np.linspace(1.0, 1.5, model.space.nw)
    dsys = METHODS[method](maximal.system, h)
    # The bodies' poses and velocities follow from those of the joints.
    q, v = maximal_state(model, model.configuration(), v, maximal)
    run = dsys.simulate(dsys.state(q, v), steps=steps, every=10)
    return measured(maximal, run.times, run.states)


def joints(_: Progress) -> Outcome:
    """Find out which constraints of joints on the ground each space satisfies exactly."""
    largest = {
        space: {kind: grounded(kind, space).largest() for kind in GROUNDED} for space in SPACES
    }
    satisfied = {
        s: [k for k, g in violations.items() if g < 1e-12] for s, violations in largest.items()
    }

    def draw() -> Figure:
        figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
        axes = figure.add_subplot(yscale="log", ylabel="largest |g|", title="A link on the ground")
        bars(
            axes,
            {
                s: {k: max(g, 1e-17) for k, g in violations.items()}
                for s, violations in largest.items()
            },
        )
        return figure

    statement = Statement(
        "abstract, 6",
        "SE(3) is perfect if a body moves on a motion subgroup: lower pairs on the ground",
        "; ".join(f"{SPACES[s]} satisfies {', '.join(names)}" for s, names in satisfied.items()),
        {s: tuple(names) for s, names in satisfied.items()} == SUBGROUPS,
        "1000 steps; a universal joint is not a subgroup; SO(3) x R^3 has other subgroups",
    )
    return Outcome(draw, {"largest_violation": largest}, (statement,))


def screw_joints(_: Progress) -> Outcome:
    """Compare the violation of a screw on the ground with that of a screw between two bodies."""
    alone = {space: grounded("helical", space) for space in SPACES}
    pair = {space: screws(space) for space in SPACES}
    largest = {
        space: {"alone": alone[space].largest()}
        | {joint: pair[space].largest(joint) for joint in ("body", "nut")}
        for space in SPACES
    }

    def draw() -> Figure:
        figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for panel, runs, joint, title in (
            (panels[0], alone, "body", "A link on a screw"),
            (panels[1], pair, "nut", "A screw between two links"),
        ):
            for (space, run), color in zip(runs.items(), (RUN, AXES[0])):
                size = positive(np.abs(run.violation[joint][1:]).max(axis=1))
                panel.plot(run.times[1:], size, color=color, linewidth=0.9, label=SPACES[space])
            panel.set(xlabel="t (s)", ylabel="largest |g|", yscale="log")
            panel.set_title(title, fontsize=9)
        panels[0].legend(fontsize=7, loc="center right")
        return figure

    return Outcome(draw, {"pitch": PITCH, "largest_violation": largest}, _of_screws(largest))


def _of_screws(largest: Mapping[str, Mapping[str, float]]) -> tuple[Statement, ...]:
    group, product = (largest[space] for space in SPACES)
    return (
        Statement(
            "abstract, 2",
            "SO(3) x R^3 does not represent proper screw motions, SE(3) does",
            f"a link on a screw on the ground: SE(3) {group['alone']:.1e}, SO(3) x R^3 "
            f"{product['alone']:.1e}",
            group["alone"] < ROUND_OFF and product["alone"] > 1e4 * group["alone"],
            f"the paper has no screw joint; here {PITCH:g} m/rad, 1000 steps from {RATE:g} rad/s; "
            "an independent program with another screw: 6.1e-15 and 1.2e-8",
        ),
        Statement(
            "6",
            "if a body moves on a screw of another moving body, both perform alike",
            f"the screw between two links: SE(3) {group['nut']:.1e}, SO(3) x R^3 "
            f"{product['nut']:.1e}; that of the first link: {group['body']:.1e} and "
            f"{product['body']:.1e}",
            1 / 10 < product["nut"] / group["nut"] < 10 and group["nut"] > ROUND_OFF,
        ),
    )
