"""What is in a recording, also where the disk is full or too slow."""

import resource
import sys
import threading
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import pytest
from bench import Desk, Ended, benches
from bob import BOB, put_up
from rclpy.serialization import serialize_message
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


@pytest.mark.parametrize("compressed", [True, False])
def test_what_is_written_is_read_and_takes_little_room_where_it_repeats(tmp_path, compressed):
    writer = BagWriter(tmp_path / "run", compressed, pytest.fail)
    take, messages = writer.topic("/a", TYPE, False), [b"again" * 2000] * 500
    for k, data in enumerate(messages):
        take(k, data)
    writer.close()
    assert read(tmp_path / "run") == list(enumerate(messages))
    assert (writer.taken, writer.lost, writer.error) == ({"/a": 500}, {}, None)
    size = (tmp_path / "run" / "run.mcap").stat().st_size
    assert (size < 100_000) is compressed
    assert (b"zstd" in (tmp_path / "run" / "run.mcap").read_bytes()) is compressed


def test_on_a_full_disk_what_was_written_is_read(tmp_path):
    told, messages = [], noise(100)
    with files_of(4_000_000):
        writer = BagWriter(tmp_path / "run", True, told.append)
        take = writer.topic("/a", TYPE, False)
        for k, data in enumerate(messages):
            take(k, data)
        writer.close()
    assert told == [writer.error] and isinstance(writer.error, OSError)
    found = read(tmp_path / "run")
    assert len(found) == writer.taken["/a"] and len(found) + writer.lost["/a"] == 100
    assert 20 < len(found) < 80 and found == list(enumerate(messages))[: len(found)]


def test_where_only_the_end_does_not_fit_the_rest_is_read(tmp_path):
    told, messages = [], noise(30)
    writer = BagWriter(tmp_path / "run", True, told.append)
    take = writer.topic("/a", TYPE, False)
    for k, data in enumerate(messages):
        take(k, data)
    while writer._bytes:  # until all are in chunks
        threading.Event().wait(1e-3)
    with files_of((tmp_path / "run" / "run.mcap").stat().st_size):
        writer.close()
    assert told == [] and isinstance(writer.error, OSError)
    found = read(tmp_path / "run")
    assert 0 < len(found) == writer.taken["/a"] < 30 and writer.lost["/a"] == 30 - len(found)
    assert found == list(enumerate(messages))[: len(found)]


def test_where_nothing_fits_nothing_is_left(tmp_path):
    with files_of(100_000), pytest.raises(OSError):
        BagWriter(tmp_path / "run", True, pytest.fail)
    assert not (tmp_path / "run").exists()


def test_what_comes_faster_than_it_is_written_is_lost_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(bag_writer, "WAITING_BYTES", 1000)
    writer, may_write = BagWriter(tmp_path / "run", True, pytest.fail), threading.Event()
    take, write = writer.topic("/a", TYPE, False), writer._writer.write

    def wait(*message):
        assert may_write.wait(30)
        write(*message)

    monkeypatch.setattr(writer._writer, "write", wait)
    for k in range(25):
        take(k, bytes(100))
    assert (writer.taken["/a"], writer.lost["/a"]) == (10, 15)
    may_write.set()
    while writer._bytes:
        threading.Event().wait(1e-3)
    take(25, bytes(1000))
    writer.close()
    assert [time for time, _ in read(tmp_path / "run")] == [*range(10), 25]
    assert (writer.taken["/a"], writer.lost["/a"]) == (11, 15)


def test_an_error_of_its_own_is_told(tmp_path, monkeypatch):
    told = []
    writer = BagWriter(tmp_path / "run", True, told.append)
    take = writer.topic("/a", TYPE, False)

    def mistaken(*_):
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(writer._writer, "write", mistaken)
    take(0, b"1234")
    while not told:
        threading.Event().wait(1e-3)
    assert isinstance(told[0], ZeroDivisionError)


# The recorder ------------------------------------------------------------------------------------


