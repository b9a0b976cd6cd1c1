"""A payload that moves along x, for nodes that show it."""

from dataclasses import replace

import numpy as np

from nh_control import Trajectory, scenarios
from nh_control.ros.runtime.selected_model import Model

QUADS = scenarios.get("quadrotor_payload")
MODEL = QUADS.model()
SPACE = MODEL.system.space
STEPS = 20
H_NS = round(MODEL.h * 1e9)


def at(x, z=1.0):
    """The configuration with the payload in a place, everything upright."""
    q = SPACE.origin.copy()
    q[[0, 2]] = x, z
    return q


def ahead(dsys):
    """A reference that moves by 0.1 m a step."""
    rest = np.zeros(SPACE.nw)
    states = np.array([dsys.state(at(0.1 * k), rest) for k in range(STEPS + 1)])
    return Trajectory(dsys.h, states, np.ones((STEPS, dsys.nu)))


def put_up(monkeypatch):
    """The model of every node is that of the reference `ahead`."""
    model = Model(replace(QUADS, references={"ahead": ahead}), MODEL, ahead(MODEL))
    monkeypatch.setattr(Model, "of", staticmethod(lambda parameters: model))
