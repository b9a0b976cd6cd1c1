"""The worked examples in [johnson2014]: one step of the pendulum with its first and second
derivatives (II-A, IV-A, V), and the singularities in section VII.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

from nh_control.figures.style import LIMIT, OPEN, RUN, TARGET, legend_below
from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.numerics.progress import Progress
from nh_control.papers.paper import Outcome, Statement
from nh_control.systems import pendulum

STEP_S = 0.1
X, U = np.array([0.2, 0.5]), np.array([0.8])
DIRECTION = np.array([1.0, 1.0, 1.0])
"""Direction of the deviation (q, p, u) in the figure."""
PRINTED: dict[str, Sequence] = {
    "q1, p1": ("0.2471", "0.3627"),
    "D1D1 Ld, D2D1 Ld, D1D2 Ld, D2D2 Ld": ("9.7610", "-10.2389", "-10.2389", "9.7610"),
    "M^-1": ("-0.0976",),
    "A": (("0.9533", "0.0976"), ("-0.9333", "0.9533")),
    "B": (("0.00976",), ("0.09533",)),
    "controllability matrix [B, A B]": (("0.00976", "0.0186"), ("0.09533", "0.0818")),
    "second derivatives of q1": (
        ("1.01e-2", "5.06e-4", "5.06e-5"),
        ("5.06e-4", "2.53e-5", "2.53e-6"),
        ("5.06e-5", "2.53e-6", "2.53e-7"),
    ),
    "second derivatives of p1": (
        ("2.02e-1", "1.01e-2", "1.01e-3"),
        ("1.01e-2", "5.06e-4", "5.06e-5"),
        ("1.01e-3", "5.06e-5", "5.06e-6"),
    ),
}
WHERE = {"q1, p1": "II-A"} | dict.fromkeys(list(PRINTED)[1:6], "IV-A")
CORRECTED = {
    "B": "the text multiplies by 0.01 instead of dt = 0.1, but prints the right result",
    "controllability matrix [B, A B]": "the paper truncates 0.009767, which rounds to 0.00977",
}
M, R, G = 0.7, 1.3, 9.8
"""Mass, length and gravity for section VII, which gives no numbers."""


def worked(_: Progress) -> Outcome:
    """Compute the worked step, and the errors in its first- and second-order predictions."""
    dsys = midpoint(pendulum(), STEP_S, "left")
    lin, x1 = dsys.linearize(X, U), dsys.step(X, U)
    first = np.hstack([lin.A, lin.B])
    # The contraction with a unit vector e is the Hessian of one component.
    second = np.array([dsys.hessian(X, U, e) for e in np.eye(2)])
    slots = second_slot_derivatives(dsys.system, STEP_S)(X[0], x1[0])
    d11, d21, d12, d22 = (float(value) for value in slots)
    # dq1/dp0 = -M^-1 with M = D2 D1 Ld
    inverse_mass = np.array([1 / d21])  # F- = u dt does not depend on q1
    reachable = np.hstack([lin.B, lin.A @ lin.B])
    rank = int(np.linalg.matrix_rank(reachable))
    derivatives = np.array([d11, d21, d12, d22]), inverse_mass, lin.A, lin.B, reachable
    computed = dict(zip(PRINTED, (x1, *derivatives, *second)))
    # x1(d) = x1 + F d + d^T H d / 2 + ..., so the errors have orders 2 and 3.
    sizes = np.logspace(-2, 0, 9)
    errors: dict[str, list[float]] = {"first order": [], "second order": []}
    for d in sizes[:, None] * DIRECTION:
        true = dsys.step(X + d[:2], U + d[2:]) - x1
        errors["first order"].append(float(np.linalg.norm(true - first @ d)))
        both = first @ d + d @ second @ d / 2
        errors["second order"].append(float(np.linalg.norm(true - both)))
    statements = tuple(
        Statement(
            WHERE.get(name, "V"),
            f"{name} = {_text(PRINTED[name])}",
            _text(value),
            prints(value, PRINTED[name]),
            CORRECTED.get(name, ""),
        )
        for name, value in computed.items()
    )
    controllable = Statement(
        "IV-A", "the rank of [B, A B] is 2: linearly controllable", f"rank {rank}", rank == 2
    )
    numbers = {name: value.tolist() for name, value in computed.items()}
    return Outcome(
        lambda: _draw_worked(sizes, errors),
        {**numbers, "rank of [B, A B]": rank, "errors": errors},
        (*statements, controllable),
    )


def prints(values: np.ndarray, printed: Sequence) -> bool:
    """Return whether the values, rounded or truncated to the printed digits, equal the printed
    values. The paper rounds some values and truncates others.
    """
    texts = np.array(printed)
    units = np.array([10.0 ** _last_digit(text) for text in texts.flat])
    expected = texts.astype(float).ravel()
    # Rounded: |error| <= unit / 2. Truncated: 0 <= |value| - |printed| < unit.
    excess = np.sign(expected) * (np.ravel(values) - expected)
    return values.shape == texts.shape and bool(((excess >= -units / 2) & (excess < units)).all())


def _last_digit(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    return int(exponent or 0) - len(mantissa.partition(".")[2])


def _text(values: Any) -> str:
    array = np.asarray(values)
    rows = [", ".join(t if isinstance(t, str) else f"{t:.4g}" for t in row.tolist())
            for row in np.atleast_2d(array)]  # fmt: skip
    return f"({'; '.join(rows)})"


def _draw_worked(sizes: np.ndarray, errors: dict[str, list[float]]) -> Figure:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot(
        xlabel="deviation of q, p and u", ylabel="error of the next state",
        title="A pendulum's step: predictions by its derivatives",
    )  # fmt: skip
    for (name, error), color, order in zip(errors.items(), (OPEN, RUN), (2, 3)):
        axes.loglog(sizes, error, "o-", color=color, label=f"{name}")
        axes.loglog(sizes, error[0] * (sizes / sizes[0]) ** order, ":", color=TARGET)
    axes.legend()
    return figure


def spherical() -> System:
    """Return the spherical pendulum from VII-A in polar angles measured from the downward
    vertical.
    """

    # L = m r^2 / 2 (theta'^2 + sin(theta)^2 phi'^2) + m g r cos(theta)
    def lagrangian(q: ca.SX, v: ca.SX) -> ca.SX:
        kinetic = v[0] ** 2 + ca.sin(q[0]) ** 2 * v[1] ** 2
        return M * R**2 / 2 * kinetic + M * G * R * ca.cos(q[0])

    return System(
        "spherical pendulum in angles", Rn("theta", "phi"), lagrangian, nominal=(1.0, 0.0)
    )


def constrained() -> System:
    """Return the pendulum from VII-B in Cartesian coordinates, without gravity and with the
    constraint `h = x^2 + y^2 - l^2`.
    """
    return System(
        "pendulum in the plane",
        Rn("x", "y"),
        lambda q, v: M / 2 * (v[0] ** 2 + v[1] ** 2),
        holonomic_constraint=lambda q: ca.sumsqr(q) - R**2,
        nominal=(0.0, -R),
    )


def _discrete_lagrangian(system: System, h: float) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return two configurations and `Ld = h L((q0 + q1) / 2, (q1 - q0) / h)`."""
    q0, q1 = ca.SX.sym("q0", system.space.nq), ca.SX.sym("q1", system.space.nq)
    return q0, q1, h * ca.SX(system.numeric.lagrangian_at((q0 + q1) / 2, (q1 - q0) / h))


