"""What the display draws of the states, the reference and the commands that it hears."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Desk, benches  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from shown_payload import H_NS, MODEL, QUADS, SPACE, STEPS, at, put_up  # noqa: E402

from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.ros.messages.markers import GHOST, THIN  # noqa: E402
from nh_control.ros.messages.motion_listener import HARDWARE_QUEUE  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.ros.nodes import display  # noqa: E402


@pytest.fixture
def shown(monkeypatch):
    """Makes displays: f(**parameters) -> node, inbox, display."""
    put_up(monkeypatch)
    with benches() as make:

        def start(namespace="", **parameters):
            node, desk = make("display", namespace, scenario=QUADS.name, **parameters), Desk()
            return Seen(node, desk, display.Display(node, desk, None), namespace)

        yield start


class Seen:
    """A display, what it hears and what it draws."""

    def __init__(self, node, desk, made, namespace):
        self.node, self.desk, self.made = node, desk, made
        prefix = f"{namespace}/" if namespace else ""
        self.codecs, self.slept = codecs(QUADS, MODEL, prefix=prefix), []

    def hear(self, k, q, prefix=""):
        """A state of step k, or what it should be."""
        self.desk.state(self.codecs, q, np.zeros(SPACE.nw), k * H_NS, prefix)

    def command(self, **inputs):
        """Inputs are commanded."""
        self.desk.give(
            "joint_commands", JointState(name=list(inputs), effort=list(inputs.values()))
        )

    def work(self, monkeypatch, *happens):
        """Let it wait for a message as often as something happens, and end."""
        left = list(happens)

        def serve():
            if left:
                left.pop(0)()
            else:
                self.desk.close()

        self.desk.on_serve = serve
        monkeypatch.setattr(display.time, "sleep", self.slept.append)
        self.made.work()
        self.desk.closed = False

    def draw(self):
        """Draw once, because somebody comes late."""
        self.node.made["markers"].subscribers += 1
        self.desk.on_serve = self.desk.close
        with mock.patch.object(display.time, "sleep"):
            self.made.work()
        self.desk.closed = False

    def drawn(self):
        """Markers of the last picture by (namespace, number)."""
        return {(m.ns, m.id): m for m in self.node.sent("markers")[-1].markers}

    def place(self, kind):
        """Place of the first shape of a drawing against the origin's."""
        return conversions.xyz(self.drawn()[kind, 0].pose.position)


def nothing():
    """Wait in vain."""


def test_plant_and_reference_are_drawn_at_the_state_s_time(shown, monkeypatch):
    seen = shown()
    seen.work(monkeypatch, lambda: seen.hear(0, at(0.0)), lambda: seen.hear(7, at(0.2, 1.5)))
    assert len(seen.node.sent("markers")) == 2
    for marker in seen.drawn().values():
        assert conversions.nanoseconds(marker.header.stamp) == 7 * H_NS
        assert marker.header.frame_id == "odom"
    assert seen.place("plant") - seen.place("reference") == pytest.approx([0.2 - 0.7, 0.0, 0.5])
    plant, ghost = (seen.drawn()[kind, 0].color.a for kind in ("plant", "reference"))
    assert ghost == pytest.approx(GHOST * plant) and GHOST < 0.5
    seen.hear(3 * STEPS, at(0.2))
    seen.draw()  # the reference stays at its end
    assert seen.place("plant")[0] - seen.place("reference")[0] == pytest.approx(0.2 - 2.0)
    for ns, place in ((7 * H_NS - 3, 0.7), (7 * H_NS + 3, 0.7), (0, 0.0)):  # rounded seconds
        seen.desk.state(seen.codecs, at(0.2), np.zeros(SPACE.nw), ns)
        seen.draw()
        assert seen.place("plant")[0] - seen.place("reference")[0] == pytest.approx(0.2 - place)


