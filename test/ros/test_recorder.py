"""What is in a recording, also where the disk is full or too slow."""

import resource
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from bench import Desk, Ended, benches
from bob import BOB, put_up
from rclpy.serialization import serialize_message
from refusals import refusal
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from nh_control.ros.nodes import recorder
from nh_control.ros.runtime.process import UsageError
from nh_control.runs import bag_writer
from nh_control.runs.bag_writer import BagWriter
from nh_control.runs.node_process import NOT_RECORDED
from nh_control.runs.topics import recorded, states

TYPE = "std_msgs/msg/String"


@contextmanager
def files_of(size):
    """Files of so many bytes at most, as if the disk were full then."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def noise(count, size=50_000):
    rng = np.random.default_rng(0)
    return [rng.bytes(size) for _ in range(count)]


def read(path):
    """Time and data of all messages in a recording, in turn; its metadata must agree with it."""
    with Reader(path) as run:
        found = [(time, bytes(data)) for _, time, data in run.messages()]
        assert run.message_count == len(found)
        assert sum(connection.msgcount for connection in run.connections) == len(found)
    return found


class Written:
    """A writer of one topic, whose failures are `told`."""

    def __init__(self, folder, compressed=True):
        self.folder, self.told = folder, []
        self.writer = BagWriter(folder, compressed, self.told.append)
        self.topic = self.writer.topic("/a", TYPE, False)

    def take(self, messages):
        for k, data in enumerate(messages):
            self.topic(k, data)
        return self

    def wait(self):
        """Until all are in chunks."""
        while self.writer._bytes:
            threading.Event().wait(1e-3)

    @property
    def size(self):
        return (self.folder / "run.mcap").stat().st_size

    @property
    def counts(self):
        return self.writer.taken.get("/a", 0), self.writer.lost.get("/a", 0)


@pytest.mark.parametrize("compressed", [True, False])
def test_what_is_written_is_read_and_takes_little_room_where_it_repeats(tmp_path, compressed):
    messages = [b"again" * 2000] * 500
    made = Written(tmp_path / "run", compressed).take(messages)
    made.writer.close()
    assert read(made.folder) == list(enumerate(messages))
    assert made.counts == (500, 0) and made.told == [] and made.writer.error is None
    assert (made.size < 100_000) is compressed
    assert (b"zstd" in (made.folder / "run.mcap").read_bytes()) is compressed


@pytest.mark.parametrize("when", ["before the end", "at the end"])
def test_on_a_full_disk_what_was_written_is_read(tmp_path, when):
    messages = noise(100)
    if when == "at the end":
        made = Written(tmp_path / "run").take(messages)
        made.wait()
        with files_of(made.size):
            made.writer.close()
        assert made.told == []
    else:
        with files_of(4_000_000):
            made = Written(tmp_path / "run").take(messages)
            made.writer.close()
        assert made.told == [made.writer.error]
    assert isinstance(made.writer.error, OSError)
    found = read(made.folder)
    assert made.counts == (len(found), 100 - len(found)) and 20 < len(found) < 100
    assert found == list(enumerate(messages))[: len(found)]


def test_where_nothing_fits_nothing_is_left(tmp_path):
    with files_of(100_000), pytest.raises(OSError):
        Written(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_comes_faster_than_it_is_written_is_lost_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(bag_writer, "WAITING_BYTES", 1000)
    made, may_write = Written(tmp_path / "run"), threading.Event()
    write = made.writer._writer.write
    slow = lambda *message: may_write.wait(30) and write(*message)
    monkeypatch.setattr(made.writer._writer, "write", slow)
    made.take([bytes(100)] * 25)
    assert made.counts == (10, 15)
    may_write.set()
    made.wait()
    made.topic(25, bytes(1000))
    made.writer.close()
    assert [time for time, _ in read(made.folder)] == [*range(10), 25]
    assert made.counts == (11, 15)


def test_an_error_of_its_own_is_told(tmp_path, monkeypatch):
    made = Written(tmp_path / "run")
    monkeypatch.setattr(made.writer._writer, "write", lambda *_: 1 / 0)
    made.topic(0, b"1234")
    while not made.told:
        threading.Event().wait(1e-3)
    assert isinstance(made.told[0], ZeroDivisionError)


# The recorder ------------------------------------------------------------------------------------


class Recording:
    """A recorder in this thread."""

    def __init__(self, make, namespace="", **parameters):
        given = {"scenario": "bob", "output": "~/run"} | parameters
        self.node, self.desk, self.ended = make("recorder", namespace, **given), Desk(), Ended()
        self.made = recorder.Recorder(self.node, self.desk, self.ended)
        self.heard, self.close = self.desk.subscribed, self.made.close

    def topics(self, **quality):
        """Topics with a quality of service of this name."""
        ((name, value),) = quality.items()
        return [t for t, s in self.heard.items() if getattr(s.qos, name).name == value]

    def report(self):
        return self.node.report()


@pytest.fixture
def recorders(monkeypatch, tmp_path):
    """Makes recorders: f(**parameters) -> Recording; all end."""
    put_up(monkeypatch)
    monkeypatch.setitem(sys.modules, "tf2_msgs", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    made = []
    with benches() as make:
        yield lambda *given, **more: made.append(Recording(make, *given, **more)) or made[-1]
        for one in made:
            one.close()


def test_it_listens_to_all_that_tells_a_run_and_last_to_what_a_plant_waits_for(recorders):
    run = recorders()
    assert list(run.heard)[-2:] == list(states(BOB))
    assert all(one.raw and one.qos.depth == recorder.QUEUE for one in run.heard.values())
    assert run.topics(durability="TRANSIENT_LOCAL") == ["reference", "reference_start"]
    package = lambda kind: f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
    assert {topic: package(one.kind) for topic, one in run.heard.items()} == recorded(BOB)
    assert run.topics(reliability="BEST_EFFORT") == []
    hardware = recorders(source="hardware", output="~/hardware")
    assert set(hardware.topics(reliability="BEST_EFFORT")) == set(states(BOB))


def test_states_are_heard_once_commands_have_a_publisher(recorders):
    run, seen = recorders(await_commands_s=60.0), []
    assert "joint_commands" in run.heard and not set(states(BOB)) & set(run.heard)

    def serve():
        seen.append(set(states(BOB)) & set(run.heard))
        if len(seen) == 2:
            run.node.seen_publishers["/joint_commands"] = [SimpleNamespace()]

    run.desk.on_serve = serve
    run.made._await_commands()
    assert seen == [set(), set()] and set(states(BOB)) <= set(run.heard)
    alone = recorders(await_commands_s=1e-9, output="~/alone")
    alone.made._await_commands()
    assert set(states(BOB)) <= set(alone.heard)
    assert [text for level, text in alone.node.logged if level == "warning"] == [
        "no publisher of /joint_commands after 1e-09 s"
    ]


def test_what_arrives_is_in_the_file_with_its_time_and_topic(recorders, tmp_path):
    run = recorders("robot1")
    written = [serialize_message(JointState(position=[x])) for x in (1.0, 2.0, 3.0)]
    run.node.wall_ns = 1_500_000_000
    run.desk.give("joint_states", written[0])
    late = written[1:]  # one after the other while it closes
    run.desk.on_serve = lambda: run.desk.give("joint_commands", late.pop(0)) if late else None
    run.close()
    assert ("info", f"recorded 3 messages to {tmp_path / 'run'}") in run.node.logged
    assert len(list((tmp_path / "run").glob("*.mcap"))) == 1
    with Reader(tmp_path / "run") as bag:
        found = [(c.topic, c.msgtype, time, bytes(data)) for c, time, data in bag.messages()]
        offers = {c.topic: c.ext.offered_qos_profiles[0] for c in bag.connections}
    offered = {topic: offer.durability.name for topic, offer in offers.items()}
    assert {(o.history.name, o.depth) for o in offers.values()} == {("KEEP_LAST", 10)}
    names = ["joint_states", "joint_commands", "joint_commands"]
    assert found == [
        (f"/robot1/{name}", "sensor_msgs/msg/JointState", 1_500_000_000, data)
        for name, data in zip(names, written)
    ]
    assert "/diagnostics" in offered and offered["/robot1/joint_states"] == "VOLATILE"
    assert offered["/robot1/reference"] == "TRANSIENT_LOCAL"


def test_its_report_counts_messages_and_waits_for_those_of_a_run(recorders):
    run, empty = recorders("robot1"), serialize_message(JointState())
    assert run.report()[:2] == (1, "waiting for messages")
    for topic in ("clock", "/diagnostics"):
        run.desk.give(topic, empty)
    assert run.report()[:2] == (1, "waiting for messages")
    for _ in range(2):
        run.desk.give("joint_states", empty)
    level, text, values = run.report()
    assert (level, text, values["messages"]) == (0, "recording", "4")
    assert values["/robot1/joint_states"] == "2" and values["/robot1/markers"] == "0"


def test_topics_of_ones_own_are_recorded_alone(recorders):
    topics = ["here:std_msgs/msg/String", "joint_states:sensor_msgs/msg/JointState"]
    assert list(recorders(topics=topics).heard) == ["here", "joint_states"]


def test_topics_that_are_none_are_a_wrong_use_and_leave_no_folder(recorders, tmp_path, snapshot):
    wrong = ("odom", ":std_msgs/msg/String", "a:std_msgs/String", "a:nowhere_msgs/msg/String",
             "a:std_msgs/msg/Strong")  # fmt: skip
    assert [refusal(lambda: recorders(topics=[one]), UsageError) for one in wrong] == snapshot
    assert not (tmp_path / "run").exists()


def test_a_recording_is_not_written_over(recorders):
    recorders().close()
    with pytest.raises(UsageError, match="cannot record to .*run.*parameter 'output'"):
        recorders()


def test_transforms_are_recorded_where_they_are_known(recorders, monkeypatch):
    """With a type that stands for tf2_msgs, which is not among the messages on PyPI."""
    messages = SimpleNamespace(TFMessage=String)
    monkeypatch.setitem(sys.modules, "tf2_msgs", SimpleNamespace(msg=messages))
    monkeypatch.setitem(sys.modules, "tf2_msgs.msg", messages)
    assert set(recorders().heard) == {*recorded(BOB), "/tf"}


def test_messages_that_come_too_fast_are_counted_and_told(recorders, monkeypatch, tmp_path):
    run = recorders()
    monkeypatch.setattr(bag_writer, "WAITING_BYTES", 100)
    run.desk.give("joint_states", bytes(101))
    level, text, values = run.report()
    assert (level, text) == (2, "1 messages could not be written in time")
    assert (values["messages"], values["lost"], values["lost: /joint_states"]) == ("0", "1", "1")
    level, text, values = run.report()
    assert (level, text, values["lost"]) == (1, "waiting for messages", "1")
    run.close()
    assert [text for level, text in run.node.logged if level == "warning"] == [
        f"recorded 0 messages to {tmp_path / 'run'}, 1 arrived faster than they could be written"
    ]


def test_a_full_disk_ends_the_node_with_a_code_of_its_own_and_other_errors_as_they_are(
    recorders, tmp_path
):
    run, error = recorders(topics=["noise:std_msgs/msg/UInt8MultiArray"]), ValueError("a mistake")
    with files_of(4_000_000):
        for data in noise(100):
            run.desk.give("noise", data)
        run.close()
    assert run.ended.requests == [(None, NOT_RECORDED)]
    count = len(read(tmp_path / "run"))
    level, text = run.node.logged[-1]
    assert level == "error" and text.startswith(f"recorded {count} messages to")
    assert "could not be written" in text
    run.made._on_failure(error)
    assert run.ended.requests[1:] == [(error, 0)]