def second_slot_derivatives(system: System, h: float) -> ca.Function:
    """Return a function that maps two configurations (q0, q1) to D1 D1 Ld, D2 D1 Ld, D1 D2 Ld and
    D2 D2 Ld.
    """
    q0, q1, action = _discrete_lagrangian(system, h)
    slots = [
        ca.jacobian(ca.gradient(action, first), second)
        for first in (q0, q1)
        for second in (q0, q1)
    ]
    return ca.Function("slots", [q0, q1], slots)


def matrices(system: System, h: float) -> ca.Function:
    """Return a function that maps two configurations (q0, q1) to `M = D2 D1 Ld` (8) and `Dh(q1)
    M^{-1} Dh(q0)^T`.
    """
    s = system.numeric
    q0, q1, action = _discrete_lagrangian(system, h)
    mass = ca.jacobian(ca.gradient(action, q0), q1)
    if not system.n_holonomic_constraints:
        return ca.Function("matrices", [q0, q1], [mass])
    # Dh(q1) M^-1 Dh(q0)^T must be regular so that a step determines its multipliers.
    slope0, slope1 = (ca.jacobian(s.holonomic(q), q) for q in (q0, q1))
    return ca.Function("matrices", [q0, q1], [mass, slope1 @ ca.solve(mass, slope0.T)])


def determinant(q0: np.ndarray, q1: np.ndarray, h: float) -> float:
    """Return (34) as printed. It belongs to an Ld that includes the factor dt, which VII-A
    omits.
    """
    half, rotation = (q0[0] + q1[0]) / 2, q1[1] - q0[1]
    bracket = h**2 * G * np.cos(half) + R * (2 + np.cos(2 * half)) * rotation**2 + 4 * R
    return float(M**2 * R**3 / (4 * h**2) * np.sin(half) ** 2 * bracket)


