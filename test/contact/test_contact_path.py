"""Steps whose impulses Newton's method does not find: the central path is followed by its length,
also where it folds.
"""

from functools import cache

import numpy as np
import pytest
from bodies import chain
from native_equations import Equations, Impulses

import nh_control as nh
from nh_control.numerics import newton
from nh_control.numerics.contact_problem import blocks

# fmt: off
STRETCHED = {
    "folding": [-0.429849, 0.464139, -0.629037, -0.451794, -2.275073, -2.433594, 0.098526,
        -0.474034, -0.159763, 3.141593, -0.56804, 0.132251, -0.090557, -1.843568, -0.373871,
        -0.003894, -0.296895, 0.03936, 0.037717],
    "spinning": [-0.4574, -0.6081, 0.3829, -0.5238, 0.826, 0.896, 0.0366, -0.4488, -0.0062, 0.658,
        0.7897, -2.9235, 0.8346, 0.7394, -0.6544, -6.8556, 0.6117, -0.822, 0.0299],
}
"""States of thrown chains of four links that come to lie stretched, on five balls in a line."""
LYING = {
    "straight": [-0.70705862004702, -0.69457065918822, 0.13255793864450, 0.00825227934351,
        -0.26536984286016, -3.03903305578685, 0.03000000408306, 3.14159264338252,
        -3.14332167860281, -0.00061820542576, 0.00265797224342, -0.00593033710930,
        0.00094937868494, -0.03507249606433, 0.00711792687533, -0.02442788571013,
        -0.00044572035036, 0.00395501991083, -0.00044315281617],
    "unrolling": [0.69152904267160, -0.38431085344078, 0.59341743042763, 0.14815027618599,
        0.93913656, 1.94049594, 0.030000002274, -0.00180967563041, -0.00078070709023,
        -0.00229296868616, 0.12939318939906, 0.06017912548257, 0.00941791179708,
        0.25236368081807, -0.25077802586935, -0.02549859129887, 0.07278256026927,
        0.01504929732514, 0.00808207155988],
}
"""States of such chains that come to lie, all but at rest: their contact problems are solved from
far inside of the cones alone.
"""
FOLDED = {
    "rolling": [-0.32064660315374377, -0.6302266432384331, -0.3206468197367543, 0.6302267457281449,
        5.946816415462669, -3.3429287688878033, 0.030000003865779203, 0.02215052094601314,
        -7.846913734486263e-08, -0.43181291582684816, -1.8596816792254405, 0.009757765838570921,
        -8.618111005768589e-05, 3.6910621491311333, -0.40567272653509673, -0.024524122887810095,
        -1.2338718619892663, 0.0023955369282329356, -0.1883591355642858],
}
"""A state whose solutions for shorter steps end in a fold at h = 2.497 ms. That for h = 2.5 ms is
found from those for longer steps.
"""
CREEPING = {
    "turned": [-0.33676157722339, -0.59744122784967, -0.20889566260535, 0.69715007101496,
        0.81046785735090, -2.27479723603930, 0.03535757601188, -3.51348128868645,
        -3.36930698274953, 0.00000033345608, -0.15778479315244, -0.00024262867899,
        -0.00398223683568, 1.10146584725682, -0.40916363647664, -0.10981398781742,
        0.03080696064740, -0.00515416459245, 0.02159732519578],
}
"""A state whose central path turns back before its end: steps of growing length lead there, and
on to a solution with a million times its energy, which is not taken.
"""
# fmt: on


@cache
def thrown_chain():
    dsys = nh.midpoint(chain(4), 0.0025)
    return dsys, nh.ContactReadout(dsys)


@pytest.mark.parametrize(
    "state",
    [
        *STRETCHED,
        *LYING,
        *FOLDED,
        *(pytest.param(name, marks=pytest.mark.slow) for name in CREEPING),
    ],
)
def test_chains_that_lie_step(state):
    dsys, readout = thrown_chain()
    x = np.array({**STRETCHED, **LYING, **FOLDED, **CREEPING}[state])
    x[:4] /= np.linalg.norm(x[:4])
    x1 = dsys.step(x)
    table = readout.table(x[None], np.zeros((1, 0)))
    assert (table.gap > 0).all() and (table.margin > 0).all()
    assert table.gap * table.normal == pytest.approx(np.full((1, 5), 1e-8), rel=1e-6)
    energy, energy1 = dsys.energies(np.array([x, x1]))
    assert energy1 < energy


