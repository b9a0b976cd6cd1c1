"""Benchmarks measure compiled code. `--short` runs every benchmark once with small sizes, so that
none becomes outdated.
"""

import os

os.environ.pop("NH_CONTROL_CC", None)


def pytest_addoption(parser):
    parser.addoption(
        "--short",
        action="store_true",
        help="benchmarks in their short form: that they run, not how fast",
    )


def pytest_configure(config):
    """Set `sizes` here and in the started processes."""
    if config.getoption("--short"):
        os.environ["NH_CONTROL_SHORT"] = "1"
