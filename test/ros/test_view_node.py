"""What the view node sends of the states, the reference and the commands that it hears."""

import json

import numpy as np
import pytest
from bench import Desk, Ended, benches
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.qos import ReliabilityPolicy
from shown_payload import H_NS, MODEL, QUADS, SPACE, Page, Showing, at, put_up

from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.nodes import view
from nh_control.ros.runtime.process import UsageError


class Seen(Showing):
    """A view, what it hears and what it sends."""

    def __init__(self, node, desk, page):
        self.page, self.ended, self.address = page, Ended(), view.Address()
        super().__init__(node, desk, view.View(node, desk, self.ended, self.address))
        self.desk.on_serve = self.desk.close

    @property
    def frame(self):
        return self.page.frames[-1]

    @property
    def status(self):
        return self.page.sent[-1]["status"]

    def place(self, part):
        data = json.loads(self.page.page.partition('id="data">')[2].partition("<")[0])
        return self.frame[part][7 * data["frames"].index("payload") :][:3]

    def curves(self, label):
        animation = self.made._live.animation
        (i,) = [i for i, one in enumerate(animation.curves) if one.label == label]
        return dict(zip(animation.curves[i].names, self.frame["curves"][i]))


@pytest.fixture(autouse=True)
def wall(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(view.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(view.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


@pytest.fixture
def shown(monkeypatch):
    """Makes views: f(**parameters), whose clock is `wall`."""
    put_up(monkeypatch)
    with benches() as make:

        def start(**given):
            page = Page()
            monkeypatch.setattr(view, "LiveServer", page.open)
            return Seen(make("view", scenario=QUADS.name, **given), Desk(), page)

        yield start


def test_states_targets_and_commands_are_sent(shown):
    seen = shown()
    seen.hear(7, at(0.2, 1.5))
    seen.work()
    assert seen.frame["time"] == pytest.approx(7 * MODEL.h)
    assert seen.place("run") == pytest.approx([0.2, 0, 1.5])
    assert seen.place("reference") == pytest.approx([0.7, 0, 1.0])
    assert seen.curves("error (m)")["payload position"] == pytest.approx(np.hypot(0.5, 0.5))
    assert seen.curves("configuration (m)")["payload_z"] == 1.5
    assert set(seen.frame["loads"]) == {None} and set(seen.frame["arrowLengths"]) == {0.0}
    seen.hear(7, at(4.0), prefix="reference/")
    idle = dict(zip(MODEL.inputs, MODEL.idle(MODEL.state(at(0.0), np.zeros(SPACE.nw)))))
    idle |= {name: 12.0 for name in idle if name.endswith("thrust")}
    seen.command(idle, idle.values())
    seen.work()
    assert seen.place("reference") == pytest.approx([4.0, 0, 1.0])
    assert all(load > 0 for load in seen.frame["loads"])
    assert seen.curves("input (N)")["quad1_thrust"] == 12.0
    assert min(seen.frame["arrowLengths"]) > 0
    moving = np.zeros(SPACE.nw)
    moving[0] = 3.0
    energy = seen.curves("energy (J)")["energy"]
    seen.hear(8, at(0.2, 1.5), moving)
    seen.work()
    assert seen.curves("energy (J)")["energy"] > energy + 0.1
    seen.command(idle, [np.nan] * len(idle))
    seen.hear(9, at(0.2, 1.5))
    seen.work()
    assert seen.curves("input (N)")["quad1_thrust"] == 12.0  # that was no command


def test_the_error_is_that_of_one_time(shown, wall):
    seen = shown()
    seen.hear(3, at(0.2))
    seen.hear(3, at(0.5), prefix="reference/")
    seen.work()
    assert seen.curves("error (m)")["payload position"] == pytest.approx(0.3)
    seen.desk.served.clear()
    seen.work(
        lambda: seen.hear(4, at(0.2)),
        lambda: seen.hear(4, at(0.7), prefix="reference/"),  # for which the state waits
        lambda: seen.hear(5, at(0.2)),
        lambda: None,  # in vain
    )
    errors = [frame["curves"][0][0] for frame in seen.page.frames]
    assert errors[1:] == [pytest.approx(0.5), None]
    assert seen.desk.served[:4] == [view.STATUS_S, view.TARGET_S] * 2
    assert seen.place("reference") == pytest.approx([0.7, 0, 1.0])


def test_quaternions_do_not_jump(shown):
    seen, frames = shown(), []
    (yaw,) = [i for i, name in enumerate(SPACE.tangent_names) if name == "quad1_rotation_z"]
    for turn in np.linspace(0, 4 * np.pi, 60):
        move = np.zeros(SPACE.nv)
        move[yaw] = turn
        seen.hear(len(frames), SPACE.retract(at(0.0), move))
        seen.work()
        frames.append(seen.frame["run"])
    numbers = np.array(frames).reshape(60, -1, 7)[..., 3:]
    assert ((numbers[1:] * numbers[:-1]).sum(axis=2) > 0.9).all()
    assert np.ptp(numbers) > 1.9


def test_no_publisher_waits_for_acknowledgements_of_the_view(shown):
    subscribed = shown().desk.subscribed
    heard = [subscribed[one.topic] for one in codecs(QUADS, MODEL)]
    heard += [subscribed["reference/" + one.topic] for one in codecs(QUADS, MODEL)]
    for one in (*heard, subscribed["joint_commands"]):
        assert (one.qos.reliability, one.qos.depth) == (ReliabilityPolicy.BEST_EFFORT, 1)


def test_late_frames_are_made_up_for_within_bounds(shown, wall):
    seen = shown(**{"view.rate_hz": 50.0})
    late, starts = {3: 0.05, 8: 3.0}, []

    def serve():
        wall[0] += 0.001 + late.get(len(starts), 0.0)
        starts.append(wall[0])
        seen.hear(len(starts), at(0.0))
        if len(starts) == 20:
            seen.desk.close()

    seen.desk.on_serve = serve
    seen.made.work()
    begun = starts[0] - 0.001
    assert np.array(starts[6:8]) - begun == pytest.approx([0.121, 0.141], abs=1e-3)  # on time
    assert starts[-1] - starts[8] == pytest.approx(10 * 0.02 - view.LATE_S, abs=2e-3)


def test_states_are_sent_at_the_rate_and_in_between_it_is_told_how_the_plant_is(shown, wall):
    seen = shown(**{"view.rate_hz": 50.0})
    starts = []

    def serve():
        wall[0] += 0.001
        if len(starts) < 5:
            starts.append(wall[0])
            seen.hear(len(starts), at(0.0))
        elif len(starts) < 9:
            starts.append(wall[0])
            wall[0] += view.STATUS_S  # nothing comes
        else:
            seen.desk.close()

    seen.desk.on_serve = serve
    seen.made.work()
    assert np.diff(starts[:5]) == pytest.approx([0.021, 0.02, 0.02, 0.02], abs=0.0011)
    assert [("frame" in message) for message in seen.page.sent] == [True] * 5 + [False] * 4
    states = [message["status"]["state"] for message in seen.page.sent]
    assert states == ["running"] * 6 + ["no new states"] * 3
    assert set(seen.desk.served) == {view.STATUS_S}
    seen.made.close()
    assert seen.page.closed


def test_how_the_plant_is():
    pace = view.Pace()
    assert pace.status(0.0) == {"state": "waiting for states", "silent": 0.0, "factor": None}
    for k in range(101):
        pace.add(0.1 * k, 0.05 * k)
    told = pace.status(10.5)
    assert told["state"] == "running" and told["factor"] == pytest.approx(0.5)
    assert told["silent"] == pytest.approx(0.5)
    for k in range(101, 201):
        pace.add(0.1 * k, 5.0 + 0.2 * (k - 100))
    assert pace.status(20.0)["factor"] == pytest.approx(2.0)
    told = pace.status(23.0)
    assert told["state"] == "no new states" and told["silent"] == pytest.approx(3.0)
    pace.add(24.0, 0.0)  # a reset
    assert pace.status(24.0)["factor"] is None
    pace.add(25.0, 1.0)
    assert pace.status(25.0)["factor"] == pytest.approx(1.0)


def test_what_it_is_given_reaches_the_server_and_the_address_its_user(shown, capsys):
    seen = shown(**{"view.host": "0.0.0.0", "view.port": 8765})
    assert (seen.page.host, seen.page.port) == ("0.0.0.0", 8765)
    assert "quadrotor_payload is shown at http://the-address\n" in capsys.readouterr().out
    assert not any("the-address" in text for _, text in seen.node.logged)
    assert shown().page.host == "127.0.0.1"


def test_where_it_cannot_serve_the_node_says_so(shown, monkeypatch):
    def fail(*_, **given):
        raise OSError("cannot listen")

    monkeypatch.setattr(Page, "open", fail)
    with pytest.raises(UsageError, match="cannot listen"):
        shown()


def test_its_report_says_what_it_shows_and_what_it_refuses(shown):
    seen = shown()
    level, text, values = seen.node.report()
    assert (level, text, values["browsers"]) == (1, "waiting for states", "0")
    seen.hear(150, at(0.0))
    seen.work()
    level, text, values = seen.node.report()
    assert (level, text, values["frames"], values["time_s"]) == (0, "showing", "1", "1.5")
    seen.hear_of_another_frame("multi_dof_joint_states", "reference/multi_dof_joint_states")
    level, text, values = seen.node.report()
    assert level == 1 and "in the frame 'map'" in text and values["refused"] == "2"


def test_a_state_beyond_the_model_is_refused_and_the_next_one_is_shown(shown):
    seen = shown()
    seen.hear(1, at(0.0))
    seen.made._motion.v = np.full(SPACE.nw, 1.7e308)  # its momentum is no number
    seen.work()
    assert "frame" not in seen.page.sent[-1] and seen.node.report()[2]["refused"] == "1"
    assert "a state cannot be shown" in seen.node.logged[-1][1]
    seen.hear(2, at(0.0))
    seen.work()
    assert seen.frame["time"] == pytest.approx(2 * MODEL.h)


def test_nodes_are_told_twice_a_second_and_another_plant_by_its_name(shown, wall):
    seen = shown()
    status = DiagnosticStatus(name="plant: simulation", hardware_id=QUADS.name, message="running")
    status.values = [
        KeyValue(key="missed_steps", value="3"),
        KeyValue(key="wrench bound payload (N)", value="4"),
    ]
    seen.desk.give("/diagnostics", DiagnosticArray(status=[status]))
    seen.hear(1, at(0.0))
    seen.work()
    told = seen.status
    assert told["nodes"] == [["plant", "ok", "running"]] and told["missed"] == "3"
    assert told["bounds"] == {"payload": 4.0} and told["state"] == "running"
    seen.hear(2, at(0.0))
    seen.work()
    assert "nodes" not in seen.status
    status.hardware_id = "cart_pole"
    seen.desk.give("/diagnostics", DiagnosticArray(status=[status]))
    wall[0] += view.STATUS_S
    seen.hear(3, at(0.0))
    seen.work()
    assert seen.status["state"] == "the plant is cart_pole now" and seen.ended.requests
    assert seen.address == view.Address("made", 0, "cart_pole")


def test_time_of_hardware_begins_with_its_first_state(shown):
    seen = shown(source="hardware")
    start = 10**18 // H_NS
    for k in (0, 5):
        seen.hear(start + k, at(0.0))
    seen.work()
    assert seen.frame["time"] == pytest.approx(5 * MODEL.h)
    assert seen.place("reference") == pytest.approx([0.0, 0, 1.0])  # its clock is its own
