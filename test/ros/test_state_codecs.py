"""States in messages: there and back, in parts, and what is refused."""

import copy
import math
import sys
import types
from functools import cache

import numpy as np
import pytest
from bench import Desk
from geometry_msgs.msg import Pose, Quaternion
from hypothesis import given
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState, MultiDOFJointState
from transforms3d.quaternions import quat2mat

from nh_control import scenarios
from nh_control.loop.reports import Refusal
from nh_control.loop.wire_format import MessageStates
from nh_control.ros.messages import conversions, state_reader
from nh_control.ros.messages.cdr import Template, deserialized
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.state_publisher import transform_broadcaster
from nh_control.ros.messages.state_reader import MeasurementReader, StateListener, StateReader
from nh_control.runs import topics
from nh_control.runs.decoding import StateDecoder

BOARD, QUADS = scenarios.get("snakeboard"), scenarios.get("quadrotor_payload")
numbers = st.floats(-1e3, 1e3)
five = st.lists(numbers, min_size=5, max_size=5)


@cache
def model_of(name):
    return scenarios.get(name).model()


def board(velocities=True):
    return codecs(BOARD, model_of("snakeboard"), velocities)


def quads(velocities=True):
    (codec,) = codecs(QUADS, model_of("quadrotor_payload"), velocities)
    return codec


def motion(seed=0):
    """Configuration and velocity of payload and quadrotors, far from hover."""
    rng, model = np.random.default_rng(seed), model_of("quadrotor_payload")
    space = model.system.space
    q = space.retract(space.origin, rng.normal(size=space.nv))
    return q.tolist(), model.velocity(model.state(q, rng.normal(size=space.nw))).tolist()


(JOINTS, BODY), BODIES = board(), quads()


@given(five, five)
def test_states_of_joints_and_a_planar_body_survive_the_messages(q, v):
    q1, v1 = [0.0, 0.0, q[2] + 1.0, 0.0, 0.0], [0.0] * 5
    for codec in (JOINTS, BODY):
        codec.write(q, v)
        assert codec.read(codec.message, q1, v1)
    assert v1 == v and q1[:2] == q[:2] and q1[3:] == q[3:]
    assert q1[2] == pytest.approx(q[2], abs=1e-11)


def test_a_twist_is_in_the_axes_of_its_body_and_odometry_says_the_same():
    codec, (q, v) = quads(), motion()
    codec.write(q, v)
    names, exact = ["payload", "quad1", "quad2"], np.testing.assert_array_equal
    topics_ = ["multi_dof_joint_states", *(f"{name}/odom" for name in names)]
    assert [topic for topic, _ in codec.outgoing] == topics_
    assert codec.message.header.frame_id == "odom" and codec.message.joint_names == names
    bodies = QUADS.to_bodies(QUADS.parameters, np.array(q), np.array(v))
    for i, (body, odometry) in enumerate(zip(bodies, codec.odometry)):
        pose, twist = odometry.pose.pose, odometry.twist.twist
        assert (odometry.header.frame_id, odometry.child_frame_id) == ("odom", body.frame)
        assert twist == codec.message.twist[i]
        assert pose.orientation == codec.message.transforms[i].rotation
        exact(conversions.xyz(pose.position), body.position)
        exact(conversions.xyz(twist.angular), body.angular_velocity_body)
        turned = quat2mat(body.quaternion_wxyz) @ conversions.xyz(twist.linear)
        np.testing.assert_allclose(turned, body.linear_velocity, atol=1e-14)


@pytest.mark.parametrize("velocities", [True, False])
def test_fields_within_a_process_and_of_bytes_are_those_of_messages(velocities):
    for codec in (*board(velocities), quads(velocities)):
        q, v = ([0.3, -1.0, 2.5, 0.7, 4.0], [1.0] * 5) if codec.names != BODIES.names else motion()
        codec.write(q, v)
        read = [([0.0] * len(q), [0.0] * len(v)) for _ in range(3)]
        moves = (
            codec.read(codec.message, *read[0]),
            codec.read_fields(codec.shown(q, v), *read[1]),
            codec.read_fields(of_bytes(codec, codec.message), *read[2]),
        )
        assert moves == (velocities,) * 3
        for other in read[1:]:
            np.testing.assert_array_equal(read[0][0], other[0])
            np.testing.assert_array_equal(read[0][1], other[1])