def linear_step(rows, v0):
    """A step `y = v0 + rows^T x`, `w = rows y` of unit masses; unknowns (y, x, psi)."""
    n = len(v0)

    def call(name, z, kappa):
        y, x, psi = z[:n], z[n : n + 3], z[-1]
        w = rows @ y
        if name == "contacts":
            return w[:, None], rows, np.array([[1.0], [0.0]])
        if name == "residual":
            path = [x[0] * w[0] - kappa, *(x[0] * w[1:] + psi * x[1:]), x[0] * psi + x[1:] @ w[1:]]
            return [np.hstack([y - v0 - rows.T @ x, path[:3], path[3] - kappa])[:, None]]
        r_z = np.zeros((n + 4, n + 4))
        r_z[:n, :n], r_z[:n, n : n + 3] = np.eye(n), -rows.T
        r_z[n, :n], r_z[n, n] = x[0] * rows[0], w[0]
        r_z[n + 1 : n + 3, :n] = x[0] * rows[1:]
        r_z[n + 1 : n + 3, n] = w[1:]
        r_z[n + 1 : n + 3, n + 1 : n + 3] = psi * np.eye(2)
        r_z[n + 1 : n + 3, -1] = x[1:]
        r_z[-1, :n] = x[1:] @ rows[1:]
        r_z[-1, n], r_z[-1, n + 1 : n + 3], r_z[-1, -1] = psi, w[1:], x[0]
        return [r_z]

    return call


def test_a_path_is_followed_through_its_fold():
    """Of these random contacts, whose normal and tangents are coupled, all but the third
    fold: kappa rises along their paths before it falls. The first residual is none, so that the
    step begins at the path.
    """
    rng, kappa, rises = np.random.default_rng(0), 1e-8, []
    drawn = [(rng.normal(size=(3, 4)), rng.normal(size=4)) for _ in range(327)]
    for i in (119, 137, 166, 326):
        call, smoothings = linear_step(*drawn[i]), list[float]()

        def residual(x, u, z, p, call=call, smoothings=smoothings):
            smoothings.append(p[0])
            return [np.nan * z] if len(smoothings) == 1 else call("residual", z, p[0])

        equations = Equations(
            8,
            p=(kappa, 1.0),
            first=4,
            blocks=blocks([(True, 2)]),
            residual=residual,
            jacobian=lambda x, u, z, p, call=call: call("jacobian", z, p[0]),
            contacts=lambda x, u, z, p, call=call: call("contacts", z, p[0]),
        )
        assert equations.solve() == newton.CONVERGED
        z = equations.work.z
        rises.append(np.diff(np.log(smoothings[1:])).max())
        w, x, psi = drawn[i][0] @ z[:4], z[4:7], z[7]
        assert min(w[0], x[0] - np.linalg.norm(x[1:]), psi - np.linalg.norm(w[1:])) > 0
        assert np.abs(call("residual", z, kappa)[0]).max() < 1e-12
    assert [bool(rise > 0.1) for rise in rises] == [True, True, False, True]


# The contact problem alone -----------------------------------------------------------------------


def problem(rng, smoothing):
    """Up to eight points of a body of 1 kg that moves into its ground, with friction 0.5."""
    points = rng.choice([-0.1, 0.1], size=(rng.integers(1, 9), 3))
    rows = []
    for x, y, z in points:
        lever = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        rows.append(np.hstack([np.eye(3), lever])[[2, 0, 1]])
    rows, mass = np.vstack(rows), np.diag([1.0] * 3 + [1 / 150] * 3)
    velocity = rng.normal(size=6) * rng.choice([1e-3, 1.0, 10.0])
    velocity[2] = -abs(velocity[2])
    count = len(points)
    shapes = blocks([(True, 2)] * count)
    G, b = rows @ np.linalg.solve(mass, rows.T), rows @ velocity
    return shapes, (G, b, np.full(count, 0.5), np.zeros(count), smoothing)


@pytest.mark.parametrize("smoothing", [1e-3, 1e-6, 1e-9])
def test_solutions_lie_on_the_central_path(smoothing):
    rng = np.random.default_rng(0)
    for _ in range(40):
        shapes, given = problem(rng, smoothing)
        found = Impulses(shapes)
        assert found.find(*given)
        G, b, mu, *_ = given
        assert found.w == pytest.approx(G @ found.x + b, abs=1e-9 * (1 + np.abs(b).max()))
        for i, (n, t, k, j) in enumerate(shapes):
            beta, g = mu[i] * found.x[n], found.x[t : t + k]
            psi, s = found.psi[j], found.w[t : t + k]
            assert found.x[n] > 0 and found.w[n] > 0
            assert np.linalg.norm(g) < beta and np.linalg.norm(s) < psi
            allowed = 1e-3 * smoothing + 1e-12 * beta * psi
            assert abs(found.x[n] * found.w[n] - smoothing) < allowed
            assert abs(beta * psi + g @ s - smoothing) < allowed
            assert np.abs(beta * s + psi * g).max() < allowed


def test_a_friction_with_a_given_bound_is_one_without_a_normal():
    (shape,) = shapes = blocks([(False, 2)])
    found = Impulses(shapes)
    G, b = np.eye(2), np.array([3.0, 4.0])
    assert shape.normal == -1
    assert found.find(G, b, np.zeros(1), np.array([2.0]), 1e-9)
    assert found.x == pytest.approx([-1.2, -1.6], abs=1e-8)  # opposite to the slip, of size 2
    assert found.find(G, b, np.zeros(1), np.array([6.0]), 1e-9)
    assert found.x == pytest.approx([-3, -4], abs=1e-8)  # enough to stop
