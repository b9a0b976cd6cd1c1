"""Contacts that do not act on each other: their impulses are found as if they were alone."""

import numpy as np
from native_equations import Impulses

import nh_control as nh
from nh_control.multibody import Body, Multibody, floating
from nh_control.numerics.contact_problem import blocks

KAPPA = 1e-8


def solution(G, b, count):
    """The impulses, velocities and slip bounds of `count` contacts with friction."""
    impulses = Impulses(blocks([(True, 2)] * count))
    assert impulses.find(G, b, np.full(count, 0.5), np.zeros(count), KAPPA)
    return impulses.x, impulses.w, impulses.psi


def test_islands_are_solved_alone():
    """The second contact acts on no other; the first and the third act on each other."""
    rng = np.random.default_rng(0)
    J, b = rng.normal(size=(9, 9)), rng.normal(size=9)
    together, alone = np.r_[0:3, 6:9], np.arange(3, 6)
    J[np.ix_(alone, together)] = J[np.ix_(together, alone)] = 0
    G = J @ J.T
    x, w, psi = solution(G, b, 3)
    np.testing.assert_allclose(w, G @ x + b, atol=1e-12)
    for rows, contacts in ((together, [0, 2]), (alone, [1])):
        parts = solution(G[np.ix_(rows, rows)], b[rows], len(contacts))
        for part, whole in zip(parts, (x[rows], w[rows], psi[contacts])):
            np.testing.assert_array_equal(part, whole)


def test_an_island_without_a_solution_fails_the_problem():
    G, b = np.eye(6), -np.ones(6)
    G[3:, 3:] *= -1
    impulses = Impulses(blocks([(True, 2)] * 2))
    assert not impulses.find(G, b, np.full(2, 0.5), np.zeros(2), KAPPA)
    assert not impulses.known


def boxes(*names):
    return nh.midpoint(
        Multibody(
            "boxes",
            [floating(name, space="SO3xR3") for name in names],
            [Body(name, 1.0, inertia=(0.007,) * 3) for name in names],
            contacts=[nh.Contact(name, nh.BoxCorners((0.2,) * 3), 0.5) for name in names],
            gravity=(0, 0, -9.81),
        ),
        0.01,
    )


def test_boxes_side_by_side_move_as_each_alone():
    alone, both = boxes("a"), boxes("a", "b")
    rng = np.random.default_rng(1)
    q = np.r_[1.0, np.zeros(5), 0.15], np.r_[1.0, np.zeros(3), 5.0, 0.0, 0.25]
    v = 0.5 * rng.normal(size=(2, 6))
    together = both.simulate(both.state(np.hstack(q), v.ravel()), steps=60)
    for k, name in enumerate("ab"):
        run = alone.simulate(alone.state(q[k], v[k]), steps=60)
        # it has touched the ground
        assert run.states[:, alone.state_names.index("a_z")].min() < 0.15
        names = [f"_{n}".replace("_a_", f"_{name}_")[1:] for n in alone.state_names]
        places = [both.state_names.index(n) for n in names]
        np.testing.assert_allclose(together.states[:, places], run.states, atol=1e-10)
