"""The package's files agree with each other and with the code: manifest, setup, parameters, URDF, rviz."""
import ast
import importlib
import importlib.util
import math
import os
import runpy
import sys
import types
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import yaml

from nh_control import scenarios
from nh_control.systems.snakeboard import SnakeboardParameters

ROOT = Path(__file__).parents[1]
CODE = sorted((ROOT / "nh_control").rglob("*.py"))
MANIFEST = ElementTree.parse(ROOT / "package.xml").getroot()
URDF = ElementTree.parse(ROOT / "config" / "urdf" / "snakeboard.urdf").getroot()
PARAMETERS = yaml.safe_load((ROOT / "config" / "snakeboard.yaml").read_text())
RVIZ = yaml.safe_load((ROOT / "config" / "snakeboard.rviz").read_text())["Visualization Manager"]

# import name: (name on PyPI, key in package.xml); packages of ROS follow `distribution`
THIRD_PARTY = {
    "casadi": ("casadi", "casadi-pip"),
    "control": ("control", "python-control-pip"),
    "matplotlib": ("matplotlib", "python3-matplotlib"),
    "numpy": ("numpy", "python3-numpy"),
    "rich": ("rich", "python3-rich"),
    "rosbags": ("rosbags", "python3-rosbags-pip"),
    "scipy": ("scipy", "python3-scipy"),
    "transforms3d": ("transforms3d", "python3-transforms3d"),
}
NOT_ON_PYPI = {"tf2_ros", "simulation_interfaces", "control_msgs"}  # imported where available
INTERFACES = ("_msgs", "_srvs", "_interfaces")


def distribution(name):
    """Return (name on PyPI, key in package.xml) of an imported package."""
    return THIRD_PARTY.get(name) or (f"ros-kilted-{name.replace('_', '-')}", name)


def setup_arguments():
    """Return what setup.py passes to setuptools.setup, without needing setuptools."""
    arguments = {}
    fake, command = types.ModuleType("setuptools"), types.ModuleType("setuptools.command.develop")
    command.develop = object
    fake.setup = arguments.update
    fake.find_packages = lambda **_: []
    here = os.getcwd()
    try:
        os.chdir(ROOT)
        with mock.patch.dict(sys.modules, {"setuptools": fake, "setuptools.command": command, "setuptools.command.develop": command}):
            runpy.run_path("setup.py")
    finally:
        os.chdir(here)
    return arguments


SETUP = setup_arguments()
ENTRY_POINTS = dict(line.split(" = ") for line in SETUP["entry_points"]["console_scripts"])


def requirement_names(requirements):
    """Return the distribution names of requirement strings."""
    separators = str.maketrans({c: " " for c in "<>=!~;[("})
    return {requirement.translate(separators).split()[0] for requirement in requirements}


def imported_packages(paths):
    """Return the top-level names of all imports in the files that are neither relative, of Python, nor of this package."""
    names = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module)
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"nh_control"}


def dependencies(*tags):
    """Return the package.xml keys under the tags."""
    return {element.text for tag in tags for element in MANIFEST.findall(tag)}


# --- manifest and setup.py ---------------------------------------------------------------------------------------------


def test_manifest_and_setup_agree():
    assert MANIFEST.get("format") == "3"
    assert MANIFEST.findtext("name") == SETUP["name"] == "nh_control"
    assert MANIFEST.findtext("version") == SETUP["version"]
    assert MANIFEST.findtext("license") == SETUP["license"] == "Apache-2.0"
    assert MANIFEST.findtext("export/build_type") == "ament_python"
    assert MANIFEST.find("maintainer").get("email") == SETUP["maintainer_email"]
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_dependencies_are_stated_once():
    keys = [element.text for element in MANIFEST if element.tag.endswith("depend")]
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize("name", sorted(imported_packages(CODE)))
def test_every_import_is_a_declared_dependency(name):
    on_pypi, key = distribution(name)
    if name not in NOT_ON_PYPI:
        installed = SETUP["install_requires"] + SETUP["extras_require"]["plot"] + SETUP["extras_require"]["ros"]
        assert on_pypi in requirement_names(installed)
    if name not in NOT_ON_PYPI - {"tf2_ros"}:
        assert key in dependencies("depend", "exec_depend")


