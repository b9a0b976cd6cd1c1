"""What an inbox handles, in which order, and what it does with what it cannot handle."""

import threading
import time
import types
from concurrent.futures import TimeoutError as CallTimeout

import pytest
import rclpy
from bench import alone, benches
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.duration import Duration
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.waitable import NumberOfEntities, Waitable
from std_msgs.msg import Int32, String
from std_srvs.srv import Trigger

from nh_control.loop.reports import Report
from nh_control.ros.runtime import inbox as module
from nh_control.ros.runtime.callback_errors import (
    LONGEST,
    QUIET_S,
    CallbackErrors,
    ThrottledLog,
)
from nh_control.ros.runtime.guards import GuardedExecutor, guard
from nh_control.ros.runtime.inbox import Inbox, answer


class Made:
    """An inbox, and what is published to it: `heard` are the messages, as they are handled."""

    def __init__(self, node):
        self.node, self.inbox, self.heard, self._publishers = node, Inbox(node), [], {}

    def subscribe(self, topic, callback=None, kind=Int32, **options):
        self._publishers[topic] = self.node.create_publisher(kind, topic, 10)
        hear = lambda message: self.heard.append((topic, getattr(message, "data", message)))
        self.inbox.subscribe(kind, topic, callback or hear, 10, **options)

    def send(self, topic, *values):
        """Messages arrive: numbers, or serialized ones."""
        publisher = self._publishers[topic]
        while not publisher.get_subscription_count():
            time.sleep(1e-3)
        for value in values:
            publisher.publish(value if isinstance(value, bytes) else Int32(data=value))
        assert publisher.wait_for_all_acked(Duration(seconds=60))


@pytest.fixture
def made():
    with alone() as context:
        node = rclpy.create_node("listener", context=context)
        yield Made(node)
        node.destroy_node()


@pytest.fixture
def served(made):
    thread = threading.Thread(target=made.inbox.run)
    thread.start()
    yield made.inbox
    made.inbox.close()
    thread.join()


def test_it_waits_as_long_as_asked_or_until_a_request(made):
    begun = time.monotonic()
    made.inbox.serve(0.0)
    assert not made.inbox.serve(0.05) and time.monotonic() >= begun + 0.05
    made.inbox.post(lambda: made.heard.append("request"))
    made.inbox.serve(1e12)  # longer than any wait can be, but there is a request
    threading.Timer(0.05, made.inbox.post, [lambda: made.heard.append("later")]).start()
    made.inbox.serve(None)
    assert made.heard == ["request", "later"]


def test_one_message_of_every_topic_is_taken_at_a_time_in_the_order_of_subscriptions(made):
    made.subscribe("a")
    made.subscribe("b", raw=True)
    made.send("b", 1, 2)
    made.send("a", 3)
    raw = [("b", bytes(serialize_message(Int32(data=value)))) for value in (1, 2)]
    assert made.inbox.serve(1.0) and made.heard == [("a", 3), raw[0]]
    made.inbox.serve(1.0)
    assert made.heard == [("a", 3), *raw]


def test_what_is_not_awaited_wakes_nobody_and_is_handled_with_the_next(made):
    awaited = threading.Event()
    made.subscribe("quiet", awaited=awaited.is_set)
    made.subscribe("loud")
    made.send("quiet", 1)
    made.inbox.serve(0.1)
    assert made.heard == []
    made.send("loud", 2)
    made.inbox.serve(1.0)
    assert made.heard == [("quiet", 1), ("loud", 2)]
    awaited.set()
    made.send("quiet", 3)
    made.inbox.serve(1.0)
    assert made.heard[2:] == [("quiet", 3)]


def test_requests_are_carried_out_in_turn_and_what_they_ask_for_the_next_time(made):
    done = []

    def first():
        done.append(1)
        made.inbox.post(lambda: done.append(3))

    made.inbox.post(first)
    made.inbox.post(lambda: done.append(2))
    assert done == []
    made.inbox.serve(0.0)
    assert done == [1, 2]
    made.inbox.serve(0.0)
    assert done == [1, 2, 3]


def test_a_call_returns_or_raises_what_the_request_does_in_the_thread_that_serves(served):
    def slow():
        time.sleep(0.05)
        return threading.current_thread()

    assert served.call(slow) is not threading.current_thread()
    for error in (ValueError("no"), KeyError("no")):

        def fail(error=error):
            raise error

        with pytest.raises(type(error)):
            served.call(fail)
    assert served.call(lambda: 3) == 3  # it goes on
    assert served.errors.counts["callback_errors"] == 0  # who asked was told


def test_who_is_not_answered_does_not_wait_for_ever(made, monkeypatch):
    assert 1.0 <= module.ANSWER_S <= 10.0
    monkeypatch.setattr(module, "ANSWER_S", 0.01)
    with pytest.raises((TimeoutError, CallTimeout)):
        made.inbox.call(lambda: None)