def of_bytes(codec, message):
    """The fields in a message's bytes, read with a template of their layout."""
    template, data = Template(copy.deepcopy(message)), bytes(serialize_message(message))
    assert template.fits(data)
    return codec.numbered_fields(template.message, template.numbers(data))


def test_without_velocities_they_are_unknown_and_marked():
    for codec, (q, v) in (
        (board(False)[0], ([1.0] * 5, [1.0] * 5)),
        (board(False)[1], ([1.0] * 5, [1.0] * 5)),
        (quads(False), motion()),
    ):
        codec.write(q, v)
        q1, v1 = list(q), [math.nan] * len(v)
        assert not codec.read(codec.message, q1, v1)
        np.testing.assert_allclose(q1, q, atol=1e-14)
        assert np.isnan(v1).all()
        if isinstance(codec.message, JointState):
            assert len(codec.message.velocity) == 0
        elif isinstance(codec.message, MultiDOFJointState):
            assert codec.message.twist == []
        for odometry in codec.odometry:
            assert odometry.twist.covariance[0] == -1.0 and odometry.twist.twist.linear.x == 0.0
    assert all(message.twist.covariance[0] == 0.0 for message in quads().odometry)


def test_joints_and_bodies_in_any_order_among_others():
    names = ["front_truck_joint", "bell", "rotor_joint", "rear_truck_joint"]
    q = [0.0] * 5
    JOINTS.read(JointState(name=names, position=[-0.3, 9.0, 1.5, 0.3]), q, [0.0] * 5)
    assert q == [1.5, 0.3, 0.0, 0.0, 0.0]
    codec, (q, v) = quads(), motion()
    codec.write(q, v)
    whole, names = codec.message, ["quad2", "camera", "quad1", "payload"]
    message = MultiDOFJointState(header=whole.header, joint_names=names)
    parts = whole.transforms, whole.twist
    message.transforms, message.twist = ([part[i] for i in (2, 0, 1, 0)] for part in parts)
    q1, v1 = [0.0] * len(q), [0.0] * len(v)
    assert codec.read(message, q1, v1)
    np.testing.assert_allclose(np.r_[q1, v1], np.r_[q, v], atol=1e-13)


def set_(path, value):
    """A change of a message: f(message), at a path such as "transforms.1.translation.y"."""
    *parts, last = path.split(".")

    def change(message):
        for part in parts:
            message = message[int(part)] if part.isdigit() else getattr(message, part)
        if last.isdigit():
            message[int(last)] = value
        else:
            setattr(message, last, value)

    return change


def at_the_payload(message):
    set_("transforms.1.translation", message.transforms[0].translation)(message)


REFUSED = [
    (JOINTS, set_("name", list("abc")), "rotor_joint"),
    (JOINTS, set_("name", ["rotor_joint", "a", "b"]), "rear_truck_joint"),
    (JOINTS, lambda m: m.position.pop(), "2 positions"),
    (JOINTS, set_("velocity", [0.0]), "1 velocities"),
    (JOINTS, set_("position.1", math.nan), "not finite"),
    (JOINTS, set_("velocity.1", math.inf), "not finite"),
    (BODY, set_("pose.pose.position.x", math.nan), "not finite"),
    (BODIES, lambda m: m.joint_names.pop(), "2 names, 3 transforms"),
    (BODIES, lambda m: m.twist.pop(), "2 twists"),
    (BODIES, set_("joint_names.1", "drone"), "without .'quad1'."),
    (BODIES, set_("header.frame_id", "map"), "in the frame 'map'; expected 'odom'"),
    (BODIES, set_("transforms.1.translation.y", math.nan), "value of quad1 that is not finite"),
    (BODIES, set_("twist.2.angular.z", math.inf), "value of quad2 that is not finite"),
    (BODIES, set_("transforms.2.rotation.w", 7.0), "quad2 is not a unit quaternion"),
    (BODIES, set_("transforms.2.rotation.w", math.nan), "orientation of quad2 is not a unit"),
    (BODIES, at_the_payload, "quad1 is at the payload"),
]


