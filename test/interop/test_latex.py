"""Equations as LaTeX: what is printed is what the package computes."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

import nh_control as nh
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.scenarios import get
from nh_control.systems import snakeboard
from nh_control.systems.cart_pole import cart_pole
from nh_control.systems.rigid_body import rigid_body

sp = pytest.importorskip("sympy", reason="the extra `latex`")

SYSTEMS = {"cart_pole": cart_pole, "snakeboard": snakeboard, "rigid_body": rigid_body}


@cache
def equations_of(name):
    return nh.latex(SYSTEMS[name]())


@cache
def equations_of_a_step():
    return nh.latex(nh.midpoint(cart_pole(), 0.1))


def differences(equations, values):
    """left - right of all equations at numbers of the symbols, in their order; names of parts get
    their values.
    """
    numbers = dict(zip(equations.symbols, values))
    for one in equations.groups.get("Abbreviations", ()):
        numbers[one.left] = number(one.right, numbers)
    return np.array([number(one.left - one.right, numbers) for one in equations])


def number(expression, numbers):
    symbols = list(expression.free_symbols)
    return float(sp.lambdify(symbols, expression, "math")(*(numbers[s] for s in symbols)))


def point(system, seed=1):
    rng = np.random.default_rng(seed)
    q = system.space.retract(system.nominal_configuration, 0.4 * rng.normal(size=system.space.nv))
    tangent = rng.normal(size=system.space.nv)
    return q, frame_at(system, q) @ tangent, rng.normal(size=system.nu)


def frame_at(system, q):
    return system.value(system.space.frame(system.symbols[0]), q)


@pytest.mark.parametrize("name", SYSTEMS)
def test_accelerations_of_the_package_satisfy_the_equations(name):
    """And its multipliers; without a group they would not."""
    system = SYSTEMS[name]()
    q, v, u = point(system)
    if system.n_velocity_constraints:
        basis = system.value(system.mechanics.admissible_basis(system.symbols[0]), q)
        v = basis @ np.linalg.lstsq(basis, v, rcond=None)[0]
    continuous = ContinuousSystem(system)
    frame = frame_at(system, q)
    terms = continuous.terms(q=q, v=v, u=u)
    rates = np.linalg.lstsq(
        frame, continuous.acceleration(q, v, u) - np.asarray(terms["frame_rate"])[:, 0], rcond=None
    )[0]
    lam = continuous.multipliers(q, v, u)
    equations = equations_of(name)
    at = [*system.symbols[:2], system.parameter_symbols]
    lagrangian = ca.Function("L", at, [system.lagrangian_at(*at[:2])])(
        q, v, system.parameter_values
    )
    values = [*q, *v, *u, *system.parameter_values, *lam, *rates, float(lagrangian)]
    found = differences(equations, values)
    np.testing.assert_allclose(found, 0.0, atol=1e-11)
    values[-2] += 0.3
    assert np.abs(differences(equations, values)).max() > 1e-3
    assert {"Lagrangian", "Equations of motion"} <= {*equations.groups}


@pytest.mark.parametrize("series", [False, True], ids=["closed", "series"])
@pytest.mark.parametrize("name", ["cart_pole", pytest.param("snakeboard", marks=pytest.mark.slow)])
def test_a_step_satisfies_its_equations(name, series):
    """Residual and read-out at the unknowns that the package finds.
    A step of 1 s, whose rotations take no series.
    """
    system = SYSTEMS[name]()
    make = nh.nonholonomic_midpoint if system.n_velocity_constraints else nh.midpoint
    dsys = make(system, 1.0 if name == "snakeboard" else 0.1)
    q, v, u = point(system)
    x = dsys.state(q, v)
    given = [*x, *u, *dsys.unknowns(x, u), dsys.h, *system.parameter_values, *dsys.step(x, u)]
    equations = nh.latex(dsys, series=series, simplify=not series)
    np.testing.assert_allclose(differences(equations, given), 0.0, atol=1e-10)


def test_every_operation_is_that_of_casadi():
    from nh_control.interop.symbolic import OPERATIONS, to_sympy

    x = ca.SX.sym("x", 2)
    a, b = x[0], x[1]
    expressions = ca.vertcat(
        *(a + b, a - b, a * b, a / b, -a, 1 / a, a**2, 2 * a, ca.sqrt(b), b**a, b**3.5, ca.exp(a)),
        *(ca.log(b), ca.log1p(b), ca.expm1(a), ca.sin(a), ca.cos(a), ca.tan(a), ca.asin(a)),
        *(ca.acos(a), ca.atan(a), ca.atan2(a, b), ca.sinh(a), ca.cosh(a), ca.tanh(a)),
        *(ca.asinh(a), ca.acosh(1 + b), ca.atanh(a), ca.hypot(a, b), ca.fabs(a), ca.sign(a)),
        *(ca.fmin(a, b), ca.fmax(a, b), ca.floor(a), ca.ceil(a), ca.erf(a)),
        *(ca.if_else(a < b, a, b), ca.if_else(a <= b, 1, b), ca.if_else(a == b, 2, b)),
        *(ca.if_else(a != b, a, 3), ca.if_else(ca.logic_and(a < 0, b > 0), a, b)),
        *(ca.if_else(ca.logic_or(a < 0, b < 0), a, b), ca.logic_not(a < b), 0.1 * a, np.pi * a),
    )
    names = sp.symbols("x:2", real=True)
    f = ca.Function("f", [x], [expressions])
    for series in (True, False):  # conditions that choose no series stay
        converted = to_sympy(expressions, x, names, series)
        found = sp.lambdify(names, converted, ["numpy", "scipy"])
        for values in ([0.4, 0.7], [-0.4, 0.7], [0.3, 0.3]):
            np.testing.assert_allclose(found(*values), np.asarray(f(values))[:, 0], rtol=1e-13)
    used = {f.instruction_id(k) for k in range(f.n_instructions())}
    assert set(OPERATIONS) - used <= {ca.OP_ASSIGN, ca.OP_INV, ca.OP_LE, ca.OP_OR, ca.OP_CONSTPOW}


def test_equations_can_be_drawn():
    """By Matplotlib, which draws single equations; notebooks draw all."""
    parser = MathTextParser("agg")
    for equations in (equations_of("snakeboard"), equations_of_a_step()):
        for one in equations:
            assert parser.parse(f"${one}$").width > 20
        assert equations._repr_latex_().startswith("$$\\begin{aligned}")
        assert str(equations).count("\\begin{align*}") == len(equations.groups)


def test_compositions_and_prescribed_coordinates():
    from nh_control.integrators import INTEGRATORS

    composed = INTEGRATORS["midpoint_order4"].make(cart_pole(), 0.1)
    with pytest.raises(ValueError, match="use the method of its substeps"):
        nh.latex(composed)
    moved = get("marionette").model().system
    assert moved.prescribed and "Equations of motion" not in nh.latex(moved, simplify=False).groups
