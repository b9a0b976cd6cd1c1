"""Rates of targets that commands sample, and what becomes of them between and after commands."""

import numpy as np
import pytest

from nh_control.control.target_motion import TargetMotion

UNKNOWN, WALL = np.full(2, np.nan), 1.7e9


def quadratic(t):
    """Values, rates and accelerations (2)."""
    a = np.array([1.0, -3.0])
    return np.array([0.2, 0.5]) + np.array([1.5, -0.8]) * t + a * t**2 / 2, [1.5, -0.8] + a * t, a


def sampled(times, offset=0.0, delays=None, rates=False, value=lambda t: quadratic(t)[0]):
    """A motion sampled at times by a clock that is ahead by an offset, and the last value."""
    motion = TargetMotion()
    for i, t in enumerate(times):
        delay = 0.0 if delays is None else delays[i]
        rate = quadratic(t)[1] if rates else UNKNOWN
        motion.take(value(t), rate, t + offset, t + delay, offset == 0)
    return motion, value(times[-1])


TIMES = np.array([0.5, 0.51, 0.524, 0.53, 0.541])


@pytest.mark.parametrize("offset", [0.0, WALL])
@pytest.mark.parametrize("rates", [False, True])
def test_a_quadratic_is_continued_from_its_samples(offset, rates):
    motion, value = sampled(TIMES[[0, 1, 4]] if rates else TIMES[:2].tolist() + [0.52], offset)
    if rates:
        motion, value = sampled(TIMES, offset, rates=True)
    t = 0.55 if rates else 0.528
    target, (wanted, rate, acceleration) = motion.at(t, value), quadratic(t)
    tolerance = 1e-3 if offset else 1e-9  # stamps are floating-point seconds
    np.testing.assert_allclose(target.value, wanted, atol=tolerance)
    np.testing.assert_allclose(target.rate, rate, atol=1e-2 if offset else 1e-9)
    np.testing.assert_allclose(target.acceleration, acceleration, atol=0.5 if offset else 1e-7)


def test_delays_that_vary_do_not_move_targets_of_another_clock():
    times = 0.5 + 0.01 * np.arange(20)
    delays = 0.001 + 0.004 * np.random.default_rng(0).random(20)
    motion, value = sampled(times, WALL, delays)
    wanted = quadratic(times[-1] + 0.005 - delays.min())[0]
    assert motion.at(times[-1] + 0.005, value).value == pytest.approx(wanted, abs=1e-4)


def step(t):
    """From 0 to 1 at 0.505 s."""
    return np.full(2, float(t > 0.505))


def ramp(t):
    """From 0 at 0.505 s at 1/s up to 0.02."""
    return np.full(2, min(max(t - 0.505, 0.0), 0.02))


@pytest.mark.parametrize("count", range(2, 9))
def test_a_target_that_jumps_has_no_rate_and_one_that_stands_has_none(count):
    times = 0.49 + 0.01 * np.arange(count)
    motion, value = sampled(times, value=step)
    target = motion.at(times[-1] + 0.009, value)
    assert target.value.tolist() == step(times[-1]).tolist() and not target.rate.any()
    motion, value = sampled(0.49 + 0.01 * np.arange(count), value=ramp)
    rate = motion.at(times[-1], value).rate
    assert (rate >= 0.0).all() and (rate <= 1.25 + 1e-9).all()  # 1.25 of a part of an interval
    if count > 6:
        assert not rate.any()  # it stands


def test_a_sine_has_its_rate_through_every_reversal():
    motion, errors = TargetMotion(), []
    for t in 0.01 * np.arange(1, 200):
        value = np.full(2, np.sin(6 * t))
        motion.take(value, UNKNOWN, t, t, True)
        errors.append(motion.at(t, value).rate[0] - 6 * np.cos(6 * t))
    assert np.abs(errors[2:]).max() < 0.02 * 6


def test_a_stamp_that_is_one_step_early_does_not_change_the_rate():
    """As that of a clock of simulated time that comes late: two targets have the same stamp."""
    motion, rates = TargetMotion(), []
    for k in range(40):
        stamp = 0.01 * (k - (k in (15, 22, 30)))
        value = quadratic(0.01 * k)[0]
        motion.take(value, UNKNOWN, stamp, 0.01 * k, True)
        rates.append(motion.at(0.01 * k, value).rate - quadratic(0.01 * k)[1])
    assert np.abs(rates[5:]).max() < 0.1  # of 1.5 rad/s; 0.75 rad/s for the wrong interval


def test_a_controller_that_catches_up_does_not_speed_up_the_target():
    motion, rates = TargetMotion(), []
    for k in range(40):
        stamp = 0.01 * k if k not in (20, 21, 22) else 0.23 + 1e-5 * (k - 22)
        value = quadratic(0.01 * k)[0]
        motion.take(value, UNKNOWN, stamp, stamp, True)
        rates.append(motion.at(stamp, value).rate - quadratic(0.01 * k)[1])
    assert np.abs(rates[5:]).max() < 0.5  # of 1.5 rad/s


def test_a_controller_that_becomes_faster_is_followed():
    motion = TargetMotion()
    times = np.concatenate([0.01 * np.arange(10), 0.1 + 0.001 * np.arange(30)])
    for t in times:
        motion.take(quadratic(t)[0], UNKNOWN, t, t, True)
    target, wanted = motion.at(t + 1e-3, quadratic(t)[0]), quadratic(t + 1e-3)
    np.testing.assert_allclose(target.value, wanted[0], atol=1e-5)
    np.testing.assert_allclose(target.rate, wanted[1], atol=1e-2)


def test_targets_do_not_move_without_stamps_far_apart_or_when_no_more_come():
    for times in ([0.5, 0.65, 0.8], [0.5]):
        motion, value = sampled(times)
        assert not motion.at(times[-1], value).rate.any()
    motion = TargetMotion()
    for t in (0.5, 0.51, 0.52):
        motion.take(quadratic(t)[0], UNKNOWN, 0.0, t, False)
    assert not motion.at(0.52, quadratic(0.52)[0]).rate.any()
    motion, value = sampled([0.5, 0.51, 0.52])
    assert motion.at(0.539, value).rate.any() and not motion.at(0.541, value).rate.any()
    assert motion.at(0.541, value).value.tolist() == value.tolist()
    motion.clear()
    assert not motion.at(0.521, value).rate.any()


def test_values_that_were_not_commanded_stay():
    motion, value = sampled([0.5, 0.51, 0.52])
    target = motion.at(0.525, np.array([7.0, value[1]]))
    assert target.value[0] == 7.0 and target.rate[0] == 0.0 and target.rate[1] != 0.0
