"""What the view node sends of the states, the reference and the commands that it hears."""

import json
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Desk, benches  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue  # noqa: E402
from rclpy.qos import ReliabilityPolicy  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from shown_payload import H_NS, MODEL, QUADS, SPACE, at, put_up  # noqa: E402

from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.ros.nodes import view  # noqa: E402
from nh_control.ros.runtime.process import UsageError  # noqa: E402


class Server:
    """Keeps what is sent."""

    def __init__(self, page, answer=None, host="", port=0, token=""):
        self.page, self.answer, self.host, self.port = page, answer, host, port
        self.token = token or "made"
        self.sent, self.browsers, self.closed = [], 0, False
        self.address = "http://the-address"

    def send(self, text):
        """Kept."""
        self.sent.append(json.loads(text))

    def close(self):
        """Kept, too."""
        self.closed = True


class Seen:
    """A view, what it hears and what it sends."""

    def __init__(self, node, desk, servers):
        self.node, self.desk, self.slept = node, desk, []
        self.ended, self.address = [], view.Address()
        exit_ = SimpleNamespace(request=lambda: self.ended.append(True))
        self.made = view.View(node, desk, exit_, self.address)
        self.codecs, self.server = codecs(QUADS, MODEL), servers[-1]

    @property
    def sent(self):
        """All messages."""
        return self.server.sent

    @property
    def frame(self):
        """The last one with a state."""
        return [message["frame"] for message in self.sent if "frame" in message][-1]

    def hear(self, k, q, v=None, prefix=""):
        """A state of step k, or what it should be."""
        v = np.zeros(SPACE.nw) if v is None else v
        self.desk.state(self.codecs, q, v, k * H_NS, prefix)

    def send(self):
        """Send what came, once."""
        self.desk.on_serve = self.desk.close
        with mock.patch.object(view.time, "sleep"):
            self.made.work()
        self.desk.closed = False

    def place(self, part):
        """Where the payload is."""
        data = json.loads(self.server.page.partition('id="data">')[2].partition("<")[0])
        return self.frame[part][7 * data["frames"].index("payload") :][:3]

    def curves(self, label):
        """Values of the curves of a label by their names."""
        animation = self.made._live.animation
        (i,) = [i for i, one in enumerate(animation.curves) if one.label == label]
        return dict(zip(animation.curves[i].names, self.frame["curves"][i]))


@pytest.fixture
def shown(monkeypatch):
    """Makes views: f(**parameters), whose clock is `wall`."""
    put_up(monkeypatch)
    servers = []

    def serve(*given, **options):
        servers.append(Server(*given, **options))
        return servers[-1]

    monkeypatch.setattr(view, "LiveServer", serve)
    with benches() as make:
        yield lambda **given: Seen(make("view", scenario=QUADS.name, **given), Desk(), servers)


