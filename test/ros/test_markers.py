"""Markers of what scenarios look like."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from bench import Bench, alone
from transforms3d.euler import euler2mat
from transforms3d.quaternions import quat2mat
from visualization_msgs.msg import Marker

from nh_control import scenarios
from nh_control.ros.messages import conversions, markers
from nh_control.ros.messages.markers import Arrows, Drawing, Lines, Trail
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.transforms import RobotModel
from nh_control.scenarios.declared_frames import FIXED
from nh_control.scenarios.robot_description import robot_description
from nh_control.scenarios.scenario_frames import Link, ScenarioFrames
from nh_control.scenarios.visual_model import Pose, VisualModel

SCENARIO = scenarios.get("quadrotor_payload")
SIZE = 2.0
LOOK = SCENARIO.visual(SCENARIO.parameters)


def configuration(seed=0):
    space = SCENARIO.model().system.space
    return space.retract(space.origin, np.random.default_rng(seed).normal(size=space.nv))


def points(marker):
    """Points of a marker, (N, 3)."""
    return np.array([conversions.xyz(point) for point in marker.points])


@pytest.mark.parametrize("name", scenarios.names())
def test_every_look_has_markers_of_its_shapes_and_lines(name):
    scenario = scenarios.get(name)
    model, visual = scenario.model(), scenario.visual_model()
    poses = visual.poses(scenario.parameters, model.system.space.origin)
    frames = {frame for cable in visual.cables for frame in (cable.start, cable.end)}
    frames |= {arrow.frame for arrow in visual.arrows} | set(visual.outline)
    assert frames | {visual.trail or visual.shapes[0].frame} <= poses.keys()
    assert {arrow.input for arrow in visual.arrows} <= set(model.inputs)
    watched = scenario.monitor.names if scenario.monitor else ()
    assert {cable.monitored for cable in visual.cables} <= {"", *watched}
    drawing = Drawing("plant", visual, 0.5)
    drawing.place(poses)
    assert all(
        np.linalg.norm(conversions.wxyz(m.pose.orientation)) == pytest.approx(1)
        and min(conversions.xyz(m.scale)) > 0
        for m in drawing.markers
    )
    kinds = {"box": Marker.CUBE, "cylinder": Marker.CYLINDER, "sphere": Marker.SPHERE}
    assert [(m.ns, m.id) for m in drawing.markers] == [
        ("plant", i) for i in range(len(visual.line_shapes))
    ]
    for shape, marker in zip(visual.line_shapes, drawing.markers):
        assert (marker.type, marker.action) == (kinds[shape.kind], Marker.ADD)
        assert marker.header.frame_id == visual.parent
        color = marker.color
        assert (color.r, color.g, color.b) == pytest.approx(shape.color, abs=1e-6)
        assert color.a == pytest.approx(0.5 * shape.opacity)
        assert conversions.xyz(marker.scale) == pytest.approx(np.array(shape.extents))
    lines = Lines(visual, SIZE)
    lines.place(poses, ())
    assert all(m.scale.x > 0 and len(m.points) >= 2 for m in lines.markers)
    assert len({(m.ns, m.id) for m in lines.markers}) == len(lines.markers)


def test_without_frames_nothing_is_drawn():
    visual = VisualModel("odom", lambda parameters, q: {}, ())
    trail = Trail(visual, SIZE)
    trail.place({})
    assert Drawing("plant", visual, 1.0).markers == trail.markers == []


def test_shapes_move_with_their_frames():
    board = scenarios.get("snakeboard")
    visual = board.visual(board.parameters)
    drawing = Drawing("plant", visual, 1.0)
    drawing.place(visual.poses(board.parameters, np.array([0.7, 0.3, 1.1, 2.0, -1.0])))
    l, turn = board.parameters.l, euler2mat(1.1, 0.0, 0.0, "rzyx")
    for shape, marker in zip(visual.shapes, drawing.markers):
        angle = {"board": 0.0, "rotor": 0.7, "rear_truck": 0.3, "front_truck": -0.3}[shape.frame]
        hinge = np.array([{"rear_truck": -l, "front_truck": l}.get(shape.frame, 0.0), 0.0, 0.0])
        expected = [2.0, -1.0, 0.0] + turn @ (
            hinge + euler2mat(angle, 0.0, 0.0, "rzyx") @ shape.offset
        )
        np.testing.assert_allclose(conversions.xyz(marker.pose.position), expected, atol=1e-12)
        np.testing.assert_allclose(
            quat2mat(conversions.wxyz(marker.pose.orientation)),
            euler2mat(1.1 + angle, 0.0, shape.roll, "rzyx"),
            atol=1e-12,
        )


def test_lines_and_arrows_are_as_thick_as_the_plant_is_large():
    for size in (0.85, 4.6):
        (thrust, _), (trail,) = Arrows(LOOK, size).markers, [Trail(LOOK, size)._marker]
        assert (thrust.scale.x, thrust.scale.y) == pytest.approx((0.02 * size, 0.045 * size))
        assert trail.scale.x == pytest.approx(0.015 * size)


def test_a_slack_cable_is_thin_and_red():
    lines, poses = Lines(LOOK, SIZE), LOOK.poses(SCENARIO.parameters, configuration())
    lines.place(poses, slack=["link2"])
    taut, slack, outline = lines.markers
    assert taut.scale.x > 2 * slack.scale.x > 0 and slack.color.r > 0.8 and taut.color.r < 0.3
    for marker, quad, length in ((taut, "quad1", 0.6), (slack, "quad2", 0.8)):
        np.testing.assert_allclose(
            points(marker), [poses["payload"].position, poses[quad].position]
        )
        assert np.linalg.norm(np.diff(points(marker), axis=0)) == pytest.approx(length)
    assert len(points(outline)) == 3
    lines.place(poses, slack=[])
    assert slack.scale.x == taut.scale.x and slack.color == taut.color


def test_arrows_are_as_long_as_their_inputs_are_large():
    arrows, poses = Arrows(LOOK, SIZE), LOOK.poses(SCENARIO.parameters, configuration())
    arrows.place(poses, {"quad1_thrust": 9.37})
    first, second = arrows.markers
    assert (first.action, second.action) == (Marker.ADD, Marker.DELETE)
    start, end = points(first)
    np.testing.assert_allclose(end - start, 0.4 * poses["quad1"].rotation[:, 2], rtol=1e-3)
    thrust = poses["quad1"]
    begins = thrust.position + LOOK.arrows[0].offset * thrust.rotation[:, 2]
    np.testing.assert_allclose(start, begins, atol=1e-15)
    push = LOOK.arrows[0].input
    lengths = []
    for value in (2.0, -3.0):
        arrows.place(poses, {push: value})
        start, end = points(arrows.markers[0])
        assert arrows.markers[0].action == Marker.ADD
        lengths.append((end - start) @ thrust.rotation[:, 2] / LOOK.arrows[0].scale)
    assert lengths == pytest.approx([2.0, -3.0])


def test_a_trail_follows_its_frame_in_space():
    trail, q = Trail(LOOK, SIZE), configuration()
    for k in range(5):
        q[:3] = [0.0, 0.0, 0.015 * k]
        trail.place(LOOK.poses(SCENARIO.parameters, q))
    (marker,) = trail.markers
    np.testing.assert_allclose(points(marker)[:, 2], [0.0, 0.03, 0.06])
    trail.clear()
    assert trail.markers == []


def test_a_trail_forgets_its_beginning():
    trail = Trail(LOOK, SIZE)
    for k in range(markers.TRAIL_POINTS + 5):
        trail.place({LOOK.trail: Pose(np.array([0.05 * k, 0.0, 0.0]), np.eye(3))})
    (marker,) = trail.markers
    assert len(marker.points) == markers.TRAIL_POINTS
    assert marker.points[0].x == pytest.approx(0.05 * 5)


# Descriptions and transforms of frames -----------------------------------------------------------


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
    links = [*frames.links, Link(f"{frames.root}_origin", frames.root, FIXED, None)]
    assert sorted(children) == sorted(f"r1/{link.frame}" for link in links)
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
    assert (f"r1/{frames.root}", f"r1/{frames.root}_origin") in [one[:2] for one in told]
    if name == "cart_pole":
        (cart,) = [one for one in told if one[1] == "r1/cart"]
        assert cart[0] == "r1/odom" and cart[2][0] == pytest.approx(q[0])


def test_the_root_is_known_before_anything_runs_also_beside_robot_state_publisher(node):
    RobotModel(node, scenarios.get("snakeboard"), "", whole=False)
    ((parent, child, position, turn, stamp),) = node.transforms
    assert (parent, child, stamp) == ("odom", "odom_origin", 0)
    assert not position.any() and turn.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert "robot_description" not in node.made


def test_that_there_is_no_tf_is_said_once(node, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    robot = RobotModel(node, scenarios.get("cart_pole"), "")
    robot.publish({}, np.zeros(2), 0)
    assert [text.partition(":")[0] for _, text in node.logged].count("no TF") == 1
