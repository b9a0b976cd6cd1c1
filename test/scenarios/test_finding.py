"""Scenarios are found built in, in installed packages, in files and in modules; errors in them
name file and line.
"""

import re
import sys
from textwrap import dedent

import pytest
from own_scenarios import FILES, install

from nh_control import scenarios
from nh_control.scenarios import AmbiguousName, UnknownName, UserCodeError
from nh_control.scenarios.urdf import DEFAULT

CART = FILES["cart_double_pendulum"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_found_with_and_without_the_name_in_it(name):
    found = [scenarios.get(str(FILES[name])), scenarios.get(f"{FILES[name]}:{name.upper()}")]
    for scenario in found:
        assert scenario.name == name and scenario.file == str(FILES[name])
        assert scenario.origin == {"scenario": f"{FILES[name]}:{name.upper()}"}


def test_a_relative_path_reaches_nodes_in_another_folder_as_an_absolute_one(tmp_path, monkeypatch):
    monkeypatch.chdir(CART.parent)
    assert scenarios.get(CART.name).origin["scenario"].startswith(str(CART))


def test_a_file_at_home_is_found_and_its_folder_is_not_left_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / CART.name).write_text(CART.read_text())
    before = list(sys.path)
    assert scenarios.get(f"~/{CART.name}").file == str(tmp_path / CART.name)
    assert sys.path == before


def test_an_error_shows_the_line_as_it_is_now_and_where_a_broken_import_stands(tmp_path):
    file = tmp_path / "robot_in_work.py"
    for text in ("first = 1 / 0", "second = 2 / 0  # longer"):
        file.write_text(f"{text}\n")
        with pytest.raises(UserCodeError, match=rf"robot_in_work.py, line 1:\s+{re.escape(text)}"):
            scenarios.get(str(file))
    (tmp_path / "broken_part.py").write_text("a = 1\nb = (\n")
    file.write_text("# comment\n\nimport broken_part\n")
    with pytest.raises(UserCodeError, match=r"robot_in_work.py, line 3:\s+import broken_part"):
        scenarios.get(str(file))


def test_a_changed_file_is_read_anew_and_two_files_of_one_name_are_two(tmp_path):
    copies = [tmp_path / folder / CART.name for folder in "ab"]
    for copy in copies:
        copy.parent.mkdir()
        copy.write_text(CART.read_text().replace("step_s=0.01", "step_s=0.005"))
    assert [scenarios.get(str(copy)).step_s for copy in (CART, *copies)] == [0.01, 0.005, 0.005]
    copies[0].write_text(CART.read_text())
    assert [scenarios.get(str(copy)).step_s for copy in copies] == [0.01, 0.005]


def test_a_file_imports_those_beside_it(tmp_path):
    (tmp_path / "beside_the_cart.py").write_text(CART.read_text())
    file = tmp_path / "robot.py"
    file.write_text(
        "from dataclasses import replace\n"
        "from beside_the_cart import CART_DOUBLE_PENDULUM\n"
        "ROBOT = replace(CART_DOUBLE_PENDULUM, name='robot')\n"
    )
    assert scenarios.get(f"{file}:ROBOT").name == "robot"


