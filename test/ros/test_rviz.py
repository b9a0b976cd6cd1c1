"""The configuration of rviz that launch files write for a scenario."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.ros.rviz import Robot, configuration

ALONE = [Robot("", "")]
SHOWN = ("snakeboard", "quadrotor_payload", "car", "urdf", "cart_pole", "ballbot")
ODOMETRY = {
    "snakeboard": "/odom",
    "car": "/odom",
    "ballbot": "/ballbot/odom",
    "quadrotor_payload": "/payload/odom",
}
"""The topic of the odometry of what moves freely; its reference is shown, too."""


@pytest.fixture(scope="module", params=SHOWN)
def shown(request):
    """The name of a scenario, and its configuration."""
    return request.param, configuration(scenarios.get(request.param), ALONE)


def displays(config):
    """The displays by their classes."""
    listed = config["Visualization Manager"]["Displays"]
    return {one["Class"].removeprefix("rviz_default_plugins/"): one for one in listed}


def test_displays_show_what_the_nodes_publish(shown):
    name, config = shown
    own = displays(config)
    moving = {"Path": "/reference", "Odometry": ODOMETRY.get(name)} if name in ODOMETRY else {}
    assert {kind: one["Topic"]["Value"] for kind, one in own.items() if "Topic" in one} == {
        "MarkerArray": "/markers",
        **moving,
    }
    assert all(one["Enabled"] and one["Value"] for one in own.values())
    assert ("RobotModel" in own) == (name in ("urdf", "snakeboard"))


def test_what_is_told_once_is_latched(shown):
    for kind, one in displays(shown[1]).items():
        for key in {"Topic", "Description Topic"} & one.keys():
            latched = kind in ("Path", "RobotModel")
            assert one[key]["Durability Policy"] == ("Transient Local" if latched else "Volatile")
            assert one[key]["Reliability Policy"] == "Reliable"


def test_the_window_has_room_for_the_picture(shown):
    geometry = shown[1]["Window Geometry"]
    assert shown[1]["Panels"] == []
    assert geometry["Width"] > geometry["Height"] > 600


@pytest.mark.parametrize(
    ("name", "size", "frame"),
    [
        ("snakeboard", 4.6, "base_link"),
        ("car", 3.91, "base_link"),
        ("quadrotor_payload", 0.94, "payload"),
        ("urdf", 0.95, "base_link"),
        ("cart_pole", 2.4, "odom"),
    ],
)
def test_the_view_fits_the_system_and_follows_it(name, size, frame):
    """Under the field of view of 45 degrees the system is about a third of the window."""
    manager = configuration(scenarios.get(name), ALONE)["Visualization Manager"]
    view = manager["Views"]["Current"]
    seen = 2 * view["Distance"] * np.tan(np.pi / 8)
    assert size / seen == pytest.approx(0.3, rel=0.02)
    above = manager["Views"]["Saved"][0]
    assert above["Scale"] * size == pytest.approx(0.3 * 900, rel=0.02)
    assert view["Target Frame"] == above["Target Frame"] == frame
    fixed = "base_link" if name == "urdf" else "odom"
    assert manager["Global Options"]["Fixed Frame"] == fixed


def test_arrows_and_axes_are_shorter_than_the_system(shown):
    name, config = shown
    own = displays(config)
    distance = config["Visualization Manager"]["Views"]["Current"]["Distance"]
    size = 0.3 * distance * 2 * np.tan(np.pi / 8)
    assert own["TF"]["Marker Scale"] == pytest.approx(0.2 * size)
    if name in ODOMETRY:
        shape = own["Odometry"]["Shape"]
        assert shape["Shaft Length"] + shape["Head Length"] < 0.5 * size


def test_goals_have_a_tool_where_they_are_taken(shown):
    name, config = shown
    tools = config["Visualization Manager"]["Tools"]
    goals = [one["Topic"]["Value"] for one in tools if "Topic" in one]
    assert goals == (["/goal"] if name in ("car", "quadrotor_payload") else [])


def test_a_namespace_and_a_prefix_reach_topics_and_frames():
    robot = Robot("one", "a_")
    manager = configuration(scenarios.get("snakeboard"), [robot])["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == "a_odom"
    assert manager["Views"]["Current"]["Target Frame"] == "a_base_link"
    own = {one["Class"].split("/")[1]: one for one in manager["Displays"]}
    assert own["RobotModel"]["TF Prefix"] == "a_"
    found = [own[kind]["Topic"]["Value"] for kind in ("MarkerArray", "Path", "Odometry")]
    assert found == ["/one/markers", "/one/reference", "/one/odom"]
    assert own["RobotModel"]["Description Topic"]["Value"] == "/one/robot_description"
