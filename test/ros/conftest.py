"""Every test that starts nodes gets a DDS domain of its own, its processes ended and its logs kept
out of the home folder.
"""

from __future__ import annotations

import random
import socket

import pytest

DOMAINS = range(1, 102)
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
    """A DDS domain that no other test on this machine uses: whoever listens on the TCP port of the
    number of its first UDP port has it.
    """
    for number in random.sample(DOMAINS, len(DOMAINS)):
        with socket.socket() as reserved:
            try:
                reserved.bind(("127.0.0.1", 7400 + 250 * number))
            except OSError:
                continue
            reserved.listen()
            yield number
            return
    pytest.fail("no DDS domain is free: tests of 101 others run on this machine")


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
