"""Disturbances are what they are written as, the same in every process, and can be had by every
scenario.
"""

import subprocess
import sys
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from lifted import LIFTED

import nh_control as nh
from nh_control import multibody as mb
from nh_control import scenarios
from nh_control.command.list_scenarios import example
from nh_control.discrete.plant_steps import with_external, without_external
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import on_coordinates, with_external_forces
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import (
    Constant,
    Disturbance,
    Gust,
    Noise,
    PlantOptions,
    Sine,
    UnknownName,
    on_frames,
)
from nh_control.scenarios.disturbance import DisturbanceForces, parse
from nh_control.scenarios.frames import with_forces
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
    sine = signal(Sine((3.0,), frequency=2.0, phase=0.4), 100)[:, 0]
    middles = (np.arange(100) + 0.5) * H
    np.testing.assert_allclose(sine, 3.0 * np.sin(4 * np.pi * middles + 0.4), atol=1e-14)


def test_gusts_are_of_whole_steps_also_where_their_times_are_not_in_floating_point():
    """0.29 / 0.01 is less than 29."""
    gust = signal(Gust((1.0,), start=0.29, duration=0.29), 100)[:, 0]
    assert np.flatnonzero(gust).tolist() == list(range(29, 58))


def test_what_is_not_said_is_as_usual():
    assert Gust() == Gust((0.0,), start=0.0, duration=0.0)
    assert Sine() == Sine((0.0,), frequency=1.0, phase=0.0)
    assert Noise() == Noise((0.0,), correlation=1.0, seed=0)
    assert parse("theta:sine:2") == Disturbance("theta", Sine((2.0,), 1.0, 0.0))
    for refused in ({"seed": -1}, {"correlation": 0.0}):
        with pytest.raises(ValueError, match=f"Noise.{next(iter(refused))}"):
            Noise((1.0,), **refused)


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
    with pytest.raises(ValueError, match=r"quad1 force_x \(N\).*or the first 3, got 4 number"):
        DisturbanceForces([Disturbance("quad1", Constant((1.0,) * 4))], targets, H)


@pytest.mark.parametrize("name", scenarios.built_in())
def test_units_of_coordinates_are_those_of_their_joints(name):
    scenario = scenarios.get(name)
    targets = scenario.targets(scenario.make_system(scenario.parameters))
    for joint in scenario.joints:
        if joint.coordinate in targets:
            assert targets[joint.coordinate].units == ("N" if joint.unit == "m" else "N m",)
    assert {j.unit for j in scenarios.get("cart_pole").joints} == {"m", "rad"}


@pytest.mark.parametrize("name", [n for n in scenarios.built_in() if scenarios.get(n).body])
def test_a_push_on_a_planar_body_has_the_power_of_its_velocity(name):
    """Force and torque in the world's axes against the velocity of the body's origin."""
    scenario = scenarios.get(name)
    system = scenario.make_system(scenario.parameters)
    names = system.space.names
    rng, at = np.random.default_rng(1), names.index("theta")
    assert names[at : at + 3] == scenario.body.coordinates
    q, v, push = rng.normal(size=len(names)), rng.normal(size=system.space.nw), rng.normal(size=3)
    target = scenario.targets(system)[scenario.body.frame]
    force = target.force(ca.SX(q), ca.SX(v), ca.SX(push), system.parameters)
    c, s = np.cos(q[at]), np.sin(q[at])
    forward, left = v[at + 1 : at + 3]
    rates = {
        "N": (c * forward - s * left, s * forward + c * left),
        "N m": (v[at],),
    }
    expected = push[:2] @ rates["N"] + push[2] * rates["N m"][0]
    assert target.units == ("N", "N", "N m")
    assert np.asarray(ca.evalf(force))[:, 0] @ v == pytest.approx(expected, rel=1e-12)


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


