"""Markers of what scenarios look like."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from transforms3d.euler import euler2mat  # noqa: E402
from transforms3d.quaternions import quat2mat  # noqa: E402
from visualization_msgs.msg import Marker  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.ros.messages import conversions, markers  # noqa: E402
from nh_control.ros.messages.markers import Arrows, Drawing, Lines, Trail  # noqa: E402
from nh_control.scenarios.visual_model import Pose, VisualModel  # noqa: E402, VisualModel

SCENARIO = scenarios.get("quadrotor_payload")
LOOK = SCENARIO.visual(SCENARIO.parameters)


def configuration(seed=0):
    """Payload and quadrotors anywhere."""
    space = SCENARIO.model().system.space
    return space.retract(space.origin, np.random.default_rng(seed).normal(size=space.nv))


def points(marker):
    """Points of a marker, (N, 3)."""
    return np.array([conversions.xyz(point) for point in marker.points])


@pytest.mark.parametrize("name", scenarios.names())
def test_everything_that_a_look_names_exists(name):
    scenario = scenarios.get(name)
    model, visual = scenario.model(), scenario.visual_model()
    poses = visual.poses(scenario.parameters, model.system.space.origin)
    assert {shape.frame for shape in visual.shapes} | {
        visual.trail or visual.shapes[0].frame
    } | set(visual.outline) <= poses.keys()
    assert {frame for cable in visual.cables for frame in (cable.start, cable.end)} | {
        arrow.frame for arrow in visual.arrows
    } <= poses.keys()
    assert {arrow.input for arrow in visual.arrows} <= set(model.inputs)
    assert {cable.monitored for cable in visual.cables} <= {
        "",
        *(scenario.monitor.names if scenario.monitor else ()),
    }
    for pose in poses.values():
        np.testing.assert_allclose(pose.rotation @ pose.rotation.T, np.eye(3), atol=1e-12)
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
    lines = Lines(visual)
    lines.place(poses, ())
    assert all(m.scale.x > 0 and len(m.points) >= 2 for m in lines.markers)
    assert len({(m.ns, m.id) for m in lines.markers}) == len(lines.markers)


@pytest.mark.parametrize(
    ("name", "bodies", "q", "place"),
    [
        ("snakeboard", ["base_link"], np.linspace(0.1, 0.5, 5), [0.4, 0.5, 0.0]),
        ("quadrotor_payload", ["payload", "quad1", "quad2"], configuration(), configuration()[:3]),
    ],
)
def test_without_a_look_bodies_are_balls(name, bodies, q, place):
    scenario = replace(scenarios.get(name), visual=None)
    visual = scenario.visual_model()
    drawing = Drawing("plant", visual, 1.0)
    drawing.place(visual.poses(scenario.parameters, q))
    assert [shape.frame for shape in visual.shapes if shape.kind == "sphere"] == bodies
    assert (visual.parent, visual.trail) == ("odom", bodies[0])
    np.testing.assert_allclose(conversions.xyz(drawing.markers[0].pose.position), place)


def test_without_a_look_joints_alone_are_sticks():
    scenario = replace(scenarios.get("cart_pole"), visual=None)
    visual = scenario.visual_model()
    trail = Trail(visual)
    trail.place(visual.poses(scenario.parameters, np.zeros(2)))
    kinds = {shape.kind for shape in visual.shapes}
    assert kinds == {"sphere", "cylinder"} and len(Drawing("plant", visual, 1.0).markers) == 3
    assert trail.markers == Lines(visual).markers == Arrows(visual).markers == []


def test_without_frames_nothing_is_drawn():
    visual = VisualModel("odom", lambda parameters, q: {}, ())
    trail = Trail(visual)
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


def test_a_slack_cable_is_thin_and_red():
    lines, poses = Lines(LOOK), LOOK.poses(SCENARIO.parameters, configuration())
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
    arrows, poses = Arrows(LOOK), LOOK.poses(SCENARIO.parameters, configuration())
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
    trail, q = Trail(LOOK), configuration()
    for k in range(5):
        q[:3] = [0.0, 0.0, 0.015 * k]
        trail.place(LOOK.poses(SCENARIO.parameters, q))
    (marker,) = trail.markers
    np.testing.assert_allclose(points(marker)[:, 2], [0.0, 0.03, 0.06])
    trail.clear()
    assert trail.markers == []


def test_a_trail_forgets_its_beginning():
    trail = Trail(LOOK)
    for k in range(markers.TRAIL_POINTS + 5):
        trail.place({LOOK.trail: Pose(np.array([0.05 * k, 0.0, 0.0]), np.eye(3))})
    (marker,) = trail.markers
    assert len(marker.points) == markers.TRAIL_POINTS
    assert marker.points[0].x == pytest.approx(0.05 * 5)
