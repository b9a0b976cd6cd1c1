"""Configurations that count as keeping their holonomic constraints, in all units."""

import casadi as ca
import numpy as np
import pytest
from linkages import lamp

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.consistent_states import NotConsistent, require_consistent
from nh_control.mechanics.system import System


@pytest.mark.parametrize("at", [1.0, 1e-7, 100.0])
def test_a_constraint_is_kept_to_1e_8_of_the_sizes_of_its_terms(at):
    """`x - at`, of two terms of this size, and the logarithm of a ratio, which is never 0."""
    me = System(
        "me",
        Rn("x", "y", "z"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: ca.vertcat(q[0] - at, ca.log(q[1] / at)),
        nominal=[at, at, 0.0],
    )
    for off in (1.9e-8, -1.9e-8):
        require_consistent(me, np.array([at * (1 + off), at, 0.0]))
        require_consistent(me, np.array([at, at * (1 + off), 0.0]))
    for off in (2.1e-8, -2.1e-8):
        q = np.array([at * (1 + off), at, 0.0])
        with pytest.raises(NotConsistent, match="me: q does not satisfy") as error:
            require_consistent(me, q)
        assert error.value.residual[0] == pytest.approx(at * off) and error.value.q is q
    with pytest.raises(NotConsistent):
        require_consistent(me, np.array([at, -at, 0.0]))  # h is no number


def test_what_round_off_left_of_a_coordinate_counts_beside_the_others():
    """In `z = 0`, the only term is what is left; a plain `|h| <= 1e-8` was in m."""
    for length in (1.0, 1e-9, 1e9):
        table = System(
            "table",
            Rn("x", "y", "z"),
            lambda q, v: ca.sumsqr(v) / 2,
            holonomic_constraint=lambda q: q[2],
        )
        require_consistent(table, length * np.array([0.3, 0.4, 1e-12]))
        for q in ([0.3, 0.4, 1e-9], [0.0, 0.0, 1e-12]):
            with pytest.raises(NotConsistent):
                require_consistent(table, length * np.array(q))


def test_angles_and_rotations_that_are_nearly_zero_count_beside_a_radian():
    """A slider by its angle: `sin(1e-17)` has no other terms; nor has a lever that is
    hardly turned.
    """
    slider = System(
        "slider",
        Rn("angle", "x"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: 0.3 * ca.sin(q[0]),
    )
    hung = lamp()
    for small in (1e-17, 0.9e-8):
        require_consistent(slider, np.array([small, 0.0]))
        q = np.array([1.0, small / 2, 0.0, 0.0, 0.0, 0.0, -0.3])
        require_consistent(hung, q)
    with pytest.raises(NotConsistent):
        require_consistent(slider, np.array([1e-7, 0.0]))
