"""Disturbances are what they are written as, the same in every process, and can be had by every
scenario.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from lifted import LIFTED
from refusals import said

import nh_control as nh
from nh_control import multibody as mb
from nh_control import scenarios
from nh_control.discrete.plant_steps import with_external, without_external
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.scenarios import Constant, Disturbance, Gust, Noise, Sine, on_frames
from nh_control.scenarios.disturbance import DisturbanceForces, parse
from nh_control.scenarios.frames import with_forces
from nh_control.scenarios.scenario_frames import ScenarioFrames
from nh_control.scenarios.urdf import DEFAULT

H = 0.01


def signal(made, n=1, name="theta", h=H):
    """The forces of one disturbance on the pendulum, (n, 1)."""
    scenario = scenarios.get("pendulum_swing_up")
    targets = scenario.targets(scenario.make_system(scenario.parameters))
    forces = DisturbanceForces((Disturbance(name, made),), targets, h)
    return np.array([forces(k) for k in range(n)])


def test_kinds_are_what_they_say():
    assert (signal(Constant((1.5,)), 5) == 1.5).all()
    gust = signal(Gust((2.0,), start=0.03, duration=0.02), 10)[:, 0]
    assert gust.tolist() == [0, 0, 0, 2, 2, 0, 0, 0, 0, 0]
    assert signal(Gust((2.0,), start=0.03), 10)[:, 0].tolist() == [0] * 3 + [2] * 7
    gust = signal(Gust((1.0,), start=0.29, duration=0.29), 100)[:, 0]
    assert np.flatnonzero(gust).tolist() == list(range(29, 58))  # 0.29 / 0.01 is less than 29
    sine = signal(Sine((3.0,), frequency=2.0, phase=0.4), 100)[:, 0]
    middles = (np.arange(100) + 0.5) * H
    np.testing.assert_allclose(sine, 3.0 * np.sin(4 * np.pi * middles + 0.4), atol=1e-14)


def test_several_add_up_each_in_its_place():
    scenario = scenarios.get("quadrotor_payload")
    targets = scenario.targets(scenario.make_system(scenario.parameters))
    pushes = [
        Disturbance("quad1", Constant((1.0, 2.0, 3.0))),
        Disturbance("payload", Constant((10.0, 20.0, 30.0))),
        Disturbance("quad1", Gust((0.1,) * 6, start=H)),
    ]
    forces = DisturbanceForces(pushes, targets, H)
    assert forces.names == ("quad1", "payload") and forces.n == 9
    named = forces.named(forces(1))
    np.testing.assert_allclose(named["quad1"], [1.1, 2.1, 3.1, 0.1, 0.1, 0.1])
    assert named["payload"].tolist() == [10.0, 20.0, 30.0]
    assert forces.named(forces(0))["quad1"].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "marionette" else [])
        for name in scenarios.built_in()
    ],
)
def test_a_push_has_the_power_of_the_motion_of_its_frame_as_it_is_drawn(name):
    """Of forces and torques, in the axes of the world; on a coordinate, of its rate."""
    scenario = scenarios.get(name)
    system, frames, e = scenario.make_system(scenario.parameters), ScenarioFrames(scenario), 1e-6
    space, rng = system.space, np.random.default_rng(1)
    q = space.retract(np.array(system.nominal_configuration), rng.uniform(-0.7, 0.7, space.nv))
    d = rng.normal(size=space.nv)
    v = np.asarray(ca.DM(space.frame(ca.SX(q)))) @ d
    before, here, after = (frames.poses(space.retract(q, s * d)) for s in (-e, 0, e))
    for target in scenario.targets(system).values():
        if target.friction is not None:
            continue
        push = rng.normal(size=target.n)
        force = target.force(ca.SX(q), ca.SX(v), ca.SX(push), system.parameters)
        power = float(ca.evalf(ca.dot(force, v)))
        if target.components == ("external",):
            rates = dict(zip(space.names, space.retract(q, e * d) - space.retract(q, -e * d)))
            rates |= dict(zip(space.tangent_names, 2 * e * d))
            assert power == pytest.approx(push[0] * rates[target.name] / (2 * e), rel=1e-6)
            continue
        frame = target.name.removeprefix("pendulum_")
        a, b = before[frame], after[frame]
        rate = (b.position - a.position) / (2 * e)
        turn = (b.rotation - a.rotation) / (2 * e) @ here[frame].rotation.T
        rates = dict(zip(("force_x", "force_y", "force_z"), rate))
        rates |= {"torque_x": turn[2, 1], "torque_y": turn[0, 2], "torque_z": turn[1, 0]}
        wanted = sum(p * rates[one] for p, one in zip(push, target.components, strict=True))
        assert power == pytest.approx(wanted, rel=1e-6, abs=1e-6), target.name


def test_noise_has_its_deviation_and_its_correlation_whatever_the_step():
    """Of 400 correlation times; the estimates' own deviations are about 5 and 7 %."""
    for h in (0.01, 0.05):
        noise = signal(Noise((2.0,), correlation=0.5, seed=1), round(200 / h), h=h)[:, 0]
        assert np.std(noise) == pytest.approx(2.0, rel=0.2)
        lag = round(0.5 / h)
        correlation = np.corrcoef(noise[lag:], noise[:-lag])[0, 1]
        assert correlation == pytest.approx(np.exp(-1), abs=0.15)


