"""Steps in PyTorch and JAX: derivatives by differences, batches, refusals."""

import numpy as np
import pytest

import nh_control as nh
from nh_control.systems.cart_pole import cart_pole
from nh_control.systems.rigid_body import rigid_body

pytestmark = pytest.mark.slow


class Torch:
    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="the extra `torch`")
        self.export = nh.to_torch

    def array(self, values):
        return self.torch.tensor(np.array(values, dtype=float), requires_grad=True)

    def check(self, function, *arguments):
        assert self.torch.autograd.gradcheck(function, arguments)

    def numbers(self, array):
        return array.detach().numpy()


class Jax:
    def __init__(self):
        pytest.importorskip("jax", reason="the extra `jax`")
        self.export, self.array, self.numbers = nh.to_jax, np.asarray, np.asarray

    def check(self, function, *arguments):
        from jax.test_util import check_grads

        check_grads(function, arguments, order=1, modes=["fwd", "rev"], rtol=1e-6)


@pytest.fixture
def jax():
    """In 64 bits."""
    jax = pytest.importorskip("jax", reason="the extra `jax`")
    with jax.enable_x64(True):
        yield jax


@pytest.fixture(params=[Torch, Jax])
def library(request):
    if request.param is Jax:
        request.getfixturevalue("jax")
    return request.param()


@pytest.fixture(scope="module")
def cart():
    return nh.midpoint(cart_pole(), 0.05)


def given(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_derivatives_by_state_input_and_parameters(cart, library):
    names = ("m_pole", "l", "h")
    model = library.export(cart, names)
    p = cart.parameter_values[[cart.parameter_names.index(name) for name in names]]
    library.check(model.step, *map(library.array, (given(4), given(1), p)))


def test_derivatives_on_a_manifold(library):
    """Of a rigid body, in local coordinates about a state."""
    dsys = nh.midpoint(rigid_body(), 0.1)
    model = library.export(dsys)
    base = dsys.state(dsys.system.space.origin, [0.3, -0.2, 0.5])
    x, u = library.array(base), library.array(np.zeros(dsys.nu))

    def in_coordinates(dx):
        return model.local(x, model.step(model.step(model.retract(x, dx), u), u))

    library.check(in_coordinates, library.array(0.3 * given(dsys.ndx)))


def test_a_batch_of_torch_is_its_rows_and_is_broadcast(cart):
    torch = Torch()
    model, x, u = torch.export(cart), *map(torch.array, (given(3, 2, 4), given(2, 1)))
    x1 = torch.numbers(model.step(x, u))
    for i, j in np.ndindex(3, 2):
        row = cart.step(torch.numbers(x[i, j]), torch.numbers(u[j]))
        np.testing.assert_array_equal(x1[i, j], row)
    without = model.step(x.detach(), u.detach())
    assert not without.requires_grad and (without.numpy() == x1).all()


def test_jax_compiles_and_maps_over_a_batch(cart, jax):
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


def test_what_torch_cannot_do_is_refused(cart):
    made = Torch()
    torch, model, x, u = made.torch, nh.to_torch(cart), made.array(given(4)), made.array(given(1))
    with pytest.raises(ValueError, match=r"x must be a float64 tensor of shape \(\.\.\., 4\)"):
        model.step(x.float(), u)
    with pytest.raises(ValueError, match="one value for the whole batch"):
        nh.to_torch(cart, ["l"]).step(x, u, torch.ones(2, 1, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"no parameters \['length'\]"):
        nh.to_torch(cart, ["length"])
    (gradient,) = torch.autograd.grad(model.step(x, u).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"DiscreteSystem\.hessian"):
        gradient.sum().backward()
    with pytest.raises(nh.StepFailed):
        model.step(made.array([0.0, 0.0, 1e160, 1e160]), u)


def test_what_jax_cannot_do_is_refused(cart, jax):
    model, x, u = nh.to_jax(cart), given(4), given(1)
    with pytest.raises(ValueError, match=r"x must have shape \(4,\), got \(3, 4\); use jax.vmap"):
        model.step(given(3, 4), u)
    with pytest.raises(NotImplementedError, match=r"DiscreteSystem\.hessian"):
        jax.hessian(lambda a: model.step(a, u)[0])(x)
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        model.step(x, u)
    with pytest.raises(Exception, match="Newton"):
        model.step(np.array([0.0, 0.0, 1e160, 1e160]), u).block_until_ready()
