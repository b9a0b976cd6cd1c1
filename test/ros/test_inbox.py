"""What an inbox waits for, takes and carries out, in which order; without a network."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from rclpy.logging import get_logger  # noqa: E402

from nh_control.ros.runtime import inbox as module  # noqa: E402
from nh_control.ros.runtime.inbox import Inbox  # noqa: E402


class Topic:
    """The handle of a subscription, with messages that have come."""

    def __init__(self, name):
        self.pointer, self.came, self.asked = name, [], []

    def take_message(self, kind, raw):
        """The oldest one."""
        self.asked.append((kind, raw))
        return (self.came.pop(0), None) if self.came else None


class Waiting:
    """A wait set that notes what is waited for, and how long."""

    def __init__(self):
        self.topics, self.waits = [], []

    def clear_entities(self):
        """Begin anew."""
        self.topics = []

    def add_subscription(self, handle):
        """Wait for it, too."""
        self.topics.append(handle)

    def add_guard_condition(self, handle):
        """Requests."""

    def wait(self, ns):
        """Not at all."""
        self.waits.append(ns)

    def get_ready_entities(self, kind):
        """Those that have a message."""
        return [topic.pointer for topic in self.topics if topic.came]


class Node:
    """What an inbox needs of a node; `topics` by their names."""

    def __init__(self):
        self.topics, self.triggered = {}, 0
        self.context = SimpleNamespace(handle=None)

    def get_name(self):
        """Its name."""
        return "plant"

    def get_logger(self):
        """One for what the inbox has to tell."""
        return get_logger("plant")

    def create_guard_condition(self, callback, callback_group):
        """One that counts."""
        return SimpleNamespace(handle=None, trigger=self._trigger)

    def _trigger(self):
        self.triggered += 1

    def create_subscription(self, kind, topic, callback, quality, **options):
        """One with messages that a test gives."""
        self.topics[topic] = Topic(topic)
        return SimpleNamespace(
            handle=self.topics[topic], topic_name=f"/{topic}", qos_profile=quality
        )


@pytest.fixture
def made(monkeypatch):
    """An inbox, its node and its wait set."""
    waiting, node = Waiting(), Node()
    implementation = SimpleNamespace(WaitSet=lambda *counts: waiting)
    monkeypatch.setattr(module, "rclpy_implementation", implementation)
    return Inbox(node), node, waiting


@pytest.mark.parametrize(
    ("seconds", "ns"), [(None, -1), (0.0, 0), (0.25, 250_000_000), (1e9, 3_600_000_000_000)]
)
def test_it_waits_as_long_as_asked_but_an_hour_at_most(made, seconds, ns):
    inbox, _, waiting = made
    inbox.serve(seconds)
    assert waiting.waits == [ns]


def test_one_message_of_every_topic_is_taken_at_a_time_in_the_order_of_subscriptions(made):
    inbox, node, _ = made
    heard = []
    for topic, raw in (("a", False), ("b", True)):
        inbox.subscribe(int, topic, lambda message, t=topic: heard.append((t, message)), 3, raw)
    node.topics["b"].came = [1, 2]
    node.topics["a"].came = [3]
    inbox.serve(0.0)
    assert heard == [("a", 3), ("b", 1)]
    inbox.serve(0.0)
    assert heard[2:] == [("b", 2)]
    assert set(node.topics["a"].asked) == {(int, False)}
    assert set(node.topics["b"].asked) == {(int, True)}


def test_what_is_not_awaited_wakes_nobody_and_is_handled_with_the_next(made):
    inbox, node, waiting = made
    heard, waits = [], [False]
    inbox.subscribe(int, "a", heard.append, 1, awaited=lambda: waits[0])
    inbox.subscribe(int, "b", heard.append, 1)
    node.topics["a"].came = [1]
    inbox.serve(0.0)
    assert heard == [] and [topic.pointer for topic in waiting.topics] == ["b"]
    node.topics["b"].came = [2]
    inbox.serve(0.0)
    assert heard == [1, 2]
    node.topics["a"].came, waits[0] = [3], True
    inbox.serve(0.0)
    assert heard == [1, 2, 3]


def test_requests_are_carried_out_in_turn_and_what_they_ask_for_the_next_time(made):
    inbox, node, _ = made
    done = []

    def first():
        done.append(1)
        inbox.post(lambda: done.append(3))

    inbox.post(first)
    inbox.post(lambda: done.append(2))
    assert done == [] and node.triggered == 2
    inbox.serve(0.0)
    assert done == [1, 2]
    inbox.serve(0.0)
    assert done == [1, 2, 3]


def test_what_was_asked_before_it_was_opened_again_is_not_done(made):
    inbox, node, _ = made
    done = []
    inbox.post(lambda: done.append("before"))
    inbox.close()
    assert inbox.closed and node.triggered == 2
    inbox.run()  # ends at once
    inbox.post(lambda: done.append("closed"))
    with pytest.raises(TimeoutError, match="the plant is not active"):
        inbox.call(lambda: None)
    inbox.open()
    inbox.post(lambda: done.append("after"))
    inbox.post(inbox.close)
    inbox.run()
    assert done == ["after"]


def test_a_call_gives_what_the_request_gives_or_raises(made, monkeypatch):
    inbox, *_ = made

    def carry_out(request):
        try:
            request()
        except Exception:
            raised.append(request)

    raised = []  # in the working thread
    monkeypatch.setattr(inbox, "post", carry_out)
    monkeypatch.setattr(module, "ANSWER_S", 0.01)
    assert inbox.call(lambda: 7) == 7
    for error in (ValueError("no"), KeyError("no"), RuntimeError("no")):

        def fail(error=error):
            raise error

        with pytest.raises(type(error)):
            inbox.call(fail)
    assert raised == []


def test_publishers_that_are_not_heard_are_named_by_topic(made, monkeypatch):
    inbox, *_ = made
    for topic in ("a", "b"):
        inbox.subscribe(int, topic, print, 1)
    found = {"/a": [], "/b": ["camera (reliability)"]}
    monkeypatch.setattr(
        module, "incompatible_publishers", lambda node, topic, quality: found[topic]
    )
    assert inbox.incompatible_publishers() == {"/b": ["camera (reliability)"]}


def test_what_raises_is_told_and_the_rest_is_handled(made):
    inbox, node, _ = made
    heard = []

    def mistaken(message):
        raise ZeroDivisionError("a mistake")

    inbox.subscribe(int, "a", mistaken, 1)
    inbox.subscribe(int, "b", heard.append, 1)
    node.topics["a"].came, node.topics["b"].came = [1], [2]
    inbox.post(lambda: mistaken(3))
    inbox.post(lambda: heard.append(4))
    inbox.serve(0.0)
    assert heard == [2, 4]
    assert inbox.errors.counts["callback_errors"] == 2
    assert inbox.errors.counts["callback error: /a"] == 1


def test_what_cannot_be_read_is_told_and_the_rest_is_handled(made, monkeypatch):
    inbox, node, _ = made
    heard = []

    def unreadable(kind, raw):
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    for topic in "ab":
        inbox.subscribe(str, topic, heard.append, 1)
    monkeypatch.setattr(node.topics["a"], "take_message", unreadable)
    node.topics["a"].came, node.topics["b"].came = ["?"], ["!"]
    inbox.serve(0.0)
    assert heard == ["!"]
    assert inbox.errors.counts["malformed: /a"] == 1
    assert inbox.errors.counts["callback_errors"] == 0
