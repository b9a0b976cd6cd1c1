"""The quadrotor payload scenario: what nodes and command line take from it."""

from dataclasses import replace

import numpy as np
import pytest
from payload_cases import model, parameters, random_motion

from nh_control.integrators import midpoint
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import BodyState, Constant, Disturbance, PlantOptions, UnknownName
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD as SCENARIO
from nh_control.scenarios.quadrotor_payload import (
    PayloadPerturbation,
    from_bodies,
    perturbed,
    tensions,
    to_bodies,
)
from nh_control.systems.quadrotor_payload import quadrotor_payload
from nh_control.systems.quadrotor_payload_continuous import link_tensions

FULL = dict(position=0.5, swing=np.pi / 6, tilt=np.pi / 3)


@pytest.fixture(scope="module")
def nominal():
    return SCENARIO.model()


@pytest.fixture(scope="module")
def hover(nominal):
    return SCENARIO.reference(nominal, "hover")


def angle_between(a, b):
    return np.arccos(np.clip(a @ b, -1, 1))


@pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [-1, 0, 7])
def test_perturbation_has_the_sizes_it_names_and_a_seed_repeats_it(n, seed):
    dsys, rng = model(n), np.random.default_rng(seed + 2)
    x = dsys.state(*random_motion(n, rng))
    error = PayloadPerturbation(seed=seed, **FULL)
    moved = perturbed(dsys, x, error)
    before, after = (
        to_bodies(parameters(n), dsys.configuration(s), dsys.velocity(s)) for s in (x, moved)
    )
    assert np.linalg.norm(after[0].position - before[0].position) == pytest.approx(0.5)
    for a, b, l in zip(before[1:], after[1:], parameters(n).lengths):
        links = [
            (body.position - payload.position) / l
            for body, payload in ((a, before[0]), (b, after[0]))
        ]
        assert angle_between(*links) == pytest.approx(np.pi / 6)
        assert 2 * np.arccos(abs(a.quaternion_wxyz @ b.quaternion_wxyz)) == pytest.approx(
            np.pi / 3
        )
    np.testing.assert_array_equal(moved, perturbed(dsys, x, error))


def test_what_a_quadrotor_moves_along_its_link_is_no_rate_of_the_link():
    """Measured bodies are not as far from each other as the cables are long."""
    q, v = random_motion(2, np.random.default_rng(4))
    payload, *quads = to_bodies(parameters(2), q, v)
    apart = [
        replace(
            quad,
            position=payload.position + 1.1 * (quad.position - payload.position),
            linear_velocity=quad.linear_velocity + 3.0 * (quad.position - payload.position),
        )
        for quad in quads
    ]
    apart = [replace(quad, quaternion_wxyz=1.1 * quad.quaternion_wxyz) for quad in apart]
    again, speed = from_bodies((payload, *apart))
    np.testing.assert_allclose(again[3:11], q[3:11], atol=1e-15)
    links, rates = again[-6:].reshape(2, 3), speed[-6:].reshape(2, 3)
    np.testing.assert_allclose(links, q[-6:].reshape(2, 3), atol=1e-12)
    np.testing.assert_allclose(rates, v[-6:].reshape(2, 3) / 1.1, atol=1e-12)


def test_tensions_know_of_all_that_pushes_from_outside():
    """A force on a link's coordinate is the couple across it that has the same power."""
    p, rng = parameters(2), np.random.default_rng(5)
    q, v = random_motion(2, rng)
    u = rng.normal(size=8)

    def found(**external):
        return tensions(p, q, v, u, {name: np.array(f) for name, f in external.items()})

    free = found()
    np.testing.assert_allclose(found(payload_y=[0.7]), found(payload=[0.0, 0.7, 0.0]))
    np.testing.assert_allclose(
        found(quad2=[0.1, 0.2, 0.3, 9.0, 9.0, 9.0]) - free, found(quad2=[0.1, 0.2, 0.3]) - free
    )
    assert np.abs(found(quad1=[0.1, 0.2, 0.3]) - found(quad2=[0.1, 0.2, 0.3])).max() > 1e-3
    link = q[-3:]
    couple = np.array([0.0, 0.0, 0.7 / p.lengths[1]])
    couple -= link * (link @ couple)
    np.testing.assert_allclose(found(link2_z=[0.7]), found(quad2=couple, payload=-couple))


@pytest.mark.parametrize("name", ["tilt", "swing", "heading"])
def test_perturbations_a_system_cannot_have_are_refused(nominal, hover, name):
    for angle in (3.2, -3.2):
        with pytest.raises(ValueError, match=f"{name} must be below half a turn"):
            SCENARIO.perturb(nominal, hover.states[0], PayloadPerturbation(**{name: angle}))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_bodies_hold_the_whole_state(n):
    for seed in range(5):
        q, v = random_motion(n, np.random.default_rng(seed))
        bodies = to_bodies(parameters(n), q, v)
        assert [b.frame for b in bodies] == ["payload", *(f"quad{i + 1}" for i in range(n))]
        q1, v1 = from_bodies(bodies)
        np.testing.assert_allclose(q1, q, atol=1e-14)
        np.testing.assert_allclose(v1, v, atol=1e-13)