@pytest.fixture
def recorders(monkeypatch, tmp_path):
    """Makes recorders: f(**parameters) -> node, inbox, recorder."""
    put_up(monkeypatch)
    monkeypatch.setitem(sys.modules, "tf2_msgs", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    with benches() as make:

        def start(namespace="", **parameters):
            given = {"scenario": "bob", "output": "~/run"} | parameters
            node, desk = make("recorder", namespace, **given), Desk()
            node.ended = Ended()
            return node, desk, recorder.Recorder(node, desk, node.ended)

        yield start


def test_it_listens_to_all_that_tells_a_run_and_last_to_what_a_plant_waits_for(recorders):
    _, desk, made = recorders()
    assert set(desk.subscribed) == set(recorded(BOB))
    assert list(desk.subscribed)[-2:] == list(states(BOB))
    assert all(subscription.raw for subscription in desk.subscribed.values())
    assert {s.qos.depth for s in desk.subscribed.values()} == {recorder.QUEUE}
    latched = [
        topic
        for topic, subscription in desk.subscribed.items()
        if subscription.qos.durability.name == "TRANSIENT_LOCAL"
    ]
    assert latched == ["reference", "reference_start"]
    kinds = {topic: f"{s.kind.__module__.split('.')[0]}/msg/{s.kind.__name__}"
             for topic, s in desk.subscribed.items()}  # fmt: skip
    assert kinds == recorded(BOB)
    made.close()


@pytest.mark.parametrize(
    ("source", "unreliable"), [("simulation", set()), ("hardware", set(states(BOB)))]
)
def test_sensors_may_be_best_effort(recorders, source, unreliable):
    _, desk, made = recorders(source=source)
    found = {t for t, s in desk.subscribed.items() if s.qos.reliability.name == "BEST_EFFORT"}
    assert found == unreliable
    made.close()


def test_what_arrives_is_in_the_file_with_its_time_and_topic(recorders, tmp_path):
    node, desk, made = recorders("robot1")
    written = [serialize_message(JointState(position=[x])) for x in (1.0, 2.0, 3.0)]
    node.wall_ns = 1_500_000_000
    desk.give("joint_states", written[0])
    late = written[1:]  # one after the other while it closes
    desk.on_serve = lambda: desk.give("joint_commands", late.pop(0)) if late else None
    made.close()
    assert ("info", f"recorded 3 messages to {tmp_path / 'run'}") in node.logged
    assert len(list((tmp_path / "run").glob("*.mcap"))) == 1
    with Reader(tmp_path / "run") as run:
        found = [(c.topic, c.msgtype, time, bytes(data)) for c, time, data in run.messages()]
        offers = {c.topic: c.ext.offered_qos_profiles[0] for c in run.connections}
    offered = {topic: offer.durability.name for topic, offer in offers.items()}
    assert {(o.history.name, o.depth) for o in offers.values()} == {("KEEP_LAST", 10)}
    assert found == [
        ("/robot1/joint_states", "sensor_msgs/msg/JointState", 1_500_000_000, written[0]),
        *(
            ("/robot1/joint_commands", "sensor_msgs/msg/JointState", 1_500_000_000, data)
            for data in written[1:]
        ),
    ]
    assert "/diagnostics" in offered and offered["/robot1/joint_states"] == "VOLATILE"
    assert offered["/robot1/reference"] == "TRANSIENT_LOCAL"


def test_its_report_counts_messages_and_waits_for_those_of_a_run(recorders):
    node, desk, made = recorders("robot1")
    empty = serialize_message(JointState())
    assert node.report()[:2] == (1, "waiting for messages")
    for topic in ("clock", "/diagnostics"):
        desk.give(topic, empty)
    assert node.report()[:2] == (1, "waiting for messages")
    for _ in range(2):
        desk.give("joint_states", empty)
    level, text, values = node.report()
    assert (level, text, values["messages"]) == (0, "recording", "4")
    assert values["/robot1/joint_states"] == "2" and values["/robot1/markers"] == "0"
    made.close()


def test_topics_of_ones_own_are_recorded_alone(recorders):
    node, desk, made = recorders(
        topics=["here:std_msgs/msg/String", "joint_states:sensor_msgs/msg/JointState"]
    )
    assert list(desk.subscribed) == ["here", "joint_states"]
    assert any(text.startswith("recording here, joint_states to ") for _, text in node.logged)
    made.close()


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("odom", "'odom' is not of the form name:package/msg/Type"),
        (":std_msgs/msg/String", "not of the form"),
        ("a:std_msgs/String", "not of the form"),
        ("a:nowhere_msgs/msg/String", "no message type nowhere_msgs/msg/String"),
        ("a:std_msgs/msg/Strong", "no message type std_msgs/msg/Strong"),
    ],
)
def test_topics_that_are_none_are_a_wrong_use_and_leave_no_folder(
    recorders, topic, error, tmp_path
):
    with pytest.raises(UsageError, match=error):
        recorders(topics=[topic])
    assert not (tmp_path / "run").exists()


def test_a_recording_is_not_written_over(recorders):
    _, _, made = recorders()
    made.close()
    with pytest.raises(UsageError, match="cannot record to .*run.*parameter 'output'"):
        recorders()


def test_transforms_are_recorded_where_they_are_known(recorders, monkeypatch):
    """With a type that stands for tf2_msgs, which is not among the messages on PyPI."""
    module = ModuleType("tf2_msgs")
    module.msg = ModuleType("tf2_msgs.msg")
    module.msg.TFMessage = String
    monkeypatch.setitem(sys.modules, "tf2_msgs", module)
    monkeypatch.setitem(sys.modules, "tf2_msgs.msg", module.msg)
    _, desk, made = recorders()
    assert set(desk.subscribed) == {*recorded(BOB), "/tf"}
    made.close()


def test_messages_that_come_too_fast_are_counted_and_told(recorders, monkeypatch, tmp_path):
    node, desk, made = recorders()
    monkeypatch.setattr(bag_writer, "WAITING_BYTES", 100)
    desk.give("joint_states", bytes(101))
    level, text, values = node.report()
    assert (level, text) == (2, "1 messages could not be written in time")
    assert (values["messages"], values["lost"], values["lost: /joint_states"]) == ("0", "1", "1")
    level, text, values = node.report()
    assert (level, text, values["lost"]) == (1, "waiting for messages", "1")
    made.close()
    assert [text for level, text in node.logged if level == "warning"] == [
        f"recorded 0 messages to {tmp_path / 'run'}, 1 came faster than they could be written"
    ]


def test_a_full_disk_ends_the_node_with_a_code_of_its_own_and_a_recording_that_is_read(
    recorders, tmp_path
):
    node, desk, made = recorders(topics=["noise:std_msgs/msg/UInt8MultiArray"])
    with files_of(4_000_000):
        for data in noise(100):
            desk.give("noise", data)
        made.close()
    assert node.ended.requests == [(None, NOT_RECORDED)]
    with Reader(tmp_path / "run") as run:
        count = run.message_count
        assert len(list(run.messages())) == count > 10
    level, text = node.logged[-1]
    assert level == "error"
    assert text.startswith(f"recorded {count} messages to") and "could not be written" in text


def test_any_other_error_of_the_writing_thread_is_the_node_s(recorders):
    node, _, made = recorders()
    error = ValueError("a mistake")
    made._on_failure(error)
    assert node.ended.requests == [(error, 0)]
    made.close()
