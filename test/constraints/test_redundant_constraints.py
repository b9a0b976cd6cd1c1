"""Rows of holonomic constraints that depend on others wherever the constraints hold are refused by
name; a loss of rank at single configurations is not.
"""

import casadi as ca
import numpy as np
import pytest
from linkages import bead, rod

import nh_control as nh


def circle(q):
    return ca.sumsqr(q[:2]) - 1


REDUNDANT = {
    "twice": ({"holonomic_constraint": lambda q: ca.vertcat(circle(q), circle(q))}, [1]),
    "in other units": (
        {"holonomic_constraint": lambda q: ca.vertcat(circle(q), q[2], 1e3 * circle(q))},
        [2],
    ),
    "by the others together": (
        {"holonomic_constraint": lambda q: ca.vertcat(circle(q), q[2], circle(q) + q[0] * q[2])},
        [2],
    ),
    "zero": ({"holonomic_constraint": lambda q: ca.vertcat(0 * q[0], circle(q))}, [0]),
    "flat where it holds": ({"holonomic_constraint": lambda q: circle(q) ** 2}, [0]),
    "flat at the origin": ({"holonomic_constraint": lambda q: q[1] ** 2}, [0]),
    "by a velocity constraint": (
        {
            "velocity_constraint": lambda q: ca.horzcat(1, -2, 0, 0),
            "holonomic_constraint": lambda q: ca.vertcat(q[2], q[0] - 2 * q[1] - 1),
        },
        [1],
    ),
    "of prescribed coordinates alone": (
        {"prescribed": ("t",), "holonomic_constraint": lambda q: ca.vertcat(circle(q), q[3] - 1)},
        [1],
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", REDUNDANT)
def test_dependent_rows_are_named_and_refused(how):
    fields, rows = REDUNDANT[how]
    with pytest.raises(ValueError, match="random configurations") as refused:
        nh.System("ring", nh.Rn("x", "y", "z", "t"), lambda q, v: ca.sumsqr(v) / 2, **fields)
    assert f"ring: rows {rows} (counted from 0) of holonomic_constraint are zero or depend" in str(
        refused.value
    )


@pytest.mark.parametrize("length", (1e-9, 1e-6, 1.0, 1e6))
def test_no_unit_makes_rows_dependent(length):
    assert rod(length=length).n_holonomic_constraints == 1
    system = nh.System(
        "far_apart",
        nh.Rn("x", "y", "angle"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: ca.vertcat(
            ca.sumsqr(q[:2]) - length**2, length * ca.tan(q[2]) - q[0]
        ),
    )
    assert system.n_holonomic_constraints == 2


@pytest.mark.parametrize("tilt", (0.1, 1e-5, 1e-7, 0.0))
def test_a_loss_of_rank_at_a_single_configuration_is_accepted(tilt):
    """A plane that touches a sphere, in one point for a tilt of 0."""
    assert bead(tilt).n_holonomic_constraints == 2


def test_the_crossing_of_two_branches_is_accepted():
    """`y (y - x) = 0`: two lines, whose derivative vanishes where they cross, at the nominal
    configuration.
    """
    system = nh.System(
        "crossing",
        nh.Rn("x", "y"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: q[1] * (q[1] - q[0]),
    )
    model = nh.midpoint(system, 0.01)
    np.testing.assert_allclose(
        model.configuration(model.step(model.measured_state([1.0, 0.0], [2.0, 0.0]))), [1.02, 0]
    )