def test_what_the_tracker_steers_to_is_drawn_in_place_of_the_scenario_s_reference(
    shown, monkeypatch
):
    seen = shown()
    seen.work(
        monkeypatch,
        lambda: seen.hear(2, at(5.0), "reference/"),  # nothing is drawn without a state
        lambda: seen.hear(1, at(0.0)),
        lambda: seen.hear(2, at(6.0), "reference/"),  # after the last state
        lambda: seen.hear(2, at(6.0), "reference/"),  # nothing new
    )
    assert len(seen.node.sent("markers")) == 2
    assert seen.place("reference")[0] - seen.place("plant")[0] == pytest.approx(6.0)


def test_pictures_are_as_rare_as_asked_for_and_drawn_again_for_those_who_come_late(
    shown, monkeypatch
):
    seen = shown(rate_hz=20.0)

    def come():
        seen.node.made["markers"].subscribers += 1

    seen.work(monkeypatch, come, lambda: seen.hear(1, at(0.0)), nothing, come, nothing)
    assert len(seen.node.sent("markers")) == 2
    assert seen.slept == [0.05, 0.05]
    assert set(seen.desk.served) == {display.LATECOMERS_S} and display.LATECOMERS_S <= 1.0
    usual = shown()
    usual.work(monkeypatch, lambda: usual.hear(1, at(0.0)))
    assert usual.slept == [pytest.approx(1 / 30)]


def test_a_trail_begins_anew_where_time_goes_back(shown):
    seen = shown()
    for k, x in ((0, 0.0), (1, 0.1), (2, 0.2), (3, 0.3)):
        seen.hear(k, at(x))
        seen.draw()
    assert len(seen.drawn()["trail", 0].points) == 4
    seen.hear(0, at(5.0))
    seen.draw()
    assert ("trail", 0) not in seen.drawn()
    seen.hear(0, at(5.1))  # again, or elsewhere: the run goes on
    seen.draw()
    assert len(seen.drawn()["trail", 0].points) == 2


def test_commands_are_arrows_and_slack_cables_red(shown):
    seen = shown()
    taut = dict(zip(MODEL.inputs, MODEL.idle(MODEL.state(at(0.0), np.zeros(SPACE.nw)))))
    thrusts = [name for name in taut if name.endswith("thrust")]
    assert len(thrusts) == 2
    taut |= dict.fromkeys(thrusts, 12.0)
    seen.hear(0, at(0.0))
    seen.draw()
    widths = [seen.drawn()["cables", i].scale.x for i in range(2)]
    seen.command(**{thrusts[0]: 12.0})  # not all inputs: whether cables are slack is not known
    seen.draw()
    assert [seen.drawn()["cables", i].scale.x for i in range(2)] == widths
    seen.command(**taut)
    seen.draw()
    assert [seen.drawn()["cables", i].scale.x for i in range(2)] == widths
    arrows = [seen.drawn()["inputs", i] for i in range(2)]
    assert [len(arrow.points) for arrow in arrows] == [2, 2]
    assert [arrow.action for arrow in arrows] == [0, 0]
    seen.command(**(taut | {thrusts[1]: 0.0}))
    seen.draw()
    assert [seen.drawn()["inputs", i].action for i in range(2)] == [0, 2]
    slack = [seen.drawn()["cables", i].scale.x < width for i, width in enumerate(widths)]
    assert slack == [False, True]
    # how fast the reference moves says nothing of the plant's cables
    seen.desk.state(seen.codecs, at(0.0), 9.0 * np.ones(SPACE.nw), 0, "reference/")
    seen.draw()
    slack = [seen.drawn()["cables", i].scale.x < width for i, width in enumerate(widths)]
    assert slack == [False, True]
    seen.command(**(taut | {thrusts[0]: np.nan}))  # is not drawn
    seen.draw()
    assert [seen.drawn()["inputs", i].action for i in range(2)] == [0, 2]
    names = [thrusts[1], *taut]
    seen.desk.give("joint_commands", JointState(name=names, effort=[12.0]))  # nor is a part
    seen.draw()
    assert [seen.drawn()["inputs", i].action for i in range(2)] == [0, 2]


