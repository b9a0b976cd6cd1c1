"""A model beside a robot, without ROS: what it did not expect, and when it may look."""

import numpy as np
import pytest

from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.loop.reports import Refusal
from nh_control.loop.shadow import Shadow, Statistics

REST = [0.0, 0.0], [0.0, 0.0]


@pytest.fixture(scope="module")
def model(cart):
    return cart[0]


def motion(dsys, n=40):
    """States (n + 1) and inputs (n) of a motion."""
    inputs = [np.array([4 * np.sin(0.3 * k)]) for k in range(n)]
    return dsys.simulate(dsys.state([0.0, 0.4], [0.0, 0.0]), np.array(inputs)).states, inputs


def at(k):
    return k * 10_000_000


class Beside:
    """A shadow of a motion, which is given states and inputs of steps."""

    def __init__(self, model, estimate=None, plant=None, n=40, **options):
        self.plant = plant or model
        states, self.inputs = motion(self.plant, n)
        self.states = states.copy()
        self.shadow = Shadow(model, estimate or MeasuredState(model), **options)
        self.found = []

    def see(self, *steps):
        for k in steps:
            x = self.states[k]
            self._keep(self.shadow.measured(at(k), self.plant.configuration(x).tolist(),
                                            self.plant.velocity(x).tolist()))  # fmt: skip
        return self

    def hear(self, *steps):
        for k in steps:
            self.shadow.command(self.inputs[k], at(k), at(k))

    def settle(self):
        self._keep(self.shadow.settle())

    def _keep(self, residuals):
        self.found += residuals

    @property
    def times(self):
        return [residual.time_ns // at(1) for residual in self.found]

    @property
    def largest(self):
        return max(np.abs(residual.values).max() for residual in self.found)


def test_statistics_are_those_of_all_rows_of_one_length_and_are_reported(model):
    rows, s = np.random.default_rng(0).normal(size=(50, 3)), Statistics()
    for row in rows:
        s.add(row)
    np.testing.assert_allclose(s.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(s.deviation, rows.std(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_array_equal(s.largest, np.abs(rows).max(axis=0))
    s.add(np.ones(2))
    assert s.count == 1 and s.mean.tolist() == [1.0, 1.0] and not s.deviation.any()
    shadow = Shadow(model, MeasuredState(model))
    assert (shadow.report().level, shadow.report().message) == ("warn", "waiting for states")
    for row in ([1.0, 0.0, 0.0, 0.0], [-2.0, 0.0, 0.0, 0.0]):
        shadow.statistics.add(np.array(row))
    values, name = shadow.report().values, model.state_space.tangent_names[0]
    told = [values[f"{what}: {name}"] for what in ("mean", "std", "max")]
    assert told == [-0.5, pytest.approx(np.std([1, -2], ddof=1)), 2.0]


def test_a_plant_like_the_model_is_expected_and_another_one_not(model):
    for mass, least, most in ((0.3, 0.0, 1e-12), (0.33, 1e-4, 1e-1)):
        plant = model.with_parameters(m_pole=mass)
        beside = Beside(model, plant=plant, patience=5, answering=True)
        for k in range(40):
            beside.see(k)
            beside.hear(k)
        beside.see(40).settle()
        assert beside.times == list(range(1, 41)) and least <= beside.largest < most
        assert beside.shadow.names == list(model.state_space.tangent_names)


def test_a_state_waits_for_the_command_that_answers_the_one_before(model):
    beside = Beside(model, patience=3, answering=True)
    beside.see(0, 1)
    assert beside.times == []  # which input acted is not known yet
    beside.hear(0, 1)
    beside.shadow.command(beside.inputs[1], at(1), at(0))  # the newest counts
    beside.see(2)
    assert beside.times == [1, 2] and beside.largest < 1e-12
    for k, known in ((3, 2), (4, 2), (5, 2), (6, 3), (7, 4)):
        beside.see(k)  # after its patience the last command is taken to be held
        assert beside.times[-1] == known
    plain = Beside(model).see(0, 1, 2, 3)  # it does not wait for answers
    assert plain.times == [1, 2]


def test_after_a_gap_that_is_too_long_to_be_predicted_it_begins_anew(model):
    beside, late = Beside(model), round(100 / model.h)
    beside.see(0)
    beside.hear(0)
    beside.see(1)
    assert beside.times == []
    (last,) = beside.shadow.measured(at(late), *REST)
    assert last.time_ns == at(1)
    assert "jumped ahead by 100 s" in beside.shadow.report().message
    beside.shadow.measured(at(late + 1), *REST)
    beside.settle()
    assert beside.times == [late + 1]


def test_nothing_is_expected_while_no_command_has_been_heard(model):
    beside = Beside(model, patience=2, answering=True)
    for k in range(8):
        beside.see(k)
        if k >= 5:  # the tracker was found late
            beside.hear(k)
        elif k == 4:
            report = beside.shadow.report()
            assert (report.level, report.message) == ("warn", "waiting for commands")
            assert report.values["states_unanswered"] == 2
    beside.settle()
    assert beside.times == [6, 7] and beside.largest < 1e-12
    assert beside.shadow.report().values["states_unanswered"] == 5


def test_commands_act_as_far_as_actuators_can(model):
    limit = model.system.input_bounds[0, 1]
    beside = Beside(model).see(0)
    beside.shadow.command([2 * limit], at(0), at(0))
    beside.states[1] = model.step(beside.states[0], [limit])
    beside.see(1).settle()
    assert len(beside.found) == 1 and beside.largest < 1e-12


def test_positions_alone_give_the_innovations_of_the_filter(model):
    rng, noise = np.random.default_rng(1), 1e-3
    beside = Beside(model, FilteredState(model, noise, 0.1), n=300)
    found = []
    for k, x in enumerate(beside.states):
        y = model.configuration(x) + noise * rng.normal(size=2)
        found += beside.shadow.measured(at(k), y, None)
        beside.hear(min(k, 299))
    rows = np.array([r.values for r in found])[100:]
    assert rows.shape[1] == 2 and beside.shadow.names == ["x", "theta"]
    assert (np.abs(rows.mean(axis=0)) < 3e-4).all()
    assert ((rows.std(axis=0) > 0.9e-3) & (rows.std(axis=0) < 1.5e-3)).all()


def test_what_cannot_be_used_is_refused_and_told(model):
    beside = Beside(model).see(0)
    beside.shadow.measured(at(1), [1e308, -1e308], [1e308, 1e308])
    beside.see(2).settle()
    assert beside.times == [2]
    report = beside.shadow.report()
    assert report.level == "warn" and "cannot be used" in report.message
    assert report.values["residuals"] == 1 and report.values["states_refused"] == 1
    assert (beside.shadow.report().level, beside.shadow.report().message) == ("ok", "comparing")
    beside.see(2)  # not newer
    assert beside.times == [2]
    beside.shadow.refuse(Refusal.STAMP, "too old")
    report = beside.shadow.report()
    assert (report.level, report.message) == ("warn", "too old")
    assert report.values["refused: wrong stamp"] == 1 and report.values["states_refused"] == 2


def test_a_shadow_whose_model_fails_says_so_and_goes_on(model):
    shadow = Shadow(model, MeasuredState(model))
    shadow.measured(at(0), [0.0, 0.0], [1e200, 1e200])
    shadow.measured(at(1), *REST)
    assert shadow.settle() == []
    made = shadow.report()
    assert made.values["predictions_failed"] == 1 and "no prediction" in made.message
    for k in (2, 3):
        shadow.measured(at(k), *REST)
    assert [residual.time_ns for residual in shadow.settle()] == [at(3)]  # after the failure


@pytest.mark.parametrize("heard", [3, 1])
def test_a_shadow_that_is_reset_begins_anew_with_its_statistics(model, heard):
    """What was answered before says nothing of the states after it."""
    beside = Beside(model, patience=9, answering=True).see(0, 1, 2)
    beside.hear(*range(heard))
    beside.see(3)
    count, unanswered = beside.shadow.statistics.count, beside.shadow.unanswered
    assert count == heard
    beside.shadow.reset()
    beside.settle()
    beside.see(0)  # older than before, and the first one
    beside.see(1, 2, 3)
    assert beside.shadow.statistics.count == count
    beside.hear(2)
    beside.settle()
    assert beside.shadow.statistics.count == count + 1
    assert beside.shadow.unanswered == unanswered + 2


def test_measurements_are_kept_as_they_were(model):
    """One waits for the next; its arrays are those of the message that comes then."""
    shadow, q, v = Shadow(model, MeasuredState(model)), np.zeros(2), np.zeros(2)
    shadow.measured(at(0), q, v)
    shadow.measured(at(1), q, v)
    q[:] = v[:] = 9.0
    (residual,) = shadow.settle()
    assert np.abs(residual.values).max() < 1e-9
