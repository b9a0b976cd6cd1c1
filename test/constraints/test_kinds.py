"""What is stored, read and tracked has the right places in systems of every kind: with velocity
constraints, holonomic constraints, first-order and prescribed coordinates, spheres, and any of
them together.
"""

import kinds
import numpy as np
import pytest
from tiers import with_compiler

import nh_control as nh

GEARED = sorted((kind for kind in kinds.KINDS if "gear" in kind), key=lambda k: "skate" not in k)
"""With velocity constraints first."""


@pytest.mark.parametrize("kind", GEARED, ids="-".join)
def test_constraint_impulses_are_added_to_the_momenta_and_to_nothing_else(kind):
    model = nh.nonholonomic_midpoint(kinds.machine(kind), 0.01)
    q, v = kinds.motion(kind)
    x = model.measured_state(q, v)
    for mu in (0.1, -3.0):
        changed = model.with_constraint_impulses(x, [mu])
        momenta = kinds.momenta(kind, v, mu)
        np.testing.assert_allclose(changed, [*q, *momenta], rtol=0, atol=1e-14)
        np.testing.assert_allclose(model.velocity(changed), v, rtol=0, atol=1e-14)
        np.testing.assert_allclose(model.constraint_impulses(changed), [mu], rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: "-".join(kind) or "plain")
def test_nominal_masses_are_those_of_the_independent_velocities(kind):
    bob = [1.0, 1.0] * ("bob" in kind)
    body = [kinds.MASSES[i] for i in range(4) if not (i == 1 and "skate" in kind)]
    model = nh.nonholonomic_midpoint(kinds.machine(kind), 0.01)
    np.testing.assert_allclose(model.nominal_masses, [*bob, *body], rtol=1e-14)


@pytest.mark.parametrize(
    "kind", [("skate", "gear"), pytest.param(kinds.PARTS, marks=pytest.mark.slow)], ids="-".join
)
def test_a_closed_loop_has_the_same_bits_in_both_tiers(kind):
    """With a disturbance estimate, from a perturbed start, on a plant of two substeps."""

    def tracked():
        model, plant = (nh.nonholonomic_midpoint(kinds.machine(kind), h) for h in (0.01, 0.005))
        q, v = kinds.motion(kind)
        inputs = np.full((20, model.nu), 0.1)
        inputs[:, 2:] = q[-1] + 0.01 * v[-1] * np.arange(1, 21)[:, None]
        reference = model.simulate(model.state(q, v), inputs)
        weights = np.eye(model.ndx), np.eye(model.nu)
        tracker = nh.LqrTracker(model, reference, *weights, disturbance_gain=0.3)
        start = plant.measured_state(q, 1.01 * v)
        plant.prepare()
        return nh.rollout(plant, [start] * 2, tracker, substeps=2)

    virtual = tracked()
    with with_compiler():
        compiled = tracked()
    assert not any(virtual.failures) and np.abs(virtual.errors[:, 1:]).max() > 1e-3
    for name in ("states", "errors", "inputs"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(virtual, name), name)
