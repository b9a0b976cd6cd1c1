"""The description of a robot and the transforms of its frames, without a network."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import Bench, alone  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.ros.messages.state_codecs import codecs  # noqa: E402
from nh_control.ros.messages.transforms import RobotModel  # noqa: E402
from nh_control.scenarios.robot_description import robot_description  # noqa: E402
from nh_control.scenarios.scenario_frames import ScenarioFrames  # noqa: E402


class Broadcaster:
    """As tf2_ros has it; keeps copies of what is sent."""

    def __init__(self, node):
        self.node = node

    def sendTransform(self, transforms):  # noqa: N802
        """Keep them, as (parent, child, position, orientation, stamp)."""
        self.node.transforms += [
            (
                one.header.frame_id,
                one.child_frame_id,
                conversions.xyz(one.transform.translation),
                conversions.wxyz(one.transform.rotation),
                conversions.nanoseconds(one.header.stamp),
            )
            for one in transforms
        ]


@pytest.fixture
def node(monkeypatch):
    """A node on which transforms are kept."""
    kinds = dict.fromkeys(("TransformBroadcaster", "StaticTransformBroadcaster"), Broadcaster)
    monkeypatch.setitem(sys.modules, "tf2_ros", SimpleNamespace(**kinds))
    with alone() as context:
        made = Bench("display", context)
        made.transforms = []
        yield made


@pytest.mark.parametrize("name", ["cart_pole", "quadrotor_payload", "snakeboard"])
def test_plant_and_display_together_publish_a_complete_tree(node, name):
    scenario = scenarios.get(name)
    model, frames = scenario.model(), ScenarioFrames(scenario)
    x = scenario.reference(model).states[40]
    q = model.configuration(x)
    robot = RobotModel(node, scenario, "r1/")
    (description,) = node.sent("robot_description")
    assert description.data == robot_description(scenario)
    robot.publish(frames.visual.poses(scenario.parameters, q), q, 5 * 10**9)
    told = list(node.transforms)
    shown = codecs(scenario, model, prefix="r1/")
    bodies = [message for codec in shown for message in codec.odometry]
    children = [child for _, child, *_ in told] + [m.child_frame_id for m in bodies]
    assert sorted(children) == sorted(f"r1/{link.frame}" for link in frames.links)
    parents = {parent for parent, *_ in told} | {m.header.frame_id for m in bodies}
    assert parents <= {*children, f"r1/{frames.root}"}
    # the bodies' poses in messages are those of the visual model
    poses = frames.poses(q)
    for codec in shown:
        codec.write(q.tolist(), model.velocity(x).tolist())
    for message in bodies:
        position = conversions.xyz(message.pose.pose.position)
        wanted = poses[message.child_frame_id.removeprefix("r1/")].position
        np.testing.assert_allclose(position, wanted, atol=1e-12)
    moving = {child for _, child, *_, stamp in told if stamp == 5 * 10**9}
    assert moving == {f"r1/{frame}" for frame in frames.placed(poses)}
    if name == "cart_pole":
        (cart,) = [one for one in told if one[1] == "r1/cart"]
        assert cart[0] == "r1/odom" and cart[2][0] == pytest.approx(q[0])


def test_frames_without_a_tree_have_transforms_but_no_description(node):
    board = scenarios.get("snakeboard")
    shown = board.visual_model()
    flat = replace(shown, poses=lambda p, q: shown.poses(p, q))
    robot = RobotModel(node, replace(board, visual=lambda p: flat), "")
    assert any("no robot_description: " in text for _, text in node.logged)
    q = np.array([0.1, 0.2, 0.3, 1.0, 2.0])
    robot.publish(shown.poses(None, q), q, 10**9)
    told = {child: (parent, position) for parent, child, position, *_ in node.transforms}
    assert told.keys() == shown.poses(None, q).keys()
    for child, pose in shown.poses(None, q).items():
        assert told[child][0] == "odom" and told[child][1] == pytest.approx(pose.position)


def test_without_tf2_there_is_a_description(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    scenario = scenarios.get("cart_pole")
    with alone() as context:
        node = Bench("display", context)
        robot = RobotModel(node, scenario, "")
        assert node.sent("robot_description") and any("no TF" in text for _, text in node.logged)
        robot.publish({}, np.zeros(2), 0)
