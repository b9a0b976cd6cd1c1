"""Identification from the files that people have: tables and recordings of any measured
quantities, with names and units of their own.
"""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs pandas: install the extra 'pandas'")
pytest.importorskip("rosbags", reason="needs rosbags: install the extra 'ros'")
import pandas
from recorded_messages import joint_state, write

import nh_control as nh
from nh_control import scenarios
from nh_control.cli import main
from nh_control.control import motion_table
from nh_control.control.input_history import predict

TRUTH = {"m_cart": 1.1, "l": 0.48}
NAMES = [*TRUTH]
CART_POLE = scenarios.get("cart_pole")
MODEL = CART_POLE.model()


@pytest.fixture(scope="module")
def table():
    """A motion of a cart-pole at uneven times, with noise of 1 mm and 1 mrad."""
    rng, dsys = np.random.default_rng(0), MODEL.with_parameters(**TRUTH)
    x, time_s, rows = dsys.state([0.0, 0.4], [0.0, 0.0]), 0.0, []
    for k in range(50):
        u = np.round(6 * np.sin([0.31 * k]), 3)
        rows.append([round(time_s, 9), *(x[:2] + 1e-3 * rng.normal(size=2)), u[0]])
        duration_s = round(rng.uniform(0.006, 0.024), 9)
        x, time_s = predict(dsys, x, [(u, duration_s)]), time_s + duration_s
    return dict(zip(("time_s", "x", "theta", "force"), np.array(rows).T))


@pytest.fixture(scope="module")
def expected(table):
    """What is found from the table itself."""
    found = nh.identify(MODEL, table, NAMES)
    assert found.notes == () and found.warnings == ()
    errors = (found.values - [*TRUTH.values()]) / found.deviations
    assert (np.abs(errors) < 3).all() and (found.deviations < 0.02).all()
    return found


def written(folder, table):
    """The table as files of all kinds."""
    frame = pandas.DataFrame(table)
    frame.to_csv(folder / "data.csv", index=False, float_format="%.17g")
    other = pandas.DataFrame(
        {
            "stamp": table["time_s"] * 1e3 + 500,
            "cart_joint": table["x"],
            "encoder (deg)": -np.degrees(table["theta"]),
            "motor": table["force"] / 2,
            "temperature": "cold",
        }
    )
    other.to_csv(folder / "own.csv", index=False, sep=";", float_format="%.17g")
    np.savez(folder / "data.npz", **table)
    told, joints = [], ("cart_joint", "pole_joint")
    for t, x, theta, u in zip(*table.values()):
        ns = round(t * 1e9)
        told.append(("joint_commands", joint_state(ns, ["force"], effort=[u]), ns))
        told.append(("joint_states", joint_state(ns, joints, [x, theta]), ns))
    write(folder / "bag", told)
    partial = [
        one
        if one[0] == "joint_commands"
        else ("joint_states", joint_state(one[2], joints[1:], one[1].position[1:]), one[2])
        for one in told
    ]
    write(folder / "partial", partial)
    return folder


def test_every_kind_of_file_gives_the_same_parameters(table, expected, tmp_path, capsys):
    folder = written(tmp_path, table)
    own = "time=stamp:ms,theta=-encoder,force=motor"
    cases = {
        "data.csv": [],
        "data.npz": [],
        "bag/bag.mcap": ["--actuation", "0"],
    }
    for file, more in cases.items():
        options = [word for name in NAMES for word in ("--parameter", name)]
        command = ["identify", str(folder / file), "--scenario", "cart_pole", *options, *more]
        assert main([*command, "--json"]) == 0, file
        parameters = json.loads(capsys.readouterr().out)["parameters"]
        for name, value, deviation in zip(NAMES, expected.values, expected.deviations):
            assert parameters[name]["value"] == pytest.approx(value, rel=1e-6), file
            assert parameters[name]["deviation"] == pytest.approx(deviation, rel=1e-3), file
    frame = pandas.DataFrame(table).set_index("time_s")
    assert nh.identify(MODEL, frame, NAMES).values == pytest.approx(expected.values, rel=1e-9)
    mapped = folder / "own.csv"
    columns = dict(part.split("=") for part in own.split(","))
    with pytest.raises(ValueError, match="no time column, expected one of time_s"):
        nh.identify(CART_POLE, mapped, NAMES)
    read = motion_table.read(MODEL, mapped, columns, aliases={"x": "cart_joint"})
    coordinates = np.column_stack([table["x"], table["theta"]])
    np.testing.assert_allclose(read.values, coordinates, atol=1e-12)
    np.testing.assert_allclose(read.inputs[:, 0], table["force"] / 2)
    assert read.notes == ("columns that are not in cart_pole: temperature",)