@pytest.mark.parametrize(("codec", "change", "text"), REFUSED)
def test_unusable_states_are_refused_and_change_nothing(codec, change, text):
    q, v = motion() if codec is BODIES else ([0.1] * 5, [0.2] * 5)
    codec.write(q, v)
    message = copy.deepcopy(codec.message)
    if codec is BODIES:
        message.joint_names = list(message.joint_names)
    change(message)
    q, v = [1.0] * len(q), [2.0] * len(v)
    with pytest.raises(ConversionError, match=text):
        codec.read(message, q, v)
    with pytest.raises(ConversionError, match=text):
        codec.read_fields(of_bytes(codec, message), q, v)
    assert set(q) == {1.0} and set(v) == {2.0}


def test_measurements_off_the_manifold_are_put_on_it():
    """Orientations count up to sign and a little noise, and cables are as long as they are."""
    codec, (q, v) = quads(), motion()
    codec.write(q, v)
    rotation = codec.message.transforms[1].rotation
    payload, quad2 = (codec.message.transforms[i].translation for i in (0, 2))
    for part in "wxyz":
        setattr(rotation, part, -1.003 * getattr(rotation, part))
    for part in "xyz":
        at, start = getattr(quad2, part), getattr(payload, part)
        setattr(quad2, part, start + 1.1 * (at - start))
    q1, v1 = [0.0] * len(q), [0.0] * len(v)
    codec.read(codec.message, q1, v1)
    np.testing.assert_allclose(q1[3:7], -np.array(q[3:7]), atol=1e-14)
    np.testing.assert_allclose(q1[:3] + q1[7:], q[:3] + q[7:], atol=1e-14)
    model = model_of("quadrotor_payload")
    tracker = QUADS.tracker(model, QUADS.reference(model, "hover"))
    same, other = (tracker.command(0, model.state(one, v)).error for one in (q1, q))
    np.testing.assert_allclose(same, other, atol=1e-12)


class Heard:
    """A reader of the snakeboard's states that keeps stamps and refusals."""

    def __init__(self):
        self.desk, self.received, self.refused, self.moving = Desk(), [], [], []
        self.q, self.v = [0.0] * 5, [0.0] * 5
        listener = StateListener(self._take, lambda *why: self.refused.append(why))
        self.reader = StateReader(self.desk, (JOINTS, BODY), listener, 10)

    def _take(self, stamp):
        self.received.append(stamp / 10**9)
        self.moving.append(self.reader.read(self.q, self.v))

    def joints(self, sec, value=0.0):
        self.desk.give("joint_states", of_a_time(JOINTS, sec, value))

    def body(self, sec, value=0.0):
        self.desk.give("odom", of_a_time(BODY, sec, value))


@pytest.fixture
def heard():
    return Heard()


def test_a_part_of_a_state_is_waited_for_only_after_another_part(heard):
    topics = heard.desk.subscribed
    waits = lambda: [topics[topic].awaited() for topic in ("joint_states", "odom")]
    assert waits() == [False, True] and all(topic.raw for topic in topics.values())
    heard.body(0)
    assert waits() == [True, True] and heard.received == []
    heard.joints(0)
    assert waits() == [False, True] and heard.received == [0]


def of_a_time(codec, sec, value=0.0):
    """A copy of a codec's message, of a time, in which all coordinates are `value`."""
    codec.write([value] * 5, [0.0] * 5)
    message = copy.deepcopy(codec.message)
    message.header.stamp.sec = sec
    return message


