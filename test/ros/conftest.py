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
