"""Controllers of a user's file in the command: simulate, study and their refusals."""

import json
import sqlite3

import pytest
from in_process_workers import InProcess

from nh_control.command import run_study
from nh_control.runs.saved_results import stored

CONTROLLERS = '''
import numpy as np


class Push:
    """Pushes the cart towards the start."""

    def __init__(self, model):
        self.model = model

    def command(self, k, x):
        return -5.0 * self.model.configuration(x)[:1]


class Held(Push):
    """The same, with targets of its own."""

    def __init__(self, model):
        super().__init__(model)
        self.targets = np.tile(model.state([0.0, 0.0], [0.0, 0.0]), (11, 1))


def nothing(k, x):
    return None if k == 5 else 0.0


class Fails:
    def command(self, k, x):
        return 1 / (k - 5)


class Broken:
    def __init__(self):
        raise OSError("no motor")


class Stateless:
    def command(self, x):
        return 0.0


class Silent:
    pass


class Fallen:
    def command(self, k, x):
        raise RuntimeError("no")


value = 3
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CONTROLLERS)
    return path


def simulated(call, name, *options):
    given = ("--duration", "0.1", "--no-plots", "--output", "out", "--overwrite", "--json")
    return call("simulate", "cart_pole", "--controller", name, *given, *options)


def test_simulate_takes_a_controller_with_faults_and_substeps(call, file):
    for options in ((), ("--fault", "delay=0.02"), ("--plant-substeps", "2")):
        done = simulated(call, f"{file}:Push", "--perturb-angle", "0.2", *options)
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout)
        assert summary["controller"] == f"{file}:Push" and summary["steps"] == 10
        assert summary["error"]["parts"]["theta"]["initial"] == pytest.approx(0.2)
    held = json.loads(simulated(call, f"{file}:Held", "--perturb-angle", "0.2").stdout)
    away = held["error"]["parts"]["theta"]["initial"]
    assert away == pytest.approx(0.2, abs=1e-6)  # the reference starts at rest, as its targets
    assert stored(file.parent / "out").result.experiment.tracker.limits.tolist() == [[-15.0, 15.0]]


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("Fails", ("failed at step 5", "mine.py, line 29", "return 1 / (k - 5)", "ZeroDivision")),
        ("nothing", ("failed at step 5", "mine.py", "must return 1 input (force), got None")),
    ],
)
@pytest.mark.parametrize("options", [(), ("--fault", "delay=0.02")], ids=["native", "messages"])
def test_a_controller_that_fails_ends_the_run_whose_steps_are_saved(
    name, texts, options, call, file
):
    done = simulated(call, f"{file}:{name}", *options)
    assert done.returncode == 1
    for text in texts:
        assert text in done.stderr
    assert json.loads(done.stdout)["steps"] == 5


def test_a_run_that_ends_at_its_first_step_has_the_error_of_its_start(call, file):
    done = simulated(call, f"{file}:Fallen", "--perturb-angle", "0.2")
    error = json.loads(done.stdout)["error"]["parts"]["theta"]
    assert error["initial"] == error["final"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.py:Push2", "unknown controller in {file} 'Push2' (did you mean 'Push'?)"),
        ("mine.py:value", "expected inputs or a controller: an object with `command(k, x)`"),
        ("mine.py:Stateless", "{file}, line 38) must take step k and state x, command(k, x), but"),
        ("mine.py:Silent", "{file}: the class Silent has no method command(k, x)"),
        ("mine.py", "such as mine.py:Push"),
        ("mine.py:Broken", "OSError: no motor"),
        ("none.py:Push", "no such file"),
        ("no_module:Push", "no module 'no_module' on Python's path"),
        ("pid", "'controller' must be lqr, mpc, external, path/to/file.py:NAME or module:NAME"),
        ("external", "answers the messages of nodes, but simulate starts none: use `nh_control r"),
    ],
)
def test_what_is_no_controller_is_named(name, text, call, file):
    done = simulated(call, name)
    assert done.returncode == 2 and text.format(file=file) in done.stderr
    assert not (file.parent / "out").exists()


def test_a_study_takes_a_controller_and_compares_controllers(call, file, monkeypatch):
    monkeypatch.setattr(run_study, "worker_pool", lambda *_: InProcess())
    given = ("--set", "duration=0.1", "--workers", "1", "--no-plots", "--output", "out")
    vary = f"controller=lqr,{file}:Push,{file}:Fails"
    done = call("study", "cart_pole", "--vary", vary, *given)
    assert done.returncode == 0, done.stderr
    rows = sqlite3.connect(file.parent / "out" / "runs.sqlite").execute(
        "SELECT controller, steps, failure FROM runs ORDER BY run"
    )
    (lqr, own, failed) = rows
    assert lqr[1:] == own[1:] == (10, "") and own[0] == f"{file}:Push"
    assert failed[1] == 5 and "mine.py, line 29" in failed[2]
    one = call("study", "cart_pole", "--controller", "mine.py:Push", "--seeds", "3", *given,
               "--command-of", "2")  # fmt: skip
    assert one.stdout.startswith("nh_control simulate cart_pole")
    assert f"--controller {file}:Push" in one.stdout


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--controller", "mine.py:Nobody"), "unknown controller in"),
        (("--controller", "pid"), "'controller' must be lqr, mpc, external"),
        (("--controller", "external"), "needs a domain that is known to both: add --domain N"),
        (("--controller", "external", "--workers", "2"), "answers one run after another"),
    ],
)
def test_a_study_refuses_a_controller_before_it_starts(options, text, call, file, monkeypatch):
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    monkeypatch.setattr("nh_control.runs.launcher.PACKAGES", ())
    done = call("study", "cart_pole", "--seeds", "2", "--output", "out", *options)
    assert done.returncode == 2 and text in done.stderr
    assert not (file.parent / "out").exists()
