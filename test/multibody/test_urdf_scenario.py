"""Robots from URDF files as scenarios."""

import re
from dataclasses import replace

import numpy as np
import pytest
from refusals import said
from transforms3d.quaternions import quat2mat
from urdf_robots import robot_file

from nh_control import scenarios
from nh_control.control.identification import identify, segments
from nh_control.multibody import Robot, load_urdf
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlanarBody, PlantOptions
from nh_control.scenarios.joints import JointPerturbation
from nh_control.scenarios.scenario_frames import ScenarioFrames
from nh_control.scenarios.urdf import DEFAULT

TEXT = DEFAULT.read_text()
PASSIVE = TEXT.replace('effort="20"', 'effort="0"').replace('effort="10"', 'effort="0"')


def held(scenario, model, plant, angle):
    """The run that begins with the joints off the reference, and its last error."""
    tracker = scenario.tracker(model, scenario.reference(model))
    rest = tracker.reference.states[0]
    start = scenario.perturb(model, rest, JointPerturbation(angle=angle))
    run = closed_loop(plant, tracker, start, 400)
    return run, np.abs(model.local(rest, run.trajectory.states[-1]))


def test_the_default_robot_is_held_at_rest_and_returns_there():
    scenario = scenarios.get("urdf")
    model = scenario.model()
    plant = scenario.plant(model, PlantOptions(parameters={"mass_scale": 1.2}))
    run, error = held(scenario, model, plant, 0.2)
    rest = scenario.reference(model).states[0]
    np.testing.assert_allclose(model.local(rest, run.trajectory.states[0])[:2], [0.2, 0.2])
    assert error[:2].max() <= 1e-3


@pytest.mark.parametrize(
    ("end", "angle"),
    [(('lower="-2.8"', 'lower="0.4"'), 0.4), (('upper="2.8"', 'upper="-0.4"'), -0.4)],
)
def test_a_robot_whose_ranges_leave_zero_out_starts_at_their_ends(end, angle):
    scenario = scenarios.from_urdf(TEXT.replace(*end))
    reference = scenario.reference(scenario.model())
    np.testing.assert_allclose(reference.states[0][:2], [0.0, angle], atol=1e-12)
    assert np.abs(reference.inputs[0]).max() > 0.1


CRANE = """<robot name="crane"><link name="base"/>
<link name="a"><inertial><mass value="2"/>
<inertia ixx="0.03" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.02"/></inertial></link>
<link name="b"><inertial><mass value="1"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<joint name="yaw" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit effort="50" velocity="5"/></joint>
<joint name="slide" type="prismatic"><parent link="a"/><child link="b"/><origin xyz="0.4 0 0"/>
<axis xyz="1 0 0"/><limit effort="50" velocity="1" lower="-0.3" upper="0.3"/></joint></robot>"""


def test_sliding_joints_are_in_meters_and_moving_links_can_be_pushed():
    scenario = scenarios.from_urdf(CRANE)
    units = [(joint.name, joint.unit) for joint in scenario.joints]
    assert units == [("yaw", "rad"), ("slide", "m")]
    model = scenario.model()
    x = model.state([0.1, 0.05], [0.2, 0.3])
    moved = scenario.perturb(model, x, JointPerturbation(position=0.01, angle=0.2))
    np.testing.assert_allclose(moved - x, [0.2, 0.01, 0.0, 0.0], atol=1e-12)
    targets = scenario.targets(model.system)
    assert [name for name, one in targets.items() if one.n == 6] == ["a", "b"]
    assert model.h == 0.005


def test_a_robot_s_file_and_base_go_with_it(tmp_path, monkeypatch):
    (tmp_path / "robot.urdf").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    scenario = scenarios.from_urdf("robot.urdf", "floating")
    file = str(tmp_path / "robot.urdf")
    assert scenario.origin == {"scenario": "urdf", "urdf": file, "base": "floating"}
    assert scenarios.get("urdf").origin == {"scenario": "urdf", "base": "fixed"}