def test_no_interface_package_is_declared_in_vain():
    used = {name for name in imported_packages(CODE) if name.endswith(INTERFACES)}
    declared = {key for key in dependencies("depend", "exec_depend") if key.endswith(INTERFACES)}
    wheels = {name.removeprefix("ros-kilted-").replace("-", "_") for name in requirement_names(SETUP["extras_require"]["ros"])}
    assert declared <= used
    assert {name for name in wheels if name.endswith(INTERFACES)} <= used


def test_launch_files_use_declared_packages():
    launch_files = sorted((ROOT / "launch").glob("*.launch.py"))
    keywords = [node for path in launch_files for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.keyword)]
    started = {node.value.value for node in keywords if node.arg == "package"} - {"nh_control"}
    assert started
    assert started | imported_packages(launch_files) <= dependencies("depend", "exec_depend")


def test_everything_in_launch_and_config_is_installed():
    installed = {name for _, names in SETUP["data_files"] for name in names}
    for name in installed:
        assert (ROOT / name).is_file(), name
    present = {
        str(path.relative_to(ROOT))
        for folder in ("launch", "config")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert installed == present | {"package.xml", "resource/nh_control"}
    assert ("share/ament_index/resource_index/packages", ["resource/nh_control"]) in SETUP["data_files"]


def test_native_sources_are_package_data():
    native = {path.relative_to(ROOT / "nh_control") for path in (ROOT / "nh_control" / "native").iterdir() if path.is_file()}
    assert native
    patterns = SETUP["package_data"]["nh_control"]
    assert all(any(path.match(pattern) for pattern in patterns) for path in native)


def test_every_folder_with_code_is_a_package():
    assert {path.parent for path in CODE} == {path.parent for path in CODE if path.name == "__init__.py"}


@pytest.mark.parametrize(("executable", "target"), sorted(ENTRY_POINTS.items()))
def test_entry_point_exists(executable, target):
    module, function = target.split(":")
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    assert function in {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    if module.startswith("nh_control.ros.") and importlib.util.find_spec("rclpy") is None:
        pytest.skip(f"{module} is there; importing it needs rclpy: install the extra 'ros' or a ROS distribution")
    assert callable(getattr(importlib.import_module(module), function))


def test_setup_cfg_puts_executables_where_ros2_run_looks():
    text = (ROOT / "setup.cfg").read_text()
    assert "script_dir=$base/lib/nh_control" in text
    assert "install_scripts=$base/lib/nh_control" in text


# --- parameters --------------------------------------------------------------------------------------------------------


def flat(parameters, prefix=""):
    """Return {dotted name: value} of nested parameters."""
    out = {}
    for name, value in parameters.items():
        out.update(flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value})
    return out


def test_parameter_file_lets_inline_parameters_win():
    assert list(PARAMETERS) == ["/**"]


def test_parameter_file_states_the_scenario_and_its_defaults():
    parameters = PARAMETERS["/**"]["ros__parameters"]
    assert parameters["scenario"] in scenarios.names()
    assert parameters["plant"]["parameters"] == asdict(SnakeboardParameters())


def test_parameter_file_states_all_parameters_of_the_nodes_with_their_defaults():
    pytest.importorskip("rcl_interfaces", reason="needs ROS messages: install the extra 'ros' or a ROS distribution")
    from nh_control.ros.parameters import DISPLAY, PLANT, PLANT_PARAMETERS, TRACKER

    declared = {spec.name: spec.default for spec in (*PLANT, *TRACKER, *DISPLAY) if spec.default != []}
    stated = flat(PARAMETERS["/**"]["ros__parameters"])
    stated = {name: value for name, value in stated.items() if not name.startswith(PLANT_PARAMETERS)}
    assert stated == declared
    assert {name: type(value) for name, value in stated.items()} == {name: type(value) for name, value in declared.items()}


# --- URDF --------------------------------------------------------------------------------------------------------------

JOINTS = {joint.get("name"): joint for joint in URDF.findall("joint")}
INERTIALS = {link.get("name"): link.find("inertial") for link in URDF.findall("link") if link.find("inertial") is not None}


def mass(link):
    """Mass of a link [kg]."""
    return float(INERTIALS[link].find("mass").get("value"))


def inertia(link):
    """Inertia (3, 3) of a link about its centre of mass [kg m^2]."""
    element = INERTIALS[link].find("inertia")
    xx, xy, xz, yy, yz, zz = (float(element.get(name)) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def position(joint):
    """Origin (3) of a joint in its parent link [m]."""
    return np.array(JOINTS[joint].find("origin").get("xyz").split(), float)


def test_urdf_is_one_tree_from_base_link():
    links = [link.get("name") for link in URDF.findall("link")]
    parents = {joint.find("child").get("link"): joint.find("parent").get("link") for joint in JOINTS.values()}
    assert len(set(links)) == len(links)
    assert len(parents) == len(JOINTS)
    for link in links:
        for _ in links:
            link = parents.get(link, link)
        assert link == "base_link"


def test_urdf_joints_are_those_of_the_scenario():
    moving = {name for name, joint in JOINTS.items() if joint.get("type") != "fixed"}
    assert moving == {joint.name for joint in scenarios.get("snakeboard").joints}
    assert JOINTS["rotor_joint"].get("type") == "continuous"
    for name in moving:
        assert JOINTS[name].find("axis").get("xyz") == "0 0 1"
    for name in ("front_truck_joint", "rear_truck_joint"):
        limit = JOINTS[name].find("limit")
        assert JOINTS[name].get("type") == "revolute"
        assert -math.pi / 2 < float(limit.get("lower")) < 0 < float(limit.get("upper")) < math.pi / 2


@pytest.mark.parametrize("link", sorted(INERTIALS))
def test_urdf_inertias_are_physical(link):
    moments = np.linalg.eigvalsh(inertia(link))
    assert mass(link) > 0
    assert moments[0] > 0
    assert moments[2] <= moments[0] + moments[1]


def test_urdf_has_the_masses_of_the_default_parameters():
    board = SnakeboardParameters()
    assert math.isclose(sum(mass(link) for link in INERTIALS), board.m)
    assert math.isclose(inertia("rotor")[2, 2], board.I)
    assert math.isclose(inertia("front_truck")[2, 2], board.J)
    assert math.isclose(inertia("rear_truck")[2, 2], board.J)
    assert position("front_truck_joint")[0] == -position("rear_truck_joint")[0] == board.l
    offsets = {"front_truck": position("front_truck_joint"), "rear_truck": position("rear_truck_joint")}
    yaw = sum(inertia(link)[2, 2] + mass(link) * (offsets.get(link, np.zeros(3))[:2] ** 2).sum() for link in INERTIALS)
    assert math.isclose(yaw, board.m * board.l**2)


def test_urdf_materials_are_defined():
    defined = {material.get("name") for material in URDF.findall("material")}
    assert {material.get("name") for material in URDF.iter("material")} == defined


# --- rviz --------------------------------------------------------------------------------------------------------------


def test_rviz_shows_what_the_nodes_publish():
    displays = {display["Class"].removeprefix("rviz_default_plugins/"): display for display in RVIZ["Displays"]}
    assert RVIZ["Global Options"]["Fixed Frame"] == scenarios.get("snakeboard").body.parent
    assert displays["RobotModel"]["Description Topic"]["Value"] == "/robot_description"
    topics = {name: display["Topic"]["Value"] for name, display in displays.items() if "Topic" in display}
    assert topics == {"MarkerArray": "/markers", "Path": "/reference", "Odometry": "/odom"}
    assert all(display["Enabled"] for display in displays.values())
