"""Quadrotors with a payload under LQR: recovery of hover, figure of eight, wrong masses and
gusts.
"""

from dataclasses import replace

import numpy as np
import pytest

from nh_control.discrete.plant_steps import convert
from nh_control.integrators import midpoint
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlantOptions
from nh_control.scenarios.quadrotor_payload import PATHS, PayloadPerturbation
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD as SCENARIO
from nh_control.systems import link_tensions, quadrotor_payload

pytestmark = pytest.mark.slow

MASS = 0.4
AXES = {"along the quadrotors": 1, "across the quadrotors": 0, "up": 2}


@pytest.fixture(scope="module")
def model():
    return SCENARIO.model()


@pytest.fixture(scope="module")
def hover(model):
    return SCENARIO.tracker(model, SCENARIO.reference(model, "hover"))


@pytest.fixture(scope="module")
def eight(model):
    reference = SCENARIO.reference(model, "figure_of_eight")
    return {integral: SCENARIO.tracker(model, reference, integral) for integral in (False, True)}


def fly(plant, tracker, gust=None, substeps=1):
    """Largest payload error in m to the path of the figure of eight, from its start."""
    reference = tracker.reference
    x0 = convert(reference.states[0], tracker.dsys, plant)
    result = closed_loop(plant, tracker, x0, len(reference), substeps, disturbance=gust)
    assert result.failure is None
    return np.linalg.norm(
        result.trajectory.states[:, :3] - PATHS["figure_of_eight"]().jets(reference.times)[:, 0],
        axis=1,
    ).max()


def sudden(tracker, plant, force, body=0):
    """A gust of `force` (3) in N on a body (0 is the payload) that sets in at once at 6 s, amid
    the maneuver, and lasts 3 s.
    """
    times = tracker.reference.times[:-1]
    gust = np.zeros((len(times), plant.nu - tracker.dsys.nu))
    gust[(times >= 6) & (times < 9), 3 * body : 3 * body + 3] = force
    return gust


def windy(model, mass):
    """The plant with forces from outside on all bodies as further inputs."""
    parameters = replace(SCENARIO.parameters, payload_mass=mass)
    return midpoint(quadrotor_payload(parameters, wind=True), model.h)


@pytest.mark.parametrize("seed", [-1, *range(12)])
def test_hover_recovers_from_half_a_meter_30_degrees_of_swing_and_60_degrees_of_tilt_together(
    model, hover, seed
):
    error = PayloadPerturbation(position=0.5, swing=np.pi / 6, tilt=np.pi / 3, seed=seed)
    result = closed_loop(
        model, hover, SCENARIO.perturb(model, hover.reference.states[0], error), 800
    )
    assert result.failure is None
    assert np.linalg.norm(result.errors[0, :3]) == pytest.approx(0.5)
    assert np.linalg.norm(result.errors[-1, :3]) < 0.01
    assert np.linalg.norm(result.errors[-1]) < 0.05


def test_figure_of_eight_at_two_meters_per_second_with_a_perfect_model(model, eight):
    assert fly(model, eight[False]) < 1e-3
    assert fly(SCENARIO.plant(model, PlantOptions(substeps=4)), eight[False], substeps=4) < 0.05


@pytest.mark.parametrize("mass", [0.7 * MASS, 1.3 * MASS])
def test_thirty_percent_of_payload_mass_are_compensated_by_the_disturbance_estimate(
    model, eight, mass
):
    plant = windy(model, mass)
    errors = {integral: fly(plant, tracker) for integral, tracker in eight.items()}
    assert errors[True] < 0.05
    assert errors[True] < errors[False] / 2


@pytest.mark.parametrize("mass", [0.7, 1.3])
@pytest.mark.parametrize("axis", AXES)
def test_figure_of_eight_with_thirty_percent_of_mass_and_a_sudden_gust_of_two_newtons(
    model, eight, mass, axis
):
    plant = windy(model, mass * MASS)
    for force in (2.0, -2.0):
        assert (
            fly(plant, eight[True], sudden(eight[True], plant, force * np.eye(3)[AXES[axis]]))
            < 0.15
        )


def test_links_stay_tight_in_the_gust(model, eight):
    plant, tracker = windy(model, 0.7 * MASS), eight[True]
    for axis in range(3):
        gust = sudden(tracker, plant, 2 * np.eye(3)[axis])
        run = closed_loop(
            plant,
            tracker,
            convert(tracker.reference.states[0], model, plant),
            950,
            disturbance=gust[:950],
        ).trajectory
        for k in range(590, 950):
            x = convert(run.states[k], model, plant)
            assert (
                link_tensions(
                    plant.system.parameters,
                    plant.configuration(x),
                    plant.velocity(x),
                    np.r_[run.inputs[k], gust[k]],
                ).min()
                > 2.0
            )


def test_the_estimate_finds_the_force_of_a_steady_wind(model, hover):
    """Its momentum per step appears on the payload's coordinates; the gains answer it to first
    order, so a few percent of the offset without one remain.
    """
    plant, wind = windy(model, SCENARIO.parameters.payload_mass), np.array([0.5, -1.0, 0.3])
    commands = []
    for tracker in (hover, SCENARIO.tracker(model, hover.reference, integral=True)):
        x, memory = hover.reference.states[0], None
        for k in range(1500):
            command = tracker.command(k, x, memory)
            memory = command.memory
            x = plant.step(x, np.r_[command.u, wind, np.zeros(6)])
        commands.append(command)
    np.testing.assert_allclose(commands[1].memory.disturbance[:3], model.h * wind, rtol=1e-3)
    offsets = [np.linalg.norm(command.error[:3]) for command in commands]
    assert offsets[1] < 0.02 and offsets[1] < 0.1 * offsets[0], offsets
