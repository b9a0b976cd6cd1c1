"""Order of convergence, per component of configuration, momentum and velocity, against
hand-written equations solved to 1e-13.

An error is the largest over common nodes of [0, T]; a slope is fitted to four step sizes whose
errors stand far above the reference's accuracy. The input is smooth and sampled at the steps'
midpoints. What an integrator gets right to round-off has no slope and is listed as such.
"""

from functools import cache

import continuous
import numpy as np
import pytest
from cases import COMPOSED, ELSEWHERE, discrete, random_phase, registered
from numpy import cos, sin
from scipy.integrate import solve_ivp

from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.continuous import ContinuousSystem

T, NODES = 1.0, 10
STEPS = (20, 40, 80, 160)
PLATEAU = 1e-10
ROUND_OFF = 1e-12

MOTIONS = {
    "pendulum": continuous.pendulum(),
    "sleigh": continuous.sleigh(),
    "snakeboard": continuous.snakeboard(),
}
STARTS = {
    "pendulum": ([0.7], [1.3]),
    "sleigh": ([0.4, 0.3, -0.2], [0.9, 0.7, 0.9]),
    "snakeboard": ([0.2, 0.6, 0.3, 0.1, -0.4], [1.7, -0.5, -0.8 * sin(0.6), 1.6 * cos(0.6), 0.0]),
}
INPUTS = {
    "pendulum": lambda t: np.array([sin(2 * t) + 0.3]),
    "sleigh": lambda t: np.array([sin(3 * t) + 0.2, cos(2 * t)]),
    "snakeboard": lambda t: np.array([2 * sin(3 * t) + 0.4, 1.5 * cos(2 * t)]),
}
EXACT = {
    ("snakeboard", "free"): {"phi", "rho_1", "rho_2", "phi_dot", "v_side"},
    ("snakeboard", "forced"): {"v_side"},
}
SECOND_ORDER = [("pendulum", "midpoint")]
SECOND_ORDER += [
    (system, method)
    for system in ("sleigh", "snakeboard")
    for method in (
        "dla",
        *(
            f"rdp-{tau}-{tangent}-0.5"
            for tau in ("exp", "cay", "sccsk")
            for tangent in ("exact", "truncated")
        ),
    )
]


def input_of(system, forcing):
    return INPUTS[system] if forcing == "forced" else lambda t: 0 * INPUTS[system](t)


@cache
def reference(system, forcing):
    """Configuration, momenta and velocity at the common nodes, (NODES + 1, nq + nrho + nv)."""
    motion, (q, v) = MOTIONS[system], map(np.array, STARTS[system])
    phases = motion.solve(
        motion.phase(q, v), np.linspace(0, T, NODES + 1), input_of(system, forcing)
    )
    q, qd = phases[:, : motion.n], phases[:, motion.n :]
    return np.hstack([q, motion.momenta(q, qd), motion.velocity(q, qd)])


