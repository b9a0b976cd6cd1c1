"""The life of a managed node around a component, in this process."""

import pytest


@pytest.fixture
def managed(domain):
    """Makes managed nodes around components, with parameters."""
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    from nh_control.ros.runtime.process import Exit, ManagedNode

    made = []

    def make(component, **parameters):
        given = [part for key, value in parameters.items() for part in ("-p", f"{key}:={value}")]
        rclpy.init(
            args=["test", "--ros-args", *given],
            domain_id=domain,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        made.append(ManagedNode("robot", component, Exit()))
        return made[-1]

    yield make
    for node in made:
        node.end()
    rclpy.shutdown(uninstall_handlers=False)


class Worker:
    """A component that counts how often it works and serves."""

    made = 0

    def __init__(self, node, inbox, _):
        from std_msgs.msg import Empty

        from nh_control.ros.runtime.declared import DISPLAY
        from nh_control.ros.runtime.parameters import Parameters

        Worker.made += 1
        self.parameters = Parameters(node, DISPLAY)
        self.inbox, self.worked, self.closed = inbox, 0, 0
        node.create_publisher(Empty, "beat", 1)
        inbox.subscribe(Empty, "pulse", lambda _: None, 1)
        node.create_timer(1.0, lambda: None)

    def work(self):
        """Count, and serve."""
        self.worked += 1
        self.inbox.run()

    def close(self):
        """Count."""
        self.closed += 1


def entities(node):
    """How many of all kinds a node has."""
    return [len(list(found)) for found, _ in node._entities()]


def test_a_component_works_while_its_node_is_active_and_leaves_nothing_behind(managed):
    from rclpy.lifecycle import TransitionCallbackReturn

    success = TransitionCallbackReturn.SUCCESS
    node = managed(Worker, autostart="false", rate_hz="7.0")
    node.start()
    before = entities(node)
    for _ in range(2):
        assert node.trigger_configure() is success
        worker = node._component
        assert worker.parameters["rate_hz"] == 7.0
        with pytest.raises(Exception, match="the robot is not active"):
            worker.inbox.call(lambda: 1)
        for times in (1, 2):
            assert node.trigger_activate() is success
            assert worker.inbox.call(lambda worker=worker: worker.worked) == times
            assert node.trigger_deactivate() is success
        assert node.trigger_cleanup() is success
        assert worker.closed == 1 and entities(node) == before


def test_the_first_reason_to_end_a_process_counts():
    from nh_control.ros.runtime.process import Exit

    end, reason = Exit(), RuntimeError("why")
    end.request()
    end.request(reason, 3)
    end.request()
    end.request(RuntimeError("late"), 4)
    assert end.error is reason and end.code == 3


def test_a_node_starts_itself_and_ends(managed):
    node = managed(Worker)
    node.start()
    worker = node._component
    assert worker.inbox.call(lambda: worker.worked) == 1
    node._stop()
    node._close()
    assert worker.closed == 1


def test_a_component_that_cannot_be_made_is_told_and_leaves_nothing(managed):
    from rclpy.lifecycle import TransitionCallbackReturn

    from nh_control.ros.runtime.process import UsageError

    node = managed(Worker, rate_hz="-1.0")
    before = entities(node)
    with pytest.raises(UsageError, match="'rate_hz' must be a finite number >= 0.1"):
        node.start()
    assert entities(node) == before
    assert node.trigger_configure() is TransitionCallbackReturn.FAILURE


def test_a_node_that_is_shut_down_ends_its_process(managed):
    import select

    node = managed(Worker, autostart="false")
    node.start()
    asked = lambda: bool(select.select([node._exit._read], [], [], 0.0)[0])  # noqa: E731
    assert not asked()
    node.trigger_shutdown()
    assert asked() and node._exit.code == 0 and node._exit.error is None


@pytest.mark.parametrize("ends", [True, False])
def test_an_error_that_is_no_wrong_use_ends_a_process_that_has_started(managed, ends):
    from rclpy.lifecycle import TransitionCallbackReturn

    from nh_control.ros.runtime.process import UsageError

    error = RuntimeError("broken") if ends else UsageError("no such thing")

    def fail(*_):
        raise error

    node = managed(fail, autostart="false")
    node.start()
    assert node.trigger_configure() is TransitionCallbackReturn.FAILURE
    assert node._exit.error is (error if ends else None)


def test_quality_of_service_may_be_overridden_by_parameters(managed):
    reliable = "qos_overrides./beat.publisher.reliability"
    node = managed(Worker, **{reliable: "best_effort", "autostart": "true"})
    node.start()
    (beat,) = [one for one in node.publishers if one.topic_name == "/beat"]
    assert beat.qos_profile.reliability.name == "BEST_EFFORT" and beat.qos_profile.depth == 1
    told = node.get_parameter("qos_overrides./pulse.subscription.depth").value
    assert told == 1
    node.trigger_deactivate()
    node.trigger_cleanup()
    node.trigger_configure()  # again, with the same
    (beat,) = [one for one in node.publishers if one.topic_name == "/beat"]
    assert beat.qos_profile.reliability.name == "BEST_EFFORT"