@pytest.fixture
def wall(monkeypatch):
    """A clock that sleeping moves."""
    now = [100.0]
    monkeypatch.setattr(view.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(view.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def test_states_targets_and_commands_are_sent(shown):
    seen = shown()
    seen.hear(7, at(0.2, 1.5))
    seen.send()
    assert seen.frame["time"] == pytest.approx(7 * MODEL.h)
    assert seen.place("run") == pytest.approx([0.2, 0, 1.5])
    assert seen.place("reference") == pytest.approx([0.7, 0, 1.0])
    assert seen.curves("error (m)")["payload position"] == pytest.approx(np.hypot(0.5, 0.5))
    assert seen.curves("configuration (m)")["payload_z"] == 1.5
    assert set(seen.frame["loads"]) == {None} and set(seen.frame["arrowLengths"]) == {0.0}
    seen.hear(7, at(4.0), prefix="reference/")
    idle = dict(zip(MODEL.inputs, MODEL.idle(MODEL.state(at(0.0), np.zeros(SPACE.nw)))))
    idle |= {name: 12.0 for name in idle if name.endswith("thrust")}
    seen.desk.give("joint_commands", JointState(name=list(idle), effort=list(idle.values())))
    seen.send()
    assert seen.place("reference") == pytest.approx([4.0, 0, 1.0])
    assert all(load > 0 for load in seen.frame["loads"])
    assert seen.curves("input (N)")["quad1_thrust"] == 12.0
    assert min(seen.frame["arrowLengths"]) > 0
    moving = np.zeros(SPACE.nw)
    moving[0] = 3.0
    energy = seen.curves("energy (J)")["energy"]
    seen.hear(8, at(0.2, 1.5), moving)
    seen.send()
    assert seen.curves("energy (J)")["energy"] > energy + 0.1
    names = list(idle)
    seen.desk.give("joint_commands", JointState(name=names, effort=[np.nan] * len(names)))
    seen.hear(9, at(0.2, 1.5))
    seen.send()
    assert seen.curves("input (N)")["quad1_thrust"] == 12.0  # that was no command


def test_the_error_is_that_of_one_time(shown, wall):
    seen = shown()
    seen.hear(3, at(0.2))
    seen.hear(3, at(0.5), prefix="reference/")
    seen.send()
    assert seen.curves("error (m)")["payload position"] == pytest.approx(0.3)
    left = [
        lambda: seen.hear(4, at(0.2)),
        lambda: seen.hear(4, at(0.7), prefix="reference/"),  # for which the state waits
        lambda: seen.hear(5, at(0.2)),
        lambda: None,  # in vain
        seen.desk.close,
        seen.desk.close,
    ]
    seen.desk.on_serve = lambda: left.pop(0)()
    seen.desk.served.clear()
    seen.made.work()
    errors = [message["frame"]["curves"][0][0] for message in seen.sent if "frame" in message]
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
        seen.send()
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
    assert [("frame" in message) for message in seen.sent] == [True] * 5 + [False] * 4
    states = [message["status"]["state"] for message in seen.sent]
    assert states == ["running"] * 6 + ["no new states"] * 3
    assert set(seen.desk.served) == {view.STATUS_S}
    seen.made.close()
    assert seen.server.closed


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
    server = seen.server
    assert (server.host, server.port) == ("0.0.0.0", 8765)
    assert "quadrotor_payload is shown at http://the-address\n" in capsys.readouterr().out
    assert not any("the-address" in text for _, text in seen.node.logged)
    assert shown().server.host == "127.0.0.1"


def test_where_it_cannot_serve_the_node_says_so(shown, monkeypatch):
    def fail(*_, **given):
        raise OSError("cannot listen")

    monkeypatch.setattr(view, "LiveServer", fail)
    with pytest.raises(UsageError, match="cannot listen"):
        shown()


def test_its_report_says_what_it_shows_and_what_it_refuses(shown):
    seen = shown()
    ((period, report, _),) = seen.node.timed
    report()
    level, text, values = seen.node.told
    assert (period, level, text) == (1.0, 1, "waiting for states") and values["browsers"] == "0"
    seen.hear(150, at(0.0))
    seen.send()
    report()
    level, text, values = seen.node.told
    assert (level, text, values["frames"], values["time_s"]) == (0, "showing", "1", "1.5")
    (codec,) = seen.codecs
    codec.write(at(1.0).tolist(), [0.0] * SPACE.nw)
    codec.message.header.frame_id = "map"
    for topic in ("multi_dof_joint_states", "reference/multi_dof_joint_states"):
        seen.desk.give(topic, codec.message, 200 * H_NS)
    report()
    level, text, values = seen.node.told
    assert level == 1 and "in the frame 'map'" in text and values["refused"] == "2"


def test_a_state_beyond_the_model_is_refused_and_the_next_one_is_shown(shown):
    seen = shown()
    seen.hear(1, at(0.0))
    seen.made._motion.v = np.full(SPACE.nw, 1.7e308)  # its momentum is no number
    seen.send()
    assert "frame" not in seen.sent[-1] and seen.node.report()[2]["refused"] == "1"
    assert "a state cannot be shown" in seen.node.logged[-1][1]
    seen.hear(2, at(0.0))
    seen.send()
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
    seen.send()
    told = seen.sent[-1]["status"]
    assert told["nodes"] == [["plant", "ok", "running"]] and told["missed"] == "3"
    assert told["bounds"] == {"payload": 4.0} and told["state"] == "running"
    seen.hear(2, at(0.0))
    seen.send()
    assert "nodes" not in seen.sent[-1]["status"]
    status.hardware_id = "cart_pole"
    seen.desk.give("/diagnostics", DiagnosticArray(status=[status]))
    wall[0] += view.STATUS_S
    seen.hear(3, at(0.0))
    seen.send()
    state = seen.sent[-1]["status"]["state"]
    assert state == "the plant is cart_pole now" and seen.ended
    assert seen.address == view.Address("made", 0, "cart_pole")
    status.hardware_id = "my_robot"


def test_time_of_hardware_begins_with_its_first_state(shown):
    seen = shown(source="hardware")
    start = 10**18 // H_NS
    for k in (0, 5):
        seen.hear(start + k, at(0.0))
    seen.send()
    assert seen.frame["time"] == pytest.approx(5 * MODEL.h)
    assert seen.place("reference") == pytest.approx([0.0, 0, 1.0])  # its clock is its own