def test_noise_is_a_function_of_the_step_alone():
    scenario = scenarios.get("quadrotor_payload")
    targets = scenario.targets(scenario.make_system(scenario.parameters))
    noises = (
        Disturbance("payload", Noise((1.0, 1.0, 1.0), seed=3)),
        Disturbance("quad1", Noise((1.0, 1.0, 1.0), seed=3)),
    )
    forces, again = (DisturbanceForces(noises, targets, H) for _ in range(2))
    rows = {k: forces(k) for k in range(30)}
    for k in (29, 3, 3, 17, 0, 12, 11, 12):
        np.testing.assert_array_equal(again(k), rows[k])
    values = np.array(list(rows.values()))
    np.testing.assert_array_equal(again.rows(30), values)
    assert again.rows(0).shape == (0, again.n)
    assert len(np.unique(values[:, :6])) == 30 * 6  # no component, no target shares a noise
    other = DisturbanceForces((Disturbance("payload", Noise((1.0,) * 3, seed=4)),), targets, H)
    assert not np.isclose(other(5), forces(5)[:3]).any()


def test_the_noise_of_a_seed_is_always_the_same():
    forces = signal(Noise((1.0,), correlation=0.2, seed=8), 41)[-1, 0]
    assert forces == pytest.approx(-1.1257390114708723, rel=1e-12)


def test_what_is_written_is_read_again_spaces_or_not():
    for text in (
        "payload:gust:2,0,0,start=5,duration=1",
        "theta:constant:-0.25",
        "base_link:noise:1,2,0.5,correlation=0.1,seed=7",
        "x:sine:1e-3,frequency=0.3,phase=-1",
    ):
        read = parse(text)
        assert parse(str(read)) == read
        assert str(read).split(":")[:2] == text.split(":")[:2]
    read = parse(" theta:noise: 1, 2 , correlation = 0.5, seed=3 ")
    assert read == Disturbance("theta", Noise((1.0, 2.0), 0.5, 3))
    assert isinstance(read.signal.seed, int)


@pytest.mark.parametrize("base", ["fixed", pytest.param("floating", marks=pytest.mark.slow)])
def test_forces_on_frames_keep_a_robot_s_kernel(base):
    """Its steps are those of the forces as expressions, with a foot on the ground as well."""
    foot = [nh.Contact("lower_link", nh.Sphere(0.05))] * (base == "floating")
    model = replace(mb.load_urdf(DEFAULT, base), contacts=foot)
    targets = on_frames(model, ("upper_link", "lower_link"))
    kept, other = with_forces(model.system, targets), with_external_forces(model.system, targets)
    assert (kept.name, kept.inputs, kept.input_units) == (
        other.name,
        other.inputs,
        other.input_units,
    )
    np.testing.assert_array_equal(kept.input_bounds, other.input_bounds)
    plants, rng = [midpoint(kept, H)], np.random.default_rng(3)
    plants.append(midpoint(other, H))
    assert [type(plant.engine).__name__ for plant in plants] == ["TreeEngine", "Engine"]
    q = model.space.retract(model.space.origin, 0.2 * rng.normal(size=model.space.nv))
    q[6:7] += 1.0  # above the ground
    x, u = plants[0].state(q, rng.normal(size=model.space.nw)), rng.normal(size=plants[0].nu)
    np.testing.assert_allclose(*(plant.step(x, u) for plant in plants), atol=1e-11)
    mixed = with_forces(model.system, [*targets, *on_coordinates(model.space, (), {})])
    assert type(midpoint(mixed, H).engine).__name__ == "Engine"


def test_external_forces_stand_between_a_models_forces_and_its_prescribed_coordinates():
    targets = on_coordinates(LIFTED.space, LIFTED.prescribed)
    plant = midpoint(with_external_forces(LIFTED, targets), H)
    u, forces = np.array([1.0, 3.0]), np.array([2.0])
    assert with_external(plant, u, forces).tolist() == [1.0, 2.0, 3.0]
    assert without_external(plant, np.array([1.0, 2.0, 3.0]), 1).tolist() == [1.0, 3.0]


def push_of_four():
    scenario = scenarios.get("quadrotor_payload")
    targets = scenario.targets(scenario.make_system(scenario.parameters))
    DisturbanceForces([Disturbance("quad1", Constant((1.0,) * 4))], targets, H)


WRONG = [
    "theta",
    "theta:constant",
    "theta:constant:",
    ":constant:1",
    "theta:storm:1",
    "theta:constant:1,force=2",
    "theta:gust:1,strat=2",
    "theta:gust:1,start=soon",
    "theta:gust:much",
    "theta:noise:1,seed=1.5",
    "theta:gust:1,start=-1",
    "theta:sine:1,frequency=0",
    lambda: Noise((1.0,), seed=-1),
    lambda: Noise((1.0,), correlation=0.0),
    lambda: Noise((-1.0,)),
    lambda: signal(Constant((1.0,)), name="phi"),
    lambda: signal(Constant((1.0, 2.0))),
    lambda: on_frames(mb.load_urdf(DEFAULT), ("hand",)),
    push_of_four,
]


def test_what_is_no_disturbance_is_refused(snapshot):
    assert said(WRONG, lambda made: parse(made) if isinstance(made, str) else made()) == snapshot