@pytest.mark.slow
def test_another_process_draws_the_same_noise():
    code = (
        "from nh_control import scenarios\n"
        "from nh_control.scenarios.disturbance import DisturbanceForces, parse\n"
        "s = scenarios.get('pendulum_swing_up')\n"
        "t = s.targets(s.make_system(s.parameters))\n"
        "f = DisturbanceForces((parse('theta:noise:1,correlation=0.2,seed=8'),), t, 0.01)\n"
        "print(f(40)[0].hex())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    here = signal(Noise((1.0,), correlation=0.2, seed=8), 41)[-1, 0]
    assert done.stdout.strip() == float(here).hex()


@pytest.mark.parametrize(
    "text",
    [
        "payload:gust:2,0,0,start=5,duration=1",
        "theta:constant:-0.25",
        "base_link:noise:1,2,0.5,correlation=0.1,seed=7",
        "x:sine:1e-3,frequency=0.3,phase=-1",
    ],
)
def test_what_is_written_is_read_again(text):
    read = parse(text)
    assert parse(str(read)) == read
    target, kind, _ = text.split(":")
    assert str(read).startswith(f"{target}:{kind}:")


QUICK = ("snakeboard", "urdf", "cart_pole")
SLOW = [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
    for name in scenarios.built_in()
]


@pytest.mark.parametrize("name", SLOW)
def test_every_scenario_can_have_disturbances_on_bodies_and_coordinates(name):
    """Some steps of a motion: a target by itself changes it, and only from its start."""
    scenario = scenarios.get(name)
    model = scenario.model()
    targets = scenario.targets(model.system)
    coordinates = [t for t in targets.values() if t.components == ("external",)]
    assert len(coordinates) >= model.system.nrho - len(model.system.prescribed)
    start = model.state(rest(scenario, model), np.zeros(model.system.space.nw))
    forces = [target for target in targets.values() if target.friction is None]
    for target in (coordinates[0], forces[-1]):
        push = Disturbance(target.name, Gust((0.3,) * target.n, start=3 * model.h))
        options = PlantOptions(disturbances=(push,))
        plant, external = scenario.plant(model, options), scenario.disturbance(model, options)
        x = y = start
        for k in range(5):
            x, y = model.step(x, model.idle(x)), plant.step(y, disturbed(model, external(k), y))
            assert np.allclose(x, y, atol=1e-11) == (k < 3), (target.name, k)


def rest(scenario, model):
    """A configuration: where the reference starts, or the origin where that takes long to find."""
    slow = scenario.name in ("pendulum_swing_up", "cart_pole")
    space = model.system.space
    return space.origin if slow else model.configuration(scenario.reference(model).states[0])


def disturbed(model, forces, x):
    """Inputs of the plant: none, the external forces, prescribed coordinates where they are."""
    idle, nu = model.idle(x), model.system.nu
    return np.concatenate([idle[:nu], forces, idle[nu:]])


@pytest.mark.slow
def test_a_model_with_prescribed_coordinates_is_disturbed_in_closed_loop():
    scenario = scenarios.get("marionette")
    push = Disturbance("head_center", Constant((0.5, 0.0, 0.0)))
    options = PlantOptions(disturbances=(push,))
    runs = [
        Experiment.make(
            scenario, "sway", options=given, perturbation=scenario.no_perturbation, duration_s=0.2
        ).run()
        for given in (options, PlantOptions())
    ]
    torso = scenario.model().state_names.index("torso_tx")
    pushed, free = (run.trajectory.states[-1, torso] for run in runs)
    assert runs[0].failure is None and pushed > free + 1e-4


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


@pytest.mark.parametrize("wind", [(), (Disturbance("theta", Gust((0.0,))),)])
def test_a_plant_by_another_integrator_has_its_own_parameters(wind):
    scenario = scenarios.get("pendulum_swing_up")
    model, heavier = scenario.model(), {"m": 1.3}
    options = PlantOptions("midpoint_left", parameters=heavier, disturbances=wind)
    plant = scenario.plant(model, options)
    assert plant.system.parameters.m == 1.3 and model.system.parameters.m == 1.0
    make = scenario.integrators["midpoint_left"]
    expected = make(model.system, model.h).with_parameters(**heavier)
    x, u = [0.4, -0.3], np.zeros(plant.nu)
    np.testing.assert_allclose(plant.step(x, u), expected.step(x, u[: model.nu]), rtol=1e-14)


@pytest.mark.parametrize("name", ["snakeboard", "quadrotor_payload"])
def test_the_example_that_is_shown_is_a_gust_on_the_last_target(name):
    """Of one newton in the first direction; torques are left out."""
    scenario = scenarios.get(name)
    targets = scenario.targets(scenario.make_system(scenario.parameters))
    assert len(targets) > 1
    shown, last = parse(example(list(targets.values()))), list(targets.values())[-1]
    push = (1.0,) + (0.0,) * (last.n_forces - 1)
    assert shown == Disturbance(last.name, Gust(push, start=2.0, duration=0.5))
    assert DisturbanceForces((shown,), targets, H)(200)[0] == 1.0


def test_a_target_that_is_not_there_and_a_wrong_number_of_values_are_refused():
    with pytest.raises(UnknownName, match="target of a disturbance 'phi'.*theta"):
        signal(Constant((1.0,)), name="phi")
    with pytest.raises(ValueError, match=r"expected on theta external \(N m\), got 2 number"):
        signal(Constant((1.0, 2.0)))
    with pytest.raises(ValueError, match="Noise.force must be a list of finite numbers >= 0"):
        Noise((-1.0,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("theta", "'theta' must be TARGET:KIND:NUMBER"),
        ("theta:constant", "must be TARGET:KIND:NUMBER.*e.g. cart:gust:2.0,start=5"),
        ("theta:constant:", "must be TARGET:KIND:NUMBER"),
        (":constant:1", "must be TARGET:KIND:NUMBER"),
        ("theta:storm:1", "kind of the disturbance 'theta:storm:1', 'storm', choose one of: con"),
        ("theta:constant:1,force=2", "value of the constant .* 'force', there are none"),
        (
            "theta:gust:1,strat=2",
            r"'strat' \(did you mean 'start'\?\), choose .*: start, duration$",
        ),
        ("theta:gust:1,start=soon", "'start=soon' is not a number"),
        ("theta:gust:much", "'much' is not a number"),
        ("theta:noise:1,seed=1.5", "'seed=1.5' is not a number"),
        ("theta:gust:1,start=-1", "Gust.start must be a finite number >= 0"),
        ("theta:sine:1,frequency=0", "Sine.frequency must be a finite number > 0"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_spaces_do_not_matter_and_whole_numbers_are_whole():
    read = parse(" theta:noise: 1, 2 , correlation = 0.5, seed=3 ")
    assert read == Disturbance("theta", Noise((1.0, 2.0), 0.5, 3))
    assert isinstance(read.signal.seed, int)


def test_a_push_on_a_frame_has_the_power_of_its_origin_s_velocity_and_its_turning():
    """Force and torque in the axes of the world, on an arm of two links that turns and slides."""
    arm = mb.Multibody(
        "arm",
        [
            mb.revolute("upper", axis="z", position=(0.1, 0.0, 0.2)),
            mb.prismatic("lower", "upper", axis="x", position=(0.0, 0.3, 0.0)),
            mb.revolute("tool", "lower", axis="y", position=(0.5, 0.0, 0.0)),
        ],
        [mb.Body(name, 1.0, inertia=(0.1, 0.1, 0.1)) for name in ("upper", "lower", "tool")],
    )
    rng = np.random.default_rng(3)
    q, v, push = rng.normal(size=3), rng.normal(size=3), rng.normal(size=6)
    targets = on_frames(arm, ("tool", "upper"))
    assert [target.name for target in targets] == ["tool", "upper"]
    for target in targets:
        assert (target.n, target.n_forces) == (6, 3)
        assert target.units == ("N", "N", "N", "N m", "N m", "N m")
        force = target.force(ca.SX(q), ca.SX(v), ca.SX(push), None)
        power = np.asarray(ca.evalf(force))[:, 0] @ v
        before, after = (arm.poses(q + dt * v)[target.name] for dt in (-1e-6, 1e-6))
        velocity = (after.position - before.position) / 2e-6
        turning = (after.rotation - before.rotation) / 2e-6 @ arm.poses(q)[target.name].rotation.T
        omega = np.array([turning[2, 1], turning[0, 2], turning[1, 0]])
        assert power == pytest.approx(push[:3] @ velocity + push[3:] @ omega, abs=1e-8)
    with pytest.raises(ValueError, match="hand"):
        on_frames(arm, ("hand",))
