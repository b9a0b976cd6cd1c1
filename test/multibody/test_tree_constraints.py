"""Closed loops and strings in the linear-time kernel, against the generated equations; random ones
are those of test/laws.
"""

from dataclasses import replace

import numpy as np
import pytest
from random_trees import (
    assert_derivatives,
    by_equations,
    constrained_model,
    random_tree,
    with_followers,
    with_wrenches,
)
from tree_models import (
    PIN,
    assert_steps_as_generated,
    closed_angles,
    constrained_tree,
    four_bar,
    kernel,
    motion,
    with_screws,
)

from nh_control import multibody as mb
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators import midpoint
from nh_control.multibody.tree_engine import TreeEngine
from nh_control.systems.marionette import initial_configuration, marionette_model
from nh_control.systems.marionette_motion import PUBLISHED, released


@pytest.mark.parametrize("seed", [3, 8])
def test_helical_joints_in_a_closed_loop_step_as_generated(seed):
    """In draws where no constraints are nearly dependent."""
    rng = np.random.default_rng(seed)
    screws = with_screws(random_tree([0] * 4, rng), rng)
    assert_steps_as_generated(*constrained_model(screws, ["coincident"], rng), rng)


def test_strings_on_what_followers_carry_step_as_generated():
    """With wrenches; the joints of two followers and the leaders move both strings."""
    rng = np.random.default_rng(1)
    free = with_wrenches(with_followers(random_tree([0, 1], rng), 2, rng), 2, rng)
    q = free.space.retract(free.space.origin, rng.normal(size=free.space.nv))
    at = (
        mb.Point("world", (0.3, -0.4, 0.5)),
        mb.Point("c0", (0.2, 0.1, 0.0)),
        mb.Point("c1", (0.1, 0, 0.3)),
    )
    strings = [
        mb.Distance(f"s{i}", a, b, float(np.linalg.norm(free.point(q, a) - free.point(q, b))))
        for i, (a, b) in enumerate((at[:2], at[1:]))
    ]
    assert_steps_as_generated(replace(free, constraints=strings), q, rng)


@pytest.mark.parametrize(
    "kinds, constraints",
    [
        ([0, 1, 0, 1], ["string", "plane"]),
        ([3, 0], ["reeled", "plane"]),
        pytest.param([5, 0], ["reeled", "plane"], marks=pytest.mark.slow),
    ],
)
def test_steps_under_two_constraints_and_second_derivatives_are_generated_ones(kinds, constraints):
    """Also those of multipliers."""
    rng = np.random.default_rng(4)
    model, q = constrained_tree(kinds, constraints, rng)
    assert_steps_as_generated(model, q, rng, 0.01)
    tree, generated = kernel(model), by_equations(model.system, 0.01)
    x, u = motion(generated, q, rng)
    adjoints = rng.normal(size=tree.ndx), rng.normal(size=tree.system.n_holonomic_constraints)
    found, wanted = (dsys.hessian(x, u, *adjoints) for dsys in (tree, generated))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
    assert np.abs(found - tree.hessian(x, u, adjoints[0])).max() > 1e-3 * np.abs(wanted).max()


def test_equations_of_a_step_that_turns_far_are_the_generated_ones():
    """A string on a ball joint: what is reached is no longer the way there."""
    frames, body = [mb.spherical("bob")], mb.Body("bob", 1.0, (0.1, 0.0, -0.5), (0.1, 0.2, 0.15))
    ends = mb.Point("world", (1.0, 0.0, 0.0)), mb.Point("bob", (0.0, 0.3, -0.6))
    string = mb.Distance("string", *ends, float(np.linalg.norm([1.0, -0.3, 0.6])))
    model = mb.Multibody("hung", frames, [body], constraints=[string])
    at = model.space.origin, np.array([3.0, 5.0, -4.0])
    tree = kernel(model, 0.1)
    found = tree.conditioning(tree.measured_state(*at))
    generated = by_equations(model.system, 0.1)
    wanted = generated.conditioning(generated.measured_state(*at))
    assert found.jacobian == pytest.approx(wanted.jacobian, rel=1e-9)


def test_a_four_bar_linkage_steps_as_generated():
    model = four_bar(PIN, [mb.JointDamper("rocker", 0.1)], [mb.JointInput("crank", 2.0)])
    q = closed_angles(0.4)
    np.testing.assert_allclose(model.constraint_residuals(q)["pin"], 0, atol=1e-15)
    assert_steps_as_generated(model, q, np.random.default_rng(0), 0.01)


def test_a_four_bar_linkage_stays_closed_and_keeps_its_energy():
    model = four_bar()
    dsys = kernel(model, 0.002)
    states = dsys.simulate(dsys.state(closed_angles(0.4), np.zeros(3)), 3000).states
    gaps = [model.constraint_residuals(x[:3])["pin"] for x in states[::50]]
    np.testing.assert_allclose(gaps, 0, atol=1e-13)
    energies = dsys.energies(states[::50])
    assert np.ptp(energies) < 1e-3 * np.ptp([0.5 * x[3] ** 2 for x in states])


