"""What a scenario makes of its declaration: model, plant, reference, tracker and looks, and what
is usual where nothing is said.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from refusals import said
from transforms3d.quaternions import quat2mat

import nh_control as nh
from nh_control.discrete.plant_steps import convert
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.scenarios import BodyState, Disturbance, Gust, Joint, PlantOptions, Scenario


@dataclass(frozen=True)
class Mass(nh.Parameters):
    """A mass on the plane."""

    m: float = nh.parameter(2.0, "kg", "the mass")


def sled(parameters):
    return nh.System(
        name="sled",
        space=nh.Rn("x", "theta"),
        parameters=parameters,
        inputs=("push", "turn"),
        lagrangian=lambda q, v, p: p.m * ca.sumsqr(v) / 2,
        force=lambda q, v, u, p: u,
    )


def rest(model):
    return model.simulate(model.state([1.0, 0.0], np.zeros(2)), np.zeros((20, 2)))


def coast(model):
    return model.simulate(model.state([0.0, 0.0], [1.0, 0.0]), np.zeros((20, 2)))


Q, R = np.diag([1.0, 2.0, 3.0, 4.0]), np.diag([5.0, 6.0])
SLED = Scenario(
    name="sled",
    title="A sled",
    parameters=Mass(),
    make_system=sled,
    integrators={"mine": lambda system, h: midpoint(system, h, "left"), "midpoint": midpoint},
    references={"rest": rest, "coast": coast},
    weights=(Q, R, 2 * Q),
    joints=(Joint("slide", "x", unit="m"), Joint("turn", "theta", -1.0)),
)


def test_a_model_has_the_step_and_the_integrator_that_are_asked_for():
    model = SLED.model()
    assert model.h == 0.01 and model.method.name == midpoint(sled(Mass()), 1.0, "left").method.name
    other = SLED.model("midpoint", 0.05)
    assert other.h == 0.05 and other.method.name == midpoint(sled(Mass()), 1.0).method.name
    assert replace(SLED, step_s=0.02).model().h == 0.02
    assert SLED.model("rk4").method.name == INTEGRATORS["rk4"].make(sled(Mass()), 1.0).method.name
    usable = SLED.usable_integrators(model.system)
    assert list(usable)[:2] == ["mine", "midpoint"] and usable["midpoint"] is midpoint
    assert set(usable) > set(INTEGRATORS.fitting(model.system))
    own = replace(SLED, integrators={"midpoint": SLED.integrators["mine"]})
    assert own.usable_integrators(model.system)["midpoint"] is SLED.integrators["mine"]


def test_a_plant_differs_as_its_options_say():
    model = SLED.model()
    same = SLED.plant(model)
    assert (same.h, same.method.name) == (model.h, model.method.name)
    fine = SLED.plant(model, PlantOptions(substeps=4, parameters={"m": 3.0}))
    assert fine.h == 0.0025 and fine.system.parameters.m == 3.0
    assert fine.method.name == model.method.name
    other = SLED.plant(model, PlantOptions("midpoint", 2, {"m": 3.0}))
    assert (other.h, other.system.parameters.m) == (0.005, 3.0)
    assert other.method.name != model.method.name
    push = Disturbance("x", Gust((1.0,), start=0.05))
    pushed = SLED.plant(model, PlantOptions(parameters={"m": 3.0}, disturbances=(push,)))
    assert pushed.nu == 3 and pushed.system.parameters.m == 3.0
    both = SLED.plant(model, PlantOptions("midpoint", parameters={"m": 3.0}, disturbances=(push,)))
    assert (both.nu, both.system.parameters.m) == (3, 3.0)
    assert both.method.name == other.method.name
    assert model.system.parameters.m == SLED.parameters.m == 2.0
    slow = SLED.model(step_s=0.05)
    forces = SLED.disturbance(slow, PlantOptions(disturbances=(push,)))
    assert forces.rows(3)[:, 0].tolist() == [0.0, 1.0, 1.0]  # of steps of the model


def test_the_same_motion_of_a_heavier_plant_has_another_momentum():
    model = SLED.model()
    heavy = SLED.plant(model, PlantOptions(parameters={"m": 3.0}))
    x = model.state([0.5, 0.1], [2.0, -1.0])
    assert convert(x, model, model) is x
    there = convert(x, model, heavy)
    np.testing.assert_allclose(there, [0.5, 0.1, 6.0, -3.0], rtol=1e-12)
    np.testing.assert_allclose(convert(there, heavy, model), x, rtol=1e-12)


def test_targets_are_coordinates_and_declared_ones_which_take_precedence():
    """In newtons where they slide; the scenario's own stands for a coordinate of its name."""
    model, ours = SLED.model(), []

    def external(system):
        ours.extend(
            replace(target, name=name)
            for name, target in zip(("theta", "both"), SLED.targets(system).values())
        )
        return ours

    targets = replace(SLED, external=external).targets(model.system)
    assert list(targets) == ["x", "theta", "both"]
    assert targets["theta"] is ours[0] and targets["both"] is ours[1]
    assert [target.units for target in SLED.targets(model.system).values()] == [("N",), ("N m",)]


