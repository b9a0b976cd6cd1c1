"""The life of a node's process: what its executables run, and its exit codes."""

import os
import select
import signal
import time
from types import SimpleNamespace

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from nh_control.ros.nodes import start  # noqa: E402
from nh_control.ros.runtime import process  # noqa: E402
from nh_control.ros.runtime.process import Exit, UsageError  # noqa: E402
from nh_control.runs.node_process import PARENT  # noqa: E402


@pytest.fixture(autouse=True)
def handlers():
    """Signals are handled afterwards as before."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in zip(numbers, before):
        signal.signal(number, handler)


@pytest.mark.parametrize(
    "name", ["plant", "tracker", "composed", "display", "view", "recorder", "shadow"]
)
def test_an_executable_runs_the_node_of_its_name_and_ends_as_it_does(name, monkeypatch):
    monkeypatch.delenv(PARENT, raising=False)
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


def test_a_process_ends_with_its_launch_only_if_it_is_asked_to(monkeypatch):
    asked = []
    library = SimpleNamespace(prctl=lambda *given: asked.append(given))
    monkeypatch.setattr(start.ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(start.sys, "platform", "linux")
    for parent in ("", None):
        monkeypatch.delenv(PARENT, raising=False)
        if parent is not None:
            monkeypatch.setenv(PARENT, parent)
        start._end_with_parent()
        assert asked == []
    monkeypatch.setenv(PARENT, str(os.getpid()))
    monkeypatch.setattr(start, "_runs", lambda number: number == os.getpid())
    start._end_with_parent()
    assert asked == [(1, signal.SIGTERM)]


@pytest.mark.parametrize(
    ("told", "runs"),
    [
        ("7 (python) S 1", True),
        ("7 (python) Z 1", False),
        ("7 (python) X 1", False),
        ("7 (a) Z (b) R 1", True),
        (None, False),
    ],
)
def test_a_process_runs_unless_it_is_gone_or_waits_to_be_looked_at(told, runs, monkeypatch):
    """Its name may look like a state."""

    def read():
        if told is None:
            raise FileNotFoundError
        return told

    monkeypatch.setattr(start, "Path", lambda path: SimpleNamespace(read_text=read))
    assert start._runs(7) is runs


class Component:
    """One that does what a test says when it works, and notes how it ends."""

    ended = []

    def __init__(self, inbox, work):
        self._inbox, self._work = inbox, work

    def work(self):
        """Do it, and wait for the end."""
        self._work()
        self._inbox.run()

    def close(self):
        """Note it."""
        self.ended.append(True)


@pytest.fixture
def run(domain, monkeypatch):
    """Run a component in this process: f(work(exit), make=...) -> exit code."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
    Component.ended = []

    def run(work=lambda exit_: None, make=None):
        def component(node, inbox, exit_):
            return Component(inbox, lambda: work(exit_))

        try:
            return process.run("robot", make or component, [])
        finally:
            rclpy.try_shutdown(uninstall_handlers=False)  # this process goes on

    return run


def test_the_exit_code_is_that_of_the_request(run):
    for code in (0, 3):
        assert run(lambda exit_, code=code: exit_.request(code=code)) == code
    assert Component.ended == [True, True]


def test_a_signal_ends_the_process_well_and_a_second_one_is_not_heard(run):
    def interrupt(exit_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    assert run(interrupt) == 0 and Component.ended == [True]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_wrong_use_has_an_exit_code_of_its_own_and_other_errors_are_raised(run):
    def misused(*_):
        raise UsageError("no such thing")

    def broken(*_):
        raise RuntimeError("broken")

    assert run(make=misused) == 2
    with pytest.raises(RuntimeError, match="broken"):
        run(make=broken)
    with pytest.raises(RuntimeError, match="broken"):
        run(broken)
    assert Component.ended == [True]


def dropped():
    """A signal in a place where nobody hears what its handler raises."""
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        return


def test_a_start_that_drops_its_interruption_is_interrupted_again(run):
    """However long it would take, and whatever it makes of it."""

    def goes_on(*_):
        dropped()
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            time.sleep(0.01)
        raise AssertionError("it was never interrupted again")

    with pytest.raises(SystemExit) as ended:
        run(make=goes_on)
    assert ended.value.code == 0


@pytest.mark.parametrize("failure", [UsageError, ValueError, RuntimeError])
def test_what_a_start_makes_of_its_interruption_is_no_failure(run, failure):
    def fails(*_):
        dropped()
        raise failure("no swing-up found")

    assert run(make=fails) == 0


def asked(exit_):
    """Whether the process is to end."""
    return bool(select.select([exit_._read], [], [], 0.0)[0])


def test_a_request_ends_the_waiting_and_too_many_do_no_harm():
    end = Exit()
    assert not asked(end)
    for _ in range(100_000):
        end.request()
    assert asked(end)
    end.wait()


def test_the_first_error_and_the_first_code_are_the_end_s():
    end, errors = Exit(), (RuntimeError("first"), RuntimeError("second"))
    end.request()
    end.request(code=3)
    for error in errors:
        end.request(error, 4)
    end.request()
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


def test_help_tells_parameters_and_conventions_and_starts_nothing(monkeypatch, capsys):
    from nh_control.ros.runtime.declared import TRACKER
    from nh_control.runs.conventions import CONVENTIONS

    monkeypatch.setattr(start, "import_module", None)
    monkeypatch.setattr(start.sys, "argv", ["tracker", "--help"])
    assert start.tracker() == 0
    told = capsys.readouterr().out
    assert all(f"  {spec.name} (" in told for spec in TRACKER)
    assert all(one.units in told and one.axes in told for one in CONVENTIONS)
