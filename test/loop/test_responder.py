"""Answers of a tracker to the states of a run."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.responder import Responder

SCENARIO = scenarios.get("snakeboard")
MODEL = SCENARIO.model()
TRACKER = SCENARIO.tracker(MODEL, SCENARIO.reference(MODEL), integral=True)


def answers(responder, steps):
    """Commands for configurations without velocities, which what is remembered would change."""
    found = []
    for k in steps:
        x = TRACKER.reference.states[k]
        q, v = MODEL.configuration(x) + 0.01, np.full(MODEL.system.space.nw, np.nan)

        def read(into_q, into_v, q=q, v=v):
            into_q[:], into_v[:] = q.tolist(), v.tolist()

        found.append(responder.respond(k, responder.measure(k, read)).command.u)
    return np.array(found)


@pytest.mark.parametrize("model", ["", "a model that cannot move"])
def test_a_tracker_that_has_warmed_up_has_made_commands_and_forgotten_them(monkeypatch, model):
    noted, commands = [], []
    command = type(TRACKER).command

    def counted(tracker, k, x, memory=None):
        commands.append(k)
        if model:
            raise ValueError(model)
        return command(tracker, k, x, memory)

    note = lambda k, response: noted.append(k)
    responder = Responder(ReferenceSequence(TRACKER), note=note)
    with monkeypatch.context() as patch:
        patch.setattr(type(TRACKER), "command", counted)
        responder.warm_up()
    assert commands == ([0] if model else [0, 1])
    assert (noted, responder.last, responder.approximated) == ([], -1, 0)
    fresh = Responder(ReferenceSequence(TRACKER))
    steps = (5, 6, 7)
    np.testing.assert_array_equal(answers(responder, steps), answers(fresh, steps))