def test_a_cable_is_slack_from_its_least_tension_on(shown):
    seen = shown()
    seen.hear(0, at(0.0))
    seen.command(**dict.fromkeys(MODEL.inputs, 0.0))
    diameters = np.array([cable.diameter for cable in QUADS.visual_model().cables])
    for above, width in ((-1e-6, THIN), (0.0, THIN), (1e-6, 1.0)):
        tension = np.full(len(diameters), QUADS.monitor.minimum + above)
        monitor = replace(QUADS.monitor, values=lambda *_, tension=tension: tension)
        seen.made._picture._monitor = monitor
        seen.draw()
        drawn = [seen.drawn()["cables", i].scale.x for i in range(len(diameters))]
        assert drawn == pytest.approx(width * diameters)


def test_frames_are_those_of_the_robot(shown):
    seen = shown("robot1")
    seen.hear(0, at(0.0))
    seen.draw()
    assert {m.header.frame_id for m in seen.drawn().values()} == {"robot1/odom"}
    assert seen.node.sent("markers")


def test_its_report_says_what_it_draws_and_what_it_refuses(shown):
    seen = shown()
    ((period, report, _),) = seen.node.timed
    assert period == 1.0
    report()
    fine = {"malformed": "0", "callback_errors": "0", "middleware_errors": "0"}
    assert seen.node.told == (1, "waiting for states", {
        "frames": "0", "time_s": "-1e-09", "refused": "0", **fine
    })  # fmt: skip
    seen.hear(150, at(0.0))
    seen.draw()
    report()
    assert seen.node.told == (
        0, "drawing", {"frames": "1", "time_s": "1.5", "refused": "0", **fine}
    )  # fmt: skip
    (codec,) = seen.codecs
    codec.write(at(1.0).tolist(), [0.0] * SPACE.nw)
    codec.message.header.frame_id = "map"
    for topic in ("multi_dof_joint_states", "reference/multi_dof_joint_states"):
        seen.desk.give(topic, codec.message, 200 * H_NS)
    report()
    level, text, values = seen.node.told
    assert level == 1 and "in the frame 'map'" in text
    assert values == {"frames": "1", "time_s": "1.5", "refused": "2", **fine}
    levels = [level for level, _ in seen.node.logged]
    assert levels.count("warning") == 1  # one in a while
    report()
    assert seen.node.told[:2] == (0, "drawing")


def test_of_hardware_the_newest_of_all_states_that_came_is_drawn(shown, monkeypatch):
    seen = shown(source="hardware")
    heard = seen.desk.subscribed["multi_dof_joint_states"].qos
    assert heard.reliability.name == "BEST_EFFORT" and heard.depth == HARDWARE_QUEUE
    came = [lambda k=k: seen.hear(k, at(0.1 * k)) for k in range(1, 5)]
    left = [*came]

    def serve(timeout_s):
        if left:
            left.pop(0)()
            return True
        seen.desk.close()
        return False

    monkeypatch.setattr(seen.desk, "serve", serve)
    monkeypatch.setattr(display.time, "sleep", seen.slept.append)
    seen.made.work()
    assert len(seen.node.sent("markers")) == 1
    assert seen.place("plant") - seen.place("reference") == pytest.approx([0.4, 0.0, 0.0])


def test_where_a_state_of_hardware_cannot_be_used_it_is_told(shown):
    seen = shown(source="hardware")
    (codec,) = seen.codecs
    codec.write(at(1.0).tolist(), [0.0] * SPACE.nw)
    codec.message.header.frame_id = "map"
    seen.desk.give("multi_dof_joint_states", codec.message, 10**18)
    seen.node.timed[0][1]()
    level, text, values = seen.node.told
    assert level == 1 and "in the frame 'map'" in text and values["refused"] == "1"
