"""Wrenches on a simulated plant: what is refused, for how long they act, what they bring about."""

import numpy as np
import pytest
from bench import benches
from geometry_msgs.msg import WrenchStamped
from rclpy.parameter import Parameter
from test_plant_node import Running

from nh_control import scenarios
from nh_control.loop.reports import Refusal, Unusable
from nh_control.loop.wrenches import DURATION_S, Wrenches, bounds, none_yet
from nh_control.ros.messages import conversions
from nh_control.scenarios import PlantOptions

CART = scenarios.get("cart_pole")
H = CART.step_s
STEPS = round(DURATION_S / H)


@pytest.fixture
def taken():
    target = CART.targets(CART.make_system(CART.parameters))["pole_end"]
    return Wrenches([target], {"pole_end": np.array([3.0, 0.0])}, H)


def at(taken, step):
    forces = {"pole_end": np.array([0.1, 0.0, 0.0])}
    taken.add(step, forces)
    return forces["pole_end"].tolist()


def test_a_wrench_acts_for_a_while_and_the_next_one_replaces_it(taken):
    assert at(taken, 0) == [0.1, 0, 0]
    taken.offer("pole_end", [1.0, 0.0, -2.0, 0.0, 0.0, 0.0], 5)
    assert at(taken, 5) == at(taken, 4 + STEPS) == [1.1, 0, -2]
    assert at(taken, 5 + STEPS) == [0.1, 0, 0] and at(taken, 5) == [0.1, 0, 0]
    taken.offer("pole_end", [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 9)
    taken.offer("pole_end", [0.0] * 6, 10)
    assert at(taken, 10) == [0.1, 0, 0]
    taken.offer("pole_end", [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 50)
    assert at(taken, 3) == [0.1, 0, 0] and at(taken, 50) == [0.1, 0, 0]  # forgotten by a reset
    values, warning = taken.report()
    assert values["wrenches_accepted"] == 4 and values["wrench bound pole_end (N)"] == 3.0
    assert warning == ""


@pytest.mark.parametrize(
    ("name", "values", "kind", "text"),
    [
        ("cart", [0.0] * 6, Refusal.FRAME, "on 'cart'; expected one of pole_end"),
        ("pole_end", [np.nan] + [0.0] * 5, Refusal.NOT_FINITE, "not finite"),
        ("pole_end", [3.1] + [0.0] * 5, Refusal.IMPLAUSIBLE, "beyond its bound of 3"),
        ("pole_end", [0.0] * 5 + [1.0], Refusal.NAMES, "torque_z on pole_end, which has force_x"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(taken, name, values, kind, text):
    taken.offer("pole_end", [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0)
    with pytest.raises(Unusable, match=text) as refused:
        taken.offer(name, values, 0)
    assert refused.value.kind is kind and at(taken, 1) == [1.1, 0, 0]
    values, warning = taken.report()
    assert values["wrenches_refused"] == 1 and text in warning
    assert taken.report()[1] == ""


def test_bounds_give_an_acceleration():
    """Of the snakeboard along its way; no torque, which its wheels take."""
    for name, target, expected in (
        ("snakeboard", "base_link", [10.0, 0.0]),
        ("cart_pole", "pole_end", [3.0, 0.0]),
    ):
        scenario = scenarios.get(name)
        model = scenario.model()
        targets = [scenario.targets(model.system)[target]]
        made = scenario.plant(model, PlantOptions(disturbances=none_yet(targets)))
        x = made.measured_state(model.system.space.origin, np.zeros(model.system.space.nw))
        found = bounds(made, x, targets, model.system.nu, 10.0)
        np.testing.assert_allclose(found[target], expected, rtol=2e-2)


class Pulled(Running):
    """A plant of the cart and pole, whose pole's end can be pulled."""

    def pull(self, *force, target="pole_end"):
        message = WrenchStamped()
        message.header.frame_id = target
        conversions.set_xyz(message.wrench.force, force)
        self.desk.give("wrench", message)

    def go(self, steps):
        """The state after some steps without commands."""
        for _ in range(steps):
            self.loop._advance()
        return self.loop.plant.state.copy()


@pytest.fixture
def made():
    given = {"scenario": "cart_pole", "lockstep": False, "wait_for_tracker": False}
    with benches() as make:
        yield lambda **more: Pulled(make, **given | more)


def test_a_plant_is_pulled_and_without_wrenches_it_is_as_ever(made):
    plain, pulled = made(), made(**{"wrench.targets": ["pole_end"]})
    assert "wrench" not in plain.desk.subscribed
    np.testing.assert_allclose(pulled.go(30), plain.go(30), atol=1e-12)
    force = 2.0
    pulled.pull(force, 0.0, 0.0)
    pushed, alone = pulled.go(10), plain.go(10)
    first = plain.loop.plant.dsys.system.space.nq  # the momentum of x
    assert pushed[first] - alone[first] == pytest.approx(10 * force * H, rel=1e-6)
    pulled.pull(99.0, 0.0, 0.0)
    level, text, values = pulled.node.report()
    assert level == 1 and "wrench refused: force_x of 99 on pole_end is beyond its bound" in text
    assert values["wrenches_accepted"] == "1" and values["wrenches_refused"] == "1"
    assert float(values["wrench bound pole_end (N)"]) == pytest.approx(3.0, rel=0.05)
    pulled.loop.plant.reset()
    start = pulled.loop.plant.state
    plain.loop.plant.reset()
    np.testing.assert_allclose(start, plain.loop.plant.state, atol=1e-12)
    np.testing.assert_allclose(pulled.go(5), plain.go(5), atol=1e-12)


def test_disturbances_that_change_leave_the_targets_of_wrenches(made):
    running = made(**{"wrench.targets": ["pole_end"]})
    change = lambda value: running.node.set_parameters([Parameter("disturb", value=value)])[0]
    assert change(["pole_end:constant:0.5,0,0"]).successful
    assert running.loop.plant.targets == ("pole_end",)
    running.pull(1.0, 0.0, 0.0)
    running.go(1)
    assert running.loop.plant.external["pole_end"].tolist() == [1.5, 0, 0]
    assert change([""]).successful
    running.go(1)
    assert running.loop.plant.external["pole_end"].tolist() == [1.0, 0, 0]
