"""Faults are what they are written as, the same in every process, and can be had by every
scenario.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from lifted import LIFTED
from refusals import said

from nh_control import scenarios
from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.integrators import midpoint
from nh_control.loop.fault_effects import effects
from nh_control.loop.faults import FaultLines, MeasurementSignal, through_actuators
from nh_control.mechanics.parameters import declarations
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.summary import summarize
from nh_control.scenarios import PlantOptions, fault
from nh_control.scenarios.fault import KINDS, parse

H = 0.01
SNAKEBOARD = scenarios.get("snakeboard")
MODEL = SNAKEBOARD.model()
TRIAL = {
    "noise": "=0.01",
    "bias": "=0.01",
    "quantization": "=0.02",
    "delay": "=0.015",
    "jitter": "=0.03",
    "dropout": "=0.3",
    "lag": "=0.03",
    "saturation": "=0.05",
    "dead_band": "=1.5",
    "stuck": ",start=0.02",
    "lost": "",
}


def commanded(text, commands, n=1):
    """What faults of actuators make of commands (N, 2) to the snakeboard."""
    line = FaultLines.of([parse(part) for part in text.split()], MODEL).commands
    return through(line, np.zeros(2), commands)


def measured(text, states):
    """What faults of sensors make of (q, v) (N, 10); None where they are lost."""
    line = FaultLines.of([parse(part) for part in text.split()], MODEL).measurements
    return through(line, states[0], states)


def through(line, before, values):
    memory, out = line.start(before), []
    for k, value in enumerate(values):
        output = line.through(k, value, memory)
        memory = output.memory
        out.append(output.value)
    return out


def straight(n):
    """States that move evenly, the heading too."""
    return np.linspace(0, 1, n)[:, None] * np.arange(1.0, 11.0)


RAMP = np.column_stack([np.arange(10.0), -np.arange(10.0)])


def test_actuators_do_what_the_kinds_say():
    assert np.array_equal(commanded("saturation=3", RAMP), np.clip(RAMP, -3, 3))
    one = np.array(commanded("rotor_torque:dead_band=2.5", RAMP))
    assert one[:, 0].tolist() == [0, 0, 0, *range(3, 10)] and np.array_equal(one[:, 1], RAMP[:, 1])
    stuck = np.array(commanded("steer_torque:stuck,start=0.03,duration=0.04", RAMP))
    assert stuck[:, 1].tolist() == [0, -1, -2, -2, -2, -2, -2, -7, -8, -9]
    both = np.array(commanded("commands:dead_band=3", RAMP))
    assert both[2:4].tolist() == [[0, 0], [3, -3]]  # one as large as the band goes through
    lost = np.array(commanded("lost,start=0.05", RAMP))
    assert np.array_equal(lost[:5], RAMP[:5]) and not lost[5:].any()
    late = np.array(commanded("commands:delay=0.014", RAMP))
    assert np.allclose(late[2:], RAMP[2:] - [1.4, -1.4], atol=1e-12)
    assert np.allclose(np.array(commanded("commands:bias=-0.5", RAMP)), RAMP - 0.5)
    assert np.array_equal(commanded("commands:quantization=3", RAMP), 3 * np.round(RAMP / 3))
    order = "commands:bias=1", "saturation=3"
    assert np.array_equal(commanded(" ".join(order), RAMP), np.clip(RAMP + 1, -3, 3))
    assert np.array_equal(commanded(" ".join(order[::-1]), RAMP), np.clip(RAMP, -3, 3) + 1)


@pytest.mark.parametrize(
    ("delay_s", "whole", "part"), [(0.027, 2, 0.7), (0.03, 3, 0.0), (0.0, 0, 0.0)]
)
def test_a_delayed_value_is_interpolated_between_two_steps(delay_s, whole, part):
    values = np.column_stack([np.arange(12.0) ** 2, np.arange(12.0) ** 3])
    late = np.array(commanded(f"commands:delay={delay_s}", values))
    for k in range(4, 12):
        expected = (1 - part) * values[k - whole] + part * values[k - whole - 1]
        np.testing.assert_allclose(late[k], expected, atol=1e-9)


def test_faults_begin_and_end_at_whole_steps():
    """0.29 / 0.01 is less than 29."""
    ones = np.ones((100, 2))
    lost = np.array(commanded("lost,start=0.29,duration=0.29", ones))
    assert np.flatnonzero(lost[:, 0] == 0).tolist() == list(range(29, 58))


def test_of_a_lost_actuator_that_moves_a_point_the_point_stays():
    line = FaultLines.of([parse("lost,start=0.02")], midpoint(LIFTED, H)).commands
    out = through(line, np.array([0.0, 5.0]), np.array([[1.0, 5.1], [2.0, 5.2], [3.0, 5.3]]))
    assert np.array(out).tolist() == [[1.0, 5.1], [2.0, 5.2], [0.0, 5.2]]


def test_kinds_have_numbers_units_bounds_and_usual_targets(snapshot):
    lines = [
        f"{kind} of {parse(kind + TRIAL[kind]).target}: "
        + ", ".join(
            f"{d.name} {d.value:g} {d.unit}".rstrip() + f" ({d.bound or 'any'})"
            for d in declarations(KINDS[kind]())
        )
        for kind in KINDS
    ]
    assert "\n".join(lines) == snapshot
    assert str(parse("noise=0.1,seed=3")) == "positions:noise=0.1,seed=3"


def test_lag_answers_a_step_as_a_first_order_lag():
    answer = np.array(commanded("lag=0.05", np.ones((30, 2))))
    times = H * np.arange(1, 31)
    np.testing.assert_allclose(answer[:, 0], 1 - np.exp(-times / 0.05), atol=1e-14)


def test_lost_commands_leave_the_last_one():
    out = np.array(commanded("commands:dropout=0.3,seed=4", np.column_stack([range(200)] * 2)))
    held = [k for k in range(200) if out[k, 0] != k]
    assert out[0, 0] == 0 and 35 < len(held) < 85  # 60 expected, deviation 6.5
    assert all(out[k, 0] == out[k - 1, 0] for k in held)


def test_sensors_do_what_the_kinds_say():
    states = straight(101)
    biased = np.array(measured("velocities:bias=0.1", states))
    assert np.allclose(biased - states, [0.0] * 5 + [0.1] * 5, atol=1e-15)
    biased = np.array(measured("psi:bias=0.1", states))
    assert np.allclose(biased - states, np.eye(10)[0] * 0.1)
    assert np.allclose(np.array(measured("omega:bias=0.1", states)) - states, np.eye(10)[7] * 0.1)
    late = np.array(measured("delay=0.025", states))
    exact = states - 2.5 * (states[1] - states[0])
    flat = [0, 1, 2, *range(5, 10)]  # the board's position is on the way that the model makes
    assert np.allclose(late[3:, flat], exact[3:, flat], atol=1e-12)
    assert np.allclose(late[3:], exact[3:], atol=1e-3)
    assert np.array_equal(late[0], states[0])
    coarse = np.array(measured("positions:quantization=0.05", states))
    assert np.allclose(coarse[:, 0] / 0.05, np.round(coarse[:, 0] / 0.05), atol=1e-9)
    assert np.abs(coarse - states)[:, :5].max() < 0.05 and np.array_equal(
        coarse[:, 5:], states[:, 5:]
    )
    memory = np.array(measured("phi:stuck,start=0.3", states))
    assert np.allclose(memory[30:, 1], states[29, 1], rtol=0, atol=1e-14)
    assert np.allclose(memory[:, 2], states[:, 2], rtol=0, atol=1e-14)


def test_noise_has_its_deviation_and_no_memory():
    """1200 numbers; their estimates' own deviation is 2 %, that of the correlations 5 %."""
    still = np.zeros((400, 10))
    noise = np.array(measured("positions:noise=0.02,seed=5", still))
    assert not noise[:, 5:].any()
    assert np.std(noise[:, [0, 1, 2]]) == pytest.approx(0.02, rel=0.08)
    assert abs(np.corrcoef(noise[1:, 0], noise[:-1, 0])[0, 1]) < 0.2
    assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.2
    assert np.array_equal(noise, measured("positions:noise=0.02,seed=5", still))
    other = np.array(measured("positions:noise=0.02,seed=6", still))
    assert not np.isclose(noise[:, 0], other[:, 0], atol=1e-9).any()


