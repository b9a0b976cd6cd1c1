"""Settings shared by all tests: a cache of their own, reproducible property tests, benchmarks only
where they are named.
"""

import gc
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings
from tiers import with_compiler

BENCHMARKS = Path(__file__).parent / "benchmark"
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
if named := os.environ.get("NH_CONTROL_CC"):
    os.environ["CC"] = named
os.environ["NH_CONTROL_CC"] = ""  # tests compile nothing, see tiers.py
settings.register_profile("nh_control", deadline=None, derandomize=True, database=None)
settings.load_profile("nh_control")


@pytest.fixture(autouse=True, scope="session")
def planned_once():
    """References, which are pure functions of the model, are planned once in a process."""
    from nh_control.scenarios.scenario import Scenario  # not before the cache is set

    plan, plans = Scenario.reference, {}

    def reference(scenario, model, name=""):
        name = name or next(iter(scenario.references))
        make = scenario.references.get(name)
        if make is None:  # a file or a free motion
            return plan(scenario, model, name)
        numbers = model.h, model.parameter_values.tobytes()
        key = name, make, scenario.make_system, model.method.name, *numbers
        if key not in plans:
            plans[key] = plan(scenario, model, name)
        return replace(plans[key], dsys=plans[key].dsys and model)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scenario, "reference", reference)
        yield


@pytest.fixture
def compiler():
    """The functions of a test are compiled; it is skipped without a C compiler."""
    with with_compiler():
        yield


@pytest.fixture
def sketched(monkeypatch):
    """Figures are made and saved but stay blank: rendering takes most of the time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    monkeypatch.setattr(FigureCanvasAgg, "draw", FigureCanvasAgg.get_renderer)


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Return f(*arguments) -> finished `nh_control` in this process, in a new folder."""
    from nh_control.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as stopped:
            code = stopped.code
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    return run


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


def pytest_collection_finish():
    """The warning that there is no compiler, which comes once, is not in the log of a test."""
    from nh_control.numerics import compiled  # not before the cache is set

    compiled.compiler()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With --dist loadgroup, a worker of pytest-xdist runs all tests of a file, whose systems are
    then made once. Tests of node processes follow one another on one worker, whatever else runs
    beside them.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::")[0]
            name = file.rsplit("/", 1)[-1]
            return "nodes" if name.startswith("test_nodes") or name == "test_run.py" else file

    return ByFile(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Samples are drawn after `-m` has chosen."""
    yield
    if config.option.sample:
        _sample(config, items)


def pytest_addoption(parser):
    """A sample of the cases of every test."""
    parser.addoption(
        "--sample",
        type=int,
        metavar="N",
        help="run at most N cases of every test: always the same ones, drawn by their names",
    )


def _sample(config, items):
    """Deselect the cases beyond the sample."""
    tests = {}
    for item in items:
        tests.setdefault((item.path, item.cls, item.originalname), []).append(item)
    kept, number = set(), config.option.sample
    for cases in tests.values():
        kept.update(sorted(cases, key=lambda item: crc32(item.nodeid.encode()))[:number])
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


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
