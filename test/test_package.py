"""The files of the package agree with each other and with the code: manifest, setup, parameters,
rviz.
"""

import ast
import datetime
import importlib
import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest
import setuptools
import yaml

from nh_control import scenarios
from nh_control.runs import topics

ROOT = Path(__file__).parents[1]
CODE = sorted((ROOT / "nh_control").rglob("*.py"))
MANIFEST = ElementTree.parse(ROOT / "package.xml").getroot()
LAUNCHED = sorted(
    path.name.removesuffix(".launch.py")
    for path in (ROOT / "launch").glob("*.launch.py")
    if path.name not in ("hil.launch.py", "multi.launch.py", "ros2_control.launch.py")
)
NAMED = [name for name in LAUNCHED if name != "scenario"]
"""Launch files of one scenario; the other is for all."""
PYPI = {"PIL": "pillow", "imageio_ffmpeg": "imageio-ffmpeg", "mpl_toolkits": "matplotlib",
        "yaml": "pyyaml"}  # fmt: skip
"""Names on PyPI that are not those of imports."""
KEYS = {name: f"python3-{name}" for name in ("matplotlib", "numpy", "rich", "scipy", "yaml")}
KEYS |= {"PIL": "python3-pil", "casadi": "casadi-pip", "mpl_toolkits": "python3-matplotlib",
         "rosbags": "python3-rosbags-pip", "transforms3d": "python3-transforms3d"}  # fmt: skip
"""Keys in package.xml."""
CHECKED_KEYS = {
    *KEYS.values(), "python3-hypothesis", "python3-pytest", "python3-pytest-xdist", "python3-sympy"
}  # fmt: skip
"""Keys of Python packages that are in rosdep's public index (rosdep/python.yaml, August 2026)."""
NOT_ON_PYPI = {"ament_index_python", "tf2_ros", "simulation_interfaces", "control_msgs", "launch",
               "launch_ros"}  # fmt: skip
"""Imported where they are available, or by launch files."""
OPTIONAL = {"aiohttp", "control", "distributed", "gymnasium", "imageio_ffmpeg", "jax", "pandas",
            "pyarrow", "pymavlink", "sympy", "torch", "trimesh", "xacro"}  # fmt: skip
"""Without a key; rosdep's only one of `control` is about to be removed."""
NO_KEY = OPTIONAL | {"simulation_interfaces", "control_msgs"}
DATA = (".c", ".json", ".urdf", ".js", ".css", ".html", ".glsl", ".typed", ".pyi")


def distribution(name):
    """Name on PyPI and key in package.xml of an imported package; those of ROS are wheels."""
    if name in KEYS or name in OPTIONAL:
        return PYPI.get(name, name), KEYS.get(name, "")
    return f"ros-kilted-{name.replace('_', '-')}", name


def setup_arguments():
    """Return what setup.py passes to setuptools.setup."""
    here = os.getcwd()
    try:
        os.chdir(ROOT)
        with mock.patch("setuptools.setup") as setup:
            runpy.run_path("setup.py")
    finally:
        os.chdir(here)
    return setup.call_args.kwargs


SETUP = setup_arguments()
ENTRY_POINTS = dict(line.split(" = ") for line in SETUP["entry_points"]["console_scripts"])


def requirement_names(requirements):
    """Return the distribution names of requirement strings."""
    separators = str.maketrans({c: " " for c in "<>=!~;[("})
    return {requirement.translate(separators).split()[0] for requirement in requirements}


def dependencies(*tags):
    """Return the package.xml keys under the tags."""
    return {element.text for tag in tags for element in MANIFEST.findall(tag)}


# --- manifest and setup.py -----------------------------------------------------------------------


def test_manifest_and_setup_agree():
    assert MANIFEST.get("format") == "3"
    assert MANIFEST.findtext("name") == SETUP["name"] == "nh_control"
    assert MANIFEST.findtext("version") == SETUP["version"]
    assert MANIFEST.findtext("license") == SETUP["license"] == "Apache-2.0"
    assert MANIFEST.findtext("export/build_type") == "ament_python"
    assert MANIFEST.find("maintainer").get("email") == SETUP["maintainer_email"]
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_the_changelog_describes_the_version():
    """Below the changes that no release contains yet, in at most 150 lines."""
    headings = [
        (number, line)
        for number, line in enumerate((ROOT / "CHANGELOG.md").read_text().splitlines())
        if line.startswith("## ") and line != "## Unreleased"
    ]
    (first, line), (second, _), *_ = headings
    version, date = re.fullmatch(r"## (\S+) \((\d{4}-\d\d-\d\d)\)", line).groups()
    assert version == MANIFEST.findtext("version") and datetime.date.fromisoformat(date)
    assert second - first <= 150


