"""Every test that starts nodes gets a DDS domain of its own, its processes ended and its logs kept
out of the home folder.
"""

from __future__ import annotations

import pytest

_NODE_TESTS = "test_nodes"


def pytest_collection_modifyitems(items):
    """Tests of nodes are skipped where ROS cannot be imported."""
    try:
        import rclpy  # noqa: F401
    except ImportError as missing:
        for item in items:
            if item.path.name.startswith(_NODE_TESTS):
                item.add_marker(
                    pytest.mark.skip(reason=f"needs ROS 2: {missing}; pip install -e '.[ros]'")
                )


@pytest.fixture
def domain():
    """A DDS domain that no other test on this machine uses."""
    from dds_domains import reserved_domain

    with reserved_domain() as number:
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
