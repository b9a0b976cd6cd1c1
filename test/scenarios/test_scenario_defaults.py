"""What a user gets who names a scenario and nothing else, and the motions that its references are
made of: as tables, which are compared with stored ones.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.mechanics.parameters import declarations
from nh_control.scenarios import car, chaplygin_sleigh, differential_drive, rolling_disk
from nh_control.scenarios.marionette import MOTIONS
from nh_control.scenarios.quadrotor_payload import FORMATION, PATHS
from nh_control.scenarios.satellite import MANEUVERS
from nh_control.scenarios.snakeboard import GAITS, Gait

COURSES = {
    f"{module.__name__.rpartition('.')[2]} {name}": course
    for module in (car, differential_drive, chaplygin_sleigh, rolling_disk)
    for name, course in module.COURSES.items()
}


def integrator(name, make):
    keywords = ", ".join(f"{k}={v}" for k, v in getattr(make, "keywords", {}).items())
    return f"{name} = {getattr(make, 'func', make).__name__}({keywords})"


def declared(scenario):
    """All that a scenario declares, in lines."""
    Q, R, Qf = scenario.weights
    end = ""
    if Qf is not None:
        (factor,) = {round(float(f), 9) for f in (Qf[Q != 0] / Q[Q != 0])}
        end = f"{factor:g} Q"
    system = scenario.make_system(scenario.parameters)
    bodies = scenario.resting_bodies(system.space) if scenario.to_bodies else ()
    shown = bodies or ((scenario.body,) if scenario.body else ())
    monitor, joints = scenario.monitor, []
    for j in scenario.joints:
        minus = "-" if j.sign == -1 else ""
        name = j.coordinate if j.name == j.coordinate else f"{j.name}={minus}{j.coordinate}"
        joints.append(name + " (m)" * (j.unit == "m"))
    lines = {
        "title": scenario.title,
        "step": f"{scenario.step_s:g} s" + ", held" * scenario.hold,
        "disturbance gain": f"{scenario.disturbance_gain:g}",
        "integrators": ", ".join(integrator(*one) for one in scenario.integrators.items()),
        "references": ", ".join(scenario.references),
        "weights": " | ".join(
            [" ".join(f"{number:.6g}" for number in np.diag(w)) for w in (Q, R)] + [end]
        ),
        "perturbation": ", ".join(
            f"{d.name}={d.value:g} {d.unit}".rstrip() for d in declarations(scenario.perturbation)
        ),
        "joints": ", ".join(joints),
        "shown": ", ".join(f"{b.frame} in {b.parent}" for b in shown),
        "monitor": monitor
        and f"{monitor.title} of {', '.join(monitor.names)} in {monitor.unit}: "
        f"{monitor.warning} at {monitor.minimum:g}",
        "excluded": ", ".join(scenario.excluded),
        "targets": ", ".join(
            f"{target.name} ({' '.join(target.units)})"
            for target in scenario.targets(system).values()
        ),
    }
    return "\n".join(f"{what}: {words}" for what, words in lines.items() if words)


@pytest.mark.parametrize("name", scenarios.built_in())
def test_scenarios_are_what_is_said_of_them(name, snapshot):
    assert declared(scenarios.get(name)) == snapshot


# --- the motions behind the references -----------------------------------------------------------


def rounded(values, digits=8):
    return " ".join(f"{round(float(v), digits) + 0.0:.9g}" for v in np.ravel(values))


def test_courses_have_their_sizes_times_and_speeds(snapshot):
    """Seconds, extents, places at the start, after 0.3 of the time and at the end, speeds."""
    lines = []
    for name, course in COURSES.items():
        poses = np.asarray(course._pose.map(1201)(np.linspace(0, course.duration, 1201)[None]))
        extents = [(row.min(), row.max()) for row in poses[1:]]
        speeds = [course.rates(t).speed for t in (0.0, course.duration)]
        ends = poses[1:, [0, 360, -1]].T
        lines.append(
            f"{name}: {rounded(course.duration)} s, {rounded(extents, 2)}, {rounded(ends)},"
            f" {rounded(speeds)}"
        )
        np.testing.assert_array_equal(course.start, poses[:, 0])
    assert "\n".join(lines) == snapshot


def test_gaits_maneuvers_and_motions_of_strings_are_those_that_are_told(snapshot):
    tables = {"snakeboard": GAITS, "satellite": MANEUVERS, "marionette": MOTIONS}
    lines = [f"{of} {name}: {one}" for of, all_ in tables.items() for name, one in all_.items()]
    assert "\n".join(lines) == snapshot


def test_paths_of_the_payload_have_their_sizes_times_and_speeds(snapshot):
    """Seconds, extents along x, y and z, largest speed, where they begin and end."""
    lines = []
    for name, make in PATHS.items():
        path = make()
        jets = path.jets(np.linspace(0, path.duration, 161))
        extents = np.array([jets[:, 0].min(axis=0), jets[:, 0].max(axis=0)]).T
        fastest = np.linalg.norm(jets[:, 1], axis=1).max()
        lines.append(
            f"{name}: {rounded(path.duration)} s, {rounded(extents, 2)}, {rounded(fastest, 3)},"
            f" {rounded(jets[[0, -1], 0])}"
        )
    assert "\n".join(lines) == snapshot
    jets = PATHS["circle"]().jets([6.0])[0]
    assert np.cross(jets[0], jets[1])[2] > 0  # counter-clockwise
    assert FORMATION.angle == np.radians(80) and type(FORMATION)(FORMATION.angle) == FORMATION


def test_a_gait_swings_its_joints_by_the_angles_it_names_without_drift():
    """Angles of the steering at quarters of its periods."""
    scenario = scenarios.get("snakeboard")
    model = scenario.model(step_s=0.02)
    gait = Gait(psi=-0.2, n_psi=2, phi=0.3, n_phi=1, period=4.0, periods=2, phi_offset=0.1)
    motion = gait.reference(model)
    assert len(motion) == 400 and motion.states[0].tolist()[:5] == [0.0, 0.1, 0.0, 0.0, 0.0]
    phi = motion.states[:, 1] - 0.1
    np.testing.assert_allclose(phi[[50, 100, 150, 200]], [0.3, 0, -0.3, 0], atol=2e-4)
    np.testing.assert_allclose(phi[::200], 0.0, atol=1e-12)