@pytest.mark.parametrize("text", ["", "the plant is not active"])
def test_a_service_says_that_it_was_not_answered(text):
    def call(request):
        raise TimeoutError(*filter(None, [text]))

    response = types.SimpleNamespace(success=None, message="")
    answer(types.SimpleNamespace(name="plant", call=call), response, None, None)
    expected = text or "the plant did not answer in time"
    assert (response.success, response.message) == (False, expected)


def test_publishers_that_are_not_heard_are_named_by_topic(made):
    for topic in ("a", "b"):
        made.inbox.subscribe(Int32, topic, print, 1)
    assert made.inbox.incompatible_publishers() == {}
    unreliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    made.node.create_publisher(Int32, "b", unreliable)
    while not (found := made.inbox.incompatible_publishers()):
        time.sleep(1e-3)
    ((topic, [text]),) = found.items()
    assert topic == "/b" and text.startswith("listener (") and "best effort" in text
    pad = types.SimpleNamespace(node_name="pad", topic_type="std_msgs/msg/String")
    made.node.get_publishers_info_by_topic = lambda topic: [pad] if topic == "/a" else []
    (text,) = made.inbox.mistyped_publishers()
    assert text.startswith(
        "/a of pad is not received: its type is std_msgs/msg/String, this node expects"
    )


def test_what_raises_or_cannot_be_read_is_told_and_the_rest_is_handled(made, monkeypatch):
    def mistaken(*_):
        raise ZeroDivisionError("a mistake")

    def unreadable(*_, **__):
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    made.subscribe("a", mistaken)
    made.subscribe("b")
    made.subscribe("text", kind=String)
    made.send("a", 1)
    made.send("b", 2)
    made.send("text", bytes(serialize_message(String(data="?"))))
    monkeypatch.setattr(String, "__init__", unreadable)
    made.inbox.post(mistaken)
    made.inbox.post(lambda: made.heard.append("request"))
    made.inbox.serve(1.0)
    assert made.heard == [("b", 2), "request"]
    counts = made.inbox.errors.counts
    assert (counts["callback_errors"], counts["callback error: /a"]) == (2, 1)
    assert counts["malformed: /text"] == 1


# Messages and requests that cannot be handled ----------------------------------------------------


FINE = Report("ok", "tracking", {"step": 3})


class Log:
    """Keeps what is logged, by its level."""

    def __init__(self):
        self.warnings, self.errors = [], []
        self.warning, self.error = self.warnings.append, self.errors.append


@pytest.fixture
def errors():
    log = Log()
    found = CallbackErrors(log)
    found.log = log
    return found


def test_a_line_is_logged_once_in_a_while_and_tells_how_many_were_not():
    now, told = [100.0], []
    log = ThrottledLog(told.append, lambda: now[0])
    for text in "abc":
        log(text)
    now[0] += QUIET_S - 1e-6
    log("d")
    now[0] += 1e-6
    log("e")
    log("f")
    assert told == ["a", "e; 3 more were not logged"]
    now[0] += QUIET_S
    log("g")
    now[0] += QUIET_S
    log("h")
    assert told[2:] == ["g; 1 more were not logged", "h"]


def test_what_could_not_be_read_is_a_warning_without_a_traceback(errors):
    for _ in range(3):
        errors.malformed("joint_states", "no UTF-8")
    told = errors.with_counts(FINE)
    assert (told.level, told.message) == ("warn", "tracking; joint_states is malformed: no UTF-8")
    assert told.values["step"] == 3
    assert told.values["malformed"] == told.values["malformed: joint_states"] == 3
    assert told.values["callback_errors"] == 0
    assert errors.log.warnings == ["joint_states is malformed: no UTF-8"]
    assert errors.log.errors == []
    again = errors.with_counts(FINE)
    assert (again.level, again.message, again.values["malformed"]) == ("ok", "tracking", 3)


def test_an_error_of_the_node_itself_is_one_with_a_traceback_whatever_else_there_is(errors):
    errors.malformed("goal", "before")
    for _ in range(3):
        try:
            raise ZeroDivisionError("oh" + "x" * 10 * LONGEST)
        except ZeroDivisionError as error:
            errors.raised("goal", error)
        errors.malformed("goal", "afterwards")
    told = errors.with_counts(Report("warn", "late", {}))
    assert told.level == "error" and told.message.startswith("late; error in goal")
    assert len(told.message) < LONGEST + 20
    assert told.values["callback_errors"] == told.values["callback error: goal"] == 3
    (logged,) = errors.log.errors
    assert logged.startswith("error in goal, the node continues: ZeroDivisionError: oh")
    assert len(logged) < 2 * LONGEST + 20


