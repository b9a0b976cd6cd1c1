"""Only nh_control/ros knows ROS."""

import ast
from pathlib import Path

import pytest

import nh_control

PACKAGE = Path(nh_control.__file__).parent
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if "ros" not in path.relative_to(PACKAGE).parts[:1])
ROS_FREE = ("command_gate", "pacing", "plant_report", "report", "simulated_plant", "state_estimate", "step_clock", "stepper", "tracker_report", "watch")


def imported(path: Path) -> set[str]:
    """Top-level names of all packages that a file imports, and nh_control's own modules in full."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def knows_ros(name: str) -> bool:
    top = name.split(".")[0]
    return top in {"rclpy", "builtin_interfaces", "rcl_interfaces", "std_srvs", "tf2_ros"} or top.endswith("_msgs")


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_outside_ros_imports_ros(path):
    names = imported(path)
    assert not {name for name in names if knows_ros(name)}
    assert not {name for name in names if name.startswith("nh_control.ros")}


@pytest.mark.parametrize("name", ROS_FREE)
def test_the_logic_of_the_nodes_is_free_of_ros(name):
    assert not {imp for imp in imported(PACKAGE / "ros" / f"{name}.py") if knows_ros(imp)}
