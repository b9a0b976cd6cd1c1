"""What wakes a working thread."""

import threading
import time

import pytest

TIMEOUT_S = 120.0


@pytest.fixture
def node(domain):
    """A node of this process."""
    import rclpy
    from rclpy.context import Context

    context = Context()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("listener", context=context)
    yield node
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_requests_of_before_it_was_opened_are_not_carried_out(node):
    from nh_control.ros.runtime.inbox import Inbox

    inbox, done = Inbox(node), []
    inbox.post(lambda: done.append("before"))
    inbox.close()
    inbox.post(lambda: done.append("between"))
    inbox.open()
    inbox.post(lambda: done.append("after"))
    inbox.serve(0.0)
    assert done == ["after"]


def test_a_message_that_is_not_awaited_is_handled_with_one_that_is(node):
    from std_msgs.msg import Int32

    from nh_control.ros.runtime.inbox import Inbox

    inbox, heard, awaited = Inbox(node), [], threading.Event()
    inbox.subscribe(Int32, "quiet", lambda m: heard.append(m.data), 10, awaited=awaited.is_set)
    inbox.subscribe(Int32, "loud", lambda m: heard.append(m.data), 10)
    quiet, loud = (node.create_publisher(Int32, topic, 10) for topic in ("quiet", "loud"))
    deadline = time.monotonic() + TIMEOUT_S

    def until(condition, meanwhile=lambda: None):
        while not condition():
            assert time.monotonic() < deadline
            meanwhile()
            time.sleep(0.01)

    thread = threading.Thread(target=inbox.run)
    thread.start()
    try:
        until(lambda: quiet.get_subscription_count() and loud.get_subscription_count())
        quiet.publish(Int32(data=1))
        time.sleep(0.3)
        assert heard == []
        until(lambda: 1 in heard, lambda: loud.publish(Int32(data=2)))
        awaited.set()
        inbox.call(lambda: None)  # it waits anew, for both
        quiet.publish(Int32(data=3))
        until(lambda: 3 in heard)
    finally:
        inbox.close()
        thread.join()


@pytest.fixture
def served(node):
    """An inbox that a thread serves."""
    from nh_control.ros.runtime.inbox import Inbox

    inbox = Inbox(node)
    thread = threading.Thread(target=inbox.run)
    thread.start()
    yield inbox
    inbox.close()
    thread.join()


def test_a_call_returns_what_the_request_returns_or_raises(served):
    def fail():
        raise ValueError("no luck")

    def slow():
        time.sleep(0.05)
        return threading.current_thread()

    assert served.call(slow) is not threading.current_thread()
    with pytest.raises(ValueError, match="no luck"):
        served.call(fail)
    assert served.call(lambda: 3) == 3  # it goes on


def test_who_is_not_answered_does_not_wait_for_ever(node, monkeypatch):
    from concurrent.futures import TimeoutError as CallTimeout

    from nh_control.ros.runtime import inbox as module

    assert 1.0 <= module.ANSWER_S <= 10.0
    monkeypatch.setattr(module, "ANSWER_S", 0.01)
    inbox = module.Inbox(node)
    with pytest.raises((TimeoutError, CallTimeout)):
        inbox.call(lambda: None)
    inbox.close()
    with pytest.raises(TimeoutError, match="the listener is not active"):
        inbox.call(lambda: None)


def test_a_request_that_asks_again_does_not_keep_messages_waiting(node):
    from nh_control.ros.runtime.inbox import Inbox

    inbox, done = Inbox(node), []

    def again():
        done.append(True)
        if len(done) < 5:
            inbox.post(again)

    inbox.post(again)
    inbox.serve(1e12)  # longer than any wait can be, but there is a request
    assert len(done) == 1
    inbox.serve(0.0)
    assert len(done) == 2


def test_what_is_posted_to_a_closed_inbox_is_not_kept(node):
    from nh_control.ros.runtime.inbox import Inbox

    inbox, done = Inbox(node), []
    inbox.close()
    inbox.post(lambda: done.append(True))
    inbox.closed = False
    inbox.serve(0.0)
    assert done == []


def test_nobody_is_unheard_where_nobody_publishes(node):
    from std_msgs.msg import Int32

    from nh_control.ros.runtime.inbox import Inbox

    inbox = Inbox(node)
    inbox.subscribe(Int32, "quiet", lambda _: None, 10)
    assert inbox.incompatible_publishers() == {}
