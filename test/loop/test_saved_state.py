"""A plant's state in a file: the same again, or another by name, and what is refused."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.loop.saved_state import SavedState


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
    state, file = saved
    place = json.loads(file.read_text())["configuration"] | {"x": 4.0}
    changed(file, state=None, configuration=place)
    q = board.configuration(SavedState.read(file, board).state)
    expected = board.configuration(state.state)
    expected[list(board.system.space.names).index("x")] = 4.0
    assert np.abs(q - expected).max() < 1e-12


def test_a_file_of_one_s_own_needs_configuration_and_velocity_only(board, saved):
    state, file = saved
    changed(file, system=None, state=None, step=None, reference_start=None)
    own = SavedState.read(file, board)
    assert (own.step, own.start_step) == (0, 0)
    assert np.abs(own.state - state.state).max() < 1e-12


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"state": [0.0, 1.0]}, "expected a state of 8 numbers of"),
        ({"state": [float("nan")] * 8}, "expected finite numbers"),
        ({"state": "here"}, "could not convert"),
        ({"step": -1}, "'step', a step >= 0, got -1"),
        ({"reference_start": 1.5}, "'reference_start', a step >= 0, got 1.5"),
        ({"state": None, "configuration": {"x": 1.0}}, "'configuration' with psi, phi"),
        ({"state": None, "velocity": None}, "'velocity' with"),
    ],
)
def test_other_content_is_refused_by_name_of_the_file(board, saved, content, error):
    _, file = saved
    changed(file, **content)
    with pytest.raises(ValueError, match=error) as refused:
        SavedState.read(file, board)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_what_is_no_object_is_refused(board, saved, text):
    _, file = saved
    file.write_text(text)
    with pytest.raises(ValueError, match="state.json"):
        SavedState.read(file, board)


def test_a_state_is_kept_and_restored_with_its_step_and_its_reference():
    plant, placed = SimpleNamespace(state=np.ones(8), step=7), []
    loop = SimpleNamespace(plant=plant, start_step=3, place=lambda *given: placed.append(given))
    kept = SavedState.of(loop)
    assert (kept.step, kept.start_step) == (7, 3) and np.array_equal(kept.state, np.ones(8))
    plant.step, loop.start_step = 90, 80
    kept.restore(loop)
    ((state, step, origin),) = placed
    assert (step, origin) == (7, 3) and np.array_equal(state, np.ones(8))


def test_a_file_has_no_coordinate_that_there_is_not(board, saved):
    _, file = saved
    more = json.loads(file.read_text())["configuration"] | {"z": 4.0}
    changed(file, state=None, configuration=more)
    with pytest.raises(ValueError, match="'configuration' with psi, phi"):
        SavedState.read(file, board)
