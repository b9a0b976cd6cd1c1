"""Initial errors: what every scenario can have without declaring any, and the checks of those that
are declared.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from transforms3d.axangles import axangle2mat
from transforms3d.quaternions import mat2quat

from nh_control import scenarios
from nh_control.geometry.rotations import S2, SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.parameters import declarations
from nh_control.mechanics.system import System
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import Displacement, PlanarPerturbation, driving, joints, marionette
from nh_control.scenarios.joints import JointPerturbation
from nh_control.scenarios.perturbation import displaced

FREE = System(
    name="free",
    space=Product(SO3("body_"), S2("link_"), Rn("x", "hand")),
    lagrangian=lambda q, v: ca.sumsqr(v) / 2,
    prescribed=("hand",),
)
ROPE = System(
    name="rope",
    space=Rn("x", "y"),
    lagrangian=lambda q, v: ca.sumsqr(v) / 2,
    holonomic_constraint=lambda q: ca.sumsqr(q) - 1,
)


@pytest.mark.parametrize("seed", [-1, 0, 5])
def test_any_space_is_displaced_in_local_coordinates_and_momenta_are_scaled(seed):
    model, rng = midpoint(FREE, 0.01), np.random.default_rng(1)
    q = FREE.space.retract(FREE.space.origin, rng.uniform(-1, 1, FREE.space.nv))
    x = model.state(q, np.asarray(ca.DM(FREE.space.frame(ca.SX(q)))) @ rng.normal(size=7))
    perturbed_x = displaced(model, x, Displacement(0.2, 0.5, seed))
    change = model.local(x, perturbed_x)
    nv = FREE.space.nv
    np.testing.assert_allclose(np.abs(change[: nv - 1]), 0.2, atol=1e-12)
    assert change[nv - 1] == change[-1] == 0.0  # what is prescribed stays, and keeps its velocity
    momenta = model.local(np.r_[q, np.zeros(len(x) - len(q))], x)[nv : 2 * nv - 1]
    np.testing.assert_allclose(np.abs(change[nv : 2 * nv - 1]), 0.5 * np.abs(momenta), atol=1e-12)
    assert (change[: nv - 1] > 0).all() == (seed < 0)
    np.testing.assert_array_equal(displaced(model, x, Displacement(0.2, 0.5, seed)), perturbed_x)


def test_joints_slide_and_turn_by_sizes_and_draw_their_signs():
    two = System("two", Rn("slide", "hinge"), lambda q, v: ca.sumsqr(v) / 2)
    model = midpoint(two, 0.01)
    x, sizes = model.state([0.3, -0.2], [1.0, -2.0]), np.array([0.1, 0.2, 0.5, 1.0])
    changes = [
        joints.perturbed(model, x, JointPerturbation(0.1, 0.2, 0.5, seed), ("slide",)) - x
        for seed in range(-1, 20)
    ]
    np.testing.assert_allclose(np.abs(changes), np.tile(sizes, (21, 1)), atol=1e-12)
    np.testing.assert_allclose(changes[0], sizes * [1, 1, 1, -1], atol=1e-12)
    assert len(np.unique(np.sign(changes[1:]), axis=0)) > 5


def test_constraints_are_met_again():
    model = midpoint(ROPE, 0.01)
    x = model.state([0.6, 0.8], [0.8, -0.6])
    perturbed_x = displaced(model, x, Displacement(0.1))
    assert np.hypot(*perturbed_x[:2]) == pytest.approx(1.0, abs=1e-10)
    assert 0.0 < np.linalg.norm(perturbed_x[:2] - x[:2]) < 0.15
    np.testing.assert_array_equal(displaced(model, x, Displacement()), x)
    beside = x + [1e-5, 0.0, 0.0, 0.0]  # as a rough simulation leaves it
    np.testing.assert_array_equal(displaced(model, beside, Displacement(0.0, 0.5))[:2], beside[:2])


@pytest.mark.parametrize("name", scenarios.built_in())
def test_all_errors_are_declared_with_meaning_and_none_is_the_default(name):
    scenario = scenarios.get(name)
    for entry in declarations(scenario.perturbation):
        assert entry.description and (entry.unit or entry.name in ("momentum", "seed"))
    for entry in declarations(scenario.no_perturbation):
        assert entry.value == (-1 if entry.name == "seed" else 0.0)


BOARD = scenarios.get("snakeboard")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PlanarPerturbation(position=np.nan), "PlanarPerturbation.position .*nan m"),
        (lambda: PlanarPerturbation(seed=1.5), "seed must be an integer >= -1"),
        (
            lambda: Experiment.make(BOARD, perturbation=Displacement()),
            r"must be a PlanarPerturbation\(position, heading",
        ),
        (lambda: replace(BOARD, perturb=displaced), "PlanarPerturbation needs a function perturb"),
    ],
)
def test_values_and_kinds_are_checked(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_initial_errors_of_the_quadrotor():
    scenario = scenarios.get("quadrotor")
    model = scenario.model()
    x = model.state(np.r_[1.0, 2.0, 3.0, mat2quat(axangle2mat([1, 2, 3], 0.5))], np.arange(1.0, 7))
    error = type(scenario.perturbation)(position=0.2, heading=0.3, tilt=0.4, momentum=0.1)
    dx = model.local(x, scenario.perturb(model, x, error))
    np.testing.assert_allclose(dx[:6], [0, 0.2, 0, 0, 0.4, 0.3], atol=1e-12)
    np.testing.assert_allclose(dx[6:], 0.1 * x[7:])
    drawn = model.local(x, scenario.perturb(model, x, replace(error, seed=3)))
    assert np.hypot(*drawn[:2]) == pytest.approx(0.2) and drawn[2] == 0
    assert np.hypot(*drawn[3:5]) == pytest.approx(0.4) and abs(drawn[5]) == pytest.approx(0.3)
    np.testing.assert_allclose(np.abs(drawn[6:]), np.abs(dx[6:]))
    assert not np.allclose(drawn[:2], dx[:2])


def test_seeds_draw_directions_from_all_around_and_both_signs():
    dsys = scenarios.get("differential_drive").model()
    x = dsys.state([0.0, 0.0, 0.3, 1.0, 2.0], [4.0, 6.0, 0.5, 0.4, 0.0])
    errors = [PlanarPerturbation(0.1, 0.2, 0.3, seed) for seed in range(16)]
    moved = np.array([dsys.local(x, driving.perturbed(dsys, x, error)) for error in errors])
    np.testing.assert_allclose(np.hypot(*moved[:, 3:5].T), 0.1)
    np.testing.assert_allclose(np.abs(moved[:, 2]), 0.2)
    np.testing.assert_allclose(np.abs(moved[:, 5:]), np.abs(0.3 * x[5:]) * np.ones((16, 1)))
    assert len({tuple(np.sign(one)) for one in moved[:, 3:5]}) == 4
    for column in moved[:, [2, 5, 6]].T:
        assert column.min() < 0 < column.max()
    assert len(np.unique(np.sign(moved[:, [2, 5, 6]]), axis=0)) > 4  # each its own
    assert not moved[:, :2].any()


@pytest.mark.parametrize("seed", [-1, 0, 3])
def test_a_torso_on_a_string_is_moved_and_turned_and_the_rest_follows(seed):
    """As that of the marionette: what was moved and the string's end stay where they are put."""
    puppet = System(
        name="puppet",
        space=Rn("arm", "torso_tx", "torso_ty", "torso_rz", "string"),
        lagrangian=lambda q, v: ca.sumsqr(v[:4]) / 2,
        holonomic_constraint=lambda q: q[0] + 2 * q[1] - q[4],
        prescribed=("string",),
    )
    model = midpoint(puppet, 0.01)
    x = model.state([0.3, 0.1, 0.4, 0.5, 0.5], [-4.0, 2.0, 3.0, -4.0, 0.0])
    error = PlanarPerturbation(position=0.1, heading=0.2, momentum=0.5, seed=seed)
    (x_, y_), signs = error.draw_direction_and_signs(5)
    moved = marionette.perturbed(model, x, error)
    change = [-0.2 * x_, 0.1 * x_, 0.1 * y_, 0.2 * signs[0], 0.0]
    np.testing.assert_allclose(moved[:5] - x[:5], change, atol=1e-12)
    np.testing.assert_allclose(moved[5:9], x[5:9] * (1 + 0.5 * signs[1:]))
    if seed < 0:
        assert (x_, y_) == (0.0, 1.0) and (signs == 1.0).all()
    same = marionette.perturbed(model, x, PlanarPerturbation(momentum=0.0))
    np.testing.assert_array_equal(same, x)
