"""What the display draws of the states, the reference and the commands that it hears."""

import numpy as np
import pytest
from bench import Desk, benches
from shown_payload import H_NS, MODEL, QUADS, SPACE, STEPS, Showing, at, put_up

from nh_control.ros.messages import conversions
from nh_control.ros.messages.markers import GHOST
from nh_control.ros.messages.motion_listener import HARDWARE_QUEUE
from nh_control.ros.nodes import display

IDLE = dict(zip(MODEL.inputs, MODEL.idle(MODEL.state(at(0.0), np.zeros(SPACE.nw)))))
FIRST, SECOND = (name for name in IDLE if name.endswith("thrust"))


@pytest.fixture
def slept(monkeypatch):
    slept = []
    monkeypatch.setattr(display.time, "sleep", slept.append)
    return slept


@pytest.fixture
def shown(monkeypatch, slept):
    """Makes displays: f(namespace, **parameters)."""
    put_up(monkeypatch)
    with benches() as make:

        def start(namespace="", **parameters):
            node, desk = make("display", namespace, scenario=QUADS.name, **parameters), Desk()
            return Seen(node, desk, display.Display(node, desk, None), namespace)

        yield start


class Seen(Showing):
    """A display, what it hears and what it draws."""

    def somebody_comes(self):
        self.node.made["markers"].subscribers += 1

    def draw(self):
        self.somebody_comes()
        self.work()

    def drawn(self):
        """Markers of the last picture by (namespace, number)."""
        return {(m.ns, m.id): m for m in self.node.sent("markers")[-1].markers}

    def ahead(self):
        """Place of the plant's first shape against the reference's."""
        places = [self.drawn()[kind, 0].pose.position for kind in ("plant", "reference")]
        return np.subtract(*map(conversions.xyz, places))

    def widths(self):
        return [self.drawn()["cables", i].scale.x for i in range(2)]


def nothing():
    """Wait in vain."""


def test_plant_and_reference_are_drawn_at_the_state_s_time_in_the_robot_s_frame(shown):
    seen = shown("robot1")
    seen.work(lambda: seen.hear(0, at(0.0)), lambda: seen.hear(7, at(0.2, 1.5)))
    assert len(seen.node.sent("markers")) == 2
    for marker in seen.drawn().values():
        assert conversions.nanoseconds(marker.header.stamp) == 7 * H_NS
        assert marker.header.frame_id == "robot1/odom"
    assert seen.ahead() == pytest.approx([0.2 - 0.7, 0.0, 0.5])
    plant, ghost = (seen.drawn()[kind, 0].color.a for kind in ("plant", "reference"))
    assert ghost == pytest.approx(GHOST * plant) and GHOST < 0.5
    almost = 3 / H_NS  # rounded seconds
    for k, place in ((3 * STEPS, 2.0), (7 - almost, 0.7), (7 + almost, 0.7), (0, 0.0)):
        seen.hear(k, at(0.2))
        seen.draw()  # the reference stays at its end
        assert seen.ahead()[0] == pytest.approx(0.2 - place)


def test_what_the_tracker_steers_to_is_drawn_in_place_of_the_scenario_s_reference(shown):
    seen = shown()
    seen.work(
        lambda: seen.hear(2, at(5.0), prefix="reference/"),  # nothing is drawn without a state
        lambda: seen.hear(1, at(0.0)),
        lambda: seen.hear(2, at(6.0), prefix="reference/"),  # after the last state
        lambda: seen.hear(2, at(6.0), prefix="reference/"),  # nothing new
    )
    assert len(seen.node.sent("markers")) == 2
    assert seen.ahead()[0] == pytest.approx(-6.0)


def test_pictures_are_as_rare_as_asked_for_and_drawn_again_for_those_who_come_late(shown, slept):
    seen = shown(rate_hz=20.0)
    come = seen.somebody_comes
    seen.work(come, lambda: seen.hear(1, at(0.0)), nothing, come, nothing)
    assert len(seen.node.sent("markers")) == 2
    assert slept == [0.05, 0.05]
    assert set(seen.desk.served) == {display.LATECOMERS_S} and display.LATECOMERS_S <= 1.0
    usual = shown()
    usual.work(lambda: usual.hear(1, at(0.0)))
    assert slept[2:] == [pytest.approx(1 / 30)]


