"""Many runs in one call: those of single runs to the bit, whatever their number and that of the
threads; runs that fail; what is refused.
"""

import _thread
import threading as python_threads
from dataclasses import dataclass

import numpy as np
import pytest
import threads
from refusals import said

import nh_control as nh
from nh_control import multibody as mb
from nh_control.control import ControllerTracker, parallel_steps
from nh_control.control import closed_loop as loops
from nh_control.control.parallel_steps import step_all
from nh_control.control.rollout import Rollouts
from nh_control.control.run_data import RunSystems
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.runs.simulation import closed_loop
from nh_control.systems.cart_pole import cart_pole

RUNS, STEPS = 6, 60
MASSES = {"m_cart": np.linspace(0.8, 1.2, RUNS), "m_pole": np.linspace(0.05, 0.2, RUNS)}


@pytest.fixture(scope="module")
def cart():
    return nh.midpoint(cart_pole(), 0.02)


@pytest.fixture(scope="module")
def tracker(cart):
    """Holds the pole upright, with integral action, past a reference shorter than the runs."""
    upright = cart.state([0.0, np.pi], np.zeros(2))
    reference = cart.simulate(upright, np.zeros((STEPS // 2, 1)))
    Q, R, limits = np.eye(4), [[0.1]], [[-8.0, 8.0]]
    return nh.LqrTracker(cart, reference, Q, R, None, limits, disturbance_gain=0.3, hold=True)


@pytest.fixture(scope="module")
def plant(cart):
    """The cart with forces from outside, at half the step."""
    targets = on_coordinates(cart.system.space)
    return nh.midpoint(with_external_forces(cart.system, targets), 0.01)


@pytest.fixture(scope="module")
def starts(cart, tracker):
    rng = np.random.default_rng(0)
    return tracker.reference.states[0] + 0.2 * rng.normal(size=(RUNS, cart.nx))


@pytest.fixture(scope="module")
def forces():
    return 0.5 * np.random.default_rng(1).normal(size=(RUNS, STEPS, 2))


def limited():
    """A mass that is pushed, and must stay below x = 1."""
    system = nh.System(
        name="limited",
        space=nh.Rn("x"),
        inputs=("push",),
        lagrangian=lambda q, v: v[0] ** 2 / 2,
        force=lambda q, v, u: u,
        domain=lambda q: 1 - q[0],
    )
    return nh.midpoint(system, 0.1)


def assert_equal(one: Rollouts, other: Rollouts):
    for name in ("states", "inputs", "errors", "saturated", "steps"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert {i: str(e) for i, e in one.failures.items()} == {
        i: str(e) for i, e in other.failures.items()
    }


@pytest.mark.parametrize("native", [True, False])
def test_runs_give_the_same_bits_as_single_closed_loops(
    plant, tracker, starts, forces, native, monkeypatch
):
    if not native:
        monkeypatch.setattr(loops.ClosedLoopRunner, "_natively", lambda self: None)
    given = dict(parameters=MASSES, disturbances=forces, substeps=2)
    runs = nh.rollout(plant, starts, tracker, steps=STEPS, **given, threads=1)
    assert len(runs) == RUNS and runs.succeeded.all() and runs.saturated.any()
    for i in range(RUNS):
        own = plant.with_parameters(**{name: values[i] for name, values in MASSES.items()})
        single = closed_loop(own, tracker, starts[i], STEPS, 2, disturbance=forces[i])
        np.testing.assert_array_equal(runs.states[i], single.trajectory.states)
        np.testing.assert_array_equal(runs.inputs[i], single.trajectory.inputs)
        np.testing.assert_array_equal(runs.errors[i], single.errors)
        np.testing.assert_array_equal(runs.saturated[i], single.saturated)
        np.testing.assert_array_equal(runs.trajectory(i).states, single.trajectory.states)
    assert_equal(runs, nh.rollout(plant, starts, tracker, steps=STEPS, **given, threads=4))


def test_trees_of_bodies_run_natively_too(monkeypatch):
    crane = mb.Multibody(
        "crane",
        [mb.prismatic("cart", axis="x"), mb.revolute("pole", "cart", axis="y")],
        [mb.Body("cart", 2.0), mb.Body("pole", 1.0, (0, 0, -0.4), (0.05, 0.05, 0.001))],
        inputs=[mb.JointInput("cart", limit=20.0)],
    )
    dsys = nh.midpoint(crane.system, 0.01)
    rest = dsys.state(crane.configuration(), crane.velocity())
    reference = dsys.simulate(rest, np.zeros((20, 1)))
    tracker = nh.LqrTracker(dsys, reference, np.eye(4), [[0.1]], disturbance_gain=0.3, hold=True)
    starts = rest + 0.2 * np.random.default_rng(0).normal(size=(RUNS, 4))
    with monkeypatch.context() as patched:
        patched.setattr(loops.ClosedLoopRunner, "_step", None)
        native = nh.rollout(dsys, starts, tracker, steps=STEPS)
    monkeypatch.setattr(loops.ClosedLoopRunner, "_natively", lambda self: None)
    assert_equal(native, nh.rollout(dsys, starts, tracker, steps=STEPS))


@dataclass(frozen=True)
class Lengths(nh.Parameters):
    J: float = nh.parameter(1.0, "", "one")
    J_r: float = nh.parameter(2.0, "", "another, whose name begins alike")
    l: tuple[float, ...] = nh.parameter((3.0, 4.0), "", "two")
    length: float = nh.parameter(5.0, "", "and one more")


def test_a_name_is_one_parameter_though_others_begin_with_it():
    plant = nh.midpoint(
        nh.System("rods", nh.Rn("x"), lambda q, v, p: p.J * v[0] ** 2 / 2, parameters=Lengths()),
        0.1,
    )
    for given, wanted in (
        ({"J": [7.0, 8.0], "l": [[30.0, 40.0], [31.0, 41.0]]}, [[7, 2, 30, 40], [8, 2, 31, 41]]),
        ({"l[1]": [9.0]}, [[1, 2, 3, 9]]),
        ({"J": [[6.0], [7.0]]}, [[6, 2, 3, 4], [7, 2, 3, 4]]),
    ):
        values = RunSystems.of(plant, given).values
        np.testing.assert_array_equal(values, [[*row, 5] for row in wanted])
    for wrong in ({"l": np.ones(6)}, {"l": np.ones((6, 3))}, {"J": 1.0}, {"J": np.ones((6, 2))}):
        with pytest.raises(ValueError, match=r"must have shape \(runs"):
            RunSystems.of(plant, wrong)


@pytest.mark.parametrize("native", [True, False])
def test_every_nth_node_is_recorded(cart, tracker, starts, native, monkeypatch):
    """With what was saturated in any step since."""
    if not native:
        monkeypatch.setattr(loops.ClosedLoopRunner, "_natively", lambda self: None)
    whole = nh.rollout(cart, starts, tracker, steps=STEPS)
    some = nh.rollout(cart, starts, tracker, steps=STEPS, every=15)
    np.testing.assert_array_equal(some.states, whole.states[:, ::15])
    np.testing.assert_array_equal(some.errors, whole.errors[:, ::15])
    np.testing.assert_array_equal(some.inputs, whole.inputs[:, ::15])
    together = whole.saturated.reshape(RUNS, 4, 15, 1).any(axis=2)
    np.testing.assert_array_equal(some.saturated, together)
    np.testing.assert_allclose(some.times, whole.times[::15], rtol=1e-15)


def test_open_loops_give_the_same_bits_as_simulate(cart, starts):
    inputs = np.random.default_rng(2).normal(size=(RUNS, 12, 1))
    runs = nh.rollout(cart, starts, inputs, parameters=MASSES, every=5)
    shared = nh.rollout(cart, starts, inputs[0], every=5)
    held = nh.rollout(cart, starts, [0.3], steps=60)
    for i in range(RUNS):
        own = cart.with_parameters(**{name: values[i] for name, values in MASSES.items()})
        expected = own.simulate(starts[i], inputs[i], every=5)
        np.testing.assert_array_equal(runs.states[i], expected.states)
        np.testing.assert_array_equal(runs.trajectory(i).inputs, expected.inputs)
        expected = cart.simulate(starts[i], inputs[0], every=5)
        np.testing.assert_array_equal(shared.states[i], expected.states)
        np.testing.assert_array_equal(
            held.states[i], cart.simulate(starts[i], [0.3], steps=60).states
        )
    assert (runs.steps == 60).all() and runs.errors.shape == (RUNS, 13, 0)


@pytest.mark.parametrize("controlled", (True, False))
def test_no_runs_give_empty_results(cart, tracker, controlled):
    inputs = tracker if controlled else np.zeros((STEPS, 1))
    runs = nh.rollout(cart, np.empty((0, cart.nx)), inputs, steps=STEPS if controlled else None)
    assert len(runs) == 0 and runs.inputs.shape[0] == 0 and not runs.failures
    assert runs.states.shape[0] == runs.steps.size == runs.succeeded.size == 0


@pytest.mark.parametrize("controlled", (True, False))
def test_a_run_that_fails_ends_and_the_others_go_on(controlled, monkeypatch):
    monkeypatch.setattr(loops, "CHUNK", 4)
    dsys = limited()
    starts = [dsys.state([x], [v]) for x, v in ((0.0, 0.01), (0.5, 0.55), (0.0, -1.0))]
    if controlled:
        reference = dsys.simulate(dsys.state([0.0], [0.0]), np.zeros((20, 1)))
        inputs = nh.LqrTracker(dsys, reference, 1e-6 * np.eye(2), [[1e6]])
    else:
        inputs = np.zeros((20, 1))
    runs = nh.rollout(dsys, starts, inputs)
    assert list(runs.failures) == [1] and runs.succeeded.tolist() == [True, False, True]
    assert isinstance(runs.failures[1], nh.StepFailed) and "domain" in str(runs.failures[1])
    assert runs.failures[1].step == runs.steps[1] == 9 and (runs.steps[[0, 2]] == 20).all()
    assert np.isfinite(runs.states[1, :10]).all() and np.isnan(runs.states[1, 10:]).all()
    assert np.isfinite(runs.inputs[1, :9]).all() and np.isnan(runs.inputs[1, 9:]).all()
    assert len(runs.trajectory(1)) == 9 and runs.trajectory(1).name == "run 1"
    assert repr(runs) == "Rollouts(limited by midpoint, h = 0.1 s, 3 runs of 20 steps, 1 failed)"
    some = nh.rollout(dsys, starts, inputs, every=1 if not controlled else 4)
    rows = 9 // some.every
    assert np.isnan(some.states[1, rows + 1 :]).all() and np.isfinite(some.states[1, rows]).all()
    assert some.steps[1] == 9 and some.trajectory(1).h == pytest.approx(0.1 * some.every)
    assert some.trajectory(0).input_names == ("push",)
    if not controlled:
        held = nh.rollout(dsys, starts, np.zeros((5, 1)), every=4)
        assert held.steps[1] == held.failures[1].step == 9 and (held.steps[[0, 2]] == 20).all()
        np.testing.assert_array_equal(held.states[1, :3], runs.states[1, :12:4])
        assert np.isnan(held.states[1, 3:]).all() and np.isnan(held.inputs[1, 2:]).all()


def test_parameters_that_a_system_refuses_fail_their_run(cart, tracker, starts):
    masses = np.ones(RUNS)
    masses[2] = -1.0
    for inputs in (tracker, np.zeros((5, 1))):
        runs = nh.rollout(cart, starts, inputs, parameters={"m_cart": masses})
        assert list(runs.failures) == [2] and "> 0" in str(runs.failures[2])
        assert runs.steps[2] == 0 and np.isnan(runs.errors[2]).all()


def test_noise_is_a_runs_own_beside_the_forces_and_does_not_depend_on_the_others(
    plant, tracker, starts, forces
):
    def runs(n, seed=3, **more):
        given = dict(noise=[0.4, 0.1], seed=seed, substeps=2, disturbances=forces[0], **more)
        return nh.rollout(plant, starts[:n], tracker, steps=STEPS, **given)

    few, more = runs(2, threads=1), runs(4, threads=3)
    np.testing.assert_array_equal(few.states, more.states[:2])
    assert not np.array_equal(runs(2, seed=4).states, few.states)
    for run in range(2):
        draws = np.random.default_rng(np.random.SeedSequence(3).spawn(2)[run])
        pushed = forces[0] + draws.standard_normal((STEPS, 2)) * [0.4, 0.1]
        single = closed_loop(plant, tracker, starts[run], STEPS, 2, disturbance=pushed)
        np.testing.assert_allclose(few.states[run], single.trajectory.states, atol=1e-12)


class Proportional:
    """A controller of a user's own."""

    def __init__(self, tracker):
        self.targets, self._tracker = tracker.reference.states, tracker
        self.seen, self.begun = set(), 0

    def reset(self):
        self.begun, self._memory = self.begun + 1, None

    def command(self, k, x):
        self.seen.add(python_threads.get_ident())
        command = self._tracker.command(k, x, self._memory)
        self._memory = command.memory
        return command.u


def test_controllers_of_a_user_run_from_python_in_one_thread_and_begin_with_every_run(
    cart, tracker, starts
):
    other = Proportional(tracker)
    within = ControllerTracker(cart, other, limits=tracker.limits)
    runs = nh.rollout(cart, starts[:3], within, steps=20, threads=4)
    assert_equal(runs, nh.rollout(cart, starts[:3], tracker, steps=20))
    assert len(other.seen) == 1 and other.begun == 3


def test_ctrl_c_ends_all_runs(cart, tracker, starts):
    """As if it came when the first run has ended, of runs that would take hours."""
    before, ended = python_threads.active_count(), []

    def interrupt(n):
        ended.append(n)
        _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        nh.rollout(cart, np.tile(starts[0], (1000, 1)), tracker, steps=STEPS, progress=interrupt)
    assert len(ended) < 1000 and python_threads.active_count() == before


def test_a_run_that_is_interrupted_ends_within_its_next_steps(cart, tracker, starts):
    steps, asked = 10**5, []

    def watch(k):
        asked.append(k)
        return len(asked) == 4

    room = loops.LoopRecord.empty(cart, cart, steps)
    loop = loops.ClosedLoopRunner(cart, tracker, starts[0], room, np.zeros((steps, 0)))
    loop.run(watch)
    assert loop.k == asked[-1] <= 3 * loops.CHUNK


def test_native_loops_let_other_threads_run(cart, tracker, starts, monkeypatch):
    closed_loop(cart, tracker, starts[0], 10)
    monkeypatch.setattr(loops, "CHUNK", 50_000)
    assert threads.gives_way(lambda: closed_loop(cart, tracker, starts[0], 50_000))


WRONG = [
    dict(x0s=np.zeros((3, 5))),
    dict(x0s=np.full(4, np.nan)),
    dict(parameters={"m_cart": np.ones(2)}),
    dict(parameters={"m_cart": np.ones(1)}),
    dict(parameters={"m_cart": np.ones(6), "m_pole": np.ones(2)}),
    dict(parameters={"mass": np.ones(6)}),
    dict(parameters={"m_cart": np.ones((6, 2))}),
    dict(parameters=np.ones((6, 2))),
    dict(parameters=np.ones((1, 6, 4))),
    *(
        dict(disturbances=np.zeros(shape))
        for shape in ((6, STEPS, 3), (6, STEPS - 1, 2), (STEPS, 3), (2,), (1, 6, STEPS, 2))
    ),
    *(dict(noise=noise) for noise in ([0.1], [0.1, -1e-9], [0.1, np.nan], 0.1, [[0.1, 0.1]])),
    dict(substeps=1),
    dict(every=7),
    dict(threads=0),
    *(
        dict(inputs=np.zeros((5, 3)), steps=None, substeps=1) | more
        for more in (dict(substeps=2), dict(noise=[0.1, 0.1]), dict(disturbances=np.zeros((5, 2))))
    ),
    *(dict(inputs=np.zeros(shape), substeps=1, steps=None) for shape in ((6, 5, 2), (1, 6, 5, 3))),
    dict(inputs=np.zeros((6, 5, 3)), substeps=1, steps=5),
    dict(inputs=max),
    dict(inputs=np.full((5, 3), np.inf), substeps=1, steps=None),
    dict(inputs=np.full((6, 5, 3), np.inf), substeps=1, steps=None),
]


def test_what_does_not_fit_is_named(plant, tracker, starts, snapshot):
    def run(changes):
        nh.rollout(plant, **(dict(x0s=starts, inputs=tracker, steps=STEPS, substeps=2) | changes))

    assert said(WRONG, run) == snapshot


def test_a_plant_needs_the_inputs_of_the_model(cart, tracker):
    system = nh.System(name="free", space=cart.system.space, lagrangian=lambda q, v: v.T @ v / 2)
    with pytest.raises(ValueError, match="fewer inputs"):
        nh.rollout(nh.midpoint(system, 0.02), np.zeros(4), tracker)


def test_no_run_leaves_a_reference_in_motion(cart):
    """Behind its end nothing would control the motion; `hold` or an end at rest allow it."""
    moving = cart.simulate([0.0, np.pi, 1.1, 0.0], np.zeros((5, 1)))
    tracker = nh.LqrTracker(cart, moving, np.eye(4), [[0.1]])
    assert nh.rollout(cart, moving.states[0], tracker).steps.tolist() == [5]
    with pytest.raises(ValueError, match="ends in motion after 0.1 s.*not 0.12 s"):
        nh.rollout(cart, moving.states[0], tracker, steps=6)
    other = Proportional(tracker)  # a user's own may control more than its targets
    assert nh.rollout(cart, moving.states[0], other, steps=6).steps.tolist() == [6]


# --- Steps from many states at once are those of single steps to the bit, whatever th ---


@pytest.fixture
def model():
    return nh.midpoint(cart_pole(), 0.02)


def rows(model, count):
    rng = np.random.default_rng(1)
    return rng.normal(size=(count, model.nx)), rng.normal(size=(count, model.nu))


@pytest.mark.parametrize(("count", "block"), [(5, 256), (9, 2)], ids=["one thread", "threads"])
def test_they_are_single_steps(model, count, block, monkeypatch):
    monkeypatch.setattr(parallel_steps, "BLOCK", block)
    monkeypatch.setattr(parallel_steps, "processors", lambda: 3)
    x, u = rows(model, count)
    after, failures = step_all(model, x, u)
    np.testing.assert_array_equal(after, [model.step(*row) for row in zip(x, u)])
    assert not failures


def test_one_that_fails_leaves_the_others(model):
    x, u = rows(model, 4)
    x[2, 2:] = 1e160
    after, failures = step_all(model, x, u)
    assert list(failures) == [2] and np.isnan(after[2]).all()
    np.testing.assert_array_equal(after[3], model.step(x[3], u[3]))


def test_other_shapes_are_refused(model):
    x, u = rows(model, 3)
    with pytest.raises(ValueError, match=r"inputs \(N, 1\), got shapes \(3, 4\) and \(2, 1\)"):
        step_all(model, x, u[:2])