def test_jitter_is_within_its_bound_and_never_goes_back():
    states = straight(200)
    out = np.array(measured("jitter=0.035", states))[:, 0]
    age = (states[:, 0] - out) / (states[1, 0] - states[0, 0])  # in steps
    assert age.min() > -1e-9 and age[4:].max() < 3.5 and np.diff(out).min() > -1e-12
    effect = FaultLines.of([parse("jitter=0.035")], MODEL)
    told = effects(effect, MODEL, np.array([MODEL.state(x[:5], x[5:]) for x in states]), RAMP[:0])
    ages = [told[0].delay_s / H, np.mean(age)]
    assert ages[0] == pytest.approx(ages[1], abs=0.02) and 0.5 < ages[0] < 1.75


def test_dropout_loses_its_share_but_never_the_first():
    lost = [x is None for x in measured("dropout=0.25,seed=2", straight(200))]
    assert not lost[0] and 25 < sum(lost) < 75  # 50 expected, deviation 6
    first, *others = measured("dropout=1", straight(5))
    assert first is not None and all(x is None for x in others)


def test_what_is_written_is_read_again():
    for text in (
        "measurements:delay=0.005",
        "psi:noise=0.001,seed=3",
        "steer_torque:stuck,start=3.0",
        "commands:lost,start=1.0,duration=2.0",
        "positions:quantization=1e-05",
    ):
        assert str(parse(text)) == text and parse(str(parse(text))) == parse(text)