def test_a_robot_that_never_measures_a_joint_gives_what_its_other_joints_tell(
    table, tmp_path, capsys
):
    folder = written(tmp_path, table)
    options = ["--scenario", "cart_pole", "--parameter", "l", "--actuation", "0", "--json"]
    assert main(["identify", str(folder / "partial"), *options]) == 0
    out, told = capsys.readouterr()
    assert "not measured, so their start is unknown: x" in told
    found = json.loads(out)["parameters"]["l"]
    expected = nh.identify(MODEL, table, ["l"], measured=["theta"])
    assert found["value"] == pytest.approx(expected.values[0], rel=1e-6)


@pytest.mark.parametrize(
    ("change", "columns", "message"),
    [
        (
            {"force": None},
            {},
            "no column for the input force, got time_s, x, theta: name the column",
        ),
        (
            {"x": None, "theta": None},
            {},
            "no column is named after a quantity of cart_pole .* expected some of x, theta",
        ),
        ({}, {"thet": "theta"}, r"no 'thet' \(did you mean 'theta'\?\)"),
        ({}, {"theta": "thta"}, r"no column 'thta' for theta \(did you mean 'theta'\?\)"),
        ({}, {"theta": "theta:grad"}, r"unknown unit 'grad' .*did you mean 'rad'"),
        ({"time_s": [0.0, 0.01, 0.01, 0.02]}, {}, r"the time must increase.* at row 3: \[0.01"),
        ({"theta": ["0", "a", "", "1"]}, {}, "row 2 of the column 'theta' is 'a', expected a n"),
        ({"theta": np.zeros((4, 2))}, {}, r"the column 'theta' must have shape \(n,\), got"),
        ({"force": ["", "1", "1", "1"]}, {}, "the input force has no value in the first row"),
    ],
)
def test_what_is_missing_or_doubtful_in_a_table_is_said(change, columns, message):
    table = {"time_s": np.arange(4) * 0.01} | dict.fromkeys(("x", "theta", "force"), np.zeros(4))
    table = {name: value for name, value in (table | change).items() if value is not None}
    with pytest.raises(ValueError, match=message):
        motion_table.read(MODEL, table, columns)


def test_empty_cells_are_not_measured_and_inputs_stay():
    table = {
        "t": [0.0, 0.01, 0.02],
        "theta": ["0.1", "", "6.4"],
        "x_dot": [1.0, 2.0, 3.0],
        "force": ["2", "", "3"],
    }
    read = motion_table.read(MODEL, table)
    np.testing.assert_array_equal(read.values[:, 0], [0.1, np.nan, 6.4])
    assert read.inputs.ravel().tolist() == [2.0, 2.0, 3.0]
    assert read.notes[0].startswith("x_dot not fitted")
    assert read.notes[1:] == (
        "not measured, so their start is unknown: x",
        "theta jumps by a whole turn (count: 1), but coordinates must be continuous; use "
        "numpy.unwrap",
    )
    both = motion_table.read(MODEL, table, {"force": "0"}, ["theta", "x_dot"])
    assert both.names == ("theta", "x_dot") and both.inputs.ravel().tolist() == [0.0] * 3


def test_residuals_are_drawn_over_time(expected, tmp_path):
    (cart, pole) = nh.plot.residuals(expected)
    assert (cart.get_ylabel(), pole.get_ylabel()) == ("x", "theta")
    drawn = cart.lines[0].get_ydata()
    assert np.isnan(drawn).sum() == len(expected.residuals.pieces) - 1
    kept = drawn[~np.isnan(drawn)]
    np.testing.assert_array_equal(kept, expected.residuals.values[:, 0])
    assert np.sqrt(np.mean(kept**2)) == pytest.approx(1e-3, rel=0.3)
