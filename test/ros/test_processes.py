"""What a node's process runs, how it is managed, what ends it and with which code."""

import os
import select
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import rclpy
from bench import Desk, Ended, benches
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Empty

from nh_control.ros.nodes import start
from nh_control.ros.nodes.display import Display
from nh_control.ros.nodes.plant import Plant
from nh_control.ros.nodes.recorder import Recorder
from nh_control.ros.nodes.shadow import ShadowNode
from nh_control.ros.nodes.tracker import Tracker
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import DISPLAY, TRACKER
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.process import Exit, ManagedNode, UsageError
from nh_control.runs.conventions import CONVENTIONS
from nh_control.runs.node_process import PARENT, WRONG_USE

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


@pytest.fixture(autouse=True)
def handlers():
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in zip(numbers, before):
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("words", "stray"),
    [
        ("", []),
        ("scenario:=cart_pole", ["scenario:=cart_pole"]),
        ("--ros-args scenario:=cart_pole", ["scenario:=cart_pole"]),
        ("--ros-args -p scenario:=cart_pole lockstep:=true", ["lockstep:=true"]),
        ("--ros-args -r __node:=a --params-file f.yaml --disable-external-lib-logs", []),
        ("--ros-args -p a:=1 -- more", ["more"]),
    ],
)
def test_arguments_that_no_node_reads_are_refused(words, stray, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["plant", *words.split()])
    monkeypatch.setattr(start, "import_module", lambda _: SimpleNamespace(main=lambda: 0))
    monkeypatch.setattr(start.signal, "signal", lambda *_: None)
    assert start.plant() == (WRONG_USE if stray else 0)
    told = capsys.readouterr().err
    assert told == "" or f"plant: unknown arguments {' '.join(stray)}; set a parameter by" in told


@pytest.mark.parametrize(
    "name", ["plant", "tracker", "composed", "display", "view", "recorder", "shadow"]
)
def test_an_executable_runs_the_node_of_its_name_and_ends_as_it_does(name, monkeypatch):
    monkeypatch.delenv(PARENT, raising=False)
    monkeypatch.setattr(sys, "argv", [name, "--ros-args", "-p", "lockstep:=true"])
    imported, ended = [], []
    monkeypatch.setattr(start.os, "_exit", ended.append)

    def load(module):
        imported.append(module)
        for number in (signal.SIGINT, signal.SIGTERM):  # while it is imported
            signal.raise_signal(number)
        assert ended == [0, 0]
        return SimpleNamespace(main=lambda: 7)

    monkeypatch.setattr(start, "import_module", load)
    assert getattr(start, name)() == 7
    assert imported == [f"nh_control.ros.nodes.{name}"]


def test_help_tells_parameters_and_conventions_and_starts_nothing(monkeypatch, capsys):
    monkeypatch.setattr(start, "import_module", None)
    monkeypatch.setattr(sys, "argv", ["tracker", "--help"])
    assert start.tracker() == 0
    told = capsys.readouterr().out
    assert all(f"  {spec.name} (" in told for spec in TRACKER)
    assert all(one.units in told and one.axes in told for one in CONVENTIONS)


ENTRY = """
import ctypes, sys
from nh_control.ros.nodes.start import _end_with_parent
_end_with_parent()
number = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(number))
sys.exit(100 + number.value)
"""
"""Exits with the signal that the kernel is to send at the end of the parent, beyond 100."""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux only")
def test_a_node_ends_with_the_launch_that_started_it_also_if_that_has_ended_before():
    def exit_code(parent):
        environment = {**os.environ, PARENT: str(parent)}
        done = subprocess.run([sys.executable, "-c", ENTRY], env=environment, timeout=60)
        return done.returncode

    assert exit_code(os.getpid()) == 100 + signal.SIGTERM
    assert exit_code("") == 100  # not asked to
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # nobody has looked at it yet
    assert exit_code(ended.pid) == 0
    ended.wait()
    assert exit_code(ended.pid) == 0