def test_installed_packages_and_modules(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(install(tmp_path))
    assert {f"my_{name}" for name in FILES} <= set(scenarios.names())
    assert set(scenarios.built_in()) == set(scenarios.names()) - {f"my_{name}" for name in FILES}
    installed = scenarios.get("my_underwater_vehicle")
    module = scenarios.get("nh_robots.underwater_vehicle:UNDERWATER_VEHICLE")
    assert installed.name == module.name == "underwater_vehicle"
    assert installed.file == module.file == str(tmp_path / "nh_robots" / "underwater_vehicle.py")
    assert installed.origin == {"scenario": "my_underwater_vehicle"}
    assert module.origin == {"scenario": "nh_robots.underwater_vehicle:UNDERWATER_VEHICLE"}


def test_a_name_of_two_packages_is_refused_with_both_and_others_still_work(tmp_path, monkeypatch):
    cart = "cart_double_pendulum:CART_DOUBLE_PENDULUM"
    drive = "differential_drive:DIFFERENTIAL_DRIVE"
    first = {"rover": f"one.{drive}", "snakeboard": f"one.{cart}"}
    second = {"rover": f"two.{cart}", "pole": f"two.{cart}"}
    for package, found in (("one", first), ("two", second)):
        monkeypatch.syspath_prepend(install(tmp_path / package, package, **found))
    with pytest.raises(AmbiguousName) as refused:
        scenarios.get("rover")
    for text in ("'rover'", "one 1.2", "two 1.2", "one.differential_drive", "module:NAME"):
        assert text in str(refused.value)
    with pytest.raises(
        AmbiguousName, match="'snakeboard' is declared by nh_control itself and by"
    ):
        scenarios.get("snakeboard")
    assert scenarios.get("pole").name == "cart_double_pendulum"
    assert scenarios.get("one.differential_drive:DIFFERENTIAL_DRIVE").name == "differential_drive"


def test_an_unknown_name_lists_the_valid_ones_and_the_other_ways():
    with pytest.raises(UnknownName) as refused:
        scenarios.get("snakebord")
    for text in ("did you mean 'snakeboard'?", *scenarios.names(), "file.py:NAME", "module:NAME"):
        assert text in str(refused.value)


WRONG_FILES = {
    "syntax": ("x = (1,\ndef f(:\n", 2, "def f(:", "SyntaxError"),
    "import": ("\nimport not_there\n", 2, "import not_there", "ModuleNotFoundError: No module"),
    "error": ("def f():\n    return 1 / 0\nf()\n", 2, "return 1 / 0", "ZeroDivisionError"),
    "exit": ("import sys\nsys.exit(3)\n", 2, "sys.exit(3)", "SystemExit: 3"),
    "check": (
        """\
        import numpy as np
        from nh_control.geometry.spaces import Rn
        from nh_control.mechanics.system import System
        System("bad", Rn("x"), lambda q, v: v[0] ** 3)
        """,
        4,
        'System("bad"',
        "ValueError: bad: the Lagrangian must be quadratic in v",
    ),
    "scenario": (
        """\
        from dataclasses import replace
        from nh_control.scenarios import SNAKEBOARD
        replace(SNAKEBOARD, references={})
        """,
        3,
        "replace(SNAKEBOARD, references={})",
        "ValueError: scenario snakeboard: references must not be empty",
    ),
}


@pytest.mark.parametrize("as_module", [False, True], ids=["file", "module"])
@pytest.mark.parametrize("kind", WRONG_FILES)
def test_an_error_in_a_file_or_module_names_file_and_line(kind, as_module, tmp_path, monkeypatch):
    text, line, source, error = WRONG_FILES[kind]
    file = tmp_path / f"robot_{kind}.py"
    file.write_text(dedent(text))
    if as_module:
        monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserCodeError) as refused:
        scenarios.get(f"{file.stem if as_module else file}:ROBOT")
    message = str(refused.value)
    assert f"{file}, line {line}:\n    {source}" in message and error in message
    assert as_module or not [name for name in sys.modules if file.stem in name]


WRONG_NAMES = {
    "NOPE": "there is no NOPE; it declares FIRST, SECOND",
    "": "expected one scenario, or one named ROBOTS after the file; it declares FIRST, SECOND",
    "number": r"line 5:\n    number = 3\nnumber must be a nh_control Scenario, got int",
}


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_an_object_that_is_no_scenario_is_refused(name, tmp_path):
    file = tmp_path / "robots.py"
    file.write_text(
        "from dataclasses import replace\nfrom nh_control.scenarios import SNAKEBOARD\n"
        "FIRST = replace(SNAKEBOARD)\nSECOND = replace(SNAKEBOARD)\nnumber = 3\n"
    )
    with pytest.raises(UserCodeError, match=WRONG_NAMES[name]):
        scenarios.get(f"{file}:{name}".rstrip(":"))


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file: .*nowhere.py"):
        scenarios.get(str(tmp_path / "nowhere.py"))
    with pytest.raises(UserCodeError, match="no module 'nowhere.at_all' on Python's path"):
        scenarios.get("nowhere.at_all:ROBOT")
    empty = tmp_path / "empty.py"
    empty.write_text("from nh_control.scenarios import SNAKEBOARD\n")
    with pytest.raises(UserCodeError, match="declares no nh_control Scenario"):
        scenarios.get(str(empty))


@pytest.mark.parametrize("names", [("_BASE", "GRIPPER"), ("BASE", "ARM")])
def test_a_base_and_its_variant_are_one_scenario(names, tmp_path):
    """By an underscore before the base, or the file's name for the variant."""
    base, own = names
    file = tmp_path / "arm.py"
    file.write_text(
        "from dataclasses import replace\nfrom nh_control.scenarios import SNAKEBOARD\n"
        f"{base} = replace(SNAKEBOARD)\n{own} = replace({base}, name='own')\n"
    )
    found = scenarios.get(str(file))
    assert found.name == "own" and found.origin == {"scenario": f"{file}:{own}"}


def test_a_variant_of_a_urdf_robot_is_made_again_by_its_file_alone(tmp_path):
    """As `run`, `replay` and the nodes do, from the parameters that they are given."""
    (tmp_path / "robot.urdf").write_text(DEFAULT.read_text())
    file = tmp_path / "arm.py"
    file.write_text(
        "from dataclasses import replace\nfrom pathlib import Path\n"
        "from nh_control.scenarios import from_urdf\n"
        "_ROBOT = from_urdf(Path(__file__).with_name('robot.urdf'), 'floating')\n"
        "ARM = replace(_ROBOT, name='arm', references={'own': _ROBOT.references['free']})\n"
    )
    first = scenarios.get(str(file))
    again = scenarios.get(
        first.origin["scenario"], first.origin.get("urdf", ""), first.origin.get("base", "fixed")
    )
    assert again.name == "arm" and list(again.references) == ["own"]
    assert again.model().nx == first.model().nx == 2 * 2 + 7 + 6
