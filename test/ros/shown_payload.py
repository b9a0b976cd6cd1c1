"""A payload that moves along x, for nodes that show it."""

import json
from dataclasses import replace

import numpy as np
from sensor_msgs.msg import JointState

from nh_control import Trajectory, scenarios
from nh_control.ros.messages.state_codecs import codecs
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
    rest = np.zeros(SPACE.nw)
    states = np.array([dsys.state(at(0.1 * k), rest) for k in range(STEPS + 1)])
    return Trajectory(dsys.h, states, np.ones((STEPS, dsys.nu)))


def put_up(monkeypatch, **changes):
    """The model of every node is that of the reference `ahead`, of the scenario with changes."""
    scenario = replace(QUADS, references={"ahead": ahead}, **changes)
    model = Model(scenario, MODEL, ahead(MODEL))
    monkeypatch.setattr(Model, "of", staticmethod(lambda parameters: model))


class Page:
    """The server of a page, which keeps the messages that are sent."""

    def __init__(self):
        self.sent, self.browsers, self.closed = [], 0, False

    def open(self, page, answer=None, host="", port=0, token=""):
        self.page, self.host, self.port, self.token = page, host, port, token or "made"
        self.address = "http://the-address"
        return self

    @property
    def frames(self):
        return [message["frame"] for message in self.sent if "frame" in message]

    def send(self, text):
        self.sent.append(json.loads(text))

    def close(self):
        self.closed = True


class Showing:
    """A node that shows what it hears from its inbox, with `made.work()` in this thread."""

    def __init__(self, node, desk, made, namespace=""):
        self.node, self.desk, self.made = node, desk, made
        self.codecs = codecs(QUADS, MODEL, prefix=f"{namespace}/" if namespace else "")

    def hear(self, k, q, v=None, prefix=""):
        v = np.zeros(SPACE.nw) if v is None else v
        self.desk.state(self.codecs, q, v, round(k * H_NS), prefix)

    def hear_of_another_frame(self, *topics):
        (codec,) = self.codecs
        codec.write(at(1.0).tolist(), [0.0] * SPACE.nw)
        codec.message.header.frame_id = "map"
        for topic in topics:
            self.desk.give(topic, codec.message, 200 * H_NS)

    def command(self, names, values):
        self.desk.give("joint_commands", JointState(name=list(names), effort=list(values)))

    def work(self, *happens):
        """Let it wait for messages as often as something happens, and end."""
        left = list(happens)
        self.desk.on_serve = lambda: left.pop(0)() if left else self.desk.close()
        self.made.work()
        self.desk.closed = False
