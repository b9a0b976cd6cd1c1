"""The simulated plant without its loop, its state in a file and its own tracker."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from refusals import refusal

from nh_control import scenarios
from nh_control.discrete.results import StepFailed
from nh_control.integrators import midpoint
from nh_control.loop.backup_tracker import BackupTracker
from nh_control.loop.faults import FaultLines
from nh_control.loop.plant_faults import PlantFaults
from nh_control.loop.saved_state import SavedState
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import PlantOptions, disturbance, fault
from nh_control.scenarios.disturbance import DisturbanceForces
from nh_control.scenarios.fault import parse
from nh_control.scenarios.quadrotor_payload import PayloadPerturbation
from nh_control.systems import pendulum

SCENARIO = scenarios.get("snakeboard")
FAULTS = (
    "noise=0.001,seed=1",
    "delay=0.014",
    "dropout=0.3",
    "phi:bias=0.01,start=0.2",
    "rotor_torque:lag=0.02",
    "commands:dropout=0.2",
    "steer_torque:stuck,start=0.1,duration=0.1",
)
STEPS = 30


@cache
def experiment():
    return Experiment.make(SCENARIO, duration_s=STEPS * SCENARIO.step_s)


def faults(*texts):
    return PlantFaults(experiment().model, [parse(text) for text in texts])


@cache
def middle():
    """A state on the way, with velocities and constraint forces."""
    return experiment().run().trajectory.states[20]


def plant(*texts, state=None):
    e = experiment()
    return SimulatedPlant(e.plant, e.x0 if state is None else state, faults=faults(*texts))


@pytest.mark.parametrize(
    "texts", [FAULTS, FAULTS[:4], FAULTS[4:]], ids=["all", "sensors", "actuators"]
)
def test_a_plant_with_faults_is_that_of_the_simulation_and_tells_the_same_of_them(texts):
    options = PlantOptions(faults=tuple(map(parse, texts)))
    e = replace(experiment(), options=options)
    loop, mine = e.run(), plant(*texts)
    for k in range(STEPS):
        if mine.measured_step == k:
            q, v = mine.measured
            u = e.tracker.command(k, e.model.measured_state(q, v)).u
        before = loop.trajectory.inputs[k - 1] if k else [0.0, 0.0]
        np.testing.assert_allclose(mine.inputs, before, rtol=0, atol=1e-10)
        mine.advance(u)
    np.testing.assert_allclose(mine.state, loop.trajectory.states[-1], rtol=0, atol=1e-12)
    told = {f"fault {one.fault}": str(one) for one in Result(e, loop, None, 0.0).fault_effects}
    assert mine.faults.report() == told and len(told) == len(texts)


def test_faults_go_on_in_time_where_a_plant_is_put():
    mine = plant("phi:bias=0.25,start=0.05", state=middle())
    np.testing.assert_array_equal(mine.measured[0], mine.configuration)
    mine.place(middle(), 7)
    (q, v), there = mine.measured, mine.configuration
    assert mine.measured_step == 7
    np.testing.assert_allclose(q - there, 0.25 * np.eye(5)[1], atol=1e-12)
    np.testing.assert_array_equal(v, mine.velocity)
    lost = plant("dropout=1", state=middle())  # but not the state in which it is put
    lost.advance([0.0, 0.0])
    assert lost.measured_step == 0
    lost.place(middle(), 7)
    assert lost.measured_step == 7 and np.array_equal(lost.measured[0], lost.configuration)


def test_velocities_are_measured_also_where_there_are_fewer_than_numbers_of_the_configuration():
    satellite = scenarios.get("satellite").model()
    made, q = PlantFaults(satellite, [parse("velocities:bias=0.5")]), satellite.system.space.origin
    v = np.arange(1.0, 1.0 + satellite.system.space.nw)
    assert len(q) > len(v)
    made.start(0, q, v, np.zeros(satellite.nu))
    np.testing.assert_array_equal(np.concatenate(made.measured), np.concatenate([q, v + 0.5]))


def test_without_faults_what_is_measured_is_what_is_there_and_the_start_is_kept():
    start = middle().copy()
    for mine in (plant(), SimulatedPlant(experiment().plant, start)):
        mine.advance([0.1, 0.0])
        assert mine.measured_step == 1 and np.array_equal(mine.measured[0], mine.configuration)
        assert np.array_equal(mine.measured[1], mine.velocity)
    start += 1.0
    mine.reset()
    assert np.array_equal(mine.state, middle())


def test_faults_that_change_begin_with_the_present_state_and_count_anew():
    mine = plant("phi:bias=0.25", "rotor_torque:bias=0.5")
    mine.advance([1.0, 0.0])
    assert mine.inputs.tolist() == [1.5, 0.0] and mine.measured_step == 1
    texts = ["psi:bias=0.5", "rotor_torque:lag=0.01"]
    mine.change_faults(FaultLines.of([parse(text) for text in texts], mine.dsys))
    assert mine.measured_step == 1 and np.array_equal(mine.measured[0], mine.configuration)
    assert all("of 0 steps" in text for text in mine.faults.report().values())
    mine.advance([0.0, 0.0])
    assert mine.inputs[0] == pytest.approx(1.5 * np.exp(-1.0))
    found = mine.measured[0] - mine.configuration
    np.testing.assert_allclose(found, 0.5 * np.eye(5)[0], atol=1e-12)
    assert all("of 1 steps, 1 changed" in text for text in mine.faults.report().values())


def test_residual_and_iterations_are_those_of_the_last_step():
    e = experiment()
    mine = SimulatedPlant(e.plant, middle(), substeps=3)
    assert (mine.constraint_residual, mine.newton_iterations, mine.step) == (0.0, 0, 0)
    mine.advance([0.3, 0.2])
    x1 = e.plant.step(e.plant.step(middle(), [0.3, 0.2]), [0.3, 0.2])
    x2 = e.plant.step(x1, [0.3, 0.2])
    assert np.array_equal(mine.state, x2)
    assert mine.constraint_residual == np.abs(e.plant.constraint_residual(x1, x2)).max()
    assert mine.newton_iterations == e.plant.newton_iterations(x1, np.array([0.3, 0.2])) > 0
    np.testing.assert_array_equal(mine.velocity, e.plant.velocity(x2))
    assert mine.energy == e.plant.energy(x2)
    mine.place(x1, 9)
    assert (mine.constraint_residual, mine.newton_iterations) == (0.0, 0)
    np.testing.assert_array_equal(mine.velocity, e.plant.velocity(x1))
    assert not mine.inputs.any()


def pushes(text):
    """Forces on a pendulum, of periods of 0.01 s."""
    targets = {one.name: one for one in on_coordinates(pendulum().space)}
    return DisturbanceForces((disturbance.parse(text),), targets, 0.01)


def test_a_plant_that_is_pushed_elsewhere_goes_on_where_it_was():
    """By an integrator whose momenta are others for the same velocity."""
    plain, forces = midpoint(pendulum(), 0.01), pushes("theta:constant:0.3")
    heavier = pendulum().with_parameters(m=2.0)
    pushed = midpoint(with_external_forces(heavier, forces.targets), 0.01)
    mine = SimulatedPlant(plain, plain.state([0.2], [0.5]))
    mine.advance([0.1])
    q, v = mine.configuration, mine.velocity
    mine.change_disturbance(pushed, forces)
    np.testing.assert_allclose((mine.configuration, mine.velocity), (q, v), atol=1e-14)
    assert mine.targets == ("theta",) and mine.newton_iterations == 0
    mine.advance([0.1])
    expected = pushed.step(pushed.state(q, v), [0.1, 0.3])
    np.testing.assert_allclose(mine.state, expected, atol=1e-14)
    assert mine.newton_iterations == pushed.newton_iterations(
        pushed.state(q, v), np.array([0.1, 0.3])
    )
    mine.reset()
    np.testing.assert_allclose(mine.velocity, [0.5], atol=1e-14)


def test_a_disturbance_is_an_input_that_commands_do_not_reach():
    plain = midpoint(pendulum(), 0.005)
    forces = pushes("theta:gust:0.3,start=0.02,duration=0.02")
    dsys = midpoint(with_external_forces(plain.system, forces.targets), plain.h)
    start = np.array([0.2, 0.5])
    pushed = SimulatedPlant(dsys, start, substeps=2, disturbance=forces)
    other = SimulatedPlant(plain, start, substeps=2)
    assert len(pushed.idle) == 1 and pushed.commanded(dsys.system.input_bounds).shape == (1, 2)
    for step in range(5):
        wind = 0.3 if step in (2, 3) else 0.0
        pushed.advance([0.1])
        other.advance([0.1 + wind])
        assert pushed.external["theta"] == wind
    np.testing.assert_allclose(pushed.state, other.state, atol=1e-14)
    assert pushed.inputs == [0.1]
    pushed.reset()
    assert pushed.external == {}


def test_a_plant_whose_first_step_fails_is_there_and_says_so_when_it_steps():
    dsys, start = midpoint(pendulum().with_parameters(m=1e-6), 0.01), np.array([0.2, 1e308])
    mine = SimulatedPlant(dsys, start)
    with pytest.raises(StepFailed, match="not finite"):
        mine.advance([1e308])
    assert mine.step == 0 and mine.state.tolist() == [0.2, 1e308]
    with pytest.raises(ValueError, match="initial state must be finite"):
        SimulatedPlant(dsys, np.array([np.nan, 0.0]))


# In a file ---------------------------------------------------------------------------------------


MORE = dict.fromkeys(("psi", "phi", "theta", "x", "y", "z"), 0.0)
"""A configuration of the snakeboard, and what it does not have."""


@pytest.fixture(scope="module")
def board():
    return scenarios.get("snakeboard").model()


@pytest.fixture
def saved(board, tmp_path):
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


OTHER = (
    {"state": [0.0, 1.0]},
    {"state": [float("nan")] * 8},
    {"state": "here"},
    {"step": -1},
    {"reference_start": 1.5},
    {"state": None, "configuration": {"x": 1.0}},
    {"state": None, "configuration": MORE},
    {"state": None, "velocity": None},
)


def test_other_content_is_refused_by_name_of_the_file(board, saved, snapshot):
    _, file = saved
    right, told = file.read_text(), []
    for content in ("", "[]", *OTHER):
        file.write_text(content if isinstance(content, str) else right)
        if content and content != "[]":
            changed(file, **content)
        told.append(refusal(lambda: SavedState.read(file, board)).replace(str(file), "FILE"))
    assert told == snapshot


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


# With a tracker of its own -----------------------------------------------------------------------


PAYLOAD = scenarios.get("quadrotor_payload")
LOST, LAST_STEP = 100, 300
"""The step after which nothing answers, and the last one (3 s)."""


@pytest.fixture(scope="module")
def model():
    return PAYLOAD.model()


@pytest.fixture(scope="module")
def line(model):
    return PAYLOAD.reference(model, "line")


@pytest.fixture(scope="module")
def backup(model, line):
    return BackupTracker(PAYLOAD, model, line)


def flown(model, backup, fallback, faults=()):
    """The payload's largest distance from its reference after the tracker was lost, in m."""
    tracker = backup.prepare()
    options = PlantOptions(parameters={"payload_mass": 0.5})
    start = tracker.reference.states[0]
    start = PAYLOAD.perturb(model, start, PayloadPerturbation(position=0.1))
    dsys, far = PAYLOAD.plant(model, options), 0.0
    plant = SimulatedPlant(dsys, start, faults=PlantFaults(model, tuple(map(fault.parse, faults))))
    for k in range(LAST_STEP):
        if k < LOST:
            u = tracker.command(k, plant.state).u
        elif fallback == "tracker":
            u = backup.command(plant)
        plant.advance(u)
        if k > LOST:
            target = model.configuration(tracker.target(k + 1))[:3]
            far = max(far, np.linalg.norm(plant.configuration[:3] - target))
    return far


def test_it_keeps_a_payload_in_the_air_which_falls_under_the_last_command(model, backup):
    """Noise of the sensors reaches it, and measurements that are lost are answered by the last."""
    clean = flown(model, backup, "tracker")
    assert clean < 0.1 and flown(model, backup, "hold") > 1.0
    noisy = flown(model, backup, "tracker", ("noise=0.002,seed=1", "dropout=0.2"))
    assert noisy < 0.2 and noisy != clean


def test_it_follows_another_reference_from_the_next_start_on(model, line):
    hover = PAYLOAD.reference(model, "hover")
    backup = BackupTracker(PAYLOAD, model, hover)
    first = backup.prepare()
    assert first is backup.prepare() and first.reference is hover
    backup.plan(line)
    assert backup.prepare() is first
    backup.place(19, 20)
    assert backup.prepare() is first
    backup.place(20, 20)
    assert backup.prepare().reference is line
    plant = SimulatedPlant(model, line.states[30])
    plant.place(line.states[30], 50)
    np.testing.assert_allclose(backup.command(plant), line.inputs[30], atol=1e-6)
