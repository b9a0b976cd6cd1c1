"""Trajectories are sliced, asked for velocities and energies, written and read again."""

import csv
import sys

import numpy as np
import pytest

import nh_control as nh
from nh_control.systems.cart_pole import cart_pole


@pytest.fixture
def run():
    model = nh.midpoint(cart_pole(), 0.02)
    u = np.sin(np.arange(30.0))[:, None]
    return model.simulate(model.state([0.1, 0.3], [0.2, -0.1]), u, name="swing")


def test_velocities_and_energies_are_those_of_the_states(run):
    model = run.dsys
    np.testing.assert_array_equal(run.velocities, [model.velocity(x) for x in run.states])
    np.testing.assert_array_equal(run.energies, [model.energy(x) for x in run.states])
    bare = nh.Trajectory(run.h, run.states, run.inputs)
    with pytest.raises(ValueError, match="evaluated for energies, it needs the discrete system"):
        _ = bare.energies


def test_a_slice_is_a_trajectory_of_its_steps(run):
    part = run[10:20]
    assert len(part) == 10 and part.times[0] == 0.0 and part.name == "swing"
    again = run.dsys.simulate(part.states[0], part.inputs)
    np.testing.assert_array_equal(part.states, again.states)
    assert len(run[:0]) == len(run[20:10]) == 0 and len(run[-5:]) == 5
    np.testing.assert_array_equal(run[-5:].states, run.states[-6:])
    with pytest.raises(TypeError, match=r"such as trajectory\[10:20\], got 3"):
        run[3]
    with pytest.raises(ValueError, match="consecutive steps, got the stride 2"):
        run[::2]


def test_a_trajectory_is_the_same_after_a_file(run, tmp_path):
    file = tmp_path / "swing.npz"
    run.save(file)
    found = nh.Trajectory.load(file, run.dsys)
    np.testing.assert_array_equal(found.states, run.states)
    np.testing.assert_array_equal(found.inputs, run.inputs)
    assert (found.h, found.name) == (run.h, "swing")
    assert (found.state_names, found.input_names) == (run.state_names, run.input_names)
    np.testing.assert_array_equal(found.energies, run.energies)


def test_other_files_are_refused(run, tmp_path):
    text, other = tmp_path / "text.npz", tmp_path / "other.npz"
    text.write_text("not zipped")
    np.savez(other, states=run.states)
    for file, message in (
        (text, "expected a .npz of a trajectory"),
        (other, "has no \\['inputs'"),
    ):
        with pytest.raises(ValueError, match=message):
            nh.Trajectory.load(file)
    with pytest.raises(FileNotFoundError):
        nh.Trajectory.load(tmp_path / "nowhere.npz")


def test_a_csv_has_all_digits_and_no_inputs_at_the_end(run, tmp_path):
    run.to_csv(tmp_path / "swing.csv")
    with open(tmp_path / "swing.csv", newline="") as file:
        head, *rows = csv.reader(file)
    rates = run.dsys.system.space.velocity_names
    assert head == ["time_s", *run.state_names, *rates, *run.input_names]
    assert rows[-1][-1] == "" and len(rows) == 31
    np.testing.assert_array_equal(np.array(rows)[:, 1:5].astype(float), run.states)
    np.testing.assert_array_equal(np.array(rows)[:, 5:7].astype(float), run.velocities)
    np.testing.assert_array_equal(np.array(rows)[:-1, 7:].astype(float), run.inputs)
    double = nh.Trajectory(0.1, np.zeros((2, 2)), np.zeros((1, 1)), ("x", "x"), ("u",))
    with pytest.raises(ValueError, match=r"different names for its columns, got \['x'\] twice"):
        double.to_csv(tmp_path / "double.csv")


def test_a_csv_is_read_again_with_its_states_or_with_its_velocities(run, tmp_path):
    run.to_csv(tmp_path / "swing.csv")
    again = nh.Trajectory.from_csv(tmp_path / "swing.csv", run.dsys, "again")
    np.testing.assert_array_equal(again.states, run.states)
    np.testing.assert_array_equal(again.inputs, run.inputs)
    assert again.h == pytest.approx(run.h, rel=1e-12) and again.name == "again"
    assert (again.state_names, again.input_names) == (run.state_names, run.input_names)
    with open(tmp_path / "swing.csv", newline="") as file:
        lines = [*csv.reader(file)]
    kept = [i for i, name in enumerate(lines[0]) if not name.startswith("p_")]
    assert len(kept) == len(lines[0]) - 2

    def written(rows):
        text = "\n".join(";".join(row) for row in rows)
        (tmp_path / "other.csv").write_text(text)
        return tmp_path / "other.csv"

    by_rates = nh.Trajectory.from_csv(written([[row[i] for i in kept] for row in lines]), run.dsys)
    np.testing.assert_allclose(by_rates.states, run.states, rtol=1e-12, atol=1e-13)
    for rows, message in [
        ([row[:-1] for row in lines], "no columns force; it has time_s, x"),
        ([*lines[:5], *lines[7:]], "the times of a trajectory are k h, got steps of 0.0"),
        ([*lines[:5], lines[5][:-1]], "row 5 has 7 cells, the header 8"),
    ]:
        with pytest.raises(ValueError, match=message):
            nh.Trajectory.from_csv(written(rows), run.dsys)


def test_a_data_frame_is_over_time(run):
    pytest.importorskip("pandas", reason="needs pandas, see the extra pandas")
    frame = run.to_pandas()
    assert frame.index.name == "time_s" and list(frame.columns) == [
        *run.state_names,
        *run.dsys.system.space.velocity_names,
        *run.input_names,
    ]
    np.testing.assert_array_equal(frame[list(run.state_names)], run.states)
    assert frame[run.input_names[0]].isna().tolist() == [False] * 30 + [True]


def test_without_pandas_the_remedy_is_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas, or the extra 'pandas'"):
        run.to_pandas()