WRONG = [
    "delay",
    "stuck=1",
    "psi:noise:0.1",
    "storm=1",
    "nois=1",
    "noise=1,sed=2",
    "noise=1,seed=1.5",
    "noise=much",
    "noise=-1",
    "dropout=1.5",
    "lag=0",
    "delay=nan",
    "rho:noise=1",
    "psi:lost",
    "psi:dropout=0.1",
    *(
        f"{target}:{text}"
        for text in ("saturation=1", "dead_band=1", "lost")
        for target in ("positions", "measurements", "psi")
    ),
]


def test_other_texts_and_targets_are_refused(snapshot):
    assert said(WRONG, lambda text: FaultLines.of([parse(text)], MODEL)) == snapshot


@cache
def plain(name, duration_s):
    """An experiment without faults."""
    return Experiment.make(scenarios.get(name), duration_s=duration_s)


def experiment(scenario, *texts, duration_s=0.3):
    """One with faults."""
    faults = PlantOptions(faults=tuple(map(parse, texts)))
    return replace(plain(scenario.name, duration_s), options=faults)


def test_without_effect_the_loop_is_as_without_faults():
    """All kinds whose number can say so."""
    none = ("noise=0", "bias=0", "delay=0", "jitter=0", "dropout=0", "dead_band=0")
    with_, without = (experiment(SNAKEBOARD, *texts).run() for texts in (none, ()))
    np.testing.assert_allclose(
        with_.trajectory.states, without.trajectory.states, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_changes_the_loop_and_says_what_it_did(kind):
    faulty = experiment(SNAKEBOARD, kind + TRIAL[kind])
    result = Result(faulty, faulty.run(), None, 0.0)
    assert not np.allclose(
        result.loop.trajectory.states, result.without_faults.trajectory.states, atol=1e-9
    )
    (effect,) = summarize(result)["faults"]
    assert effect["fault"] == str(faulty.options.faults[0])
    assert effect["active"] > 0 and effect["changed"] + effect["lost"] > 0
    assert summarize(result)["error"]["without_faults"]["final"] == pytest.approx(
        result.configuration_error(experiment(SNAKEBOARD).run())[-1], abs=1e-12
    )


def test_the_table_counts_exactly():
    e = experiment(
        SNAKEBOARD,
        "steer_torque:saturation=0.2,start=0.1",
        "dropout=0.5,start=0.05,duration=0.1",
        "phi:bias=0.01",
        duration_s=0.3,
    )
    loop = e.run()
    dropped, bias, weak = Result(e, loop, None, 0.0).fault_effects
    over = np.abs(loop.commands[10:, 1]) > 0.2
    assert (weak.steps, weak.active, weak.changed) == (30, 20, over.sum()) and over.any()
    assert weak.largest == pytest.approx(np.abs(loop.commands[10:, 1]).max() - 0.2, abs=1e-15)
    assert np.array_equal(
        np.clip(loop.commands[10:, 1], -0.2, 0.2), loop.trajectory.inputs[10:, 1]
    )
    draws = [
        np.random.default_rng([0, k, *b"measurements:dropout"]).random() for k in range(5, 15)
    ]
    assert (dropped.active, dropped.lost) == (10, sum(draw < 0.5 for draw in draws))
    assert bias.changed == 31 - dropped.lost and bias.rms == pytest.approx(0.01, abs=1e-12)
    held = [k for k, draw in zip(range(5, 15), draws) if draw < 0.5]
    assert all(np.array_equal(loop.commands[k], loop.commands[k - 1]) for k in held)


QUICK = ("satellite",)
ALL = [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
    for name in scenarios.built_in()
]


@pytest.mark.parametrize("name", ALL)
def test_every_scenario_can_have_every_fault(name):
    scenario = scenarios.get(name)
    steps = 4
    own = experiment(scenario, duration_s=steps * scenario.step_s)
    clean = own.run().trajectory.states
    for text in ("noise=1e-4", "velocities:noise=1e-4", "delay=0.003", "lag=0.004", "lost"):
        options = PlantOptions(faults=(fault.parse(text),))
        loop = replace(own, options=options).run()
        assert len(loop.trajectory) == steps and loop.failure is None
        assert not np.array_equal(loop.trajectory.states, clean)


# --- lines and trackers behind them ----


def test_measurements_are_moved_in_their_local_coordinates():
    space, rng = Product(Rn("x"), SO3()), np.random.default_rng(1)
    signal, q = MeasurementSignal(space), space.retract(space.origin, rng.normal(size=4))
    x, d = np.r_[q, rng.normal(size=4)], rng.normal(size=8)
    y = signal.retract(x, d)
    assert signal.n == 8 and np.allclose(signal.local(x, y), d)
    assert np.allclose(y, np.r_[space.retract(q, d[:4]), x[5:] + d[4:]])
    for some in ([0], [2], [5], [1, 2, 6], [0, 1, 2, 3], [4, 5, 6, 7], [], range(8)):
        of_y = np.isin(np.arange(8), list(some))
        moved = signal.local(x, signal.mixed(x, y, of_y))
        assert np.allclose(moved, np.where(of_y, d, 0.0)), some


@pytest.mark.filterwarnings("error")
def test_numbers_that_a_fault_makes_infinite_are_lost():
    """Of commands the one before holds."""
    huge = np.full((3, 2), 1.5e308) * [[0], [1], [0]] + [1.0, 2.0]
    np.testing.assert_array_equal(commanded("commands:bias=1e308", huge)[1], [1e308, 1e308])
    assert measured("velocities:bias=1e308", np.full((1, 10), 1e308)) == [None]


@pytest.mark.parametrize("text", ["lag=0.05", "commands:delay=0.03", "commands:dropout=0.5"])
def test_a_whole_run_goes_through_a_line_as_its_values_do_one_by_one(text):
    before, commands = np.array([5.0, -5.0]), RAMP + 1.0
    line, memory, expected = FaultLines.of([parse(text)], MODEL).commands, None, []
    for k, u in enumerate(commands):
        output = line.through(k, u, line.start(before) if memory is None else memory)
        memory = output.memory
        expected.append(output.value)
    found = through_actuators(FaultLines.of([parse(text)], MODEL), before, commands)
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found, commands)


