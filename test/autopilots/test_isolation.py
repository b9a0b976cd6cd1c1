"""Programs with the same fixed port, each in a network namespace of its own."""

import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from nh_control.autopilots import isolation

ECHO = """
import ctypes, socket
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind(("0.0.0.0", 49003))
while True:
    data, peer = one.recvfrom(100)
    if data == b"timer slack":
        data = str(ctypes.CDLL(None).prctl(30, 0, 0, 0, 0)).encode()
    one.sendto(b"{name} " + data, ("127.0.0.1", 49002))
"""


def allowed():
    """Whether the system allows network namespaces, as the program `unshare` finds."""
    command = shutil.which("unshare")
    return command and not subprocess.run([command, "-rn", "true"], check=False).returncode


@pytest.fixture
def echoes(tmp_path):
    """A function that starts an echo on port 49003, with replies to port 49002."""
    with ExitStack() as stack:

        def start(name):
            log = stack.enter_context((tmp_path / name).open("wb"))
            command = [sys.executable, "-S", "-c", ECHO.replace("{name}", name)]
            try:
                made = isolation.start(command, tmp_path, [49002], log)
            except isolation.IsolationRefused as refused:
                if allowed():
                    raise
                pytest.skip(str(refused))
            stack.callback(made.process.wait)
            stack.callback(made.process.kill)
            for one in (*made.udp, *made.tcp):
                stack.callback(one.close)
                one.settimeout(0.2)
            return made

        yield start


def asked(made, question=b"hello"):
    """The answer to a packet; it is sent until the program has bound its port."""
    bound, other = made.udp
    for _ in range(50):
        other.sendto(question, (isolation.LOOPBACK, 49003))
        try:
            return bound.recv(100)
        except (TimeoutError, ConnectionRefusedError):
            continue
    raise AssertionError("no answer")


def test_two_programs_have_the_same_port_and_nothing_outside_reaches_them(echoes):
    one, two = echoes("one"), echoes("two")
    assert asked(one) == b"one hello"
    assert asked(two) == b"two hello"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outside:
        outside.bind((isolation.LOOPBACK, 49003))  # the port is free here


def test_sleeps_of_the_program_end_on_time(echoes):
    assert asked(echoes("one"), b"timer slack") == b"one 1"  # ns


def test_a_refused_namespace_is_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "__file__", str(tmp_path / "refuses.py"))
    (tmp_path / "refuses.py").write_text(
        "import socket, sys\n"
        "socket.socket(fileno=int(sys.argv[1])).sendall(b'unshare: not permitted')\n"
    )
    with (
        (tmp_path / "log").open("wb") as log,
        pytest.raises(isolation.IsolationRefused, match=r"not permitted; allow user namespaces"),
    ):
        isolation.start(["firmware"], tmp_path, [49002], log)
