"""Joint trajectories: files and messages, splines, references by discrete inverse dynamics, timing
within limits, and motions of least effort.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import said

import nh_control as nh
from nh_control import scenarios
from nh_control.control.joint_reference import (
    InfeasibleTrajectory,
    continued,
    joint_limits,
    joint_reference,
    minimum_effort,
    through,
    within_limits,
)
from nh_control.control.joint_trajectory import JointTrajectory
from nh_control.multibody import Body, CoordinateLimits, JointInput, Multibody, revolute
from nh_control.scenarios.urdf import DEFAULT

NAMES = ("shoulder", "elbow")
TIMES, POINTS = [0.0, 1.0, 2.5], [[0.0, 0.0], [0.6, -0.8], [0.3, 0.5]]
WAY = JointTrajectory(NAMES, TIMES, POINTS)
VELOCITIES = [[0.0, 0.0], [0.2, 0.3], [0.0, 0.0]]
ZEROS = np.zeros((3, 2))


@pytest.fixture(scope="module")
def arm():
    return nh.midpoint(nh.load_urdf(DEFAULT), 0.01)


# files and messages ------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".yaml", ".yml"])
@pytest.mark.parametrize("tables", [(), (VELOCITIES,), (VELOCITIES, ZEROS)])
def test_files_have_all_digits(tmp_path, ending, tables):
    way = JointTrajectory(NAMES, np.array(TIMES) + 0.1, np.array(POINTS) / 3, *tables)
    way.save(tmp_path / f"way{ending}")
    found = JointTrajectory.load(tmp_path / f"way{ending}")
    assert found.names == NAMES and found.name == "way"
    for field in ("times", "positions", "velocities", "accelerations"):
        np.testing.assert_equal(getattr(found, field), getattr(way, field))


BOTH = "{sec: 1, nanosec: 500000000}"
YAML = f"""joint_names: [elbow, shoulder]
points:
- positions: [0.1, 0.2]
  time_from_start: {BOTH}
- positions: [0.3, 0.4]
  time_from_start: 2
"""


ECHOED = """header:
  stamp:
    sec: 0
    nanosec: 0
  frame_id: ''
joint_names:
- elbow
- shoulder
points:
- positions:
  - 0.1
  - 0.2
  velocities: []
  accelerations: []
  effort: []
  time_from_start:
    sec: 1
    nanosec: 500000000
