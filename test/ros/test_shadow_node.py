"""What the shadow node hears and publishes, of a simulation and of hardware, without a network."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from bench import Desk, benches
from bob import BOB, put_up
from sensor_msgs.msg import JointState

from nh_control.ros.messages import conversions
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.nodes import shadow
from nh_control.scenarios import Joint

H_NS = 10**7
MODEL = BOB.model()


class Watching:
    """A shadow of a scenario in this thread; `now` is the time that it has, in s."""

    def __init__(self, make, monkeypatch, scenario, **parameters):
        self.node, self.desk = make("shadow", scenario="bob", **parameters), Desk()
        self.scenario, self.now, self.h_ns = scenario, 100.0, H_NS
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(shadow, "time", clock)
        self.made = shadow.ShadowNode(self.node, self.desk, None)

    def state(self, k, x, velocity=True, prefix="", **wrong):
        """A state (nx) is measured at step k, of which some values are `wrong`."""
        for codec in codecs(self.scenario, MODEL, velocity, prefix=prefix):
            codec.write(list(MODEL.configuration(x)), list(MODEL.velocity(x)))
            if codec.topic in wrong:
                codec.message.position[0] = wrong[codec.topic]
            self.desk.give(codec.topic, codec.message, k * self.h_ns)

    def command(self, torque, k, names=("torque",)):
        message = JointState(name=list(names), effort=np.atleast_1d(torque).tolist())
        self.desk.give("joint_commands", message, k * self.h_ns)

    def run(self, states, torque=0.0, **how):
        """Every state comes, and then the command that answers it."""
        for k, x in enumerate(states):
            self.state(k, x, **how)
            self.command(torque, k)

    def residuals(self):
        """(step, values) of all that was published."""
        return [
            (conversions.nanoseconds(m.header.stamp) / self.h_ns, list(m.position))
            for m in self.node.sent("shadow/residual")
        ]


@pytest.fixture
def shadows(monkeypatch):
    """Makes shadows: f(scenario, **parameters)."""
    with benches() as make:

        def start(scenario=BOB, **parameters):
            put_up(monkeypatch, scenario)
            return Watching(make, monkeypatch, scenario, **parameters)

        yield start


def motion(steps, torque=0.0, model=MODEL):
    return model.simulate(model.state([0.3], [0.0]), np.full((steps, 1), torque)).states


def test_what_the_model_expects_leaves_nothing_and_what_it_does_not_is_told(shadows):
    for push in (0.0, 0.5):
        watch = shadows()
        watch.run(motion(4, 2.0 + push), 2.0)
        found = watch.residuals()
        assert [k for k, _ in found] == [1, 2, 3, 4]
        for _, values in found:
            assert values == pytest.approx([0.0, push * MODEL.h], abs=1e-4)
        assert watch.node.sent("shadow/residual")[0].name == ["theta", "p_theta"]


def test_the_model_has_the_step_and_the_plant_s_parameters_of_the_node(shadows):
    slow = shadows(step_s=0.02)
    slow.h_ns = 2 * H_NS
    slow.run(motion(3, 2.0, BOB.model("", 0.02)), 2.0)
    assert [k for k, _ in slow.residuals()] == [1, 2, 3]
    assert all(np.abs(values).max() < 1e-9 for _, values in slow.residuals())
    longer = shadows(**{"plant.parameters.l": 2.0})
    longer.run(motion(2))
    assert len(longer.residuals()) == 2
    assert all(abs(values[1]) > 0.01 for _, values in longer.residuals())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_commands_may_be_forces_of_joints_and_others_are_counted(shadows, sign):
    watch = shadows(replace(BOB, joints=(Joint("pivot", "theta", sign=sign),)))
    states = motion(2, 2.0)
    watch.state(0, states[0])
    watch.command(np.nan, 0)
    watch.command([1.0, 2.0], 0)
    watch.command(9.0, 0, ["knee"])
    watch.command(sign * 2.0, 0, ["pivot"])
    watch.state(1, states[1])
    watch.command(2.0, 1, ["torque"])
    watch.state(2, states[2])
    watch.command(2.0, 2)
    assert [k for k, _ in watch.residuals()] == [1, 2]
    assert all(np.abs(values).max() < 1e-9 for _, values in watch.residuals())
    assert watch.node.report()[2]["commands_refused"] == "3"


def test_a_plant_that_starts_again_is_no_surprise(shadows):
    watch, states = shadows(), motion(3)
    for _ in range(2):
        for k in range(2):
            watch.state(k, states[k])
            watch.command(0.0, k)
    assert [k for k, _ in watch.residuals()] == [1, 1]
    assert all(np.abs(values).max() < 1e-9 for _, values in watch.residuals())


def test_the_answer_to_a_state_is_awaited_for_a_while(shadows, monkeypatch):
    watch, states = shadows(), motion(3)
    watch.now += 10.0  # nothing has come for long
    watch.state(0, states[0])
    watch.command(0.0, 0)
    watch.state(1, states[1])
    for k in (2, 3):
        watch.state(k, states[k])  # nobody answers state 1 any more
    assert [k for k, _ in watch.residuals()] == [1]
    turns = [0.0, 0.4, 0.2]

    def serve():
        if turns:
            watch.now += turns.pop(0)
            seen.append(len(watch.residuals()))
        else:
            watch.desk.close()

    seen = []
    watch.desk.on_serve = serve
    watch.made.work()
    assert seen == [1, 1, 1] and len(watch.residuals()) > 1
    assert set(watch.desk.served) == {0.5}


def test_states_that_are_none_or_in_another_frame_are_counted(shadows):
    watch, states = shadows(frame_prefix="x_"), motion(1)
    watch.run(states, prefix="x_")
    (residual,) = watch.residuals()
    watch.state(2, states[1], prefix="x_", joint_states=np.nan)
    level, text, values = watch.node.report()
    assert level == 1 and "not finite" in text
    watch.state(2, states[1])
    level, text, values = watch.node.report()
    assert level == 1 and "expected 'x_odom'" in text and watch.residuals() == [residual]


def test_hardware_is_filtered_as_is_said_and_commands_act_after_the_delay(shadows, monkeypatch):
    made, taken, real = [], [], shadow.FilteredState
    filtered = lambda dsys, *given: made.append(given) or real(dsys, *given)
    monkeypatch.setattr(shadow, "FilteredState", filtered)
    take = lambda _, u, acts, stamp: taken.append((list(u), acts, stamp))
    monkeypatch.setattr(shadow.Shadow, "command", take)
    hardware = {"hardware.noise": 0.01, "hardware.acceleration": 3.0, "hardware.actuation_s": 0.02}
    for given, acts in (({"source": "hardware"}, 7 * H_NS), ({}, 3 * H_NS)):
        watch = shadows(**hardware, **given)
        watch.node.wall_ns = 5 * H_NS
        watch.command(1.5, 3)
        assert taken.pop() == ([1.5], acts, 3 * H_NS)
    shadows(source="hardware", **{"hardware.estimator": "none"})
    assert made == [(0.01, 3.0)]


def test_time_of_hardware_that_goes_back_is_told(shadows):
    watch, (x, *_) = shadows(source="hardware"), motion(1)
    watch.state(500, x)
    watch.state(300, x)
    level, text, _ = watch.node.report()
    assert level == 1 and "jumped back by 2 s" in text
