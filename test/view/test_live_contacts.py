"""Contact forces in a live page: arrows of frames of their own."""

import numpy as np
import pytest

import nh_control as nh
from nh_control.discrete.contact_forces import ContactPlaces
from nh_control.view.contacts import arrow_scale
from nh_control.view.live import LiveMotion

Q = np.array([0.4, 0.3, 0.5, 1, 2.0])
FORCES = {"rear_wheels": np.array([0.0, 3.0, -4.0]), "front_wheels": np.zeros(3)}


@pytest.fixture(scope="module")
def board():
    scenario = nh.scenarios.get("wet_snakeboard")
    dsys = scenario.model()
    start = dsys.state([0, 0.3, 0, 0, 0], [0.3, -0.2, 0.1, 0.5, 0.2])
    return dsys, LiveMotion(scenario, dsys, dsys.simulate(start, np.zeros((100, 2))))


def shown(board, forces):
    """The frame's frames (F, 7) and lengths of arrows at a state, with their names."""
    dsys, motion = board
    frame = motion.frame(1.0, Q, np.zeros(dsys.system.space.nw), Q, {}, forces=forces)
    names = motion.animation.run.names
    places = ContactPlaces(dsys.system)(Q)
    return dict(zip(names, np.reshape(frame["run"], (-1, 7)))), frame["arrowLengths"], places


def test_arrows_have_the_places_and_directions_of_the_forces(board):
    poses, lengths, places = shown(board, FORCES)
    rear, front = (poses[f"contact {name}"] for name in FORCES)
    assert rear[:3] == pytest.approx(places["rear_wheels"])
    assert front[:3] == pytest.approx(places["front_wheels"])
    w, x, y, z = rear[3:]
    along = [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]
    assert along == pytest.approx([0.0, 0.6, -0.8])
    # half as long as the board with turned trucks for the reference's largest force: it skids
    extent = 4 + 0.6 * np.cos(0.3) + 0.72 * np.sin(0.3)
    assert lengths[-2:] == [pytest.approx(5 * 0.5 * extent / (0.4 * 9.81), rel=1e-3), 0]
    doubled = {name: 2 * force for name, force in FORCES.items()}
    assert shown(board, doubled)[1][-2] == pytest.approx(2 * lengths[-2])


def test_unknown_forces_have_arrows_without_length(board):
    _, lengths, _ = shown(board, {})
    animation = board[1].animation
    assert lengths[-2:] == [0.0, 0.0]
    assert animation.arrows.shape[1] == len(animation.visual.arrows) == len(lengths)


def test_the_sizes_of_forces_are_a_curve_and_null_where_they_are_unknown(board):
    dsys, motion = board
    (place,) = (
        i for i, one in enumerate(motion.animation.curves) if one.label == "contact force (N)"
    )
    assert motion.animation.curves[place].names == tuple(FORCES)
    q, v = np.zeros(5), np.zeros(dsys.system.space.nw)
    known = {"rear_wheels": FORCES["rear_wheels"]}
    assert motion.frame(1.0, q, v, q, {}, forces=known)["curves"][place] == [5.0, None]


def test_where_the_reference_touches_nothing_the_arrow_of_the_weight_is_the_longest():
    """A board at rest, whose wheels push nowhere; its largest mass is its 4 kg m^2."""
    scenario = nh.scenarios.get("wet_snakeboard")
    dsys = scenario.model()
    rest = dsys.simulate(dsys.state(np.zeros(5), np.zeros(5)), np.zeros((3, 2)))
    scale = arrow_scale(scenario.visual_model(), scenario.parameters, dsys, rest)
    assert scale == pytest.approx(0.5 * 4.6 / (9.81 * 4.0), rel=1e-3)