def test_no_metadata_is_declared_twice():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {
        "name", "version", "description", "readme", "license", "maintainers", "keywords",
        "classifiers", "urls", "requires-python", "dependencies", "optional-dependencies",
        "scripts",
    }  # fmt: skip
    of_setup = {
        "python_requires": "requires-python", "install_requires": "dependencies",
        "extras_require": "optional-dependencies", "entry_points": "scripts",
        "long_description": "readme", "maintainer": "maintainers",
        "maintainer_email": "maintainers",
    }  # fmt: skip
    given = {of_setup.get(name, name) for name in SETUP} & named
    assert given - {"name"} == set(project["dynamic"])
    assert project.keys() & given == {"name"} and project["name"] == SETUP["name"]


def test_keys_of_python_packages_are_in_the_index_of_rosdep():
    """Whoever adds a key looks it up there."""
    keys = dependencies("depend", "exec_depend", "test_depend")
    assert {key for key in keys if "python3" in key or key.endswith("-pip")} == CHECKED_KEYS


def test_everything_in_launch_config_and_doc_is_installed():
    """Pages of the documentation that can be read without Sphinx, too."""
    installed = {name for _, names in SETUP["data_files"] for name in names}
    for name in installed:
        assert (ROOT / name).is_file(), name
    present = {
        str(path.relative_to(ROOT))
        for folder in ("launch", "config", "doc", "resource/examples")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    made_by_sphinx = re.compile("doc/(reference|_build|_static|_templates)/|doc/[^/]*(?<!\\.md)$")
    present = {name for name in present if not made_by_sphinx.match(name)}
    assert installed == present | {"package.xml", "resource/nh_control"}
    assert ("share/ament_index/resource_index/packages", ["resource/nh_control"]) in SETUP[
        "data_files"
    ]


def test_files_are_installed_in_their_expected_folders():
    """`ament_index`, `ros2 launch` and the launch files' own folders; examples beside them."""
    index = "share/ament_index/resource_index/packages"
    for place, names in SETUP["data_files"]:
        for name in names:
            folder = name.rpartition("/")[0]
            expected = f"share/nh_control/{folder.removeprefix('resource/')}".rstrip("/")
            assert place == (index if folder == "resource" else expected), name


def test_native_sources_and_data_are_package_data():
    package = ROOT / "nh_control"
    found = [path for path in package.rglob("*") if path.suffix in DATA]
    assert {path.parent.name for path in found} == {"native", "data", "page", "nh_control"}
    patterns = SETUP["package_data"]["nh_control"]
    for path in found:
        assert any(path.relative_to(package).match(pattern) for pattern in patterns), path


def test_every_folder_with_code_is_a_package():
    assert {path.parent for path in CODE} == {
        path.parent for path in CODE if path.name == "__init__.py"
    }


@pytest.mark.parametrize(("executable", "target"), sorted(ENTRY_POINTS.items()))
def test_entry_point_exists(executable, target):
    module, function = target.split(":")
    if module.startswith("nh_control.ros.") and importlib.util.find_spec("rclpy") is None:
        pytest.skip(
            f"{module} is there; importing it needs rclpy: install the extra 'ros' or a ROS "
            f"distribution"
        )
    assert callable(getattr(importlib.import_module(module), function))


def test_lines_in_c_are_as_short_as_in_python():
    """`ruff` looks after those of Python."""
    files = sorted((ROOT / "nh_control").rglob("native/*.[ch]"))
    files += (ROOT / "nh_control").rglob("templates/*.[ch]pp")
    long = [
        f"{file.name}:{number}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if len(line) > 99
    ]
    assert len(files) > 15 and not long


def test_setup_cfg_installs_executables_for_ros2_run():
    text = (ROOT / "setup.cfg").read_text()
    assert "script_dir=$base/lib/nh_control" in text
    assert "install_scripts=$base/lib/nh_control" in text


def install_data(folder, *, wheel):
    """Run the command that installs data files into a folder, for a wheel or not; return it."""
    distribution = setuptools.Distribution()
    command = SETUP["cmdclass"]["install_data"](distribution)
    command.data_files, command.install_dir = [], str(folder)
    distribution.get_command_obj("install_scripts").no_ep = wheel
    command.ensure_finalized()
    command.run()
    return command


def test_a_wheel_installs_executables_for_ros2_run(tmp_path):
    command = install_data(tmp_path, wheel=True)
    folder = tmp_path / "lib" / "nh_control"
    assert sorted(command.outfiles) == sorted(str(folder / name) for name in ENTRY_POINTS)
    for name, target in ENTRY_POINTS.items():
        module, function = target.split(":")
        assert f"from {module} import {function}\n" in (folder / name).read_text()
        assert os.access(folder / name, os.X_OK)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [folder / "nh_control", "--version"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout.startswith("nh_control "), done.stderr


def test_without_a_wheel_setup_cfg_alone_installs_executables(tmp_path):
    command = install_data(tmp_path, wheel=False)
    assert command.outfiles == [] and list(tmp_path.iterdir()) == []


# --- parameters ----------------------------------------------------------------------------------


def flat(parameters, prefix=""):
    """Return {dotted name: value} of nested parameters."""
    out = {}
    for name, value in parameters.items():
        out.update(
            flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return out


PARAMETERS = pytest.mark.skipif(
    find_spec("rcl_interfaces") is None,
    reason="needs ROS messages: install the extra 'ros' or a ROS distribution",
)


@PARAMETERS
@pytest.mark.parametrize("name", NAMED)
def test_a_file_of_parameters_has_all_of_the_nodes_with_their_defaults_and_meanings(name, capsys):
    """It states what launch files use; one section lets inline parameters win."""
    from nh_control.cli import main
    from nh_control.ros.runtime import declared

    assert main(["list", name, "--yaml"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 99
    (section,) = yaml.safe_load(text).items()
    assert section[0] == "/**"
    stated, scenario = flat(section[1]["ros__parameters"]), scenarios.get(name)
    specs = (*declared.PLANT, *declared.TRACKER, *declared.DISPLAY)
    expected = {e.name: e.value for e in specs if e.name not in ("wait_for", "heard_by")}
    expected |= {**scenario.origin, **scenario.nodes}
    for prefix, owner in (
        (declared.PLANT_PARAMETERS, scenario.parameters),
        (declared.PERTURBATION, scenario.no_perturbation),
    ):
        expected |= {prefix + field: value for field, value in asdict(owner).items()}
    plain = {
        key: [item for item in value if item != ""] if isinstance(value, list) else value
        for key, value in stated.items()
    }
    assert plain == {k: list(v) if isinstance(v, tuple) else v for k, v in expected.items()}
    assert {k: type(v) for k, v in plain.items()} == {
        k: list if isinstance(v, tuple) else type(v) for k, v in expected.items()
    }
    words = " ".join(text.replace("#", " ").split())
    assert all(" ".join(e.sentence.split()) in words for e in specs if e.name in expected)


# --- layouts -------------------------------------------------------------------------------------


def test_layouts_of_rqt_and_plotjuggler_show_what_the_nodes_publish():
    known = {"controller_state/error", "command_latency", "reference/odom"}
    for name in ("snakeboard", "cart_pole"):
        known |= topics.recorded(scenarios.get(name)).keys()
    layout = ElementTree.parse(ROOT / "config" / "plotjuggler.xml").getroot()
    shown = {curve.get("name") for curve in layout.iter("curve")}
    file = json.loads((ROOT / "config" / "nh_control.perspective").read_text())
    manager = file["groups"]["pluginmanager"]
    running = ast.literal_eval(manager["keys"]["running-plugins"]["repr"])
    assert len(manager["groups"]) == len(running["rqt_plot/Plot"]) == 2
    for plot in manager["groups"].values():
        shown |= set(ast.literal_eval(plot["groups"]["plugin"]["keys"]["topics"]["repr"]))
    for curve in shown:
        assert any(curve.startswith(f"/{topic}/") for topic in known), curve


def test_the_aggregator_knows_the_statuses_of_all_nodes():
    file = yaml.safe_load((ROOT / "config" / "diagnostics_aggregator.yaml").read_text())
    groups = [g for g in file["/**"]["ros__parameters"].values() if isinstance(g, dict)]
    leaves = [leaf for group in groups for leaf in group["analyzers"].items()]
    for node, analyzer in leaves:
        (contained,) = analyzer["contains"]
        prefix, what = contained.split(": ")
        source = (ROOT / "nh_control" / "ros" / "nodes" / f"{node}.py").read_text()
        assert prefix == node and f'"{what}"' in source
    nodes = {file.stem for file in (ROOT / "nh_control" / "ros" / "nodes").glob("*.py")}
    assert {node for node, _ in leaves} == nodes - {"__init__", "start", "composed"}


def test_the_foxglove_layout_shows_what_the_nodes_publish():
    """Every panel is placed once, and every topic is one of a scenario's."""
    layout = json.loads((ROOT / "config" / "scenario.foxglove.json").read_text())

    def placed(part):
        return [part] if isinstance(part, str) else placed(part["first"]) + placed(part["second"])

    panels = layout["configById"]
    assert sorted(placed(layout["layout"])) == sorted(panels)
    known = {"controller_state/error", *topics.recorded(scenarios.get("quadrotor_payload"))}
    known |= topics.recorded(scenarios.get("snakeboard")).keys()
    used = {path["value"] for panel in panels.values() for path in panel.get("paths", ())}
    shown = {path.split(".")[0] for path in used} | panels["3D!scene"]["topics"].keys()
    shown |= {panel["topicToRender"] for panel in panels.values() if "topicToRender" in panel}
    shown.add(panels["3D!scene"]["publish"]["poseTopic"])
    assert {topic.strip("/") for topic in shown} <= {topic.strip("/") for topic in known}