def test_bodies_that_are_not_of_the_system_are_refused():
    bodies = to_bodies(parameters(2), *random_motion(2, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="expected the bodies payload, quad1"):
        from_bodies(bodies[:1])
    with pytest.raises(ValueError, match="expected the bodies payload, quad1"):
        from_bodies(bodies[1:])
    payload = bodies[0]
    stuck = BodyState(
        "quad1",
        "odom",
        payload.position,
        bodies[1].quaternion_wxyz,
        payload.linear_velocity,
        np.zeros(3),
    )
    with pytest.raises(ValueError, match="quad1 is at the payload"):
        from_bodies((payload, stuck))


WIND = PlantOptions(
    disturbances=tuple(Disturbance(b, Constant((0.0,) * 3)) for b in ("payload", "quad1", "quad2"))
)


@pytest.fixture(scope="module")
def windless(nominal, hover):
    """A tracker, and its loop with the model as the plant, natively."""
    tracker = SCENARIO.tracker(nominal, hover)
    return tracker, closed_loop(nominal, tracker, hover.states[0], 50)


def test_wind_is_further_inputs_of_the_plant(nominal, windless, hover):
    tracker, run = windless
    plant = SCENARIO.plant(nominal, WIND)
    forces, torques = ([f"{kind}_{c}" for c in "xyz"] for kind in ("force", "torque"))
    assert plant.inputs[8:] == (
        *(f"payload_{name}" for name in forces),
        *(f"{body}_{name}" for body in ("quad1", "quad2") for name in (*forces, *torques)),
    )
    undisturbed = closed_loop(plant, tracker, hover.states[0], 50)
    np.testing.assert_allclose(undisturbed.trajectory.states, run.trajectory.states, atol=1e-12)
    gust = np.zeros((50, 15))
    gust[:, 0] = 2.0
    blown = closed_loop(plant, tracker, hover.states[0], 50, disturbance=gust)
    assert blown.trajectory.states[-1, 0] > 0.1
    with pytest.raises(ValueError, match=r"disturbance must have shape \(50, 15\), got \(50, 3\)"):
        closed_loop(plant, tracker, hover.states[0], 50, disturbance=gust[:, :3])
    with pytest.raises(UnknownName, match="payload_mass, quadrotor_mass"):
        SCENARIO.plant(nominal, replace(WIND, parameters={"mass": 1.0}))


def test_the_general_construction_is_the_one_written_by_hand(nominal):
    """Forces through the bodies' positions and the published equations with wind agree, also in
    the tensions, for links of other lengths.
    """
    other = {"lengths": (0.65, 0.75), "payload_mass": 0.5}
    plant = SCENARIO.plant(nominal, replace(WIND, parameters=other))
    p = SCENARIO.plant_parameters(PlantOptions(parameters=other))
    by_hand = midpoint(quadrotor_payload(p, wind=True), nominal.h)
    x = plant.state(*random_motion(2, np.random.default_rng(6)))
    u, wind = np.full(8, 3.0), np.random.default_rng(7).normal(size=(3, 3))
    bodies = np.concatenate([wind[0], wind[1], np.zeros(3), wind[2], np.zeros(3)])
    np.testing.assert_allclose(
        plant.step(x, np.r_[u, bodies]), by_hand.step(x, np.r_[u, wind.ravel()]), atol=1e-12
    )
    q, v = plant.configuration(x), plant.velocity(x)
    named = {"payload": wind[0], "quad1": wind[1], "quad2": np.r_[wind[2], 1.0, 2.0, 3.0]}
    np.testing.assert_allclose(
        tensions(p, q, v, u, named), link_tensions(p, q, v, np.r_[u, wind.ravel()]), atol=1e-12
    )
    on_coordinates = {f"payload_{c}": wind[0, i : i + 1] for i, c in enumerate("xyz")}
    np.testing.assert_allclose(
        tensions(p, q, v, u, on_coordinates), tensions(p, q, v, u, {"payload": wind[0]})
    )


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("hover", "parabola") else pytest.param(name, marks=pytest.mark.slow)
        for name in SCENARIO.references
    ],
)
def test_references_are_held_past_their_end(nominal, name):
    reference = SCENARIO.reference(nominal, name)
    assert reference.name == name
    tracker = SCENARIO.tracker(nominal, reference, integral=True)
    start = SCENARIO.perturb(
        nominal,
        reference.states[0],
        PayloadPerturbation(position=0.1, heading=0.1, momentum=0.1, seed=2),
    )
    result = closed_loop(nominal, tracker, start, len(reference) + 300)
    assert result.failure is None
    assert np.linalg.norm(result.errors[-1]) < np.linalg.norm(result.errors[0]) / 1000
