"""Tests that start nodes get a DDS domain of their own, and end their processes."""

import socket
import warnings
from importlib.util import find_spec

import pytest

if find_spec("rclpy") is None:
    collect_ignore_glob = ["test_*.py"]
    warnings.warn("tests of nodes need ROS 2: pip install -e '.[ros]'", stacklevel=1)


@pytest.fixture
def domain():
    """A DDS domain that no other test on this machine uses."""
    from nh_control.runs.dds_domain import reserved_domain

    with reserved_domain() as number:
        yield number


@pytest.fixture
def free_domain():
    """A DDS domain for a run that is given it, and that no other test takes before, during or
    after that run: to them, a program listens in it.
    """
    from nh_control.runs.dds_domain import discovery_port, reserved_domain

    with socket.socket(type=socket.SOCK_DGRAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as DDS does
        with reserved_domain() as number:
            listening.bind(("", discovery_port(number)))
        yield number


@pytest.fixture
def udp(monkeypatch):
    """Nodes and probe without shared memory, for tests in which a node is killed and another one
    takes its place: Fast DDS does not always notice that a port's reader was killed, and writes to
    the old one for ever (its issue 5469).
    """
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")


@pytest.fixture
def nodes(domain, tmp_path):
    """Starts node processes; ends what still runs."""
    from node_processes import Nodes

    nodes = Nodes(domain, tmp_path)
    yield nodes
    nodes.end()


@pytest.fixture
def probe(domain):
    """A node in the test's process that listens, talks and calls."""
    from probe import Probe

    probe = Probe(domain)
    yield probe
    probe.close()