KINDS = {
    kind.__name__.removesuffix("Node").lower(): kind
    for kind in (Plant, Tracker, Display, Recorder, ShadowNode)
}
MPC = {"scenario": "cart_pole", "controller": "mpc"}
REFUSED = [
    ("plant", {"spede_factor": 1.0}, r"'spede_factor'.*did you mean 'speed_factor'"),
    ("plant", {"plant.parameters.mass": 1.0}, r"'plant.parameters.mass'.*plant.parameters.m,"),
    ("plant", {"plant.parameters.m": float("nan")}, "'plant.parameters.m' must be a finite"),
    ("plant", {"plant.parameters.m": 0.1}, "must exceed"),
    ("plant", {"disturb": ["payload:gust:1,0,0"]}, "unknown target of a disturbance 'payload'"),
    ("plant", {"disturb": ["base_link:gust:1,0,duration=-1"]}, "duration must be a finite"),
    ("plant", {"perturb.swing": 0.1}, "unknown parameter 'perturb.swing'"),
    ("plant", {"perturb.seed": -2}, "'perturb.seed' must be an integer >= -1"),
    ("plant", {"plant.integrator": "euler"}, "unknown snakeboard integrator 'euler'"),
    ("plant", {"reference": "turning", "duration_s": 1e3}, "ends in motion after"),
    ("plant", {"scenario": "snakeboard", "urdf": "arm.urdf"}, "'snakeboard' takes no robot"),
    ("plant", {"scenario": "urdf", "urdf": "none.urdf"}, "none.urdf"),
    ("plant", {"reference": "flying"}, "unknown snakeboard reference 'flying'"),
    ("plant", {"integrator": "guess"}, "unknown snakeboard integrator 'guess'"),
    ("plant", {"fault": ["nonsense"]}, "nonsense"),
    ("plant", {"scenario": "quadrotor_payload", "command_interface": "position"}, "joint"),
    ("plant", {"wrench.targets": ["moon"]}, "target of wrenches"),
    ("tracker", {"reference": "backflip"}, "unknown snakeboard reference 'backflip'.*parking"),
    ("tracker", {"estimate": "sensors"}, "parameter 'estimate'.*needs sensors"),
    ("tracker", MPC | {"mpc.constraints": ["roof"]}, "roof"),
    ("display", {"rate": 3.0}, "unknown parameter 'rate'.*rate_hz"),
    ("recorder", {"scenario": __file__ + ":KINDS"}, "must be a nh_control Scenario"),
    ("shadow", {"integrator": "guess"}, "unknown snakeboard integrator 'guess'"),
    ("shadow", {"plant.parameters.m": -1.0}, "'plant.parameters.m' must be"),
]


@pytest.mark.parametrize(("name", "given", "words"), REFUSED)
def test_a_parameter_that_cannot_be_is_a_wrong_use_and_the_reason_is_told(name, given, words):
    with benches() as make, pytest.raises(UsageError, match=f"(?s){words}"):
        KINDS[name](make(name, **given), Desk(), Ended())


# Processes ---------------------------------------------------------------------------------------


class Worker:
    """A component that notes how often it works and ends; `work` is what a test has it do."""

    def __init__(self, node, inbox, exit_, work=lambda exit_: None):
        self.parameters = Parameters(node, DISPLAY)
        self.inbox, self.exit, self.todo = inbox, exit_, work
        self.worked = self.closed = 0
        node.create_publisher(Empty, "beat", 1)
        inbox.subscribe(Empty, "pulse", lambda _: None, 1)
        node.create_timer(1.0, lambda: None)

    def work(self):
        self.worked += 1
        self.todo(self.exit)
        self.inbox.run()

    def close(self):
        self.closed += 1


@pytest.fixture
def made():
    return []


