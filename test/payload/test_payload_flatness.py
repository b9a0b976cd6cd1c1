"""Paths, flat motions and the references made of them."""

from dataclasses import replace

import numpy as np
import pytest
from payload_cases import model, parameters, weak_model
from refusals import refusal

from nh_control.control import paths
from nh_control.integrators import midpoint
from nh_control.scenarios import payload_flatness
from nh_control.scenarios.payload_flatness import (
    InfeasiblePath,
    cached_reference,
    flat_motion,
    flat_reference,
)
from nh_control.scenarios.quadrotor_payload import PATHS
from nh_control.systems import Formation, link_tensions
from nh_control.systems import quadrotor_payload_continuous as continuous

SLOW = pytest.mark.slow
TWO = [pytest.param(1, marks=SLOW), 2, pytest.param(3, marks=SLOW)]
EIGHT = PATHS["figure_of_eight"]()


@SLOW
@pytest.mark.parametrize("name", PATHS)
def test_jets_are_derivatives_of_each_other(name):
    path, h = PATHS[name](), 1e-4
    times = np.linspace(0.1, path.duration - 0.1, 23)
    here, ahead, behind = path.jets(times), path.jets(times + h), path.jets(times - h)
    differences = (ahead - behind) / (2 * h)
    scale = 1 + np.abs(here).max(axis=0)
    assert (np.abs(here[:, 1:] - differences[:, :-1]) / scale[1:]).max() < 1e-4


@SLOW
@pytest.mark.parametrize("name", PATHS)
def test_paths_end_at_rest_and_all_but_the_parabola_start_at_rest(name):
    path = PATHS[name]()
    start, end, later = path.jets([0.0, path.duration, path.duration + 1])
    np.testing.assert_allclose(end[1:], 0, atol=1e-6)
    np.testing.assert_allclose(later, end, atol=1e-6)
    if name != "parabola":
        np.testing.assert_allclose(start[1:], 0, atol=1e-12)


def test_parabola_is_the_papers_for_five_seconds():
    times = np.linspace(0, 5, 11)
    jets = paths.parabola().jets(times)
    np.testing.assert_allclose(
        jets[:, 0], np.column_stack([times - 2.5, 0 * times, 7 - (times - 2.5) ** 2]), atol=1e-12
    )


@SLOW
def test_spline_goes_through_its_points_at_rest_at_both_ends():
    times, points = (
        np.array([0.0, 1.5, 2.0, 4.0]),
        np.array([[0, 0, 1], [1, 0, 1.5], [1.5, 0.5, 1.2], [2, 2, 1.0]]),
    )
    path = paths.through(times, points)
    jets = path.jets(times)
    np.testing.assert_allclose(jets[:, 0], points, atol=1e-9)
    np.testing.assert_allclose(jets[[0, -1], 1:], 0, atol=1e-6)
    straight = paths.through([0.0, 3.0], points[:2]).jets(np.linspace(0, 3, 7))
    np.testing.assert_allclose(
        straight[:, :5], paths.line(*points[:2], 3.0).jets(np.linspace(0, 3, 7))[:, :5], atol=1e-8
    )


def test_bad_paths_are_refused(snapshot):
    wrong = (
        lambda: paths.through([0.0, 1.0], [[0, 0, 0], [np.nan, 0, 0]]),
        lambda: paths.through([0.0, 1.0, 1.0], np.zeros((3, 3))),
        lambda: paths.through([0.5, 1.0], np.zeros((2, 3))),
        lambda: paths.line([0, 0, 0], [1, 0, 0], 0.0),
        lambda: paths.parabola(duration=2.0, ramp=3.0),
    )
    assert [refusal(make) for make in wrong] == snapshot


