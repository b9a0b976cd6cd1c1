"""Steps in JAX: derivatives by differences, jit, vmap, refusals."""

import numpy as np
import pytest

import nh_control as nh
from nh_control.systems.cart_pole import cart_pole
from nh_control.systems.rigid_body import rigid_body

jax = pytest.importorskip("jax", reason="the extra `jax`")
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def in_64_bits():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def cart():
    return nh.midpoint(cart_pole(), 0.05)


def given(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_derivatives_by_state_input_and_parameters(cart):
    """Forward and backward."""
    from jax.test_util import check_grads

    names = ("m_pole", "l", "h")
    model = nh.to_jax(cart, names)
    p = cart.parameter_values[[cart.parameter_names.index(name) for name in names]]
    check_grads(model.step, (given(4), given(1), p), order=1, modes=["fwd", "rev"], rtol=1e-6)
    lin = cart.linearize(given(4), given(1))
    by_x, by_u = jax.jacrev(model.step, (0, 1))(given(4), given(1))
    np.testing.assert_allclose(by_x, lin.A, atol=1e-14)
    np.testing.assert_allclose(by_u, lin.B, atol=1e-14)


def test_derivatives_on_a_manifold():
    from jax.test_util import check_grads

    dsys = nh.midpoint(rigid_body(), 0.1)
    model = nh.to_jax(dsys)
    x, u = dsys.state(dsys.system.space.origin, [0.3, -0.2, 0.5]), np.zeros(dsys.nu)

    def in_coordinates(dx):
        return model.local(x, model.step(model.step(model.retract(x, dx), u), u))

    check_grads(in_coordinates, (0.3 * given(dsys.ndx),), order=1, rtol=1e-6)


def test_it_can_be_compiled_and_mapped_over_a_batch(cart):
    """Of states under one input, and of parameters."""
    model, x, u = nh.to_jax(cart, ["l"]), given(3, 4), given(1)
    x1 = jax.jit(jax.vmap(model.step, (0, None)))(x, u)
    np.testing.assert_array_equal(x1, [cart.step(row, u) for row in x])
    lengths = np.array([[0.4], [0.5]])
    several = jax.vmap(model.step, (None, None, 0))(x[0], u, lengths)
    expected = [cart.with_parameters(l=float(l)).step(x[0], u) for (l,) in lengths]
    np.testing.assert_array_equal(several, expected)
    gradients = jax.vmap(jax.grad(lambda row: model.step(row, u)[0]))(x)
    expected = [cart.linearize(row, u).A[0] for row in x]
    np.testing.assert_allclose(gradients, expected, atol=1e-14)


def test_what_it_cannot_do_is_refused(cart):
    model, x, u = nh.to_jax(cart), given(4), given(1)
    with pytest.raises(ValueError, match=r"x must have shape \(4,\), got \(3, 4\); use jax.vmap"):
        model.step(given(3, 4), u)
    with pytest.raises(NotImplementedError, match=r"DiscreteSystem\.hessian"):
        jax.hessian(lambda a: model.step(a, u)[0])(x)
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        model.step(x, u)
    with pytest.raises(Exception, match="Newton"):
        model.step(np.array([0.0, 0.0, 1e160, 1e160]), u).block_until_ready()