def test_states_are_complete_though_their_topics_are_heard_out_of_step(heard):
    for sec in (1, 2, 3):
        heard.joints(sec)
    heard.body(1)
    assert heard.received == [1]
    heard.body(3)  # that of 2 s comes too late to be of use
    heard.body(2)
    assert heard.received == [1, 3]
    for sec in range(4, 1000):  # nothing grows while a topic is silent
        heard.joints(sec)
    for sec in (4, 901, 950, 999):  # the last hundred wait
        heard.body(sec)
    assert heard.received == [1, 3, 901, 950, 999] and heard.refused == []


def test_no_state_is_put_together_from_before_and_after_time_went_back(heard):
    heard.joints(5, 0.1)  # its body is lost
    heard.joints(0, 0.2)
    heard.body(0, 0.2)
    heard.body(5, 0.3)  # heard before the joints of its time
    assert heard.q == pytest.approx([0.2] * 5)
    heard.joints(5, 0.3)
    assert heard.q == pytest.approx([0.3] * 5)


def test_parts_that_are_no_messages_are_refused_and_others_count(heard):
    for data in (b"", serialize_message(of_a_time(JOINTS, 1))[:40]):
        heard.desk.give("joint_states", data)
    assert heard.refused == [
        (Refusal.LENGTH, "0 bytes that are not a JointState"),
        (Refusal.LENGTH, "40 bytes that are not a JointState"),
    ]
    heard.body(1)
    assert heard.received == []
    heard.joints(1)
    assert heard.received == [1]


def test_states_of_which_every_part_is_another_s_are_read_as_well(heard):
    """Joints in another order, a body with a covariance: not the bytes that are expected."""
    joints, body = JointState(name=JOINTS.names[::-1]), of_a_time(BODY, 1, 0.4)
    joints.header.stamp.sec, joints.position = 1, [-0.3, 0.3, 0.7]
    body.pose.covariance[0] = 0.01
    heard.desk.give("joint_states", joints)
    heard.desk.give("odom", body)
    assert heard.q == pytest.approx([0.7, 0.3, 0.4, 0.4, 0.4])


def test_states_of_another_layout_are_read_by_rclpy_once(heard, monkeypatch):
    """Joint states with efforts, as the plant publishes them."""
    read = []
    monkeypatch.setattr(
        state_reader, "deserialized", lambda *args: read.append(args) or deserialized(*args)
    )
    joints, _ = codecs(BOARD, model_of("snakeboard"), efforts=True)
    for sec, value in ((1, 0.1), (2, 0.2), (3, 0.3)):
        q, efforts = [value] * 5, [9.0] * len(joints.names)
        data = joints.template.stamped(sec * 10**9, joints.numbers(joints.shown(q, q), efforts))
        heard.desk.give("joint_states", data)
        heard.body(sec, value)
        assert heard.q == pytest.approx(q) and heard.v[0] == value
    assert len(read) == 1 and heard.received == [1, 2, 3]


def test_the_first_body_is_placed():
    (q, _), pose = motion(), Pose()
    quads().place(q, pose)
    assert (pose.position.x, pose.position.y, pose.position.z, pose.orientation.w) == (*q[:3], 1.0)
    BODY.place([0.0, 0.0, 0.6, 1.5, -2.5], pose)
    assert (pose.position.x, pose.position.y) == (1.5, -2.5)
    assert (pose.orientation.w, pose.orientation.z) == (math.cos(0.3), math.sin(0.3))


def test_bodies_become_transforms_where_tf_is_installed(monkeypatch):
    sent = []
    broadcaster = types.SimpleNamespace(pub_tf="the publisher", sendTransform=sent.extend)
    tf = types.SimpleNamespace(TransformBroadcaster=lambda node: broadcaster)
    monkeypatch.setitem(sys.modules, "tf2_ros", tf)
    codec, (q, v) = quads(), motion()
    broadcast, (publisher,) = transform_broadcaster(None, codec.odometry)
    assert publisher == "the publisher"  # late subscribers of TF alone are looked for, too
    codec.write(q, v)
    broadcast(3 * 10**9 + 7, codec.odometry_numbers(codec.shown(q, v)))
    assert {(t.header.stamp.sec, t.header.stamp.nanosec) for t in sent} == {(3, 7)}
    frames = [(t.header.frame_id, t.child_frame_id) for t in sent]
    assert frames == [("odom", "payload"), ("odom", "quad1"), ("odom", "quad2")]
    for transform, truth in zip(sent, codec.message.transforms):
        assert transform.transform == truth