---
"""
"""As `ros2 topic echo` writes it."""


@pytest.mark.parametrize(
    ("text", "times", "positions"),
    [
        (YAML, [1.5, 2.0], [[0.2, 0.1], [0.4, 0.3]]),
        *((times * ECHOED, [1.5], [[0.2, 0.1]]) for times in (1, 2)),
        *(
            (YAML.replace(BOTH, part), [seconds, 2.0], [[0.2, 0.1], [0.4, 0.3]])
            for part, seconds in (("{sec: 1}", 1.0), ("{nanosec: 500000000}", 0.5))
        ),
    ],
)
def test_yaml_is_that_of_ros(tmp_path, text, times, positions):
    (tmp_path / "way.yaml").write_text(text)
    found = JointTrajectory.load(tmp_path / "way.yaml").of(NAMES)
    assert found.times.tolist() == times and found.positions.tolist() == positions


WRONG_FILES = [
    ("a.txt", ""),
    ("a.csv", ""),
    ("a.csv", "time,shoulder\n0,1\n"),
    ("a.csv", "time_s,shoulder\n0,1\n1,x\n"),
    ("a.csv", "time_s,a,b,a_velocity\n0,1,1,1\n"),
    ("a.csv", "time_s\n0\n1\n"),
    ("a.yaml", "[1, 2]"),
    ("a.yaml", YAML.replace("[0.3, 0.4]", "[0.3]")),
    ("a.yaml", YAML.replace("0.3,", "high,")),
    ("a.yaml", YAML.replace("from_start: 2", "from_start: soon")),
    ("a.yaml", YAML.replace("from_start: 2", "from_start: 1")),
    *(
        ("a.yaml", YAML.replace(BOTH, part))
        for part in ("{}", "{sec: 1.5}", "{sec: true}", "{seconds: 1}")
    ),
    ("a.yaml", ECHOED + ECHOED.replace("- 0.1", "- 0.3")),
]


def test_files_that_are_no_trajectory_say_where(tmp_path, monkeypatch, snapshot):
    monkeypatch.chdir(tmp_path)

    def load(case):
        name, text = case
        (tmp_path / name).write_text(text)
        JointTrajectory.load(Path(name))

    assert said(WRONG_FILES, load) == snapshot
    with pytest.raises(ValueError, match="a.yaml"):
        load(("a.yaml", "a: ["))


WRONG = [
    {"names": ("a", "a")},
    {"times": [0.0, 1.0]},
    {"positions": [[0.0, np.nan]] * 3},
    {"times": [-1.0, 0.0, 1.0]},
    {"times": [0.0, 0.0, 1.0]},
    {"velocities": np.ones((3, 2))},
    {"accelerations": ZEROS},
    {"spline": "linear"},
]


def test_what_is_no_joint_trajectory_is_refused(snapshot):
    assert said(WRONG, lambda changes: replace(WAY, **changes)) == snapshot


# splines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tables", [(), (VELOCITIES,), (VELOCITIES, ZEROS)])
@pytest.mark.parametrize("spline", ["quintic", "cubic"])
def test_splines_go_through_the_points_and_rest_at_both_ends(tables, spline):
    way = JointTrajectory(NAMES, np.array(TIMES) + 0.5, POINTS, *tables, spline=spline)
    q, v = way.curve()(way.times)
    np.testing.assert_allclose(q, POINTS, atol=1e-12)
    np.testing.assert_allclose(v[[0, -1]], 0, atol=1e-12)
    if tables:
        np.testing.assert_allclose(v, VELOCITIES, atol=1e-12)
    q, v = way.curve()(np.array([0.0, 0.4, 3.0, 9.0]))
    np.testing.assert_allclose(q, [POINTS[0], POINTS[0], POINTS[-1], POINTS[-1]], atol=1e-12)
    assert not v.any()


def test_two_points_are_joined_by_least_jerk():
    """10 s^3 - 15 s^4 + 6 s^5."""
    way = JointTrajectory(("a",), [0.0, 2.0], [[0.0], [1.0]])
    s = np.linspace(0, 1, 11)
    found = way.curve()(2 * s)[0][:, 0]
    np.testing.assert_allclose(found, 10 * s**3 - 15 * s**4 + 6 * s**5, atol=1e-12)
    half, fast = way.curve()(np.array([1.0]))[1], way.stretched(0.5).curve()(np.array([0.5]))[1]
    np.testing.assert_allclose(fast, 2 * half)


# references --------------------------------------------------------------------------------------


def test_a_tracker_has_no_error_on_the_reference():
    arm = nh.midpoint(nh.load_urdf(DEFAULT), 0.05)
    reference = joint_reference(arm, WAY.of(NAMES[::-1]))
    tracker = nh.LqrTracker(arm, reference, np.eye(4), np.eye(2), hold=True)
    run = nh.rollout(arm, [reference.states[0]], tracker)
    assert np.abs(run.errors).max() <= 1e-11
    assert tracker.reference is reference  # it ends at rest: nothing was appended


@pytest.mark.parametrize("forcing", ["symmetric", "left"])
def test_the_reference_converges_to_the_spline_and_its_inputs_do_not_alternate(forcing):
    model, errors = nh.load_urdf(DEFAULT), []
    robot = nh.Robot(model)
    for h in (0.02, 0.01):
        arm = nh.midpoint(model, h, forcing)
        reference = joint_reference(arm, WAY)
        q, v = WAY.curve()(reference.times)
        errors.append(np.abs(arm.configuration(reference.states) - q).max())
        size = h**2 if forcing == "symmetric" else h  # momenta of one side
        np.testing.assert_allclose(reference.velocities, v, atol=30 * size)
        middle = WAY.curve()(reference.times[:-1] + h / 2)
        later, before = (WAY.curve()(reference.times[:-1] + s * h)[1] for s in (0.51, 0.49))
        wanted = robot.inverse_dynamics(*middle, (later - before) / (0.02 * h))
        away = np.abs(reference.inputs - wanted)[2:-6]
        assert away.max() <= 20 * h
    assert errors[1] <= (1e-5 if forcing == "symmetric" else 5e-3)
    assert errors[0] / errors[1] > 3.5


@pytest.mark.parametrize(
    ("name", "way", "words"),
    [
        ("cart_pole", WAY, "2 coordinates and 1 inputs"),
        ("satellite", WAY, "all coordinates must be joints"),
        ("urdf", replace(WAY, names=("shoulder", "wrist")), r"expected \['shoulder', 'elbow'\]"),
    ],
)
def test_what_cannot_follow_a_joint_trajectory_is_refused(name, way, words):
    with pytest.raises(ValueError, match=words):
        joint_reference(scenarios.get(name).model(), way)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (WAY.stretched(0.05), "speed .* of .* at .* s is outside .*stretch"),
        (WAY.stretched(0.17), "input .* of shoulder_torque at .* stretch"),
        (
            JointTrajectory(NAMES, [0.0, 5.0], [[0.0, 0.0], [0.0, 3.0]]),
            "position .* of elbow at .* in the range",
        ),
    ],
)
def test_limits_of_joints_and_actuators_are_checked(arm, way, words):
    with pytest.raises(InfeasibleTrajectory, match=words):
        joint_reference(arm, way)
    joint_reference(arm, way, check=False)


def test_ranges_without_width_and_speeds_of_zero_are_none():
    text = DEFAULT.read_text().replace('upper="2.8"', 'upper="-2.8"')
    model = nh.midpoint(nh.load_urdf(text.replace('city="10"', 'city="0"')), 0.01)
    assert joint_limits(model) == [CoordinateLimits(), CoordinateLimits()]
    assert joint_reference(model, within_limits(model, WAY)).duration > WAY.duration


def test_a_trajectory_is_stretched_as_little_as_its_limits_ask(arm):
    slow = within_limits(arm, WAY.stretched(0.2), margin=0.8)
    made = joint_reference(arm, slow)
    used = (np.abs(made.inputs) / arm.system.input_bounds[:, 1]).max()
    rate = (np.abs(made.velocities) / 10.0).max()
    assert max(used, rate) == pytest.approx(0.8, rel=1e-2)
    assert within_limits(arm, WAY).duration == WAY.duration
    assert within_limits(arm, WAY, faster=True).duration < WAY.duration
    with pytest.raises(ValueError, match="margin"):
        within_limits(arm, WAY, margin=1.5)


def test_points_get_the_fastest_times(arm):
    found = through(arm, POINTS, margin=1.0)
    made = joint_reference(arm, found)
    used = np.abs(made.inputs) / arm.system.input_bounds[:, 1]
    assert max(used.max(), np.abs(made.velocities).max() / 10) == pytest.approx(1.0, rel=1e-2)
    with pytest.raises(ValueError, match="shape"):
        through(arm, [[0.0, 0.0]])
    with pytest.raises(ValueError, match="successive points must differ"):
        through(arm, [[0.0, 0.0], [0.0, 0.0]])


def weak_arm(torque):
    return nh.midpoint(
        Multibody(
            "weak",
            [revolute("arm", axis="y", limits=CoordinateLimits(velocity=3.0))],
            [Body("arm", 1.0, (0.5, 0.0, 0.0), (0.01, 0.01, 0.01))],
            inputs=[JointInput("arm", torque)],
        ),
        0.05,
    )


def test_an_arm_that_cannot_carry_its_weight_says_so():
    """It takes 4.9 N m to hold it out."""
    with pytest.raises(InfeasibleTrajectory, match="the weight is too large"):
        through(weak_arm(4.0), [[np.pi / 2], [0.0]])


def test_least_effort_is_less_than_that_of_the_polynomial_and_keeps_the_limits(arm):
    start, end = POINTS[0], [1.2, -0.4]
    found = minimum_effort(arm, start, end, 1.0)
    assert found.converged, found.reason
    straight = joint_reference(arm, JointTrajectory(NAMES, [0.0, 1.0], [start, end]))

    def effort(inputs):
        return np.sum((inputs / arm.system.input_bounds[:, 1]) ** 2)

    motion = found.trajectory
    assert effort(motion.inputs) < 0.97 * effort(straight.inputs)
    assert np.abs(arm.local(motion.states[-1], arm.state(end, [0, 0]))).max() <= 1e-7
    assert (np.abs(motion.inputs) <= arm.system.input_bounds[:, 1] + 1e-9).all()


# in motion ---------------------------------------------------------------------------------------


def test_a_trajectory_joins_a_motion_without_a_jump(arm):
    first = joint_reference(arm, WAY)
    target = JointTrajectory(NAMES, [1.5], [[-0.4, 0.2]])
    joined = continued(arm, first, 120, target)
    np.testing.assert_array_equal(joined.states[0], first.states[120])
    jump = np.abs(joined.inputs[0] - first.inputs[120]).max()
    assert jump <= 3 * np.abs(np.diff(first.inputs[110:130], axis=0)).max()
    np.testing.assert_allclose(joined.states[-1], arm.state([-0.4, 0.2], [0, 0]), atol=1e-9)
    past = continued(arm, first, 10_000, target)
    np.testing.assert_array_equal(past.states[0], first.states[-1])


def test_a_trajectory_that_begins_elsewhere_is_refused(arm):
    first = joint_reference(arm, WAY)
    here = arm.configuration(first.states[50])
    begin = JointTrajectory(NAMES, [0.0, 1.0], [here, [0.0, 0.0]])
    assert continued(arm, first, 50, begin).duration > 1.0
    elsewhere = replace(begin, positions=begin.positions + [[0.1, 0.0], [0.0, 0.0]])
    with pytest.raises(InfeasibleTrajectory, match="begins at .*, but the joints will be at"):
        continued(arm, first, 50, elsewhere)
