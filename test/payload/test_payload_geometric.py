"""The geometric controller of Lee, Sreenath and Kumar, and LQR beside it."""

import numpy as np
import pytest
from payload_cases import model

from nh_control.control import paths
from nh_control.integrators import midpoint
from nh_control.papers.celledoni2021_payload_control import GeometricController
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios.quadrotor_payload import PATHS
from nh_control.systems import Formation, QuadrotorPayloadParameters, quadrotor_payload

PATH = paths.parabola()
UNLIMITED = np.tile([-np.inf, np.inf], (8, 1))
PAPER = Formation(np.pi / 6, azimuth=-np.pi / 2)


def papers_start(dsys):
    """At rest, payload at y = (-2, 0, 0), links 80 degrees from the vertical, quadrotor 1 on the
    side of -x [celledoni2021 6.2, z up].
    """
    s, c = np.sin(np.radians(80)), np.cos(np.radians(80))
    q = np.r_[-2.0, 0, 0, np.tile([1.0, 0, 0, 0], 2), -s, 0, c, s, 0, c]
    return dsys.state(q, np.zeros(dsys.system.space.nw))


def payload_error(result, path=PATH):
    trajectory = result.trajectory
    return np.linalg.norm(trajectory.states[:, :3] - path.jets(trajectory.times)[:, 0], axis=1)


@pytest.fixture(scope="module")
def dsys():
    return midpoint(quadrotor_payload(QuadrotorPayloadParameters()), 0.01)


@pytest.mark.slow
def test_papers_experiment_with_attitude_dynamics(dsys):
    """The error grows to 2.9 m at t = 0.5 s and falls below 1 mm at t = 5 s, and the links turn
    into the formation.
    """
    controller = GeometricController(dsys, PATH, PAPER, limits=UNLIMITED)
    result = closed_loop(dsys, controller, papers_start(dsys), 500)
    error = payload_error(result)
    assert result.failure is None and not result.saturated.any()
    assert error[50] == pytest.approx(2.9, abs=0.05)
    assert error[500] < 1e-3
    links = dsys.configuration(result.trajectory.states[-1])[11:].reshape(2, 3)
    np.testing.assert_allclose(links, PAPER.links(2), atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_figure_of_eight_is_tracked_with_the_feed_forward(n):
    """The formation turns with the force, unlike the flat reference's, so only the payload is
    compared; the start differs by link rates.
    """
    plant, path = model(n), PATHS["figure_of_eight"]()
    controller = GeometricController(plant, path, Formation(0.4))
    result = closed_loop(
        plant, controller, controller.reference.states[0], len(controller.reference)
    )
    assert result.failure is None
    assert payload_error(result, path).max() < 0.05