def test_without_tf_one_line_says_so(monkeypatch):
    lines = []
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    node = types.SimpleNamespace(get_logger=lambda: types.SimpleNamespace(info=lines.append))
    transform_broadcaster(node, BODY.odometry)[0](0, [])
    assert len(lines) == 1 and "install tf2_ros" in lines[0]
    transform_broadcaster(node, ())[0](0, [])
    assert len(lines) == 1


@pytest.mark.parametrize("scenario", [BOARD, QUADS], ids=lambda scenario: scenario.name)
def test_topics_are_those_that_are_declared(scenario):
    made = codecs(scenario, model_of(scenario.name))
    package = lambda kind: f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
    found = {codec.topic: package(codec.message_type) for codec in made}
    assert found == topics.states(scenario)
    bodies = [topic for codec in made for topic, _ in codec.outgoing if topic not in found]
    assert bodies == topics.odometry(scenario)


def test_a_state_has_velocities_if_all_its_parts_have_them(heard):
    for joints, body in ((False, False), (True, False), (False, True), (True, True)):
        for codec in (board(joints)[0], board(body)[1]):
            codec.write([0.0] * 5, [0.0] * 5)
            heard.desk.give(codec.topic, codec.message)
    assert heard.moving == [False, False, False, True]


# Numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", scenarios.names())
def test_a_tracker_a_recording_and_a_simulation_have_the_same_bits_of_a_state(name):
    scenario = scenarios.get(name)
    dsys = scenario.model()
    space = dsys.system.space
    decoder, shown = StateDecoder(scenario, space), codecs(scenario, dsys)
    assert [codec.topic for codec in shown] == list(decoder.topics)
    rng = np.random.default_rng(7)
    for _ in range(20):
        q = space.retract(space.origin, 3 * rng.normal(size=space.nv))
        x = dsys.measured_state(q, rng.normal(size=space.nw))
        near = space.retract(q, 9 * rng.normal(size=space.nv))
        online, recorded = ([near.copy(), np.full(space.nw, np.nan)] for _ in range(2))
        for codec in shown:
            codec.write(dsys.configuration(x).tolist(), dsys.velocity(x).tolist())
            assert codec.read(codec.message, *online)
            assert decoder.read(codec.topic, codec.message, *recorded)
        first = dsys.measured_state(near, np.zeros(space.nw))
        simulated = MessageStates(scenario, dsys, dsys, scenario.parameters, first).carried(x)
        for numbers, *others in zip(online, recorded, simulated):
            for same in others:
                np.testing.assert_array_equal(same, numbers)


def test_quaternions_change_order_are_normalized_and_others_refused():
    q, message = [0.5, -0.1, 0.7, 0.5], Quaternion()
    conversions.set_wxyz(message, q)
    assert (message.w, message.x, message.y, message.z) == tuple(q)
    assert conversions.wxyz(message).tolist() == q
    almost = conversions.unit_wxyz(Quaternion(w=1.004), "quad1")
    assert almost.tolist() == [1.0, 0.0, 0.0, 0.0]
    for norm in (0.0, 0.9, 1.1, math.nan):
        with pytest.raises(ConversionError, match="orientation of quad1 is not a unit quaternion"):
            conversions.unit_wxyz(Quaternion(w=norm), "quad1")


# Of hardware, whose parts have stamps of their own -----------------------------------------------


NAMES = ["rotor_joint", "front_truck_joint", "rear_truck_joint"]