def test_an_error_of_the_middleware_is_none_of_the_callback(errors):
    errors.raised("joint_states", rclpy_implementation.RCLError("cannot publish data"))
    told = errors.with_counts(FINE)
    assert told.level == "error" and told.message.endswith("RCLError: cannot publish data")
    assert told.values["middleware_errors"] == told.values["middleware error: joint_states"] == 1
    assert told.values["callback_errors"] == 0
    assert len(errors.log.errors) == 1


class Broken(Waitable):
    """Ready at once and for ever; raises when it is taken, or when it is executed."""

    def __init__(self, group, taken):
        super().__init__(group)
        self._taken, self.times = taken, 0

    __enter__ = __exit__ = add_to_wait_set = lambda self, *_: None
    is_ready = lambda self, wait_set: True
    get_num_entities = lambda self: NumberOfEntities()

    def take_data(self):
        self.times += 1
        if self._taken:
            raise UnicodeError("not to be read")

    async def execute(self, taken_data):
        raise RuntimeError("a mistake")


def spin(executor, done):
    """Spin until it is done; fails if that does not come."""
    for _ in range(1000):
        if done():
            return
        executor.spin_once(timeout_sec=1.0)
    raise AssertionError("never done")


@pytest.fixture
def executed(errors):
    with alone() as context:
        node, executor = Node("robot", context=context), GuardedExecutor(errors, context)
        executor.add_node(node)
        yield node, executor
        executor.shutdown()
        node.destroy_node()


@pytest.mark.parametrize("taken", [True, False])
def test_what_an_action_cannot_read_or_handle_ends_and_blocks_nothing(executed, errors, taken):
    node, executor = executed
    broken, ticks = Broken(node.default_callback_group, taken), []
    node.add_waitable(broken)
    node.create_timer(1e-3, lambda: ticks.append(1))
    spin(executor, lambda: broken.times > 2 and len(ticks) > 2)
    kind = "malformed: Broken" if taken else "callback error: Broken"
    assert errors.counts[kind] >= 3 and len(errors.log.warnings + errors.log.errors) == 1


def test_a_timer_and_a_task_that_raise_end_nothing(executed, errors):
    node, executor = executed
    ticks = []

    def tick():
        ticks.append(1)
        raise ValueError("a mistake")

    node.create_timer(1e-3, tick)
    task = executor.create_task(tick)
    right = executor.create_task(lambda x, y: (x, y), 7, y=8)
    spin(executor, lambda: len(ticks) > 2 and task.done() and right.done())
    assert errors.counts["callback_errors"] == len(ticks)
    assert task.result() is None and right.result() == (7, 8)


def answered(node, errors, kind, request):
    (service,) = (s for s in node.services if s.srv_type is kind)
    guard(node, service, errors)
    found = service.callback(request, kind.Response())
    if not hasattr(found, "send"):
        return found
    with pytest.raises(StopIteration) as end:
        found.send(None)
    return end.value.value


def mistaken(*_):
    raise RuntimeError("a mistake")


@pytest.fixture
def node():
    with benches() as make:
        yield make("robot", gain=1.0)


RIGHT = Parameter(name="gain", value=ParameterValue(type=3, double_value=2.0))


@pytest.mark.parametrize("kind", [SetParameters, SetParametersAtomically])
def test_parameters_of_no_type_are_refused_and_right_ones_set(node, errors, kind):
    wrong = Parameter(name="gain", value=ParameterValue(type=211))
    unknown = Parameter(name="gian", value=ParameterValue(type=3))

    def results(*given):
        answer = answered(node, errors, kind, kind.Request(parameters=given))
        return answer.results if kind is SetParameters else [answer.result]

    for given, successful in ((wrong, False), (unknown, False), (RIGHT, True)):
        (result,) = results(given)
        assert result.successful is successful and bool(result.reason) is not successful
    assert node.get_parameter("gain").value == 2.0
    first, *more = results(wrong, RIGHT)
    assert not first.successful and "211" in first.reason
    assert [r.successful for r in more] == ([True] if kind is SetParameters else [])
    assert errors.counts["malformed"] == 2 and errors.counts["callback_errors"] == 0


def test_a_mistake_in_a_check_or_a_service_is_answered_with_the_error(node, errors):
    node.add_on_set_parameters_callback(mistaken)
    request = SetParameters.Request(parameters=[RIGHT])
    (result,) = answered(node, errors, SetParameters, request).results
    assert node.get_parameter("gain").value == 1.0
    assert not result.successful and "RuntimeError: a mistake" in result.reason
    with alone() as context:
        other = Node("robot", context=context)
        other.create_service(Trigger, "start", mistaken)
        response = answered(other, errors, Trigger, Trigger.Request())
        other.destroy_node()
    assert not response.success and "RuntimeError: a mistake" in response.message
    assert "in mistaken" in errors.log.errors[0]  # where
    assert (errors.counts["malformed"], errors.counts["callback_errors"]) == (0, 2)
