"""Steps that are made of JAX operations: those of the native step, with its derivatives."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest
from operations import every_operation

import nh_control as nh
from nh_control.integrators import INTEGRATORS
from nh_control.interop.jacobians import StoredCoordinates
from nh_control.systems import snakeboard, wet_snakeboard
from nh_control.systems.cart_pole import cart_pole
from nh_control.systems.rigid_body import rigid_body


@pytest.fixture(autouse=True)
def jax():
    """In 64 bits."""
    jax = pytest.importorskip("jax", reason="the extra `jax`")
    with jax.enable_x64(True):
        yield jax


def compare(jax, dsys, parameters=(), count=3):
    """Steps of a batch, from states around one at rest, and all Jacobians against those of
    the native step; returns the model, and `(x, u, p) -> Jacobians, x1` of a batch of as many.
    """
    rng = np.random.default_rng(0)
    space = dsys.system.space
    rest = dsys.state(space.origin, np.zeros(space.nw))
    x = np.array([dsys.retract(rest, rng.normal(size=dsys.ndx)) for _ in range(count)])
    u, p = rng.normal(size=(count, dsys.nu)), StoredCoordinates(dsys, parameters).nominal
    model = nh.to_jax(dsys, parameters, batched=True)

    def step(x, u, p):
        x1 = model.step(x, u, p)
        return x1, x1

    with_jacobians = jax.jacrev(step, (0, 1, 2), has_aux=True)
    batch = jax.jit(jax.vmap(with_jacobians, (0, 0, None)))
    jacobians, after = batch(x, u, p)
    wanted = StoredCoordinates(dsys, parameters).step_jacobians(x, u, p)
    for ours, theirs in zip(wanted, (after, *jacobians)):
        np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-12)
    return model, batch


@dataclass(frozen=True)
class Mass:
    m: float = 1.0


def explosive():
    """L = m v^2 / 2 + exp(q): from q = 10, no step of 50 ms has a solution."""
    return nh.System(
        name="explosive",
        space=nh.Rn("q"),
        lagrangian=lambda q, v, p: p.m * v[0] ** 2 / 2 + ca.exp(q[0]),
        inputs=("u",),
        force=lambda q, v, u, p: u,
        parameters=Mass(),
    )


@pytest.mark.parametrize(
    "make, mass",
    [(explosive, "m"), pytest.param(cart_pole, "m_pole", marks=pytest.mark.slow)],
)
def test_a_batch_has_the_steps_and_jacobians_of_the_native_step(jax, make, mass):
    dsys = nh.midpoint(make(), 0.05)
    _, batch = compare(jax, dsys, (mass, "h"))
    n = dsys.system.space.nq
    x = np.tile(np.r_[np.full(n, 0.4), np.full(n, 0.3)], (3, 1))
    x[1, [0, -1]] = 10.0, 1e200
    _, after = batch(x, np.ones((3, 1)), StoredCoordinates(dsys, (mass, "h")).nominal)
    assert np.isnan(after[1]).all()  # it has no solution
    np.testing.assert_allclose(after[::2], dsys.step(x[0], [1.0])[None].repeat(2, 0), rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["midpoint", "gonzalez", "rkmk4", "midpoint_order4"])
def test_on_a_manifold(jax, method):
    model, _ = compare(jax, INTEGRATORS[method](rigid_body(), 0.05))
    x = model.dsys.state(model.dsys.system.space.origin, np.zeros(3))
    at_rest = jax.jacrev(lambda y: model.local(x, model.step(y, np.zeros(model.dsys.nu))))(x)
    assert np.isfinite(at_rest).all()


@pytest.mark.slow
def test_with_velocity_constraints(jax):
    compare(jax, nh.nonholonomic_midpoint(snakeboard(), 0.05))


@pytest.mark.slow
def test_second_derivatives(jax):
    dsys = nh.midpoint(cart_pole(), 0.05)
    model, lam = nh.to_jax(dsys, batched=True), np.array([1.0, -2.0, 0.5, 0.3])
    x, u = np.array([0.1, 0.7, 0.3, -0.2]), np.array([0.4])
    of_both = lambda w: lam @ model.step(w[:4], w[4:])  # noqa: E731
    for derive in (jax.jacfwd(jax.jacrev(of_both)), jax.hessian(of_both)):
        hessian = derive(np.array([*x, *u]))
        np.testing.assert_allclose(hessian, dsys.hessian(x, u, lam), rtol=1e-10, atol=1e-12)


def test_every_operation_is_translated(jax):
    from nh_control.interop.jax_operations import translated

    f, x, y = every_operation(), np.array([0.3, -0.2, 1.5, 0.0]), np.array([-0.7, 0.9, 1.5, 2.5])
    (values,) = jax.vmap(translated(f))(x[:, None], y[:, None])
    wanted = [f(*each).full().ravel() for each in zip(x, y)]
    np.testing.assert_allclose(values, wanted, rtol=1e-14, atol=1e-16)


def test_contacts_are_refused(jax):
    with pytest.raises(ValueError, match="JAX operations do not support contacts"):
        nh.to_jax(nh.midpoint(wet_snakeboard(), 0.01), batched=True)
