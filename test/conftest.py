"""Settings shared by all tests: a cache of their own, reproducible property tests, benchmarks only
where they are named.
"""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

BENCHMARKS = Path(__file__).parent / "benchmark"
SCRATCH = Path(tempfile.mkdtemp(prefix="nh_control_test_"))

for variable, folder in (
    ("NH_CONTROL_CACHE", "cache"),
    ("HYPOTHESIS_STORAGE_DIRECTORY", "hypothesis"),
    ("ROS_LOG_DIR", "ros_log"),
    ("MPLCONFIGDIR", "matplotlib"),
):
    os.environ[variable] = os.environ.get(variable) or str(SCRATCH / folder)
settings.register_profile("nh_control", deadline=None, derandomize=True, database=None)
settings.load_profile("nh_control")


@pytest.fixture
def interpreted(monkeypatch):
    """CasADi's virtual machine: a few steps of a system take less time than compiling it."""
    from nh_control.numerics import compiled  # not before the cache is set

    monkeypatch.setattr(compiled, "compiler", lambda: None)


@pytest.fixture
def sketched(monkeypatch):
    """Figures are rendered as ever but for their layout, which takes most of the time."""
    from matplotlib.figure import Figure

    savefig = Figure.savefig

    def sketch(figure, *file, **options):
        figure.set_layout_engine(None)
        savefig(figure, *file, **options)

    monkeypatch.setattr(Figure, "savefig", sketch)


def pytest_configure(config):
    """Folders of tests lie with everything else that a run leaves. Processes of tests hear Ctrl-C,
    also where this one was started to ignore it, as in the background of a shell.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.basetemp is None:
        config.option.basetemp = SCRATCH / "tests"


def pytest_collection_modifyitems(items):
    """Tests of node processes follow one another on one worker of pytest-xdist (--dist loadgroup),
    whatever else runs beside them.
    """
    for item in items:
        if item.path.name.startswith("test_nodes") or item.path.name == "test_run.py":
            item.add_marker(pytest.mark.xdist_group("nodes"))


def pytest_unconfigure():
    """What a run compiled and stored goes with it, unless the environment named a folder to keep
    it in.
    """
    shutil.rmtree(SCRATCH, ignore_errors=True)


def pytest_ignore_collect(collection_path, config):
    """Leave out the benchmarks unless the command line names their folder or a file in it; None
    lets pytest decide.
    """
    named = [
        Path(config.invocation_params.dir, argument.split("::")[0]).resolve()
        for argument in config.args
    ]
    if collection_path == BENCHMARKS and not any(
        path == BENCHMARKS or BENCHMARKS in path.parents for path in named
    ):
        return True
    return None