@cache
def errors(system, method, forcing, steps=STEPS) -> dict[str, np.ndarray]:
    """Largest errors over the nodes by component name, one for each number of steps."""
    table = []
    for n in steps:
        dsys = discrete(system, method, T / n)
        times = (np.arange(n) + 0.5) * T / n
        run = dsys.simulate(
            dsys.state(*map(np.array, STARTS[system])),
            np.array([input_of(system, forcing)(t) for t in times]),
        )
        nodes = run.states[:: n // NODES]
        found = np.hstack([nodes, [dsys.velocity(x) for x in nodes]])
        table.append(np.abs(found - reference(system, forcing)).max(axis=0))
    names = (*dsys.state_names, *dsys.system.space.velocity_names)
    return dict(zip(names, np.array(table).T))


def slope(error, steps=STEPS) -> float:
    assert error[-1] >= PLATEAU, "errors must stand above the accuracy of the reference"
    return -np.polyfit(np.log(steps), np.log(error), 1)[0]


def norm(by_name, names):
    return np.linalg.norm([by_name[n] for n in names], axis=0)


def both_forcings(cases, often) -> list:
    """Cases, free and forced; slow where not `often(forcing, *case)`."""
    return [
        pytest.param(*case, forcing, marks=() if often(forcing, *case) else pytest.mark.slow)
        for forcing in ("free", "forced")
        for case in cases
    ]


def often(forcing, system, method):
    """On the sleigh two methods, free snakeboards by three."""
    if system == "sleigh":
        return method in ("dla", "rdp-sccsk-exact-0.5")
    some = ("midpoint", "dla", "rdp-cay-exact-0.5", "rdp-exp-truncated-0.5")
    return forcing == "forced" or method in some


def forced_snakeboard(forcing, system, method="", *_):
    return (forcing, system) == ("forced", "snakeboard") and method != "rdp-exp-exact-0.3"


@pytest.mark.parametrize("system, method, forcing", both_forcings(SECOND_ORDER, often))
def test_second_order_in_every_component(system, method, forcing):
    found = errors(system, method, forcing)
    exact = EXACT.get((system, forcing), set())
    for name in exact:
        assert found[name].max() <= ROUND_OFF, name
    slopes = {name: slope(error) for name, error in found.items() if name not in exact}
    assert all(1.9 <= s <= 2.1 for s in slopes.values()), slopes


FIRST_ORDER = [
    ("sleigh", "rdp-ccsk-exact-0.5", ("theta", "x", "y"), ("rho_1", "rho_2")),
    ("snakeboard", "rdp-ccsk-exact-0.5", ("psi", "theta", "x", "y"), ("rho_3",)),
    ("snakeboard", "rdp-exp-exact-0.3", ("psi", "theta", "x", "y"), ("rho_3",)),
    ("snakeboard", "rdp-exp-truncated-0.3", ("psi", "theta", "x", "y"), ("rho_3",)),
    ("snakeboard", "rdp-cay-exact-0.3", ("psi", "theta", "x", "y"), ("rho_3",)),
]
FINER = (80, 160, 320, 640)


@pytest.mark.parametrize(
    "system, method, configuration, momentum, forcing",
    both_forcings(FIRST_ORDER, forced_snakeboard),
)
def test_first_order_where_the_step_is_not_symmetric(
    system, method, configuration, momentum, forcing, monkeypatch
):
    """ccsk(-v) is not ccsk(v)^{-1}, and alpha = 0.3 is off the middle: the theory gives first
    order in configuration and in momentum.
    """
    found = errors(system, method, forcing, FINER)
    for names in (configuration, momentum):
        assert 0.9 <= slope(norm(found, names), FINER) <= 1.1, names


@pytest.mark.parametrize(
    "system, forcing", both_forcings([("sleigh",), ("snakeboard",)], forced_snakeboard)
)
def test_truncated_tangents_leave_only_the_position_of_ccsk_at_first_order(system, forcing):
    """With `I - ad/2` the momentum balance does not know tau, so ccsk loses its order in the
    reconstructed translation alone.
    """
    found = errors(system, "rdp-ccsk-truncated-0.5", forcing, FINER)
    exact = EXACT.get((system, forcing), set())
    slopes = {
        name: slope(error, FINER)
        for name, error in found.items()
        if name not in exact | {"x", "y"}
    }
    assert all(1.9 <= s <= 2.1 for s in slopes.values()), slopes
    assert 0.9 <= slope(norm(found, ("x", "y")), FINER) <= 1.1


@pytest.mark.parametrize(
    "system, method",
    [("pendulum", "midpoint-left"), ("sleigh", "dla-left"), ("snakeboard", "dla-left")],
)
def test_one_sided_forcing_is_of_first_order(system, method):
    """The "left" split puts a whole step's impulse at its start."""
    found = errors(system, method, "forced", FINER)
    assert 0.9 <= slope(norm(found, list(found)[: MOTIONS[system].n]), FINER) <= 1.1


@pytest.mark.parametrize("system", MOTIONS)
def test_the_reference_is_accurate(system):
    """Loosening the reference's tolerance a hundred times, from 1e-13 to 1e-11, changes it by less
    than any error that is fitted.
    """
    motion, (q, v) = MOTIONS[system], map(np.array, STARTS[system])
    coarse, fine = (
        motion.solve(motion.phase(q, v), [0, T], INPUTS[system], tolerance)
        for tolerance in (1e-11, 1e-13)
    )
    assert np.abs(coarse - fine).max() <= PLATEAU / 10
    if system == "snakeboard":
        a = fine[-1]
        slip = a[8:] @ np.array([-sin(a[2]), cos(a[2])])
        assert abs(slip) <= 1e-12


def test_the_two_hand_written_snakeboards_agree():
    """Newton's equations with multipliers, and the reduced equations in (q, rho) that the
    benchmark integrates.
    """
    motion, reduced = MOTIONS["snakeboard"], continuous.snakeboard_reduced()
    q, v = map(np.array, STARTS["snakeboard"])
    phase, u = motion.phase(q, v), INPUTS["snakeboard"](0.3)
    rates = motion.derivative(0.3, phase, INPUTS["snakeboard"])
    state = np.concatenate([q, motion.momenta(q, phase[5:])])
    moved = phase + 1e-6 * np.array([rates, -rates])
    slope = (
        np.subtract(*(np.concatenate([p[:5], motion.momenta(p[:5], p[5:])]) for p in moved)) / 2e-6
    )
    assert np.allclose(reduced(0.3, state, lambda t: u), slope, rtol=0, atol=1e-9)


LADDERS = {
    1: (80, 160, 320, 640),
    2: (20, 28, 40, 56, 80, 112, 160),
    3: (10, 14, 20, 28, 40, 56, 80, 112),
    4: (6, 8, 12, 16, 22, 32, 44, 60, 88),
    5: (4, 6, 8, 10, 12, 16, 20, 26, 32),
    6: (4, 5, 6, 7, 8, 10, 12, 14, 16, 20),
    8: (3, 4, 5, 6, 7, 8, 9, 10),
}
"""Numbers of steps for integrators of an order."""
GENERAL = ("anything", "turning_body")
SPANS = {"car": 1.0, "roller_racer": 0.5, "rolling_disk": 1.0}
SPANS |= {"rolling_ball": 0.5, "suslov": 1.0}
"""Seconds that runs last, 2 where nothing else stands: these turn fast or bend a lot."""
FLOOR = 5e-12
CONSTANT_STARTS = STARTS | {
    "anything": ([0.4, -0.3, 0.6, 0.5], [0.5, 1.0, -0.8, 0.7]),
    "turning_body": ([0.5, 0.5, -0.5, 0.5, 0.2], [0.7, -1.2, 0.4, 0.3]),
}
CONSTANT = {
    "pendulum": [0.3],
    "sleigh": [0.4, 0.3],
    "snakeboard": [0.6, 0.3],
    "anything": [0.3, -0.2],
    "turning_body": [0.4],
}


def span(system: str) -> float:
    return SPANS.get(system, 2.0)


@cache
def reached(system: str) -> tuple[np.ndarray, ...]:
    """Start (q, v), input and (q, rho) after its span under it: by hand where there are such
    equations, else by `ContinuousSystem`.
    """
    name = "midpoint" if system == "pendulum" else "dla"
    dsys = discrete(system, name, 0.1)
    if system in CONSTANT:
        q, v = map(np.array, CONSTANT_STARTS[system])
        v, u = dsys.velocity(dsys.state(q, v)), np.array(CONSTANT[system])
    else:
        q, v = random_phase(dsys, np.random.default_rng(8))
        u = np.full(dsys.nu, 0.1)
    if system in MOTIONS:
        motion = MOTIONS[system]
        end = motion.solve(motion.phase(q, v), [0.0, span(system)], lambda t: u)[-1]
        q1, qd1 = end[: motion.n], end[motion.n :]
        return q, v, u, np.concatenate([q1, motion.momenta(q1, qd1)])
    space, continuous_system = dsys.system.space, ContinuousSystem(dsys.system)

    def rates(_, phase):
        at, w = phase[: space.nq], phase[space.nq :]
        d = 1e-3 * w
        steps = [(space.retract(at, k * d) - space.retract(at, -k * d)) / 2e-3 for k in (1, 2, 3)]
        moving = 1.5 * steps[0] - 0.3 * steps[1] + steps[2] / 30
        return np.concatenate([moving, continuous_system.acceleration(at, w, u)])

    start = np.concatenate([q, v])
    run = solve_ivp(rates, (0.0, span(system)), start, "DOP853", rtol=1e-13, atol=1e-13)
    end = run.y[:, -1]
    return q, v, u, dsys.state(end[: space.nq], end[space.nq :])


HIGH = [name for name in COMPOSED if INTEGRATORS[name].order > 4]
"""They reach round-off within few steps; test_composition.py measures their order, too."""


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in HIGH if "nonholonomic" in name])
@pytest.mark.parametrize("system", ELSEWHERE)
def test_compositions_of_high_order_have_it_on_all_systems(system, method):
    """By the largest error of all components over their size, but for those that are too smooth
    for the eighth order: round-off from three steps on.
    """
    order, (q, v, u, end) = INTEGRATORS[method].order, reached(system)
    base, table = discrete(system, method, 0.1), []
    size = np.where(np.arange(len(end)) < len(q), *(max(1, abs(end[i]).max()) for i in _parts(q)))
    for n in LADDERS[order]:
        dsys = base.with_step(span(system) / n)
        last = dsys.simulate(dsys.state(q, v), u, steps=n, every=n).states[-1]
        table.append((n, np.abs((last - end) / size).max()))
    above = np.array([row for row in table if row[1] >= FLOOR])[-4:]
    if system in ("car", "rolling_ball") and order == 8:
        assert not len(above)
        return
    assert len(above) >= (3 if system == "rolling_ball" else 4), table
    found = -np.polyfit(np.log(above[:, 0]), np.log(above[:, 1]), 1)[0]
    assert order - 0.5 <= found <= order + 0.5, table


