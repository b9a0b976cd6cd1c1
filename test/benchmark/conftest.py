"""`--short`: every benchmark, once and small, so that none rots."""

import os


def pytest_addoption(parser):
    parser.addoption(
        "--short",
        action="store_true",
        help="benchmarks in their short form: that they run, not how fast",
    )


def pytest_configure(config):
    """Tell `sizes`, here and in the processes that are started."""
    if config.getoption("--short"):
        os.environ["NH_CONTROL_SHORT"] = "1"
