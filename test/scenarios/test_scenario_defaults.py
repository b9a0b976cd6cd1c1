"""What a user gets who names a scenario and nothing else: its step, weights, initial errors,
joints, what is watched; and the motions that its references are made of, by their sizes and times.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.mechanics.parameters import declarations
from nh_control.scenarios import car, chaplygin_sleigh, differential_drive, rolling_disk
from nh_control.scenarios.marionette import MOTIONS
from nh_control.scenarios.quadrotor_payload import FORMATION, PATHS
from nh_control.scenarios.satellite import MANEUVERS, Slew
from nh_control.scenarios.snakeboard import GAITS, Gait
from nh_control.systems.marionette_motion import StringMotion

INTEGRATORS = "midpoint rdp_exp rdp_cay"
PLANAR = "position=0.1 heading=0.1 momentum=0.1"
DECLARED = {
    "snakeboard": {
        "title": "Snakeboard tracking a maneuver",
        "run": "0.01 s",
        "integrators": f"{INTEGRATORS} rdp_exp_truncated",
        "references": "parking forward turning slalom pillars parking_optimal",
        "weights": "0.1 1 10 10 10 0.1 0.1 1 | 0.01 0.01 | 100 Q",
        "perturbation": PLANAR,
        "joints": "rotor_joint=psi rear_truck_joint=phi front_truck_joint=-phi",
        "shown": "base_link in odom",
    },
    "quadrotor_payload": {
        "title": "Two quadrotors carrying a payload",
        "run": "0.01 s, held, disturbance gain 0.5",
        "integrators": "midpoint",
        "references": "figure_of_eight hover line circle parabola taut_hover spheres windows",
        "weights": " ".join(
            ["20 " * 3 + "30 " * 6 + "10 " * 4 + "1 " * 9 + "0.4 " * 4]
            + ["| 0.05 0.4 0.4 0.4 0.05 0.4 0.4 0.4 |"]
        ),
        "perturbation": f"{PLANAR} swing=0 tilt=0",
        "joints": "",
        "shown": "payload, quad1, quad2 in odom",
        "monitor": "tension of link1, link2 in N: a slack cable at 0",
    },
    "quadrotor": {
        "title": "Quadrotor flying through two windows",
        "run": "0.01 s, held",
        "integrators": "midpoint",
        "references": "windows straight hover",
        "weights": "20 20 20 5 5 5 2 2 2 50 50 50 | 0.05 5 5 5 |",
        "perturbation": "position=0.1 heading=0.1 tilt=0 momentum=0.1",
        "joints": "",
        "shown": "quadrotor in odom",
    },
    "marionette": {
        "title": "Marionette on six strings",
        "run": "0.01 s",
        "integrators": "midpoint_left midpoint",
        "references": "published step sway",
        "weights": "100 " * 40 + "1 " * 40 + "|" + " 1" * 18 + " |",
        "perturbation": PLANAR,
        "joints": None,
        "shown": "",
    },
    "pendulum_swing_up": {
        "title": "Pendulum swinging up",
        "run": "0.02 s, held",
        "integrators": "midpoint midpoint_left",
        "references": "swing_up",
        "weights": "20 0.2 | 1 |",
        "perturbation": "angle=0.1 momentum=0.1",
        "joints": "pendulum_joint=theta",
        "shown": "",
    },
    "cart_pole": {
        "title": "Cart swinging up a pole",
        "run": "0.01 s, held",
        "integrators": "midpoint",
        "references": "swing_up short_track",
        "weights": "10 10 1 1 | 0.1 |",
        "perturbation": "position=0.1 angle=0.1 momentum=0.1",
        "joints": "cart_joint=x (m) pole_joint=theta",
        "shown": "",
    },
    "acrobot": {
        "title": "Acrobot swinging up by its elbow",
        "run": "0.01 s, held",
        "integrators": "midpoint",
        "references": "swing_up tight_elbow",
        "weights": "10 10 1 1 | 0.1 |",
        "perturbation": "angle=0.1 momentum=0.1",
        "joints": "shoulder_joint=shoulder elbow_joint=elbow",
        "shown": "",
    },
    "differential_drive": {
        "title": "Differential drive tracking a course",
        "run": "0.01 s",
        "integrators": INTEGRATORS,
        "references": "figure_eight slalom delivery standstill",
        "weights": "0 0 5 20 20 5 0.02 | 1 1 | 10 Q",
        "perturbation": PLANAR,
        "joints": "left_wheel_joint=left right_wheel_joint=right",
        "shown": "base_link in odom",
    },
    "car": {
        "title": "Car tracking a maneuver",
        "run": "0.02 s",
        "integrators": INTEGRATORS,
        "references": "parking lane_change figure_eight tight_parking standstill",
        "weights": "0 1 10 5 5 0.05 2e-06 | 1e-06 0.001 | 10 Q",
        "perturbation": "position=0.3 heading=0.05 momentum=0.1",
        "joints": "rear_wheels_joint=wheel steering_joint=delta",
        "shown": "base_link in odom",
    },
    "chaplygin_sleigh": {
        "title": "Chaplygin sleigh tracking a course",
        "run": "0.02 s",
        "integrators": INTEGRATORS,
        "references": "figure_eight slalom turn_round standstill",
        "weights": "5 5 5 1 1 | 0.1 0.1 | 10 Q",
        "perturbation": "position=0.3 heading=0.1 momentum=0.1",
        "joints": "",
        "shown": "base_link in odom",
    },
    "rolling_disk": {
        "title": "Rolling disk tracking a course",
        "run": "0.005 s",
        "integrators": INTEGRATORS,
        "references": "figure_eight slalom circle standstill",
        "weights": "0 5 20 20 1 200 | 1 10 | 10 Q",
        "perturbation": "position=0.2 heading=0.1 momentum=0.1",
        "joints": "disk_joint=phi",
        "shown": "base_link in odom",
    },
    "satellite": {
        "title": "Satellite slewing by reaction wheels",
        "run": "0.02 s, held",
        "integrators": "midpoint",
        "references": "slew about_face three_targets biased_slew slew_past_sun stare",
        "weights": None,  # see test_satellite.py
        "perturbation": "attitude=0.3 rate=0.01",
        "joints": " ".join(f"wheel{i}_joint=wheel{i}" for i in (1, 2, 3, 4)),
        "shown": "satellite in odom",
        "monitor": "speed margin of wheel1, wheel2, wheel3, wheel4 in rad/s: "
        "a saturated wheel at 0",
        "excluded": "p_rotation_x p_rotation_y p_rotation_z wheel1 wheel2 wheel3 wheel4",
    },
    "wet_snakeboard": {
        "title": "Snakeboard on wet ground",
        "run": "0.01 s",
        "integrators": "midpoint",
        "references": "slalom parking forward",
        "weights": "0.1 1 10 10 10 0.1 0.1 0.1 1 0.1 | 0.01 0.01 | 100 Q",
        "perturbation": PLANAR,
        "joints": "rotor_joint=psi rear_truck_joint=phi front_truck_joint=-phi",
        "shown": "base_link in odom",
    },
    "wet_car": {
        "title": "Car on wet ground",
        "run": "0.02 s",
        "integrators": "midpoint",
        "references": "lane_change parking figure_eight",
        "weights": "0 1 10 5 5 0 0.05 2e-06 2e-06 2e-06 | 1e-06 0.001 | 10 Q",
        "perturbation": "position=0.3 heading=0.05 momentum=0.1",
        "joints": "rear_wheels_joint=wheel steering_joint=delta",
        "shown": "base_link in odom",
    },
    "urdf": {
        "title": "The robot double_pendulum",
        "run": "0.005 s, held",
        "integrators": "midpoint",
        "references": "hold",
        "weights": None,  # see test_urdf_scenario.py
        "perturbation": "position=0.1 angle=0.1 momentum=0.1",
        "joints": "shoulder=shoulder elbow=elbow",
        "shown": "",
    },
}  # fmt: skip


def in_words(scenario):
    weights = "".join(
        " ".join(f"{number:.12g}" for number in np.diag(weight)) + " | "
        for weight in scenario.weights[:2]
    )
    Q, _, Qf = scenario.weights
    if Qf is not None:
        (factor,) = {round(float(f), 9) for f in (Qf[Q != 0] / Q[Q != 0])}
        weights += f"{factor:g} Q"
    gain = scenario.disturbance_gain
    system = scenario.make_system(scenario.parameters) if scenario.to_bodies else None
    bodies = scenario.resting_bodies(system.space) if system else ()
    bodies = bodies or ((scenario.body,) if scenario.body else ())
    monitor = scenario.monitor
    return {
        "title": scenario.title,
        "run": f"{scenario.step_s:g} s"
        + ", held" * scenario.hold
        + f", disturbance gain {gain:g}" * (gain != 0.2),
        "integrators": " ".join(scenario.integrators),
        "references": " ".join(scenario.references),
        "weights": weights,
        "perturbation": " ".join(
            f"{d.name}={d.value:g}"
            for d in declarations(scenario.perturbation)
            if not d.is_integer
        ),
        "joints": " ".join(
            f"{j.name}={'-' * (j.sign == -1.0)}{j.coordinate}" + " (m)" * (j.unit == "m")
            for j in scenario.joints
        ),
        "shown": f"{', '.join(b.frame for b in bodies)} in {bodies[0].parent}" if bodies else "",
        "monitor": monitor
        and f"{monitor.title} of {', '.join(monitor.names)} in {monitor.unit}: "
        f"{monitor.warning} at {monitor.minimum:g}",
        "excluded": " ".join(scenario.excluded),
    }


@pytest.mark.parametrize("name", DECLARED)
def test_scenarios_are_what_is_said_of_them(name):
    found, wanted = (
        in_words(scenarios.get(name)),
        {"monitor": None, "excluded": ""} | DECLARED[name],
    )
    for what, words in wanted.items():
        if words is not None or what == "monitor":
            given = found[what] and " ".join(found[what].split())
            assert given == (words and " ".join(words.split())), what


def test_all_scenarios_are_asked():
    assert tuple(DECLARED) == scenarios.built_in()


def test_a_joint_of_the_marionette_slides_where_it_is_moved_along_a_line():
    """The torso's position, the strings' upper ends and lengths; all joints show themselves."""
    joints = scenarios.get("marionette").joints
    assert all(joint.name == joint.coordinate and joint.sign == 1.0 for joint in joints)
    slides = {joint.name for joint in joints if joint.unit == "m"}
    assert {f"torso_t{c}" for c in "xyz"} < slides and len(joints) == 40
    assert slides == {
        joint.name for joint in joints if "_r" not in joint.name or "string" in joint.name
    }


# --- the motions behind the references -----------------------------------------------------------

COURSES = {
    # module, course: duration, extents along x and y, where it begins and ends, speed there
    (car, "parking"): (13.0, (0.0, 8.0), (0.0, 2.5), (8.0, 2.5), (0.8, 0.0), (0.0, 0.0)),
    (car, "lane_change"): (5.75, (0.0, 69.0), (0.0, 3.5), (0.0, 0.0), (69.0, 3.5), (12.0, 12.0)),
    (car, "figure_eight"): (60.0, (-30, 30), (-15, 15), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
    (differential_drive, "figure_eight"): (20, (-2, 2), (-1, 1), (0, 0), (0, 0), (0, 0)),
    (differential_drive, "slalom"): (
        *(7.5, (0, 6), (-0.3, 0.3), (0, 0), (6, 0)),
        (0.8 * np.hypot(1, 0.3 * np.pi),) * 2,
    ),
    (chaplygin_sleigh, "figure_eight"): (24, (-8, 8), (-4, 4), (0, 0), (0, 0), (0, 0)),
    (chaplygin_sleigh, "slalom"): (
        *(12.0, (0, 24), (-0.6, 0.6), (0, 0), (24, 0)),
        (2.0 * np.hypot(1, 0.15 * np.pi),) * 2,
    ),
    (rolling_disk, "figure_eight"): (20, (-3, 3), (-1.5, 1.5), (0, 0), (0, 0), (0, 0)),
    (rolling_disk, "slalom"): (
        *(8.0, (0, 12), (-0.5, 0.5), (0, 0), (12, 0)),
        (1.5 * np.hypot(1, 0.25 * np.pi),) * 2,
    ),
}


@pytest.mark.parametrize(
    ("module", "name"), COURSES, ids=lambda one: getattr(one, "__name__", one)
)
def test_courses_have_their_sizes_times_and_speeds(module, name):
    course = module.COURSES[name]
    duration, *extents, start, end, speeds = COURSES[module, name]
    assert course.duration == duration
    times = np.linspace(0, duration, 1201)
    poses = np.asarray(course._pose.map(len(times))(times[None]))
    np.testing.assert_allclose(
        [(row.min(), row.max()) for row in poses[1:]], extents, atol=2e-3 * np.ptp(extents)
    )
    np.testing.assert_allclose(poses[1:, [0, -1]].T, [start, end], atol=1e-9)
    np.testing.assert_allclose(
        [course.rates(t).speed for t in (0.0, duration)], speeds, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(course.start, poses[:, 0])


def test_every_course_is_asked():
    modules = (car, differential_drive, chaplygin_sleigh, rolling_disk)
    assert set(COURSES) == {(module, name) for module in modules for name in module.COURSES}


def test_a_figure_of_eight_begins_to_the_front_and_left_and_a_slalom_to_the_left():
    for module in (car, differential_drive, chaplygin_sleigh, rolling_disk):
        course = module.COURSES["figure_eight"]
        theta, x, y = np.asarray(course._pose(0.3 * course.duration))[:, 0]
        assert x > 0 and y > 0
        if "slalom" in module.COURSES:
            assert np.asarray(module.COURSES["slalom"]._pose(0.5))[2, 0] > 0


def test_gaits_are_those_that_are_told():
    assert {
        "parking": Gait(-1.4, 3, 0.7, 2, 7.4, 2, phi_offset=0.0, speed=0.0),
        "forward": Gait(-0.3, 1, 0.4, 1, 2.0, 6, phi_offset=0.0, speed=1.0),
        "turning": Gait(-0.4, 1, 0.4, 1, 2.0, 6, phi_offset=0.3, speed=1.0),
        "slalom": Gait(0.0, 1, 0.6, 1, 3.14, 4, phi_offset=0.0, speed=2.0),
        "pillars": Gait(0.0, 1, 0.6, 1, 3.14, 3, phi_offset=0.0, speed=2.0),
    } == GAITS


def test_maneuvers_of_the_satellite_are_those_that_are_told():
    assert {
        "slew": (Slew((1.0, 2.0, 2.0), 2 * np.pi / 3),),
        "about_face": (Slew((0.0, 0.0, 1.0), np.pi),),
        "three_targets": (
            Slew((0.0, 1.0, 0.0), np.pi / 4),
            Slew((1.0, 0.0, 1.0), -np.pi / 2),
            Slew((0.0, 1.0, 1.0), np.pi / 3),
        ),
    } == MANEUVERS


def test_motions_of_the_strings_are_those_that_are_told():
    limbs = {f"{side}_{limb}_string-length": 0.1 * (-1) ** (side[0] + limb[0] in ("ll", "ra"))
             for side in ("left", "right") for limb in ("leg", "arm")}  # fmt: skip
    swayed = {
        "left_arm_string-y": 0.1,
        "right_arm_string-y": 0.1,
        "left_leg_string-x": 0.05,
        "right_leg_string-x": 0.05,
    }
    assert {
        "published": StringMotion(limbs, 0.6 * np.pi, 10.01, ramp=0.0, from_rest=False),
        "step": StringMotion(limbs, 0.8 * np.pi, 10.0, ramp=2.0, from_rest=True),
        "sway": StringMotion(swayed, 0.8 * np.pi, 7.5, ramp=2.0, from_rest=True),
    } == MOTIONS


def test_paths_of_the_payload_have_their_sizes_times_and_speeds():
    """Extents along x, y and z, largest speed, where they begin and end; and the formation."""
    for name, duration, extents, fastest, start, end in (
        ("figure_of_eight", 3 + 2 * np.pi * np.hypot(1.5, 2.0), ((-1.5, 1.5), (-1, 1), (1, 1)),
         2.0, (0, 0, 1), (0, 0, 1)),
        ("hover", 8.0, ((0, 0), (0, 0), (1, 1)), 0.0, (0, 0, 1), (0, 0, 1)),
        ("line", 5.0, ((0, 3), (0, 1), (1, 2)), None, (0, 0, 1), (3, 1, 2)),
        ("circle", 3 + 3 * np.pi, ((-1.5, 1.5), (-1.5, 1.5), (1, 1)), 2.0, (1.5, 0, 1),
         (1.5, 0, 1)),
        ("parabola", 8.0, ((-2.5, 4.0), (0, 0), (-9.0, 7.0)), None, (-2.5, 0, 0.75),
         (4.0, 0, -9.0)),
    ):  # fmt: skip
        path = PATHS[name]()
        assert path.duration == pytest.approx(duration, rel=1e-12), name
        jets = path.jets(np.linspace(0, path.duration, 161))
        found = np.array([jets[:, 0].min(axis=0), jets[:, 0].max(axis=0)]).T
        np.testing.assert_allclose(found, extents, atol=5e-3, err_msg=name)
        np.testing.assert_allclose(jets[[0, -1], 0], [start, end], atol=1e-9, err_msg=name)
        if fastest is not None:
            speeds = np.linalg.norm(jets[:, 1], axis=1)
            assert speeds.max() == pytest.approx(fastest, rel=1e-3), name
    jets = PATHS["circle"]().jets([6.0])[0]
    assert np.cross(jets[0], jets[1])[2] > 0  # counter-clockwise
    assert PATHS.keys() == scenarios.get("quadrotor_payload").references.keys()
    assert FORMATION.angle == np.radians(80) and type(FORMATION)(FORMATION.angle) == FORMATION


def test_a_gait_swings_its_joints_by_the_angles_it_names_without_drift():
    """Angles of the steering at quarters of its periods, inputs and rates of the first step."""
    scenario = scenarios.get("snakeboard")
    model = scenario.model(step_s=0.02)
    gait = Gait(psi=-0.2, n_psi=2, phi=0.3, n_phi=1, period=4.0, periods=2, phi_offset=0.1)
    motion = gait.reference(model)
    assert len(motion) == 400 and motion.states[0].tolist()[:5] == [0.0, 0.1, 0.0, 0.0, 0.0]
    phi = motion.states[:, 1] - 0.1
    np.testing.assert_allclose(phi[[50, 100, 150, 200]], [0.3, 0, -0.3, 0], atol=2e-4)
    np.testing.assert_allclose(phi[::200], 0.0, atol=1e-12)
    moving = Gait(psi=0.0, n_psi=1, phi=0.3, n_phi=1, period=4.0, periods=1, phi_offset=0.2,
                  speed=1.5).reference(model)  # fmt: skip
    turn = np.tan(0.2) / scenario.parameters.l
    np.testing.assert_allclose(
        model.velocity(moving.states[0])[2:], [-1.5 * turn, 1.5, 0.0], atol=1e-12
    )
    p, a = scenario.parameters, np.pi / 2
    middle = a * model.h / 2
    np.testing.assert_allclose(
        moving.inputs[0], [0.0, -2 * p.J * 0.3 * a**2 * np.sin(middle)], atol=1e-12
    )
    rates = Gait(psi=0.4, n_psi=2, phi=0.3, n_phi=1, period=4.0, periods=1).reference(model)
    np.testing.assert_allclose(
        rates.inputs[0, 0], -p.I * 0.4 * (2 * a) ** 2 * np.sin(2 * middle), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.velocity(rates.states[0])[:2],
        [0.4 * 2 * a * 2 * middle / np.sin(2 * middle), 0.3 * a * middle / np.sin(middle)],
        rtol=1e-12,
    )


def test_names_of_integrators_stand_for_their_methods():
    """On wheels rdp by either map, on joints the midpoint rule with the forces at either end."""
    driven = {
        "midpoint": ("nonholonomic_midpoint", {}),
        "rdp_exp": ("rdp", {"retraction": "exp"}),
        "rdp_cay": ("rdp", {"retraction": "cay"}),
    }
    others = {"midpoint": ("midpoint", {}), "midpoint_left": ("midpoint", {"forcing": "left"})}
    known = driven | {"rdp_exp_truncated": ("rdp", {"retraction": "exp", "tangent": "truncated"})}
    for name in DECLARED:
        scenario = scenarios.get(name)
        wanted = known if scenario.body else others
        for method, make in scenario.integrators.items():
            found = getattr(make, "func", make).__name__, getattr(make, "keywords", {})
            assert found == wanted[method], (name, method)