def _parts(q):
    """Places of configuration and momenta in a state."""
    return slice(0, len(q)), slice(len(q), None)


@pytest.mark.parametrize(
    "system, method", [case for case in registered() if case.values[1] not in HIGH]
)
def test_every_registered_integrator_has_its_order(system, method):
    """In configuration and in momenta, over the four finest steps whose errors stand above the
    reference's accuracy, or exact; and no higher one where nothing is special about the system.
    """
    order, (q, v, u, end) = INTEGRATORS[method].order, reached(system)
    base, split, table = discrete(system, method, 0.1), len(q), []
    for n in LADDERS[order]:
        dsys = base.with_step(span(system) / n)
        last = dsys.simulate(dsys.state(q, v, u), np.tile(u, (n, 1))).states[-1]
        error = np.abs(last[: len(end)] - end)
        table.append((n, error[:split].max(), error[split:].max()))
    for column, part in ((1, end[:split]), (2, end[split:])):
        size = max(1.0, np.abs(part).max())
        if max(row[column] for row in table) <= ROUND_OFF * size:
            continue
        kept = [(row[0], row[column]) for row in table if row[column] >= FLOOR * size]
        above = np.array(kept)[-4:]
        assert len(above) == 4, "\n".join(f"{n} {a:.2e} {b:.2e}" for n, a, b in table)
        found = -np.polyfit(np.log(above[:, 0]), np.log(above[:, 1]), 1)[0]
        assert found >= order - 0.05 * (order + 1), "\n".join(
            f"{n} {a:.2e} {b:.2e}" for n, a, b in table
        )
        assert found <= order + 0.05 * (order + 1) or system not in GENERAL, (found, table)