def singularities(_: Progress) -> Outcome:
    """Find the singularities of M (8) and of Dh M^-1 Dh^T."""
    half = np.linspace(0, 2 * np.pi, 101)
    # The step size at which (34) changes sign for rotation = 0 and cos(half) = -1.
    bound = np.sqrt(4 * R / G)
    steps = {"0.1 s": STEP_S, "0.95 √(4r/g)": 0.95 * bound, "1.05 √(4r/g)": 1.05 * bound}
    dets = {name: _determinants(h, half, 0.0) for name, h in steps.items()}
    determinant_error = max(
        abs(_determinants(h, half, rotation) - [
            determinant(np.array([a, 0.0]), np.array([a, rotation]), h) for a in half
        ]).max()
        for h in steps.values()
        for rotation in (0.0, 0.4)
    )  # fmt: skip
    # A sign change in 0 < theta0 + theta1 < 2 pi indicates another singularity.
    inner = slice(1, len(half) // 2)
    other = {name: bool(np.ptp(np.sign(det[inner])) > 0) for name, det in dets.items()}
    turns = np.linspace(0, np.pi, 101)
    products = _products(turns)
    rule = -4 * STEP_S / M * R**2 * np.cos(turns)
    numbers = {
        "error_of_(34)": float(determinant_error),
        "det_at_theta0+theta1=pi": float(dets["0.1 s"][len(half) // 4]),
        "det_at_theta0+theta1=2pi": float(dets["0.1 s"][len(half) // 2]),
        "further_singularity": other,
        "error_of_the_product": float(np.abs(products - rule).max()),
        "condition_times_cos_at_turn": _conditions(),
    }
    return Outcome(
        lambda: _draw_singularities(half, dets, turns, products),
        numbers,
        _singular_statements(numbers),
    )


def _determinants(h: float, half: np.ndarray, rotation: float) -> np.ndarray:
    """Return det M for theta0 = theta1 = half and phi1 - phi0 = rotation."""
    f = matrices(spherical(), h)
    return np.array([np.linalg.det(f([a, 0.0], [a, rotation]).full()) for a in half])


def _products(turns: np.ndarray) -> np.ndarray:
    """Return Dh M^-1 Dh^T for the constrained pendulum with the given rotations in one step."""
    f, q0 = matrices(constrained(), STEP_S), [0.0, -R]
    return np.array([float(f(q0, [R * np.sin(a), -R * np.cos(a)])[1]) for a in turns])


def _conditions() -> dict[str, float]:
    """Return the reported condition numbers of Dh M^-1 Dh^T for rotations near pi/2 in one step,
    each multiplied by the cosine of the rotation.
    """
    dsys, out = midpoint(constrained(), STEP_S), {}
    for sine in (0.5, 0.99, 0.9999):
        # The momentum that turns the pendulum by this angle in one step.
        x = np.array([0.0, -R, sine * M * R / STEP_S, 0.0])
        out[f"{np.arcsin(sine):.3f}"] = dsys.conditioning(x).constraint * np.sqrt(1 - sine**2)
    return out


def _singular_statements(n: dict[str, Any]) -> tuple[Statement, ...]:
    pi, two_pi = n["det_at_theta0+theta1=pi"], n["det_at_theta0+theta1=2pi"]
    near, below, above = n["further_singularity"].values()
    conditions = n["condition_times_cos_at_turn"]
    return (
        Statement(
            "VII-A (34)",
            "det M of the spherical pendulum",
            f"equal to (34) to {n['error_of_(34)']:.0e}",
            n["error_of_(34)"] < 1e-9,
            "for Ld with the factor dt, which the paper omits",
        ),
        Statement(
            "VII-A",
            "M is singular where theta0 + theta1 = n pi",
            f"det M is {pi:.2g} at pi and {two_pi:.0e} at 2 pi",
            abs(pi) > 1e-3 and abs(two_pi) < 1e-12,
            "theta0 + theta1 = 2 n pi",
        ),
        Statement(
            "VII-A",
            "a swing has other singularities only above dt = sqrt(4 r / g)",
            f"sign changes: {near} at 0.1 s, {below} at 0.95 and {above} at 1.05 of that step",
            not near and not below and above,
        ),
        Statement(
            "VII-B",
            "Dh M^-1 Dh^T is -(4 dt^2 / m) (x1 x0 + y1 y0), zero after a turn by pi/2",
            f"with dt instead of dt^2, equal to {n['error_of_the_product']:.0e}; steps that turn "
            f"by {', '.join(conditions)} rad report condition numbers of 1 / cos(turn)",
            n["error_of_the_product"] < 1e-12
            and np.allclose(list(conditions.values()), 1, atol=1e-6),
            "M = -(m / dt) I; the paper omits the factor dt of Ld",
        ),
    )


def _draw_singularities(
    half: np.ndarray, dets: dict[str, np.ndarray], turns: np.ndarray, products: np.ndarray
) -> Figure:
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, det), color in zip(dets.items(), (RUN, OPEN, LIMIT)):
        left.plot(2 * half / np.pi, det / np.abs(det).max(), color=color, label=f"dt = {name}")
    left.set(title="Spherical pendulum", xlabel="(θ₀ + θ₁) / π", ylabel="det M over its largest")
    right.plot(turns / np.pi, products, color=RUN)
    right.set(title="Pendulum with a constraint", xlabel="turn in one step / π")
    right.set_ylabel("Dh M⁻¹ Dhᵀ (m² s/kg)")
    for axes in (left, right):
        axes.axhline(0.0, color=TARGET, linewidth=0.8)
    legend_below(figure, 3)
    return figure