def test_a_reference_has_the_name_that_is_asked_for_the_first_if_none_is():
    model = SLED.model()
    assert (SLED.reference(model).name, SLED.reference(model, "coast").name) == ("rest", "coast")
    assert SLED.reference(model).states[0, 0] == 1.0


def test_a_tracker_has_the_weights_its_integral_action_and_what_it_holds():
    model = SLED.model()
    reference = SLED.reference(model)
    plain, integral = (SLED.tracker(model, reference, on) for on in (False, True))
    assert (plain.disturbance_gain, integral.disturbance_gain) == (0.0, 0.2)
    np.testing.assert_array_equal(plain.diagonal_weights[0], [1, 2, 3, 4])
    np.testing.assert_array_equal(plain.diagonal_weights[1], [5, 6])
    np.testing.assert_array_equal(plain.gains.P[-1], 2 * Q)
    assert not plain.hold
    free = replace(SLED, hold=True, weights=(Q, R, None), excluded=("theta", "p_theta"))
    held = free.tracker(model, reference)
    assert held.hold and not np.allclose(held.gains.P[-1], Q)
    everything = replace(free, excluded=()).tracker(model, reference)
    assert not np.allclose(held.gains.K[-1], everything.gains.K[-1])
    assert np.abs(held.gains.K[-1][:, 1]).max() < 1e-9 < np.abs(everything.gains.K[-1][:, 1]).max()


def test_the_memory_of_a_method_has_no_weight():
    sleigh = nh.scenarios.get("chaplygin_sleigh")
    model = sleigh.model("gni", 0.02)
    kept = len(model.method.memory)
    reference = model.simulate(model.state(np.zeros(3), [0.0, 1.0, 0.0]), np.zeros((5, 2)))
    weights, _ = sleigh.tracker(model, reference).diagonal_weights
    assert kept and len(weights) == len(sleigh.weights[0]) + kept
    assert not weights[-kept:].any()


def test_without_a_visual_model_bodies_are_balls():
    turned, still = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]), np.zeros(3)

    def bodies(p, q, v):
        return (
            BodyState("one", "map", np.array([q[0], 1.0, 2.0]), turned, still, still),
            BodyState("two", "map", still, np.eye(4)[0], still, still),
        )

    shown = replace(SLED, to_bodies=bodies)
    visual, resting = shown.visual_model(), shown.resting_bodies(nh.Rn("x", "theta"))
    pose = visual.poses(SLED.parameters, np.array([0.7, 0.0]))["one"]
    np.testing.assert_allclose(pose.position, [0.7, 1.0, 2.0])
    np.testing.assert_allclose(pose.rotation, quat2mat(turned))
    assert (visual.parent, visual.trail) == ("map", "one")
    kinds = [(shape.frame, shape.kind) for shape in visual.shapes]
    assert sorted(kinds) == [(b, k) for b in ("one", "two") for k in (*3 * ["box"], "sphere")]
    assert [body.frame for body in resting] == ["one", "two"] and not SLED.resting_bodies(None)
    board = replace(nh.scenarios.get("snakeboard"), visual=None)
    poses = board.visual_model().poses(board.parameters, np.array([9.0, 9.0, 0.3, 1.0, 2.0]))
    np.testing.assert_allclose(poses["base_link"].position, [1.0, 2.0, 0.0])
    np.testing.assert_allclose(poses["base_link"].rotation[:2, 0], [np.cos(0.3), np.sin(0.3)])


def with_reference(made):
    own = replace(SLED, references={"own": lambda model: made})
    return lambda: own.reference(own.model())


WRONG = [
    lambda: replace(SLED, integrators={}),
    lambda: replace(SLED, references={}),
    lambda: replace(SLED, parameters=Mass),
    lambda: replace(SLED, parameters={"m": 1.0}),
    lambda: replace(SLED, perturbation=Mass()),
    lambda: SLED.model("nobody"),
    lambda: SLED.model(step_s=-1.0),
    lambda: nh.scenarios.get("snakeboard").model("midpoint_order4"),
    lambda: SLED.plant(SLED.model(), PlantOptions("nobody")),
    lambda: SLED.plant(SLED.model(), PlantOptions(parameters={"mass": 1.0})),
    *(lambda n=n: PlantOptions(substeps=n) for n in (0, -1, 1.5)),
    lambda: SLED.reference(SLED.model(), "run"),
    with_reference(None),
    with_reference(nh.Trajectory(0.01, np.zeros((3, 7)), np.zeros((2, 5)))),
]


def test_what_cannot_be_is_refused(snapshot):
    assert said(WRONG) == snapshot
