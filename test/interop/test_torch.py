"""Steps in PyTorch: gradients by differences, batches, refusals."""

import numpy as np
import pytest

import nh_control as nh
from nh_control.systems.cart_pole import cart_pole
from nh_control.systems.rigid_body import rigid_body

torch = pytest.importorskip("torch", reason="the extra `torch`")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cart():
    return nh.midpoint(cart_pole(), 0.05)


def tensor(*shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape)
    return torch.tensor(values, requires_grad=True)


def test_gradients_by_state_input_and_parameters(cart):
    """In a batch, with the parameters and the step among the arguments."""
    names = ("m_pole", "l", "h")
    model = nh.to_torch(cart, names)
    places = [cart.parameter_names.index(name) for name in names]
    p = torch.tensor(cart.parameter_values[places], requires_grad=True)
    assert torch.autograd.gradcheck(model.step, (tensor(2, 4), tensor(2, 1), p))


def test_gradients_on_a_manifold():
    """Of a rigid body, in local coordinates about a state."""
    dsys = nh.midpoint(rigid_body(), 0.1)
    model, n = nh.to_torch(dsys), dsys.ndx
    base = dsys.state(dsys.system.space.origin, [0.3, -0.2, 0.5])
    x, u = torch.tensor(base), torch.zeros(dsys.nu, dtype=torch.float64)

    def in_coordinates(dx):
        return model.local(x, model.step(model.step(model.retract(x, dx), u), u))

    assert torch.autograd.gradcheck(in_coordinates, (0.3 * tensor(n, seed=1),))


def test_a_batch_is_its_rows_and_is_broadcast(cart):
    model, x, u = nh.to_torch(cart), tensor(3, 2, 4), tensor(2, 1)
    x1 = model.step(x, u).detach().numpy()
    for i in range(3):
        for j in range(2):
            row = cart.step(x[i, j].detach().numpy(), u[j].detach().numpy())
            np.testing.assert_array_equal(x1[i, j], row)
    without = model.step(x.detach(), u.detach())
    assert not without.requires_grad and (without.numpy() == x1).all()


def test_a_rollout_is_optimized_by_gradients(cart):
    """The exact gradient through ten steps."""
    model, x0 = nh.to_torch(cart), torch.zeros(1, 4, dtype=torch.float64)
    inputs = torch.zeros(10, 1, 1, dtype=torch.float64, requires_grad=True)

    def loss():
        x = x0
        for u in inputs:
            x = model.step(x, u)
        return ((x[..., 0] - 0.1) ** 2).sum()

    optimizer = torch.optim.LBFGS([inputs], max_iter=30, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)
    assert loss() < 1e-12


def test_what_it_cannot_do_is_refused(cart):
    model, x, u = nh.to_torch(cart), tensor(4), tensor(1)
    with pytest.raises(ValueError, match=r"x must be a float64 tensor of shape \(\.\.\., 4\)"):
        model.step(x.float(), u)
    with pytest.raises(ValueError, match="one value for the whole batch"):
        nh.to_torch(cart, ["l"]).step(x, u, torch.ones(2, 1, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"no parameters \['length'\]"):
        nh.to_torch(cart, ["length"])
    (gradient,) = torch.autograd.grad(model.step(x, u).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"DiscreteSystem\.hessian"):
        gradient.sum().backward()
    far = torch.tensor([[0.0, 0, 0, 0], [0.0, 0.0, 1e160, 1e160]], dtype=torch.float64)
    with pytest.raises(nh.StepFailed):
        model.step(far, u)