@pytest.mark.slow
def test_the_marionette_moves_as_generated():
    """Over the published experiment; differences of single steps grow with its motion."""
    system = marionette_model().system
    tree = midpoint(system, 0.01)
    generated = DiscreteSystem(system, 0.01, tree.method)  # without the kernel
    q = initial_configuration()
    inputs = PUBLISHED.inputs(tree, q)[:300]
    ours, theirs = (d.simulate(released(d, q), inputs).states for d in (tree, generated))
    np.testing.assert_allclose(ours[:50], theirs[:50], rtol=0, atol=1e-11)
    for x, u, after in zip(theirs[::20], inputs[::20], theirs[1::20]):
        size = max(1.0, np.abs(x).max())
        np.testing.assert_allclose(tree.step(x, u), after, rtol=0, atol=1e-12 * size)


def closed_chain(last, rng):
    """A chain with joints to the ground in its middle and at its end, and where it is closed."""
    frames, parent = [], "world"
    for i, make in enumerate([mb.revolute, mb.revolute, mb.prismatic] * 3):
        frames.append(make(f"b{i}", parent, rng.normal(size=3), position=rng.normal(size=3) / 3))
        parent = f"b{i}"
    bodies = [
        mb.Body(frame.name, 1.0, rng.normal(size=3) / 5, (0.1, 0.12, 0.15)) for frame in frames
    ]
    chain = mb.Multibody("chain", frames, bodies)
    q = rng.normal(size=len(frames))
    held = []
    for kind, frame in (("planar", "b3"), (last, "b8")):
        b = mb.Point(frame, rng.normal(size=3) / 3)
        ways = {"axis": rng.normal(size=3), "second_axis": rng.normal(size=3)}
        ends = mb.Point("world", chain.point(q, b)), b
        turned = chain.pose(q, frame).rotation
        if kind == "helical":
            ways["pitch"] = -0.2
        held.append(mb.JointConstraint(kind, kind, *ends, rotation=turned, **ways))
    return replace(chain, constraints=held), q


@pytest.mark.parametrize("last", ["universal", "helical"])
def test_joints_that_close_loops_hold_along_their_slopes(last):
    """The kernel's h and Dh are the model's, and what follows are differences of steps."""
    rng = np.random.default_rng(8)
    model, q = closed_chain(last, rng)
    dsys, system = kernel(model, 0.005), model.system
    x, u = motion(dsys, q, rng)
    (r_z,) = dsys.engine.jacobians(dsys._run(dsys.engine.linearize, x, u))
    end = dsys.step(x, u)[: len(q)]
    residuals = np.concatenate([*model.constraint_residuals(end).values()])
    np.testing.assert_allclose(residuals, 0, rtol=0, atol=1e-13)
    before, after = (
        system.value(system.mechanics.holonomic_jacobian(system.symbols[0]), at) for at in (q, end)
    )
    n, size = len(q), np.abs(before).max()
    np.testing.assert_allclose(-r_z[:n, n:].T, before, rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(r_z[n:, :n] / dsys.h, after, rtol=0, atol=1e-12 * size)
    assert_derivatives(dsys, x, u, rng, 1e-4)


def test_the_velocity_that_hard_steps_begin_with_keeps_the_constraints_of_moving_inputs():
    """With the rates at which the inputs move what is prescribed."""
    rng = np.random.default_rng(0)
    model, q = constrained_tree([0, 1], ["reeled"], rng)
    dsys, system = midpoint(model.system, 0.002), model.system
    x = np.concatenate([q, rng.normal(size=dsys.nx - len(q))])
    u = np.concatenate([rng.normal(size=system.nu), q[-1:] + 0.003])
    work = dsys._run(dsys.engine.linearize, x, u)
    found = dsys.engine.velocity(work, x)[: len(q) - 1]
    slope = system.value(system.mechanics.holonomic_jacobian(system.symbols[0]), q)
    assert np.abs(slope[0, -1]) > 0.1 and np.abs(found).max() > 0.1
    np.testing.assert_allclose(slope @ [*found, 0.003 / dsys.h], 0, rtol=0, atol=1e-12)


def test_a_mass_on_two_slides_stays_on_its_rod():
    """Though all equations but the rod's are linear, and met by the first correction."""
    frames = [mb.prismatic("across", axis="x"), mb.prismatic("up", "across", "z")]
    rod = mb.Distance("rod", "world", "up", 0.7)
    slides = mb.Multibody(
        "slides", frames, [mb.Body("up", 2.0), mb.Body("across", 0.1)], constraints=[rod]
    )
    dsys = kernel(slides, 0.05)
    x = dsys.state([0.7 * np.sin(0.4), -0.7 * np.cos(0.4)], [2 * np.cos(0.4), 2 * np.sin(0.4)])
    states = dsys.simulate(x, steps=40).states
    lengths = np.linalg.norm(states[:, :2], axis=1)
    np.testing.assert_allclose(lengths, 0.7, rtol=0, atol=1e-15)
    assert np.ptp(states[:, 0]) > 0.5


def test_constraints_of_user_classes_use_generated_code():
    class Own(mb.Coincident):
        pass

    own = four_bar(Own("pin", PIN.a, PIN.b, "xz")).system
    changed = replace(four_bar().system, holonomic_constraint=own.holonomic_constraint)
    for system in (own, changed):
        assert not isinstance(midpoint(system, 0.01).engine, TreeEngine)