def test_weights_are_bryson_s_of_errors_rates_and_efforts():
    """0.1 rad or a part of the range, the speed limit, the largest effort, or 1 rad/s, 10 N m."""
    scenario = scenarios.from_urdf(TEXT.replace('effort="10"', 'effort="inf"'))
    Q, R, Qf = scenario.weights
    np.testing.assert_allclose(R, np.diag([1 / 20**2, 1 / 10**2]))
    np.testing.assert_allclose(Q[:2, :2], 100 * np.eye(2))
    assert Qf is None and not Q[:2, 2:].any()
    model = scenario.model()
    v = np.array([0.3, -0.7])
    momenta = model.state([0.0, 0.0], v)[2:]
    assert momenta @ Q[2:, 2:] @ momenta == pytest.approx((v / 10) @ (v / 10))
    narrow = 'velocity="0" lower="-0.1" upper="0.3"'
    slow = TEXT.replace('velocity="10" lower="-2.8" upper="2.8"', narrow)
    Q = scenarios.from_urdf(slow).weights[0]
    np.testing.assert_allclose(np.diag(Q)[:2], [1 / 0.1**2, 1 / 0.02**2])
    assert momenta @ Q[2:, 2:] @ momenta == pytest.approx(v @ (v * [0.01, 1.0]))
    free = scenarios.from_urdf(PASSIVE, "floating")
    assert free.weights[2] is free.weights[0]


def test_limits_that_no_machine_has_do_not_weigh():
    """1e9 is written where there is no limit; then nothing would count except positions."""
    plain = re.sub('(effort|velocity)="[0-9]+"', r'\1="inf"', TEXT)
    for none in ("1e9", "3.4e38"):
        weights = scenarios.from_urdf(plain.replace('"inf"', f'"{none}"')).weights
        np.testing.assert_array_equal(weights[0], scenarios.from_urdf(plain).weights[0])
        np.testing.assert_array_equal(weights[1], np.eye(2) / 10**2)


def test_a_robot_with_too_few_actuators_is_held_where_it_rests():
    """Where its ranges let it begin it would not."""
    text = TEXT.replace('effort="10"', 'effort="0"').replace('lower="-2.8"', 'lower="0.4"')
    scenario = scenarios.from_urdf(text)
    model = scenario.model()
    x, u = scenario.reference(model).states[0], scenario.reference(model).inputs[0]
    assert model.nu == 1 and abs(x[1] - 0.4) > 0.01
    np.testing.assert_allclose(model.local(x, model.step(x, u)), 0, atol=1e-9)