def test_what_faults_of_actuators_did_is_counted_along_the_run():
    """A lag remembers what went out: after a jump its changes die away."""
    x = MODEL.state(MODEL.system.space.origin, np.zeros(5))
    (found,) = effects(
        FaultLines.of([parse("rotor_torque:lag=0.02")], MODEL),
        MODEL,
        np.array([x, x]),
        np.ones((50, 2)),
    )
    changes = np.exp(-0.5 * np.arange(1, 51))
    assert found.largest == pytest.approx(changes[0])
    assert found.rms == pytest.approx(np.sqrt(np.mean(changes**2)))


def test_a_tracker_gets_measurements_with_faults_and_its_command_holds_while_they_are_lost():
    """Errors are those of the true state. After a loss no prediction is compared."""
    faults = ("psi:bias=0.01", "dropout=1,start=0.02,duration=0.02", "commands:bias=0.5")
    e = experiment(SNAKEBOARD, *faults, duration_s=0.3)
    e = replace(e, steps=5, tracker=SNAKEBOARD.tracker(e.model, e.tracker.reference, True))
    loop, tracker = e.run(), e.tracker
    true = loop.trajectory.states
    errors = [tracker.error(k, x) for k, x in enumerate(true)]
    np.testing.assert_allclose(loop.errors, errors, atol=1e-12)
    seen = true + 0.01 * np.eye(e.model.nx)[0]
    first = tracker.command(0, seen[0])
    second = tracker.command(1, seen[1], first.memory)
    assert second.memory.predicted is not None
    third = tracker.command(4, seen[4], replace(second.memory, predicted=None))
    commands = [first.u, *3 * [second.u], third.u]
    np.testing.assert_allclose(loop.commands, commands, atol=1e-9)
    np.testing.assert_allclose(loop.trajectory.inputs, loop.commands + 0.5)


def test_without_feedback_the_reference_is_applied_and_lost_measurements_change_nothing():
    e = experiment(SNAKEBOARD, "commands:bias=0.5", "dropout=1,start=0.01", duration_s=0.05)
    loop = e.run(feedback=False)
    reference = e.tracker.reference.inputs[: e.steps]
    np.testing.assert_array_equal(loop.trajectory.inputs, reference + 0.5)
    assert not loop.saturated.any()
