"""Motions of scenarios that need no integration: every coordinate swings."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import nh_control as nh
from nh_control.view.animation import Animation, Curves, Poses


def configurations(scenario, frames, size=0.4, seed=0):
    """Configurations (frames, nq) along smooth curves from the space's origin."""
    space = scenario.make_system(scenario.parameters).space
    draw, times = np.random.default_rng(seed), np.linspace(0, 20, frames)
    rates, phases = draw.uniform(0.2, 1.5, space.nv), draw.uniform(0, 6, space.nv)
    moves = size * np.sin(np.outer(times, rates) + phases)
    return times, np.array([space.retract(space.origin, move) for move in moves])


def animation(name, frames=1001, shift=0.05):
    """20 s of a scenario, whose reference is elsewhere, with some curves."""
    scenario = nh.scenarios.get(name)
    visual = scenario.visual_model()
    times, q = configurations(scenario, frames)
    _, target = configurations(scenario, frames, size=0.4 + shift)
    names = tuple(f"curve {i}" for i in range(12))
    values = np.sin(np.outer(times, np.arange(1, 13) / 3))
    loads = 10 + np.sin(np.outer(times, np.ones(len(visual.cables))))
    return Animation(
        f"{name} <swings>",
        visual,
        times,
        Poses.of(visual, scenario.parameters, q),
        Poses.of(visual, scenario.parameters, target),
        (
            Curves("coordinates", "m", names, values),
            Curves("residual", "m", ("largest",), np.abs(values[:, :1]) * 1e-9, True),
        ),
        loads,
        0.3 * np.sin(np.outer(times, np.ones(len(visual.arrows)))),
    ), q


def pendulum(h=0.02):
    """A motion of a system that no scenario has."""
    dsys = nh.midpoint(replace(nh.systems.cart_pole(), name="own"), h)
    return dsys.simulate(dsys.state([0, 0.5], [0, 0]), np.zeros((100, 1)), name="own motion")


def written(text, folder, name="page.html"):
    file = Path(folder) / name
    file.write_text(text, encoding="utf-8")
    return file
