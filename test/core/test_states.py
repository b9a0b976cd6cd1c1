"""States to and from configuration and velocity, physical quantities against hand-written ones,
simulate, bad arguments.
"""

import continuous
import numpy as np
import pytest
from cases import discrete, random_phase, random_point
from refusals import refusal

from nh_control.discrete.trajectory import Trajectory

H = 0.1
MOTIONS = {
    "pendulum": continuous.pendulum(),
    "sleigh": continuous.sleigh(),
    "snakeboard": continuous.snakeboard(),
}
MIDPOINTS = [("pendulum", "midpoint"), ("sleigh", "dla"), ("snakeboard", "dla")]
BOTH = [*MIDPOINTS, ("snakeboard", "rdp-cay-exact-0.5")]
SEEDS = range(2)


def slips(system, q, v):
    """Lateral velocities of the wheels or the skate, from the velocity of the contact points."""
    if system == "sleigh":
        omega, _, side = v
        return np.array([side - omega * 1.0])
    _, _, omega, forward, side = v
    out = []
    for position, steer in ((-2.0, q[1]), (2.0, -q[1])):
        contact = np.array([forward, side + omega * position])
        out.append(contact @ [-np.sin(steer), np.cos(steer)])
    return np.array(out)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("system, method", BOTH)
def test_momentum_and_energy_are_the_physical_ones(system, method, seed):
    dsys, motion = discrete(system, method, H), MOTIONS[system]
    q, v = random_phase(dsys, np.random.default_rng(seed))
    x, qd = dsys.state(q, v), motion.rates(q, v)
    assert np.allclose(x[motion.n :], motion.momenta(q, qd), rtol=0, atol=1e-13)
    assert abs(dsys.energy(x) - motion.energy(q, qd)) <= 1e-13 * (1 + abs(dsys.energy(x)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("system", ["sleigh", "snakeboard"])
def test_an_inadmissible_velocity_is_projected_in_the_mass_metric(system, seed):
    """The part that is dropped is orthogonal, in the kinetic energy, to every admissible velocity,
    and what stays is admissible.
    """
    dsys, motion, rng = discrete(system, "dla", H), MOTIONS[system], np.random.default_rng(seed)
    q, v = rng.uniform(-1, 1, motion.n), rng.normal(size=motion.n)
    kept = dsys.velocity(dsys.state(q, v))
    assert (
        np.abs(slips(system, q, v)).max() > 1e-2 and np.abs(slips(system, q, kept)).max() <= 1e-13
    )
    kinetic = lambda w: motion.energy(q, motion.rates(q, w))
    for _ in range(5):
        _, admissible = random_phase(dsys, rng)
        admissible = dsys.velocity(dsys.state(q, admissible))
        assert abs(
            kinetic(v - kept + admissible) - kinetic(v - kept) - kinetic(admissible)
        ) <= 1e-12 * (1 + kinetic(v) + kinetic(admissible))


@pytest.mark.parametrize(
    "system, method",
    [
        *BOTH,
        ("pendulum", "midpoint-left"),
        ("sleigh", "dla-left"),
        ("snakeboard", "rdp-exp-exact-0.3"),
    ],
)
def test_two_configurations_tell_the_momentum(system, method):
    """The configurations before and after a step under a known input give back the state after it:
    a tracker without velocities.
    """
    dsys = discrete(system, method, H)
    x, u = random_point(dsys, np.random.default_rng(0))
    x1 = dsys.step(x, u)
    found = dsys.state_from_configurations(dsys.configuration(x), dsys.configuration(x1), u)
    assert np.allclose(found, x1, rtol=0, atol=1e-11 * (1 + np.abs(x1).max()))


def test_trajectories_are_read_only_and_own_their_data():
    states, inputs = np.zeros((3, 2)), np.ones((2, 1))
    run = Trajectory(0.1, states, inputs)
    states[0, 0] = inputs[0, 0] = 7
    assert run.states[0, 0] == 0 and run.inputs[0, 0] == 1
    for array in (run.states, run.inputs):
        with pytest.raises(ValueError):
            array[0, 0] = 1
    with pytest.raises(AttributeError):
        run.h = 0.2


def test_bad_trajectories(snapshot):
    wrong = (
        (0.0, np.zeros((2, 1)), np.zeros((1, 1))),
        (np.nan, np.zeros((2, 1)), np.zeros((1, 1))),
        (0.1, np.zeros((2, 1)), np.zeros((2, 1))),
        (0.1, np.zeros(2), np.zeros((1, 1))),
        (0.1, np.zeros((2, 1)), np.array([[np.inf]])),
    )
    assert [refusal(lambda: Trajectory(*one)) for one in wrong] == snapshot


def test_energies_and_residuals_of_many_are_those_of_each_in_any_order_of_memory():
    dsys, rng = discrete("snakeboard", "dla", H), np.random.default_rng(5)
    before, after = (np.array([random_point(dsys, rng)[0] for _ in range(3)]) for _ in range(2))
    energies = [dsys.energy(x) for x in before]
    slips = [dsys.constraint_residual(*pair) for pair in zip(before, after)]
    assert len(set(energies)) == 3 and np.abs(slips).min() > 0
    for order in (np.ascontiguousarray, np.asfortranarray):
        np.testing.assert_array_equal(dsys.energies(order(before)), energies)
        found = dsys.constraint_residuals(order(before), order(after))
        np.testing.assert_array_equal(found, slips)
    np.testing.assert_array_equal(dsys.energy(before), energies)
    assert dsys.energies(before[0]).tolist() == energies[:1]
    assert dsys.energies(before[:0]).shape == (0,)
    assert dsys.constraint_residuals(before[:0], after[:0]).shape == (0, 2)
    run = Trajectory(H, np.asfortranarray(before), np.asfortranarray(np.ones((2, 2))))
    assert run.states.flags.c_contiguous and run.inputs.flags.c_contiguous
    swing = discrete("pendulum", "midpoint", H)
    for one in (swing, swing.composed((0.5, 0.5), "halves")):
        assert one.constraint_residuals(np.zeros((3, 2)), np.zeros((3, 2))).shape == (3, 0)


def test_an_energy_that_no_number_is_large_enough_for_is_no_error():
    dsys = discrete("pendulum", "midpoint", H).with_step(H / 2)
    assert not np.isfinite(dsys.energy([0.3, 1e200]))
    some, none = dsys.energies([[0.3, 0.2], [0.3, 1e200]])
    assert some == dsys.energy([0.3, 0.2]) and not np.isfinite(none)


@pytest.mark.parametrize(
    "name", ["configuration", "velocity", "idle", "rotation_angles", "energies", "energy"]
)
@pytest.mark.parametrize("shape", [(7,), (2, 7), (16,), (1, 1, 8), ()])
def test_another_shape_is_neither_a_state_nor_a_table(name, shape):
    dsys = discrete("snakeboard", "dla", H)
    with pytest.raises(ValueError, match=r"shape \(8,\) or a table of states of shape \(N, 8\)"):
        getattr(dsys, name)(np.zeros(shape))


BAD = {
    "no input": lambda d, x, u: d.step(x),
    "a column": lambda d, x, u: d.step(x[:, None], u),
    "short": lambda d, x, u: d.step(x[:-1], u),
    "NaN twice": lambda d, x, u: d.hessian(x, u * np.nan, np.zeros(d.ndx)),
    "short adjoint": lambda d, x, u: d.hessian(x, u, np.zeros(d.ndx - 1)),
    "short velocity": lambda d, x, u: d.state(x[:5], x[:4]),
    "short tangent": lambda d, x, u: d.retract(x, x[:4]),
    "a number as start": lambda d, x, u: d.simulate(x[:1], np.zeros((3, 2))),
    "infinite energy": lambda d, x, u: d.energies([x, x * np.inf]),
}


def test_bad_arguments_are_refused_and_leave_no_trace(snapshot):
    dsys = discrete("snakeboard", "dla", H)
    x, u = random_point(dsys, np.random.default_rng(1))
    told = {case: refusal(lambda: call(dsys, x, u)) for case, call in BAD.items()}
    assert told == snapshot and np.isfinite(dsys.step(x, u)).all()