@pytest.mark.parametrize("n", TWO)
@pytest.mark.parametrize("angle", [pytest.param(0.0, marks=SLOW), 0.5])
def test_flat_motion_solves_the_equations_of_motion(n, angle):
    """Differences of positions, links and rates along the motion are the accelerations under its
    inputs; the payload is on the path; tensions agree.
    """
    p, h = parameters(n), 1e-4
    times, formation = np.linspace(0.5, EIGHT.duration - 0.5, 17), Formation(angle)
    now, ahead, behind = (flat_motion(p, EIGHT, times + step, formation) for step in (0, h, -h))
    np.testing.assert_allclose(now.q[:, :3], EIGHT.jets(times)[:, 0], atol=1e-12)
    for k in range(len(times)):
        z, z_ahead, z_behind = (continuous.phase(p, m.q[k], m.v[k]) for m in (now, ahead, behind))
        thrust, torque = now.u[k].reshape(n, 4)[:, 0], now.u[k].reshape(n, 4)[:, 1:]
        np.testing.assert_allclose(
            continuous.derivative(p, z, thrust, torque), (z_ahead - z_behind) / (2 * h), atol=1e-5
        )
        np.testing.assert_allclose(
            link_tensions(p, now.q[k], now.v[k], now.u[k]), now.tensions[k], rtol=1e-12
        )


@SLOW
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", PATHS)
def test_references_are_discretely_feasible_and_within_a_millimeter_of_the_path(n, name):
    dsys, path = model(n), PATHS[name]()
    reference = flat_reference(dsys, path)
    for k in range(0, len(reference), 11):
        np.testing.assert_array_equal(
            dsys.step(reference.states[k], reference.inputs[k]), reference.states[k + 1]
        )
    gap = np.linalg.norm(reference.states[:, :3] - path.jets(reference.times)[:, 0], axis=1)
    assert gap.max() < 1e-3
    drift = dsys.local(reference.states[-1], dsys.step(reference.states[-1], reference.inputs[-1]))
    assert np.abs(drift).max() < 1e-6


def test_a_reference_is_computed_once_for_each_path_and_model(tmp_path, monkeypatch):
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path))
    tmp_path.chmod(0o700)
    computed = []

    def projected(dsys, *arguments):
        computed.append(dsys)
        return flat_reference(dsys, *arguments)

    monkeypatch.setattr(payload_flatness, "flat_reference", projected)
    dsys, path, shape = model(1), paths.point([0, 0, 1], 0.2), Formation()
    first, again = (cached_reference(dsys, path, shape, name) for name in ("first", "again"))
    assert len(computed) == 1 and again.name == "again" and again.h == first.h
    np.testing.assert_array_equal(again.states, first.states)
    np.testing.assert_array_equal(again.inputs, first.inputs)
    # another path, duration, formation, step, or mass
    cached_reference(dsys, paths.point([0, 0, 2], 0.2), shape, "")
    cached_reference(dsys, paths.point([0, 0, 1], 0.201), shape, "")
    cached_reference(dsys, path, Formation(np.radians(20)), "")
    heavier = dsys.with_parameters(payload_mass=2 * dsys.system.parameters.payload_mass)
    for other in (dsys.with_step(0.02), heavier):
        cached_reference(other, path, shape, "")
    assert len(computed) == 6
    # limits that are no parameters
    weak = replace(dsys.system, input_limits=np.tile([0.0, 1.0], (4, 1)))
    with pytest.raises(InfeasiblePath, match="hover .* needs quad1_thrust"):
        cached_reference(midpoint(weak, dsys.h), path, shape, "")


@SLOW
def test_paths_beyond_the_limits_are_refused_with_what_when_and_how_much():
    with pytest.raises(InfeasiblePath, match=r"quad[12]_thrust = 13.* t = .*0 \.\.\. 12.*slower"):
        flat_reference(weak_model(), paths.line([0, 0, 0], [0, 0, 5.0], 4.0))
    with pytest.raises(
        InfeasiblePath, match=r"80 degrees.*quad[12]_thrust = 14\.5 .*0 \.\.\. 12.*links closer"
    ):
        flat_reference(weak_model(), paths.point([0, 0, 0], 1.0), Formation(np.radians(80)))
    with pytest.raises(InfeasiblePath, match=r"falls.* t = .*slack.* 9\.81 m/s.2.*slower"):
        flat_reference(model(2), paths.line([0, 0, 0], [0, 0, -8.0], 2.0))
    with pytest.raises(InfeasiblePath, match="must not come near -g"):
        flat_motion(
            parameters(1), paths.symbolic(1.0, lambda t: np.array([0, 0, -9.81 / 2]) * t**2), [0.5]
        )