def test_a_trail_begins_anew_where_time_goes_back(shown):
    seen = shown()
    for k, x, points in ((0, 0.0, 0), (1, 0.1, 2), (2, 0.2, 3), (0, 5.0, 0), (0, 5.1, 2)):
        seen.hear(k, at(x))
        seen.draw()
        trail = seen.drawn().get(("trail", 0))
        assert (len(trail.points) if trail else 0) == points


def test_commands_are_arrows_and_slack_cables_thin(shown):
    seen = shown()
    seen.hear(0, at(0.0))
    seen.draw()
    taut = IDLE | {FIRST: 12.0, SECOND: 12.0}
    names, widths = [SECOND, *taut], seen.widths()
    cases = [  # names and values of a command, whether arrows are shown and cables slack
        ([FIRST], [12.0], None, [False, False]),  # not all: whether cables are slack is unknown
        (taut, taut.values(), [0, 0], [False, False]),
        (taut, (taut | {SECOND: 0.0}).values(), [0, 2], [False, True]),
        (taut, (taut | {FIRST: np.nan}).values(), [0, 2], [False, True]),  # is no command
        (names, [12.0], [0, 2], [False, True]),  # nor is a part
    ]
    for given, values, actions, slack in cases:
        seen.command(given, values)
        seen.draw()
        assert actions is None or [seen.drawn()["inputs", i].action for i in (0, 1)] == actions
        assert [width < full for width, full in zip(seen.widths(), widths)] == slack
    assert len(seen.drawn()["inputs", 0].points) == 2
    # how fast the reference moves says nothing of the plant's cables
    seen.hear(0, at(0.0), 9.0 * np.ones(SPACE.nw), "reference/")
    seen.draw()
    assert [width < full for width, full in zip(seen.widths(), widths)] == [False, True]


def test_its_report_says_what_it_draws_and_what_it_refuses(shown):
    seen = shown()
    fine = dict.fromkeys(("malformed", "callback_errors", "middleware_errors", "refused"), "0")
    waiting = fine | {"frames": "0", "time_s": "-1e-09"}
    assert seen.node.report() == (1, "waiting for states", waiting)
    seen.hear(150, at(0.0))
    seen.draw()
    drawing = fine | {"frames": "1", "time_s": "1.5"}
    assert seen.node.report() == (0, "drawing", drawing)
    seen.hear_of_another_frame("multi_dof_joint_states", "reference/multi_dof_joint_states")
    level, text, values = seen.node.report()
    assert level == 1 and "in the frame 'map'" in text
    assert values == drawing | {"refused": "2"}
    levels = [level for level, _ in seen.node.logged]
    assert levels.count("warning") == 1  # one in a while
    assert seen.node.report()[:2] == (0, "drawing")


def test_of_hardware_the_newest_of_all_states_that_came_is_drawn_or_it_is_told(shown, monkeypatch):
    seen = shown(source="hardware")
    heard = seen.desk.subscribed["multi_dof_joint_states"].qos
    assert heard.reliability.name == "BEST_EFFORT" and heard.depth == HARDWARE_QUEUE
    left = [1, 2, 3, 4]

    def serve(timeout_s):
        if left:
            k = left.pop(0)
            seen.hear(k, at(0.1 * k))
            return True
        seen.desk.close()
        return False

    monkeypatch.setattr(seen.desk, "serve", serve)
    seen.made.work()
    seen.desk.closed = False
    assert len(seen.node.sent("markers")) == 1
    assert seen.ahead() == pytest.approx([0.4, 0.0, 0.0])
    seen.hear_of_another_frame("multi_dof_joint_states")
    level, text, values = seen.node.report()
    assert level == 1 and "in the frame 'map'" in text and values["refused"] == "1"
