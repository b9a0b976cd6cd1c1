"""Variations, points and invalid definitions of a study."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from refusals import said

from nh_control.runs.settings import ORIGIN
from nh_control.scenarios import UnknownName
from nh_control.studies import Study, variation
from nh_control.studies.study_file import KEYS, differences, make_study, read, to_yaml
from nh_control.studies.variation import parse

RANGES = {"perturb.angle": "-0.5:0.5", "m": "log:0.1:10", "l": "normal:1:0.1"}
DRAWN = ["monte_carlo", "latin_hypercube", "sobol", "saltelli"]


def study(**keys):
    return make_study({"scenario": "pendulum_swing_up", **keys})


def points(one):
    return np.array([one.point(i) for i in range(one.total)])


@pytest.mark.parametrize(
    "text", ["0.2:1.0", "0.2:1.0:5", "log:0.1:10.0:3", "normal:0.0:0.1", "1,2.5,parking,true"]
)
def test_a_variation_writes_the_text_that_it_was_read_from(text):
    assert str(parse("name", text)) == text
    assert parse("name", str(parse("name", text))) == parse("name", text)


@pytest.mark.parametrize(
    "text",
    ["", "1:0", "0:1:2:3", "log:-1:1", "log:0:1", "normal:0:0", "normal:0:1:5", "a:b", "0:1:1",
     "nan:1", "0:inf", "1,,2"],
)  # fmt: skip
def test_an_invalid_variation_is_refused_with_its_name(text):
    with pytest.raises(ValueError, match="variation name="):
        parse("name", text)


def test_a_grid_contains_all_combinations_of_its_levels():
    one = study(vary={"m": "0.5:1.5:3", "reference": "swing_up", "l": "log:0.1:10:3"}, seeds="2")
    assert one.sampling == "grid" and one.total == 3 * 1 * 3 * 2
    found = [one.point(i) for i in range(one.total)]
    assert len(set(found)) == 9
    assert {p[0] for p in found} == {0.5, 1.0, 1.5}
    np.testing.assert_allclose(sorted({p[2] for p in found}), [0.1, 1, 10])
    assert [one.run_seed(i) for i in range(4)] == [0, 1, 0, 1]
    assert all(one.point(2 * i) == one.point(2 * i + 1) for i in range(9))


@pytest.mark.parametrize("sampling", DRAWN)
def test_points_are_in_their_ranges_and_reproducible(sampling):
    keys = {"vary": RANGES, "points": "64", "sampling": sampling}
    found = points(study(**keys))
    assert len(found) == (5 * 64 if sampling == "saltelli" else 64)
    assert found[:, 0].min() >= -0.5 and found[:, 0].max() < 0.5
    assert found[:, 1].min() >= 0.1 and found[:, 1].max() < 10
    assert np.array_equal(found, points(study(**keys)))
    assert not np.array_equal(found, points(study(**keys, seed="1")))
    assert abs(found[:64, 2].mean() - 1) < 0.05 and 0.05 < found[:64, 2].std() < 0.15
    assert np.median(found[:64, 1]) == pytest.approx(1, rel=0.7)  # even in the logarithm


def test_a_monte_carlo_point_does_not_depend_on_the_number_of_points():
    few, many = (study(vary=RANGES, points=n) for n in ("5", "5000"))
    assert few.point(4) == many.point(4)


def test_each_stratum_of_a_latin_hypercube_has_one_point():
    found = points(study(vary={"perturb.angle": "0:1"}, points="50", sampling="latin_hypercube"))
    assert sorted(np.floor(50 * found[:, 0])) == list(range(50))


def test_saltelli_replaces_one_column_at_a_time():
    one = study(vary={"m": "1:2", "l": "1:2"}, points="8", sampling="saltelli")
    A, B, first, second = points(one).reshape(4, 8, 2)
    assert np.array_equal(first, np.column_stack([B[:, 0], A[:, 1]]))
    assert np.array_equal(second, np.column_stack([A[:, 0], B[:, 1]]))


def test_all_seeds_that_are_not_set_receive_the_seed_of_the_run():
    keys = {"vary": {"m": "0.5:1.5"}, "disturb": ["theta:noise:0.1"], "seeds": "10"}
    one = study(**keys)
    assert one.total == 10 and one.sampling == "monte_carlo"
    assert len({one.point(i) for i in range(10)}) == 10
    assert one.values(7)["perturb.seed"] == one.values(7)["disturb.theta.seed"] == 7
    assert study(**keys, set={"perturb.seed": "3"}).values(7)["perturb.seed"] == 3
    assert study(**keys, points="4").total == 40
    assert "perturb.seed" not in study(vary={"m": "0.5:1:3"}).values(1)


def test_listed_values_are_drawn_evenly():
    one = study(vary={"plant_substeps": "1,2,4"}, points="256", sampling="sobol")
    found = points(one)[:, 0]
    assert all(84 < (found == n).sum() < 87 for n in (1, 2, 4))


@pytest.mark.parametrize(
    "counts", [{"seeds": "4"}, {"points": "4"}, {"points": "2", "seeds": "2"}]
)
@pytest.mark.parametrize("sampling", ["monte_carlo", "latin_hypercube", "sobol"])
def test_each_drawn_point_has_every_name_so_that_names_are_compared_in_pairs(sampling, counts):
    vary = {"controller": "lqr,mpc", "perturb.angle": "-0.5:0.5"}
    one = study(vary=vary, sampling=sampling, fault="noise=0.01", **counts)
    runs = [one.values(i) for i in range(one.total)]
    assert one.total == 8
    lqr, mpc = (
        [{**run, "controller": ""} for run in runs if run["controller"] == name]
        for name in ("lqr", "mpc")
    )
    assert lqr == mpc and len({str(run) for run in lqr}) == 4
    assert all("fault.noise.seed" in run for run in lqr)


def test_points_may_vary_in_names_alone():
    one = study(vary={"controller": "lqr,mpc"}, points="1", sampling="latin_hypercube", seeds="2")
    assert [one.point(i) for i in range(4)] == [("lqr",), ("lqr",), ("mpc",), ("mpc",)]


WRONG = [
    {"vary": {"perturb.angel": "1:2"}, "points": "3"},
    {"vary": {"perturb.size": "1:2"}, "points": "3"},
    {"vary": {"plant_substeps": "1:4"}, "points": "3"},
    {"vary": {"m": "-1,1"}},
    {"vary": {"m": "1:2", "l": "1,2"}},
    {"vary": {"m": "1:2"}, "sampling": "grid"},
    {},
    {"vary": {"m": "1:2"}, "points": "3", "sampling": "saltelli"},
    {"vary": {"m": "1:2"}, "set": {"m": "1"}, "points": "2"},
    {"vary": {"m": "1:2"}, "points": "few"},
    {"vary": {"m": "1,2"}, "disturb": "theta:gust"},
    {"vary": {"m": "1:2"}, "points": "4", "seed": "-1"},
    {"vary": {"m": "1:2"}, "points": "-1"},
    {"vary": {"m": "1,2"}, "disturb": ["theta:gust:1", "theta:noise:1"]},
    {"vary": {"m": "1,2"}, "seeds": "-1"},
    {"vary": {"m": "1,2"}, "success": "0"},
    {"vary": {"m": "1:2"}, "seeds": "3", "sampling": "sobol"},
    {"vary": {"m": "1:2"}, "points": "4", "seeds": "1", "sampling": "saltelli"},
    {"set": {"integral": "1"}, "seeds": "2"},
    {"vary": {"fault.delays": "0:1:3"}},
    {"vary": {"fault.angle:bias": "0:1:3"}},
    {"vary": {"fault.delay.start": "0:1:3"}},
    {"vary": {"fault.dropout": "0:2:3"}},
    {"vary": {"fault.lag": "0:1:3"}},
    {"fault": ["delay=1", "delay=2"], "vary": {"m": "1,2"}},
]


def test_an_invalid_study_is_refused(snapshot):
    assert said(WRONG, lambda keys: study(**keys)) == snapshot


def test_an_index_outside_the_runs_is_refused():
    for index in (3, -1):
        with pytest.raises(IndexError, match=f"run {index}: the runs are 0 ... 2"):
            study(vary={"m": "1,2,3"}).point(index)


def test_reading_a_written_file_gives_the_same_study(tmp_path):
    one = study(
        vary={**RANGES, "integrator": "midpoint,midpoint_left"},
        set={"duration": "1.5", "integral": "true", "perturb.momentum": "1e-05"},
        disturb=["theta:gust:0.1,start=1"],
        fault=["noise=0.001", "torque:stuck,start=2"],
        points="4",
        seeds="3",
        sampling="latin_hypercube",
    )
    (tmp_path / "study.yaml").write_text(to_yaml(one))
    again = make_study(read(tmp_path / "study.yaml"))
    assert again == one and not differences(one, again)
    assert [again.values(i) for i in range(12)] == [one.values(i) for i in range(12)]


def test_every_field_of_a_study_is_written():
    """Every value differs from its default, and lists have two entries."""
    written_ = {
        "scenario": "urdf", "urdf": "arm.urdf", "base": "floating", "accept_any_inertia": True,
        "wheels": "left", "autopilot": "betaflight",
        "vary": {"m": "1.0:2.0:3", "integrator": "midpoint,rk4"},
        "set": {"duration": 1.5, "integral": True},
        "disturb": ["x:noise:1", "y:noise:2"], "fault": ["noise=1", "bias=2"],
        "sampling": "sobol", "points": 4, "seeds": 3, "seed": 2, "success": 0.2, "monitor": True,
        "same_noise": True, "require": ["effort.max < 5", "success >= 95 %"],
    }  # fmt: skip
    one = Study(
        tuple((key, written_[key]) for key in ORIGIN),
        tuple(parse(name, text) for name, text in written_["vary"].items()),
        (("duration", 1.5), ("integral", True)),
        ("x:noise:1", "y:noise:2"), ("noise=1", "bias=2"), "sobol", 4, 3, 2, 0.2, True,
        True, ("effort.max < 5", "success >= 95 %"),
    )  # fmt: skip
    assert yaml.safe_load(to_yaml(one)) == written_ and set(written_) == set(KEYS)
    assert differences(one, replace(one, disturb=("x:noise:1",))).startswith("disturb: ")
    assert not differences(one, replace(one, require=("effort.max < 5", "success >= 90 %")))
    assert differences(one, replace(one, require=("success >= 95 %",))).startswith("require: ")


def test_yaml_values_are_read_as_texts(tmp_path):
    """YAML 1.1 reads 1:30 as 90 and `on` as true; a study file keeps the text."""
    file = tmp_path / "s.yaml"
    file.write_text("scenario: pendulum_swing_up\nvary: {m: 1:30, l: [1, 2]}\nseeds: 2\n")
    vary = make_study(read(file)).vary
    assert [str(v) for v in vary] == ["1.0:30.0", "1,2"]


@pytest.mark.parametrize(
    "text, words",
    [("a: [", "is not YAML"), ("- a", "expected a mapping"), ("vry: {}", "did you mean 'vary'"),
     ("vary: [m]", "mapping of settings")],
)  # fmt: skip
def test_an_invalid_study_file_is_refused(tmp_path, text, words):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises((ValueError, UnknownName), match=words):
        read(tmp_path / "s.yaml")


def test_a_pickled_study_does_not_contain_the_scenario():
    import pickle

    one = study(vary={"m": "1,2"})
    assert one.settings is one.settings
    assert pickle.loads(pickle.dumps(one)) == one
    assert "settings" not in vars(pickle.loads(pickle.dumps(one)))
    assert isinstance(one, Study) and variation.value("1e-3") == 0.001
