"""The marionette against its published data and an independent numpy model of it."""

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import published
import pytest

from nh_control.scenarios.marionette import MARIONETTE
from nh_control.systems.marionette import (
    MarionetteParameters,
    frame_names,
    initial_configuration,
    marionette,
    marionette_model,
    model_data,
)
from nh_control.systems.marionette_motion import StringMotion, tensions


@pytest.fixture(scope="module")
def system():
    return marionette()


SHORT = StringMotion({"string": 0.2}, frequency=3.0, duration=0.5)


def strings(h=0.01):
    """What a motion of strings asks of a discrete system."""
    return SimpleNamespace(h=h, system=SimpleNamespace(nrho=1, prescribed=("string",)))


def test_strings_swing_about_their_start():
    inputs = SHORT.inputs(strings(), np.array([7.0, 1.5]))
    times = 0.01 * np.arange(50)
    np.testing.assert_allclose(inputs, 1.5 + 0.2 * np.sin(3.0 * times)[:, None], atol=1e-15)


def test_a_swing_that_grows_begins_smoothly_and_is_whole_after_its_ramp():
    q = np.array([7.0, 1.5])
    whole, grown = (
        motion.inputs(strings(), q)[:, 0] - 1.5 for motion in (SHORT, replace(SHORT, ramp=0.2))
    )
    np.testing.assert_array_equal(grown[20:], whole[20:])
    part = grown[1:21] / whole[1:21]
    assert part[9] == pytest.approx(0.5) and part[0] < 0.01 and 0.99 < part[18] < 1
    np.testing.assert_allclose(part[:19] + part[18::-1], 1)


def test_a_tension_is_that_of_the_string_as_long_as_it_was():
    """`2 d lam / h`, lam the impulse of |a - b|^2 - d^2 over a step."""
    names = [f"{c['name']}-length" for c in model_data()["constraints"]]
    dsys = SimpleNamespace(
        h=0.1,
        system=SimpleNamespace(space=SimpleNamespace(names=("hip", *names))),
        multipliers=lambda x, u: 0.5 * x[1:] + u,
    )
    states = np.arange(21.0).reshape(3, 7)
    found = tensions(dsys, SimpleNamespace(states=states, inputs=np.array([[1.0], [2.0]])))
    lengths = states[:2, 1:]
    np.testing.assert_allclose(found, 20 * lengths * (0.5 * lengths + [[1.0], [2.0]]))


def test_sizes_and_names_are_the_published_ones(system):
    counts = published.DATA["counts"]
    assert len(marionette_model().frames) + 1 == counts["frames"] == 86
    assert (
        system.space.nq,
        len(system.prescribed),
        system.n_holonomic_constraints,
        system.nu,
    ) == (
        40,
        18,
        6,
        0,
    )
    assert system.mechanics.state_space.nq == 80 and system.nrho == counts["nQd"]
    assert (
        list(system.space.names) == published.NAMES
        and list(system.prescribed) == published.DATA["kinematic_configs"]
    )
    assert sum(body.mass for body in marionette_model().bodies) == pytest.approx(
        counts["total_mass"]
    )


def test_frames_stand_where_they_are_published():
    poses = marionette_model().poses(initial_configuration())
    for name, entry in zip(frame_names(), published.DATA["frames"]):
        np.testing.assert_allclose(
            poses[name].position,
            entry["world_position_at_initial_configuration"],
            rtol=0,
            atol=1e-15,
        )


def test_energy_forces_and_constraints_are_those_of_the_independent_model(system):
    q_, v_ = ca.SX.sym("q", 40), ca.SX.sym("v", 40)
    m = system.mechanics
    slope = m.holonomic_jacobian(q_) @ m.admissible_tangents(q_)
    of_q = system.holonomic_constraint(q_), slope
    ours = ca.Function(
        "ours", [q_, v_], [system.lagrangian(q_, v_), *of_q, system.force(q_, v_, ca.SX(0, 1))]
    )
    draw = np.random.default_rng(0)
    for _ in range(5):
        q, v = initial_configuration() + draw.uniform(-1, 1, 40), draw.normal(size=40)
        lagrangian, h, slope, force = (np.asarray(value) for value in ours(q, v))
        np.testing.assert_allclose(
            lagrangian[0, 0], np.real(published.lagrangian(q, v)), rtol=1e-13
        )
        np.testing.assert_allclose(
            h[:, 0], np.real(published.constraints(q)), rtol=1e-13, atol=1e-14
        )
        np.testing.assert_allclose(
            slope, published.gradient(published.constraints, q), rtol=1e-13, atol=1e-14
        )
        np.testing.assert_allclose(
            force[:, 0], np.concatenate([-published.DAMPING * v[:22], np.zeros(18)]), rtol=1e-14
        )


def test_strings_and_the_torso_s_place_are_in_metres_and_all_else_turns():
    units = {joint.coordinate: joint.unit for joint in MARIONETTE.joints}
    lengths = {name for name in units if "string" in name} | {f"torso_t{axis}" for axis in "xyz"}
    assert len(lengths) > 8
    assert units == {name: "m" if name in lengths else "rad" for name in units}


def test_parameters_scale_masses_and_inertias_and_are_checked():
    heavy, light = (marionette_model(MarionetteParameters(femur=m)).bodies for m in (3.0, 1.5))
    thighs = [i for i, body in enumerate(light) if "femur" in body.frame]
    assert len(thighs) == 2
    for i, (a, b) in enumerate(zip(heavy, light)):
        factor = 2 if i in thighs else 1
        assert a.mass == factor * b.mass
        np.testing.assert_allclose(a.inertia, factor * np.array(b.inertia))
    changed = marionette_model(MarionetteParameters(g=3.7, damping=0.05))
    assert tuple(changed.gravity) == (0.0, 0.0, -3.7)
    dampers = [(element.coordinate, element.damping) for element in changed.elements]
    assert dampers == [(name, 0.05) for name in model_data()["dynamic_configs"]]
    with pytest.raises(ValueError, match="MarionetteParameters.head must be a finite number > 0"):
        MarionetteParameters(head=0.0)
    with pytest.raises(ValueError, match="damping must be a finite number >= 0"):
        MarionetteParameters(damping=-0.1)
