"""A, B, second derivatives and derivatives by parameters through contact are those of the step."""

import numpy as np
import pytest
from bodies import HALF, G, ball, box
from differences import hessian, jacobian


def spacing(smoothing):
    """A step of differences that is short beside the gap at rest, smoothing / weight."""
    return smoothing / 500


def relative(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


def impact(dsys, smoothing):
    return dsys.state([0, 0.11, 0], [1.0, -3.0, 0])


def slide(dsys, smoothing, speed=0.5):
    return dsys.state([0, HALF + smoothing / G, 0], [speed, 0, 1.0])


def roll(dsys, smoothing):
    return slide(dsys, smoothing, speed=0.1)


@pytest.mark.parametrize("motion", [impact, slide, roll])
@pytest.mark.parametrize("smoothing", [1e-4, 1e-8])
def test_a_is_the_derivative_at_every_smoothing(motion, smoothing):
    dsys = ball(0.3, 0.3).with_smoothing(smoothing)
    x = motion(dsys, smoothing)
    lin = dsys.linearize(x)
    expected = jacobian(
        lambda dx: dsys.local(lin.x1, dsys.step(dsys.retract(x, dx))), 6, spacing(smoothing)
    )
    assert relative(lin.A, expected) < 1e-6


def test_second_derivatives_are_exact():
    dsys = ball(0.3, 0.3).with_smoothing(1e-3)
    x, lam = impact(dsys, 1e-3), np.array([0.3, -0.5, 0.2, 0.7, 0.1, -0.4])
    x1 = dsys.step(x)
    expected = hessian(lambda dx: lam @ dsys.local(x1, dsys.step(dsys.retract(x, dx))), 6, 2e-4)
    assert relative(dsys.hessian(x, (), lam), expected) < 1e-5


@pytest.mark.slow
def test_derivatives_by_friction_restitution_and_smoothing_are_exact():
    dsys = box(parameters=("body_friction", "body_restitution"), smoothing=1e-5, restitution=0.3)
    names = ("body_friction", "body_restitution", "smoothing")
    q = dsys.system.space.retract([1, 0, 0, 0, 0, 0, 0.16], [0.6, 0.4, 0.2, 0, 0, 0])
    x = dsys.state(q, [1, 2, 0.5, 6, 3, -2])  # a corner hits the ground and slides
    lin = dsys.linearize(x, parameters=names)

    def stepped(changes):
        friction, restitution, smoothing = changes
        changed = dsys.with_parameters(
            body_friction=0.5 + friction, body_restitution=0.3 + restitution
        ).with_smoothing(1e-5 * (1 + 100 * smoothing))
        return dsys.local(lin.x1, changed.step(x))

    expected = jacobian(stepped, 3, 1e-4) / [1, 1, 1e-3]
    assert np.abs(lin.P).max(axis=0).all()
    for column in range(3):
        assert relative(lin.P[:, column], expected[:, column]) < 1e-6
