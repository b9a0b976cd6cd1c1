"""The N-fold spherical pendulum as vector fields on (TS^2)^N and (T*S^2)^N that are evaluated in
time linear in N.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from nh_control.geometry.homogeneous import ProductAction, TangentSphereAction
from nh_control.mechanics import parametric
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters

E3 = ca.DM([0, 0, 1])
"""The upward direction."""


def pendulum_chain(
    parameters: SphericalPendulumParameters = SphericalPendulumParameters(),
) -> tuple[ProductAction, ca.Function]:
    """The chain of `spherical_pendulum` as `x' = generator(x) f` under SE(3)^N, from its
    Lagrangian: x = (q_1, w_1, ..., q_N, w_N) on (TS^2)^N with inertial angular velocities w_i,
    `q_i' = w_i x q_i`, and `f_i = (w_i, q_i x w_i')` [celledoni2021 5.2].

    The field is a function `f(x, u, p)` of the state (6 N), no inputs, and the parameter values p.
    Example: `solve_ivp(pendulum_chain(c), t_span, x0, p=parametric.values(c))`.
    """
    numbers, params = parametric.symbolic(parameters)
    x, q, w = _states(len(parameters.masses))
    # f_i = (w_i, q_i x w_i')
    second = [ca.cross(q_i, a) for q_i, a in zip(q, angular_accelerations(q, w, params))]
    return _action(len(q), "w"), _field(x, numbers, w, second)


def pendulum_chain_momenta(
    parameters: SphericalPendulumParameters = SphericalPendulumParameters(),
) -> tuple[ProductAction, ca.Function]:
    """The chain from its Hamiltonian: x = (q_1, pi_1, ..., q_N, pi_N) on (T*S^2)^N, with momenta
    `pi = R(q) w` and `f_i = (dH/dpi_i, dH/dq_i)` [celledoni2021 5.2]. The paper prints this pair
    in the opposite order (corrected).

    `dH/dpi_i = w_i = q_i x (v_i - v_{i-1}) / L_i` with the velocities v_i = (P_i - P_{i+1}) / m_i
    of the masses, and `dH/dq_i = w_i x L_i P_i + g L_i (sum_{j >= i} m_j) e3`. The field has the
    same arguments as in `pendulum_chain`.
    """
    numbers, params = parametric.symbolic(parameters)
    x, q, pi = _states(len(parameters.masses))
    linear = linear_momenta(q, pi, params)
    beyond = [*linear[1:], ca.SX(3, 1)]
    velocities = [(P - after) / m for P, after, m in zip(linear, beyond, params.masses)]
    before = [ca.SX(3, 1), *velocities[:-1]]
    w = [ca.cross(q_i, v - v0) / l for q_i, v, v0, l in zip(q, velocities, before, params.lengths)]
    # dH/dq_i from the last link to the first, with the total mass of the links from i to N
    mass, gradients = ca.SX(0), []
    for i in reversed(range(len(q))):
        mass += params.masses[i]
        weight = params.g * mass * E3
        gradients.append(params.lengths[i] * (ca.cross(w[i], linear[i]) + weight))
    return _action(len(q), "pi"), _field(x, numbers, w, gradients[::-1])


def _states(n: int) -> tuple[ca.SX, list[ca.SX], list[ca.SX]]:
    """x (6 n) and its parts, which are the first and second components for each link."""
    x = ca.SX.sym("x", 6 * n)
    return (
        x,
        [x[6 * i : 6 * i + 3] for i in range(n)],
        [x[6 * i + 3 : 6 * i + 6] for i in range(n)],
    )


def _action(n: int, second: str) -> ProductAction:
    pairs = [
        [f"link{i + 1}_{c}" for c in ("x", "y", "z", *(f"{second}_{c}" for c in "xyz"))]
        for i in range(n)
    ]
    return ProductAction(*map(TangentSphereAction, pairs))


def _field(
    x: ca.SX, numbers: ca.SX, turning: Sequence[ca.SX], pushing: Sequence[ca.SX]
) -> ca.Function:
    f = ca.vertcat(*(part for pair in zip(turning, pushing) for part in pair))
    arguments, names = [x, ca.SX.sym("u", 0), numbers], ["x", "u", "p"]
    return ca.Function("field", arguments, [f], names, ["f"], {"cse": True})


def link_tensions(
    q: Sequence[ca.SX], w: Sequence[ca.SX], params: SphericalPendulumParameters
) -> list[ca.SX]:
    """Link tensions (N), in N, from the directions q_i (3) and the inertial angular velocities w_i
    (3), which are normal to q_i.

    Newton's law for mass i, `m_i a_i = -m_i g e3 - s_i q_i + s_{i+1} q_{i+1}`, along a rigid link,
    `q_i . (a_i - a_{i-1}) = -L_i |w_i|^2`, a_0 = 0, is
        (1/m_i + 1/m_{i-1}) s_i - (q_i . q_{i+1}) s_{i+1} / m_i - (q_{i-1} . q_i) s_{i-1} / m_{i-1}
            = L_i |w_i|^2,
    and for the first link, without m_0, `= L_1 |w_1|^2 - g q_1 . e3`.
    """
    right = [l * ca.sumsqr(w_i) for l, w_i in zip(params.lengths, w)]
    right[0] -= params.g * q[0][2]
    return _along_the_chain(q, right, params)


def angular_accelerations(
    q: Sequence[ca.SX], w: Sequence[ca.SX], params: SphericalPendulumParameters
) -> list[ca.SX]:
    """`w_i' = q_i x (a_i - a_{i-1}) / L_i` (N of 3), the solution of `R(q) w' = ...`
    [celledoni2021 5.2] without its dense matrix.
    """
    s = link_tensions(q, w, params)
    out = []
    for i, (q_i, l) in enumerate(zip(q, params.lengths)):
        pull = s[i - 1] * q[i - 1] / params.masses[i - 1] if i else -params.g * E3
        if i + 1 < len(q):
            pull += s[i + 1] * q[i + 1] / params.masses[i]
        out.append(ca.cross(q_i, pull) / l)
    return out


def momenta(
    q: Sequence[ca.SX], w: Sequence[ca.SX], params: SphericalPendulumParameters
) -> list[ca.SX]:
    """`pi_i = -hat(q_i)^2 dL/dw_i = (R(q) w)_i = L_i q_i x P_i` (N of 3), where P_i is the total
    linear momentum of the masses from i to N [celledoni2021 5.2].
    """
    velocity, linear = ca.SX(3, 1), []
    # v_i = v_{i-1} + L_i w_i x q_i, and P_i sums m_j v_j over j >= i
    for q_i, w_i, m, l in zip(q, w, params.masses, params.lengths):
        velocity = velocity + l * ca.cross(w_i, q_i)
        linear.append(m * velocity)
    for i in reversed(range(len(q) - 1)):
        linear[i] += linear[i + 1]
    return [l * ca.cross(q_i, P) for q_i, l, P in zip(q, params.lengths, linear)]


def linear_momenta(
    q: Sequence[ca.SX], pi: Sequence[ca.SX], params: SphericalPendulumParameters
) -> list[ca.SX]:
    """P_i (N of 3) for momenta pi_i on T*S^2. The component across the link is `pi_i x q_i / L_i`.
    The component along the link keeps the links rigid and solves the same tridiagonal equations as
    the tensions.
    """
    across = [ca.cross(pi_i, q_i) / l for pi_i, q_i, l in zip(pi, q, params.lengths)]
    right = []
    for i, q_i in enumerate(q):
        pull = ca.SX(3, 1)
        if i:
            pull += across[i - 1] / params.masses[i - 1]
        if i + 1 < len(q):
            pull += across[i + 1] / params.masses[i]
        right.append(ca.dot(q_i, pull))
    along = _along_the_chain(q, right, params)
    return [a + s * q_i for a, s, q_i in zip(across, along, q)]


def _along_the_chain(
    q: Sequence[ca.SX], right: Sequence[ca.SX], params: SphericalPendulumParameters
) -> list[ca.SX]:
    """Solve the tridiagonal equations for the links,
    `(1/m_i + 1/m_{i-1}) s_i - c_i s_{i+1} / m_i - c_{i-1} s_{i-1} / m_{i-1} = right_i` with
    `c_i = q_i . q_{i+1}`, by elimination (Thomas). The matrix is symmetric and positive definite.
    """
    n = len(q)
    # c_i / m_i, minus the off-diagonal entries
    side = [ca.dot(q[i], q[i + 1]) / params.masses[i] for i in range(n - 1)]
    pivots, values = [ca.SX(1 / params.masses[0])], [right[0]]
    for i in range(1, n):  # forward elimination
        factor = side[i - 1] / pivots[-1]
        pivots.append(1 / params.masses[i] + 1 / params.masses[i - 1] - factor * side[i - 1])
        values.append(right[i] + factor * values[-1])
    out = [values[-1] / pivots[-1]]  # back substitution
    for i in reversed(range(n - 1)):
        out.append((values[i] + side[i] * out[-1]) / pivots[i])
    return out[::-1]
