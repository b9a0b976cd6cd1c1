"""What commands import: nothing that they do not need, see `benchmark/import_times.py`."""

import subprocess
import sys

import pytest
from command import environment

from nh_control import scenarios
from nh_control.command import scenario_overview

HEAVY = {"numpy", "casadi", "scipy", "yaml", "rich", "matplotlib", "rclpy", "xml"}
MODULES = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
MAIN = "from nh_control.cli import main; main()"


def imports(*words, cwd, **changes):
    """Return what the command prints, and the modules that it imports."""
    done = subprocess.run(
        [sys.executable, "-c", MODULES + MAIN, *words],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, {*done.stderr.split()}


@pytest.mark.parametrize(
    "words",
    [(), ("--help",), ("list", "--help"), ("simulate", "--help"), ("run", "--help"),
     ("study", "--help"), ("film", "--help")],
)  # fmt: skip
def test_help_imports_neither_numerics_nor_scenarios(words, tmp_path):
    """They take most of a second, and the declarations have all that the help says."""
    printed, loaded = imports(*words, cwd=tmp_path)
    begins = f"usage: {' '.join(['nh_control', *words[:-1]])}" if words else "nh_control simulates"
    assert printed.startswith(begins) and "nh_control.cli" in loaded
    assert not (HEAVY | {"nh_control.scenarios"}) & loaded


def test_the_second_list_builds_no_system_and_says_the_same(tmp_path, call, monkeypatch):
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path / "cache"))
    first = call("list", "--json").stdout
    second, read = imports("list", "--json", cwd=tmp_path)
    assert first == second and set(scenarios.built_in()) <= {*first.split('"')}
    assert not (HEAVY - {"rich"}) & read


GAIN = """
import sys
import numpy as np
from nh_control.control.stationary import stationary
A, B, one = np.array([[1.0, 0.1], [0.3, 1.0]]), np.array([[0.0], [0.1]]), np.eye(2)
gain = stationary(A, B, one, np.eye(1), [0, 1], one, np.ones(2))
print("scipy.linalg" in sys.modules, gain.K.tobytes().hex(), gain.P.tobytes().hex())
"""


def test_the_second_stationary_gain_imports_no_scipy_and_is_the_same(tmp_path):
    """Importing it would take longer than everything else in a tracker."""
    command, changed = [sys.executable, "-c", GAIN], environment(NH_CONTROL_CACHE=str(tmp_path))
    tmp_path.chmod(0o700)
    first, second = (
        subprocess.run(command, env=changed, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    (imported, *computed), (again, *stored) = first.stdout.split(), second.stdout.split()
    assert (imported, again) == ("True", "False") and stored == computed


def test_a_list_of_other_files_or_a_damaged_one_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(scenario_overview, "cache_directory", lambda: tmp_path)
    tmp_path.chmod(0o700)
    assert scenario_overview.stored() == {}
    scenario_overview.keep({"arm": {"title": "Arm"}})
    assert scenario_overview.stored() == {"arm": {"title": "Arm"}}
    file = tmp_path / scenario_overview.FILE
    text = file.read_text()
    for damaged in (text[:40], "[]", text.replace('"sources": "', '"sources": "0')):
        file.write_text(damaged)
        assert scenario_overview.stored() == {}, damaged


def test_a_changed_file_changes_the_digest_of_the_sources(tmp_path, monkeypatch):
    command = tmp_path / "command"
    command.mkdir()
    monkeypatch.setattr(scenario_overview, "__file__", str(command / "overview.py"))
    before = scenario_overview._sources()
    (command / "arm.py").write_text("ARM = 1")
    assert scenario_overview._sources() != before


def test_a_run_imports_no_other_scenario(tmp_path):
    words = ("simulate", "snakeboard", "--duration", "0.1", "--no-plots")
    _, loaded = imports(*words, cwd=tmp_path)
    assert "nh_control.scenarios.snakeboard" in loaded
    others = {
        f"nh_control.{scenarios._HOMES[name.upper()]}"
        for name in scenarios.built_in()
        if name not in ("snakeboard", "urdf")
    } | {"nh_control.scenarios.urdf"}
    assert not (others | {"matplotlib", "rclpy", "scipy.linalg", "scipy.optimize"}) & loaded


def test_the_command_leaves_out_matplotlibs_tables_of_properties(tmp_path):
    """They take half of its import."""
    code = "import nh_control.figures as f; f.import_without_docstrings(); "
    code += "from matplotlib.lines import Line2D; print('set_antialiased' in Line2D.__doc__)"
    words = [sys.executable, "-c", code + "; print(len(Line2D.set.__doc__) < 1000)"]
    told = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]
