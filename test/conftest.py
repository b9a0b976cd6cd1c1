"""Settings shared by all tests: a cache of their own, reproducible property tests, benchmarks only
where they are named.
"""

import gc
import os
import shutil
import signal
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings
from interpreting import without_compiler

BENCHMARKS = Path(__file__).parent / "benchmark"
LONG_TWINS = 3
SCRATCH = Path(tempfile.mkdtemp(prefix="nh_control_test_"))

for variable, folder in (
    ("NH_CONTROL_CACHE", "cache"),
    ("HYPOTHESIS_STORAGE_DIRECTORY", "hypothesis"),
    ("ROS_LOG_DIR", "ros_log"),
    ("MPLCONFIGDIR", "matplotlib"),
):
    os.environ[variable] = os.environ.get(variable) or str(SCRATCH / folder)
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    # the processes that tests start share bytecode, too: without it each compiles all it imports
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(SCRATCH / "bytecode"))
settings.register_profile("nh_control", deadline=None, derandomize=True, database=None)
settings.load_profile("nh_control")


def _twins(request):
    """The way of one of two twins: whether it runs without a compiler."""
    from nh_control.numerics import compiled  # not before the cache is set

    if not request.param and compiled.compiler() is None:
        pytest.skip("needs a C compiler")
    with without_compiler() if request.param else nullcontext():
        yield request.param


BOTH_WAYS = {"params": (True, False), "ids": ("interpreted", "native")}
interpreted = pytest.fixture(**BOTH_WAYS)(_twins)
"""The test runs twice: in CasADi's virtual machine, because a few steps of a system take less time
than compiling it, and natively, as users run it. `_mark_twins` says which native ones are slow.
"""
module_interpreted = pytest.fixture(scope="module", **BOTH_WAYS)(_twins)
"""The same for fixtures of a module, and, by `usefixtures`, for all of its tests."""


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


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What the collection makes stays until the end: it is not searched for garbage, neither while
    it grows nor by each test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """Tests of node processes follow one another on one worker of pytest-xdist (--dist loadgroup),
    whatever else runs beside them.
    """
    for item in items:
        if item.path.name.startswith("test_nodes") or item.path.name == "test_run.py":
            item.add_marker(pytest.mark.xdist_group("nodes"))
    _mark_twins(items)


def _mark_twins(items):
    """The native twin of the first case of a test, of those in the earliest set, is in that set;
    the twins of others, and those marked `native_twin_slow`, are one set later: default, slow,
    exhaustive. Of one test, LONG_TWINS of them at most are slow, or all with `native_twins_cheap`.
    """
    tests = {}
    for item in items:
        ways = item.callspec.params if hasattr(item, "callspec") else {}
        if not ways.get("interpreted", ways.get("module_interpreted", True)):
            tests.setdefault((item.path, item.cls, item.originalname), []).append(item)
    for twins in tests.values():
        first, long = min(twins, key=_set), 0
        for item in twins:
            if item is first and not item.get_closest_marker("native_twin_slow"):
                continue
            most = len(twins) if item.get_closest_marker("native_twins_cheap") else LONG_TWINS
            seldom = bool(_set(item)) or long >= most
            item.add_marker("exhaustive" if seldom else "slow")
            long += not seldom


def _set(item):
    """0: default, 1: slow, 2: exhaustive."""
    marks = {mark.name for mark in item.iter_markers()}
    return 2 if "exhaustive" in marks else int("slow" in marks)


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
