"""Thrust and torques from rotor speeds and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nh_control.systems import RotorMixing

LAYOUTS = pytest.mark.parametrize("layout", ["plus", "x"])


@LAYOUTS
@given(speeds=st.lists(st.floats(0, 940), min_size=4, max_size=4))
def test_speeds_give_back_the_wrench_they_make(layout, speeds):
    mixing = RotorMixing(layout=layout)
    found, limited = mixing.speeds(mixing.wrench(speeds))
    assert not limited.any()
    np.testing.assert_allclose(mixing.wrench(found), mixing.wrench(speeds), atol=1e-9)


@LAYOUTS
def test_signs_of_the_torques(layout):
    """More thrust in front pitches the nose up (negative torque about y), more on the left rolls
    right (positive about x), faster rotors 1 and 3 turn left.
    """
    mixing = RotorMixing(layout=layout)
    front, left = (
        ([1.2, 1, 1, 1], [1, 1.2, 1, 1])
        if layout == "plus"
        else ([1.2, 1, 1, 1.2], [1.2, 1.2, 1, 1])
    )
    assert mixing.wrench(np.array(front) * 500)[2] < 0
    assert mixing.wrench(np.array(left) * 500)[1] > 0
    assert mixing.wrench(np.array([1.2, 1, 1.2, 1]) * 500)[3] > 0
    np.testing.assert_allclose(
        mixing.wrench(np.full(4, 500.0)), [4 * 8.5e-6 * 500**2, 0, 0, 0], atol=1e-12
    )


@LAYOUTS
def test_what_rotors_cannot_do_is_limited_and_said(layout):
    mixing = RotorMixing(layout=layout)
    speeds, limited = mixing.speeds([4 * mixing.max_thrust + 4.0, 0, 0, 0])
    assert limited.all()
    np.testing.assert_allclose(speeds, mixing.max_speed)
    speeds, limited = mixing.speeds([0.1, 3.0, 0, 0])
    assert limited.any() and (speeds >= 0).all() and np.isfinite(speeds).all()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"layout": "y"}, "unknown layout 'y', choose one of"),
        ({"arm": 0.0}, "arm must be a finite number > 0"),
    ],
)
def test_bad_mixing_is_refused(values, text):
    with pytest.raises(ValueError, match=text):
        RotorMixing(**values)