class Hardware:
    """A reader and what it told: stamps of states in ms, refusals, jumps."""

    def __init__(self, spread_s=0.01):
        self.desk, self.received, self.refused, self.jumped = Desk(), [], [], []
        listener = StateListener(
            lambda stamp_ns: self.received.append(stamp_ns // 10**6),
            lambda *refusal: self.refused.append(refusal),
            self.jumped.append,
        )
        shown = codecs(BOARD, BOARD.model())
        self.reader = MeasurementReader(self.desk, shown, listener, 10, spread_s)

    def joints(self, ms, names=NAMES, velocity=0.25, position=0.5):
        many = lambda value: [value] * len(names) if isinstance(value, float) else value
        message = JointState(name=names, position=many(position), velocity=many(velocity))
        self.desk.give("joint_states", message, ms * 10**6)

    def body(self, ms):
        self.desk.give("odom", Odometry(), ms * 10**6)

    def read(self):
        """Whether there are velocities; angles and rates of the first two joints."""
        q, v = [0.0] * 5, [0.0] * 5
        return self.reader.read(q, v), q[:2], v[:2]


@pytest.mark.parametrize(
    ("events", "received"),
    [
        ("A1000 B1004", []),
        ("A1000 B1004 C1002", [1004]),  # it has the newest stamp
        ("J1000 B1004 J1010", [1004]),  # the body is the last state's
        ("J1000 B1004 J1010 B1011 B1011 J1011", [1004, 1011]),  # nothing is newer
        ("J1100 B1111", []),  # too far apart
        ("J1100 B1111 J1101", [1111]),
        ("B1000 A1000 X1000", []),  # joints of others
        ("B1000 A1000 C1000 X1005", [1000]),
        ("J5000 B5000 B4000 J4000", [5000]),  # late, by a second
        ("J5000 B5000 B3999 J3999", [5000, 3999]),  # it begins anew
    ],
)
def test_a_state_is_there_when_all_its_parts_are_newer_than_the_last_one(events, received):
    hardware = Hardware()
    names = {"J": NAMES, "A": NAMES[:2], "C": NAMES[2:], "X": ["bell"]}
    for part, *digits in events.split():
        ms = int("".join(digits))
        hardware.body(ms) if part == "B" else hardware.joints(ms, names[part])
    assert hardware.received == received and hardware.refused == []
    assert hardware.jumped == ([pytest.approx(1.001)] if 3999 in received else [])


def test_joints_without_their_numbers_are_refused():
    hardware = Hardware()
    hardware.joints(1010, position=[0.0], velocity=[])
    ((kind, reason),) = hardware.refused
    assert kind is Refusal.LENGTH and "1 positions" in reason


@pytest.mark.parametrize("velocity", [0.25, []])
def test_velocities_are_there_if_all_joints_have_them(velocity):
    hardware = Hardware()
    hardware.joints(1000, NAMES[:1], position=0.1)
    hardware.joints(1000, NAMES[1:], velocity, position=0.3)
    hardware.body(1000)
    moves, q, v = hardware.read()
    assert moves is bool(velocity)
    assert q == [0.1, -0.3]  # the wheels turn against each other
    np.testing.assert_array_equal(v, [0.25, -0.25 if velocity else np.nan])
    quality = hardware.desk.subscribed["joint_states"].qos  # sensors may be best effort
    assert quality.reliability.name == "BEST_EFFORT" and quality.depth == 10
    assert quality.durability.name == "VOLATILE"


def test_a_velocity_nan_is_none_and_other_joints_may_be_anything():
    """As of joint_state_broadcaster, for joints without the interface."""
    hardware, nan = Hardware(), np.nan
    names, position = [*NAMES, "gripper"], [0.1, 0.3, -0.3, nan]
    hardware.joints(1000, names, [nan, -0.2, 0.2, np.inf], position)
    hardware.body(1000)
    assert hardware.received == [1000]
    moves, q, v = hardware.read()
    assert not moves and q == [0.1, -0.3]
    np.testing.assert_array_equal(v, [nan, 0.2])