@pytest.fixture
def run(domain, monkeypatch, made):
    """Run a component in this process: f(work(exit), make=...) -> exit code."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))

    def run(work=lambda exit_: None, make=None):
        def component(*given):
            made.append(Worker(*given, work))
            return made[-1]

        try:
            return process.run("robot", make or component, [])
        finally:
            rclpy.try_shutdown(uninstall_handlers=False)  # this process goes on

    return run


def fails(error):
    def fail(*_):
        raise error

    return fail


def test_the_exit_code_is_that_of_the_request_or_of_the_error(run, made):
    for code in (0, 3):
        assert run(lambda exit_, code=code: exit_.request(code=code)) == code
    assert run(make=fails(UsageError("no such thing"))) == 2
    for given in (
        {"make": fails(RuntimeError("broken"))},
        {"work": fails(RuntimeError("broken"))},
    ):
        with pytest.raises(RuntimeError, match="broken"):
            run(**given)
    assert [worker.closed for worker in made] == [1, 1, 1]


def test_a_signal_ends_the_process_well_and_a_second_one_is_not_heard(run, made):
    def interrupt(exit_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    assert run(interrupt) == 0 and made[0].closed == 1
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def dropped():
    """A signal in a place where nobody hears what its handler raises."""
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        return


def test_a_start_that_drops_its_interruption_is_interrupted_again(run):
    def goes_on(*_):
        dropped()
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            time.sleep(0.01)
        raise AssertionError("it was never interrupted again")

    with pytest.raises(SystemExit) as ended:
        run(make=goes_on)
    assert ended.value.code == 0


@pytest.mark.parametrize("failure", [UsageError, RuntimeError])
def test_what_a_start_makes_of_its_interruption_is_no_failure(run, failure):
    assert run(make=lambda *_: dropped() or fails(failure("no swing-up found"))()) == 0


def asked(exit_):
    return bool(select.select([exit_._read], [], [], 0.0)[0])


def test_a_request_ends_the_waiting_and_the_first_error_and_code_are_the_end_s():
    end, errors = Exit(), (RuntimeError("first"), RuntimeError("second"))
    assert not asked(end)
    end.request()
    assert asked(end)
    end.request(code=3)
    for error in errors:
        end.request(error, 4)
    for _ in range(100_000):  # too many do no harm
        end.request()
    end.wait()
    assert (end.error, end.code) == (errors[0], 3)


def test_the_first_signal_ends_a_start_and_none_what_has_started():
    end = Exit()
    end.install()
    with pytest.raises(SystemExit) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 0 and asked(end) and end.interrupted
    end.ignore()
    signal.raise_signal(signal.SIGINT)  # interrupts nothing any more
    started = Exit()
    started.install()
    started.started()
    signal.raise_signal(signal.SIGINT)
    assert asked(started)


# Managed nodes -----------------------------------------------------------------------------------


@pytest.fixture
def managed(domain, made):
    """Makes managed nodes around components: f(make, **parameters) -> node, its exit."""
    nodes = []

    def start(make=None, **parameters):
        def component(*given):
            made.append(Worker(*given))
            return made[-1]

        given = [part for key, value in parameters.items() for part in ("-p", f"{key}:={value}")]
        rclpy.init(
            args=["test", "--ros-args", *given],
            domain_id=domain,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        end = Exit()
        nodes.append(ManagedNode("robot", make or component, end))
        return nodes[-1], end

    yield start
    for node in nodes:
        node.end()
    rclpy.shutdown(uninstall_handlers=False)


def entities(node):
    kinds = (node.publishers, node.subscriptions, node.services, node.timers, node.guards)
    return [len(list(kind)) for kind in kinds]


def test_a_component_works_while_its_node_is_active_and_leaves_nothing_behind(managed, made):
    node, _ = managed(autostart="false", rate_hz="7.0")
    node.start()
    before = entities(node)
    for _ in range(2):
        assert node.trigger_configure() is SUCCESS
        worker = made[-1]
        assert worker.parameters["rate_hz"] == 7.0
        with pytest.raises(TimeoutError, match="the robot is not active"):
            worker.inbox.call(lambda: 1)
        for times in (1, 2):
            assert node.trigger_activate() is SUCCESS
            assert worker.inbox.call(lambda worker=worker: worker.worked) == times
            assert node.trigger_deactivate() is SUCCESS
        assert node.trigger_cleanup() is SUCCESS
        assert worker.closed == 1 and entities(node) == before


def test_a_component_that_cannot_be_made_is_told_and_leaves_nothing(managed):
    node, _ = managed(rate_hz="-1.0")
    before = entities(node)
    with pytest.raises(UsageError, match="'rate_hz' must be a finite number >= 0.1"):
        node.start()
    assert entities(node) == before
    assert node.trigger_configure() is FAILURE


def test_a_node_starts_itself_and_its_shutdown_ends_the_process(managed, made):
    node, end = managed()
    node.start()
    assert made[0].inbox.call(lambda: made[0].worked) == 1
    assert not asked(end)
    node.trigger_shutdown()
    assert asked(end) and end.code == 0 and end.error is None


@pytest.mark.parametrize("error", [RuntimeError("broken"), UsageError("no such thing")])
def test_an_error_that_is_no_wrong_use_ends_a_process_that_has_started(managed, error):
    node, end = managed(fails(error), autostart="false")
    node.start()
    assert node.trigger_configure() is FAILURE
    assert end.error is (None if isinstance(error, UsageError) else error)


def test_quality_of_service_may_be_overridden_by_parameters_also_after_a_cleanup(managed):
    node, _ = managed(**{"qos_overrides./beat.publisher.reliability": "best_effort"})
    node.start()
    for _ in range(2):
        (beat,) = [one for one in node.publishers if one.topic_name == "/beat"]
        quality = beat.qos_profile
        assert (quality.reliability.name, quality.depth) == ("BEST_EFFORT", 1)
        assert node.get_parameter("qos_overrides./pulse.subscription.depth").value == 1
        node.trigger_deactivate()
        node.trigger_cleanup()
        node.trigger_configure()


def test_all_nodes_of_a_process_are_interrupted_before_one_of_them_ends(monkeypatch):
    """The plant's thread may wait for subscribers in place of the tracker, which ends later."""
    told = []

    class Executor:
        def __init__(self, errors):
            pass

        add_node = staticmethod(lambda node: None)
        spin_until_future_complete = staticmethod(lambda stop: None)
        shutdown = staticmethod(lambda: None)

    def node(name):
        tell = lambda what: lambda: told.append(f"{what} {name}")  # noqa: E731
        return SimpleNamespace(errors=None, interrupt=tell("interrupt"), end=tell("end"))

    monkeypatch.setattr(process, "GuardedExecutor", Executor)
    process._serve([node("tracker"), node("plant")], SimpleNamespace(wait=lambda: None))
    assert told == ["interrupt plant", "interrupt tracker", "end plant", "end tracker"]
