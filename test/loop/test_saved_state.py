"""A plant's state in a file: the same again, or another by name, and what is refused."""

import json

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.loop.saved_state import SavedState

MORE = dict.fromkeys(("psi", "phi", "theta", "x", "y", "z"), 0.0)
"""A configuration of the snakeboard, and what it does not have."""


@pytest.fixture(scope="module")
def board():
    return scenarios.get("snakeboard").model()


@pytest.fixture
def saved(board, tmp_path):
    """A state that was written, and its file."""
    reference = scenarios.get("snakeboard").reference(board)
    state, file = SavedState(reference.states[70], 7, 3), tmp_path / "state.json"
    state.write(file, board)
    return state, file


def changed(file, **content):
    """Write the file again with other content; None leaves a key out."""
    content = json.loads(file.read_text()) | content
    file.write_text(
        json.dumps({key: value for key, value in content.items() if value is not None})
    )


def test_what_is_read_is_what_was_written_bit_by_bit(board, saved):
    state, file = saved
    again = SavedState.read(file, board)
    assert np.array_equal(again.state, state.state)
    assert (again.step, again.start_step) == (7, 3)


@pytest.mark.parametrize(
    "name", ["satellite", "cart_pole", pytest.param("quadrotor_payload", marks=pytest.mark.slow)]
)
def test_every_scenario_s_state_has_names(name, tmp_path):
    scenario, file = scenarios.get(name), tmp_path / "state.json"
    dsys = scenario.model()
    state = scenario.reference(dsys).states[5]
    SavedState(state, 5, 0).write(file, dsys)
    changed(file, state=None)
    assert np.abs(SavedState.read(file, dsys).state - state).max() < 1e-9


def test_without_the_state_that_of_configuration_and_velocity_is_taken(board, saved):
    """All that a file of one's own needs."""
    state, file = saved
    changed(file, system=None, state=None, step=None, reference_start=None)
    own = SavedState.read(file, board)
    assert (own.step, own.start_step) == (0, 0)
    assert np.abs(own.state - state.state).max() < 1e-12
    place = json.loads(file.read_text())["configuration"] | {"x": 4.0}
    changed(file, configuration=place)
    q = board.configuration(SavedState.read(file, board).state)
    expected = board.configuration(state.state)
    expected[list(board.system.space.names).index("x")] = 4.0
    assert np.abs(q - expected).max() < 1e-12


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"state": [0.0, 1.0]}, "expected a state of 8 numbers of"),
        ({"state": [float("nan")] * 8}, "expected finite numbers"),
        ({"state": "here"}, "could not convert"),
        ({"step": -1}, "'step', a step >= 0, got -1"),
        ({"reference_start": 1.5}, "'reference_start', a step >= 0, got 1.5"),
        ({"state": None, "configuration": {"x": 1.0}}, "'configuration' with psi, phi"),
        ({"state": None, "configuration": MORE}, "'configuration' with psi, phi"),
        ({"state": None, "velocity": None}, "'velocity' with"),
        ("", "Expecting value"),
        ("[]", "expected an object"),
    ],
)
def test_other_content_is_refused_by_name_of_the_file(board, saved, content, error):
    _, file = saved
    if isinstance(content, str):
        file.write_text(content)
    else:
        changed(file, **content)
    with pytest.raises(ValueError, match=error) as refused:
        SavedState.read(file, board)
    assert str(file) in str(refused.value)


def test_a_state_is_kept_and_restored_with_its_step_and_its_reference(scripted):
    run = scripted(wait=False)
    run.run(0.055)
    run.loop.reset_state()
    run.run(0.1)
    kept, state = SavedState.of(run.loop), run.plant.state
    assert kept.start_step == 6 and kept.step == run.plant.step > 8
    run.loop.reset()
    run.run(0.2)
    kept.restore(run.loop)
    assert (run.plant.step, run.loop.start_step) == (kept.step, 6)
    np.testing.assert_array_equal(run.plant.state, state)
