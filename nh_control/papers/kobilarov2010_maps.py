"""Appendix B of [kobilarov2010]: retraction maps on SE(2) and their tangents, compared with matrix
formulas.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import expm

from nh_control.figures.style import OPEN, RUN, SERIES, TARGET
from nh_control.geometry import se2
from nh_control.numerics.progress import Progress
from nh_control.papers.paper import Outcome, Statement

SAMPLES = np.random.default_rng(2010).uniform(-2.0, 2.0, (20, 3))
DIRECTION = np.array([1.0, 1.0, 0.4])
"""The algebra element whose multiples are mapped in the figure."""
LOOKS = {"exp": RUN, "cay": OPEN, "ccsk": SERIES[1]}


def hat(v: np.ndarray) -> np.ndarray:
    """Return the matrix (3, 3) of an element of the algebra."""
    return np.array([[0.0, -v[0], v[1]], [v[0], 0.0, v[2]], [0.0, 0.0, 0.0]])


def matrix(g: np.ndarray) -> np.ndarray:
    """Return (41): the matrix of g = (theta, x, y)."""
    c, s = np.cos(g[0]), np.sin(g[0])
    return np.array([[c, -s, g[1]], [s, c, g[2]], [0.0, 0.0, 1.0]])


def cayley(v: np.ndarray) -> np.ndarray:
    """Return `(I - v/2)^{-1} (I + v/2)`, the definition of the Cayley map."""
    half = hat(v) / 2
    return np.linalg.solve(np.eye(3) - half, np.eye(3) + half)


def printed_cayley(v: np.ndarray) -> np.ndarray:
    """Return the Cayley map as printed, with v1^2 - 4 on the diagonal."""
    # The numerator v1^2 - 4 is the negative of 4 - v1^2.
    g = cayley(v)
    return g - np.diag([2 * g[0, 0], 2 * g[1, 1], 0.0])


def numeric(expression: Callable[[ca.SX], ca.SX]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a numeric function of v that returns one-dimensional vectors."""
    v = ca.SX.sym("v", 3)
    f = ca.Function("f", [v], [expression(v)])
    return lambda v: np.squeeze(f(v).full())


def tangent_error(name: str) -> float:
    """Return the largest error in `dtau_v dtau_v^{-1} = I`, where automatic differentiation
    computes dtau_v w = (d/ds tau(v + s w)) tau(v)^{-1}.
    """
    retraction = se2.RETRACTIONS[name]
    v = ca.SX.sym("v", 3)
    g = retraction.tau(v)
    slope = ca.jacobian(g, v)
    # Right translation of (theta', x', y') to the identity: t' - theta' J t.
    right = ca.vertcat(
        slope[0, :], slope[1, :] + g[2] * slope[0, :], slope[2, :] - g[1] * slope[0, :]
    )
    f = ca.Function("f", [v], [right @ retraction.dtau_inverse(v) - ca.SX.eye(3)])
    return max(float(np.abs(f(v).full()).max()) for v in SAMPLES)


def maps(_: Progress) -> Outcome:
    """Compare the maps and their tangents at random elements, and measure the order of the
    truncation (42).
    """
    exp, cay = numeric(se2.exp), numeric(se2.cay)
    errors = {
        "exp": max(np.abs(matrix(exp(v)) - expm(hat(v))).max() for v in SAMPLES),
        "cay": max(np.abs(matrix(cay(v)) - cayley(v)).max() for v in SAMPLES),
        # The printed map must be wrong for every element, hence the minimum.
        "printed cay": min(np.abs(printed_cayley(v) - cayley(v)).max() for v in SAMPLES),
        **{f"tangent of {name}": tangent_error(name) for name in LOOKS},
    }
    sizes = np.logspace(-1.5, 0, 7)
    exact, truncated = numeric(se2.dexp_inverse), numeric(_truncated)
    cut = np.array([np.abs(exact(s * DIRECTION) - truncated(s * DIRECTION)).max() for s in sizes])
    # The first omitted term of dexp^-1 is -ad^4 / 720.
    order = float(np.polyfit(np.log(sizes), np.log(cut), 1)[0])
    numbers = {**{name: float(e) for name, e in errors.items()}, "order_of_(42)": order}
    return Outcome(lambda: _draw(sizes, cut), numbers, _statements(numbers))


def _truncated(v: ca.SX) -> ca.SX:
    """Return (42), `I - ad/2 + ad^2/12`."""
    a = se2.ad(v)
    return ca.SX.eye(3) - a / 2 + a @ a / 12


def _statements(n: dict[str, float]) -> tuple[Statement, ...]:
    return (
        Statement(
            "App. B",
            "exp on SE(2) in closed form",
            f"the matrix exponential to {n['exp']:.0e}",
            n["exp"] < 1e-13,
        ),
        Statement(
            "App. B",
            "cay on SE(2) in closed form",
            f"(I - v/2)^-1 (I + v/2) to {n['cay']:.0e}; the printed map differs by at least "
            f"{n['printed cay']:.1g}",
            n["cay"] < 1e-13 < n["printed cay"],
            "4 - v1^2 instead of the printed v1^2 - 4 on the diagonal",
        ),
        Statement(
            "App. B (44)",
            "dcay^-1 = I - ad/2 + [v1 v, 0, 0] / 4",
            f"inverse of the tangent to {n['tangent of cay']:.0e}",
            n["tangent of cay"] < 1e-12,
        ),
        Statement(
            "App. B (42)",
            "dexp^-1 is I - ad/2 + ad^2/12, truncated",
            f"its error is of order {n['order_of_(42)']:.2f} in v; the closed coefficient used "
            f"here is exact to {n['tangent of exp']:.0e}",
            abs(n["order_of_(42)"] - 4) < 0.1 and n["tangent of exp"] < 1e-12,
            "(1 - (v1/2) cot(v1/2)) / v1^2 instead of 1/12",
        ),
        Statement(
            "5",
            "canonical coordinates of the second kind",
            f"inverse of the tangent to {n['tangent of ccsk']:.0e}",
            n["tangent of ccsk"] < 1e-12,
        ),
    )


def _draw(sizes: np.ndarray, cut: np.ndarray) -> Figure:
    """Plot the images of one element's multiples under the maps, and the error of the truncation
    (42).
    """
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, color in LOOKS.items():
        tau = numeric(se2.RETRACTIONS[name].tau)
        path = np.array([tau(s * DIRECTION)[1:] for s in np.linspace(0, 2.5, 60)])
        left.plot(*path.T, color=color, label=name)
    left.set(title="τ(s v)", xlabel="x (m)", ylabel="y (m)", aspect="equal")
    left.legend(fontsize=8)
    right.loglog(sizes, cut, "o-", color=RUN, label="(42) − dexp⁻¹")
    right.loglog(sizes, cut[0] * (sizes / sizes[0]) ** 4, ":", color=TARGET, label="order 4")
    right.set(title="Truncated tangent", xlabel="size of v", ylabel="error")
    right.legend(fontsize=8)
    return figure