def test_a_floating_robot_falls_and_is_shown_as_a_body_with_joints():
    scenario = scenarios.get("urdf", base="floating")
    assert [joint.name for joint in scenario.joints] == ["shoulder", "elbow"]
    assert list(scenario.references) == ["free"]
    model = scenario.model()
    run = scenario.reference(model)
    t = run.duration
    assert run.states[-1][6] == pytest.approx(-9.81 * t**2 / 2, rel=1e-12)
    space = model.system.space
    rng = np.random.default_rng(1)
    q, v = space.retract(space.origin, rng.normal(size=space.nv)), rng.normal(size=space.nw)
    (body,) = scenario.to_bodies(None, q, v)
    assert (body.frame, body.parent) == ("base_link", "world")
    np.testing.assert_allclose(body.linear_velocity, quat2mat(q[:4]) @ v[3:6])
    base_q, base_v = scenario.from_bodies([replace(body, quaternion_wxyz=1.1 * q[:4])])
    np.testing.assert_allclose(base_q, q[:7], atol=1e-15)
    np.testing.assert_allclose(base_v, v[:6], atol=1e-15)
    x, push = model.state(q, v), JointPerturbation(position=0.1, angle=0.2, momentum=0.5)
    moved = model.local(x, scenario.perturb(model, x, push))[[2, 4, 6, 7]]
    np.testing.assert_allclose(moved, [0.2, 0.1, 0.2, 0.2], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur3e", "robotiq_2f_85", "upkie", "cookie"])
def test_real_robots_are_held_as_they_are(name):
    """On a fixed base, by the scenario's weights and within the actuators' limits."""
    scenario = scenarios.from_urdf(robot_file(name))
    run, error = held(scenario, scenario.model(), scenario.model(), 0.1)
    assert error.max() <= 1e-8 and run.saturated.sum() <= 5


def test_the_skeleton_joins_the_frames():
    scenario = scenarios.get("urdf")
    visual = scenario.visual(scenario.parameters)
    poses = visual.poses(scenario.parameters, np.array([0.3, 0.5]))
    assert visual.parent == "base_link" and visual.trail == "lower_link"
    rod = poses["lower_link rod"]
    np.testing.assert_allclose(
        rod.position, (poses["upper_link"].position + poses["lower_link"].position) / 2, atol=1e-15
    )
    along = poses["lower_link"].position - poses["upper_link"].position
    np.testing.assert_allclose(rod.rotation[:, 2], along / np.linalg.norm(along), atol=1e-15)
    assert {shape.frame for shape in visual.shapes} <= set(poses)
    for pose in poses.values():
        np.testing.assert_allclose(pose.rotation @ pose.rotation.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(pose.rotation) > 0


MASSLESS = """<robot name="gripper">
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"><inertial><mass value="1"/></inertial></link>
  <joint name="wrist" type="continuous"><parent link="arm"/><child link="tool"/>
    <axis xyz="0 1 0"/></joint>
</robot>"""


def test_masses_inertias_and_damping_of_a_robot_are_parameters_by_name():
    scenario = scenarios.get("urdf")
    model = scenario.model()
    tensor = scenario.parameters.lower_link_inertia
    changes = {"upper_link_mass": 2.5, "lower_link_inertia": tuple(2 * i for i in tensor)}
    plant = scenario.plant(model, PlantOptions(parameters=changes | {"elbow_damping": 0.3}))
    direct = model.with_parameters(**changes, elbow_damping=0.3)
    x = plant.state([0.3, -0.2], [0.5, 0.1])
    np.testing.assert_allclose(plant.step(x, [0.1, 0.2]), direct.step(x, [0.1, 0.2]), rtol=1e-12)
    other = model.with_parameters(**changes).step(x, [0.1, 0.2])
    assert np.abs(other - direct.step(x, [0.1, 0.2])).max() > 1e-5
    with pytest.raises(ValueError, match="elbow_damping must be a finite number >= 0"):
        scenario.plant_parameters(PlantOptions(parameters={"elbow_damping": -1.0}))


@pytest.mark.parametrize(
    "changes",
    [
        {"lower_link_mass": 0.8, "elbow_damping": 0.2},
        {"mass_scale": 1.3, "shoulder_friction": 0.2, "elbow_friction": 0.1},
    ],
)
def test_masses_damping_and_friction_are_identified(changes):
    """From exact measurements of a swing."""
    scenario = scenarios.get("urdf")
    model = scenario.model()
    true = model.with_parameters(**changes)
    u = np.column_stack([np.sin(0.05 * np.arange(100)), np.cos(0.08 * np.arange(100))])
    run = true.simulate(true.state([0.4, -0.3], [0.0, 0.0]), u)
    times = np.round(np.arange(101) * model.h * 1e9).astype(np.int64)
    pieces = segments(times, run.states[:, :2], [[(row, model.h)] for row in u])
    found = identify(model, [*changes], pieces)
    np.testing.assert_allclose(found.values, [*changes.values()], rtol=1e-6)


def rover(kind, root="odom", origin="", more=""):
    """A hull on a joint of this kind, with an arm."""
    inertial = '<inertial><mass value="2"/><inertia ixx="0.3" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.1"/></inertial>'  # noqa: E501
    return f"""<robot name="rover"><link name="{root}"/><link name="hull">{inertial}</link>
<link name="arm">{inertial}</link>{more}
<joint name="free" type="{kind}"><parent link="{root}"/><child link="hull"/>{origin}
<axis xyz="0 0 1"/></joint>
<joint name="lift" type="continuous"><parent link="hull"/><child link="arm"/>
<origin xyz="0.2 0 0.1"/><axis xyz="0 1 0"/><limit effort="20" velocity="3"/></joint></robot>"""


TURNED = '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'


@pytest.mark.parametrize("root", ["odom", "world"])
@pytest.mark.parametrize("origin", ["", TURNED])
def test_a_floating_joint_is_shown_below_any_root_that_does_not_move(root, origin):
    """Its pose and velocity are those of the link in the root, and are read back."""
    scenario = scenarios.from_urdf(rover("floating", root, origin))
    assert [joint.name for joint in scenario.joints] == ["lift"]
    system = scenario.make_system(scenario.parameters)
    rng = np.random.default_rng(2)
    q = system.space.retract(system.space.origin, rng.normal(size=system.space.nv))
    v = rng.normal(size=system.space.nw)
    (body,) = scenario.to_bodies(None, q, v)
    robot = Robot(load_urdf(rover("floating", root, origin)))
    pose, twist = robot.frame_pose(q, "hull"), robot.frame_jacobian(q, "hull") @ v
    np.testing.assert_allclose(quat2mat(body.quaternion_wxyz), pose.rotation, atol=1e-14)
    np.testing.assert_allclose(body.position, pose.position, atol=1e-14)
    np.testing.assert_allclose(body.linear_velocity, twist[3:], atol=1e-14)
    np.testing.assert_allclose(pose.rotation @ body.angular_velocity_body, twist[:3], atol=1e-14)
    assert (body.frame, body.parent) == ("hull", root)
    for got, wanted in zip(scenario.from_bodies([body]), (q[:7], v[:6])):
        np.testing.assert_allclose(got, wanted, atol=1e-14)


@pytest.mark.parametrize(("root", "z"), [("odom", 0.0), ("world", 0.028)])
def test_a_planar_joint_is_shown_as_x_y_and_a_heading(root, z):
    scenario = scenarios.from_urdf(rover("planar", root, f'<origin xyz="0 0 {z}"/>'))
    assert scenario.body == PlanarBody("hull", root, ("free_theta", "free_x", "free_y"), z)
    model = scenario.model()
    x = model.state(model.system.space.origin, np.zeros(4))
    moved = scenario.perturb(model, x, JointPerturbation(position=0.1, angle=0.2))
    np.testing.assert_allclose(model.local(x, moved)[:4], [0.2, 0.0, 0.1, 0.2], atol=1e-12)
    frames = ScenarioFrames(scenario)
    q = np.array([0.4, 1.0, 2.0, 0.3])
    poses = scenario.visual(scenario.parameters).poses(scenario.parameters, q)
    np.testing.assert_allclose(poses["hull"].position, [1.0, 2.0, z])
    np.testing.assert_allclose(scenario.body.pose(0.4, 1.0, 2.0).position, [1.0, 2.0, z])
    assert frames.root == root and frames.bodies == ["hull"]


def test_two_floating_bodies_are_shown():
    second = '<link name="box"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link><joint name="toss" type="floating"><parent link="odom"/><child link="box"/></joint>'  # noqa: E501
    scenario = scenarios.from_urdf(rover("floating", more=second))
    bodies = scenario.resting_bodies(scenario.make_system(scenario.parameters).space)
    assert {body.frame for body in bodies} == {"hull", "box"}
    q, v = scenario.from_bodies(bodies)
    assert q.shape == (14,) and v.shape == (12,)


PLANE = TEXT.replace('type="continuous"', 'type="planar"')


WRONG = [
    (PLANE,),
    (rover("planar", origin=TURNED),),
    (rover("planar").replace('"0 0 1"', '"0 1 0"'),),
    (rover("floating").replace("continuous", "floating"),),
    (rover("floating").replace("continuous", "planar"),),
    ("<robot",),
    (MASSLESS, "fixed"),
    (MASSLESS, "floating"),
]


def test_robots_that_cannot_be_simulated_or_shown_are_named(snapshot):
    assert said(WRONG, lambda robot: scenarios.from_urdf(*robot)) == snapshot


def test_scenarios_that_are_no_robots_and_files_that_are_not_there_are_refused():
    with pytest.raises(FileNotFoundError):
        scenarios.get("urdf", "no_such.urdf")
    with pytest.raises(ValueError, match="'snakeboard' takes no robot"):
        scenarios.get("snakeboard", "robot.urdf")
