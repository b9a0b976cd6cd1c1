"""Absolute deadlines, missed steps, statistics; stamps of steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nh_control.loop.clocks import Pacer, StepClock


class Clock:
    """A clock that tests move."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_lateness_does_not_accumulate(clock):
    pacer = Pacer(0.01, clock=clock)
    for k in range(1, 101):
        clock.now += pacer.remaining_s() + 0.004  # every step starts 4 ms late
        pacer.tick()
        assert clock.now == pytest.approx(100 + 0.01 * k + 0.004)
    statistics = pacer.statistics()
    assert (statistics.steps, statistics.missed) == (100, 0)
    assert statistics.jitter_mean_s == pytest.approx(0.004) == statistics.jitter_max_s
    assert statistics.rate_hz == pytest.approx(100)


def test_missed_periods_are_counted_and_not_caught_up(clock):
    pacer = Pacer(0.01, clock=clock)
    clock.now += 0.01 + 0.025
    pacer.tick()
    assert pacer.statistics().missed == 2
    assert pacer.remaining_s() == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("speed", "interval"), [((), 0.01), ((4.0,), 0.0025), ((0.5,), 0.02), ((0.0,), 0.0)]
)
def test_a_period_takes_real_time_divided_by_the_speed(clock, speed, interval):
    pacer = Pacer(0.01, *speed, clock=clock)
    assert pacer.remaining_s() == pytest.approx(interval)
    pacer.tick()
    assert pacer.statistics().missed == 0


@pytest.mark.parametrize("again", [lambda p: p.restart(), lambda p: p.set_speed(2.0)])
def test_a_new_start_or_speed_misses_nothing(clock, again):
    pacer = Pacer(0.01, clock=clock)
    clock.now += 60
    again(pacer)
    assert pacer.remaining_s() == pytest.approx(0.01 / pacer.speed_factor)
    clock.now += pacer.remaining_s()
    pacer.tick()
    assert pacer.statistics().missed == 0


def test_statistics_are_of_the_last_ten_thousand_steps_and_the_largest_of_all(clock):
    """Lateness of 0.1 us, 0.2 us, ... after one of 9 ms."""
    pacer = Pacer(0.01, clock=clock)
    for late in (9e-3, *(1e-7 * k for k in range(1, 10_001))):
        clock.now += pacer.remaining_s() + late
        pacer.tick()
    found = pacer.statistics()
    assert found.jitter_max_s == pytest.approx(9e-3) and found.missed == 0
    assert found.jitter_mean_s == pytest.approx(500.05e-6)
    shares = [found.jitter_p50_s, found.jitter_p90_s, found.jitter_p99_s]
    assert shares == pytest.approx([500.05e-6, 900.01e-6, 990.001e-6])


# Stamps ------------------------------------------------------------------------------------------

PERIODS = [0.01, 0.001, 1 / 240, 10 / 128, 1e-3 / 3, 0.025]


@given(st.integers(0, 10**7), st.sampled_from(PERIODS))
def test_every_step_has_its_own_stamp_also_in_seconds_in_floating_point(step, h):
    clock = StepClock(h)
    assert clock.step(clock.stamp(step)) == step
    assert clock.stamp(step + 1) > clock.stamp(step)
    assert abs(clock.stamp(step) - step * h * 1e9) <= 1 + 1e-15 * step * h * 1e9
    t = step * h
    assert clock.step(int(t) * 10**9 + int((t - int(t)) * 1e9)) == step


@pytest.mark.parametrize(
    ("h", "stamp", "step"),
    [
        (0.01, -10_000_000, None),
        (0.01, 5_000_000, None),
        *((0.01, 10_000_000 + ns, 1) for ns in (-1000, 999, 1000)),
        *((0.01, 10_000_000 + ns, None) for ns in (-1001, 1001)),
        (1e-6, 5_000, 5),
        (1e-6, 5_400, None),
    ],
)
def test_a_stamp_is_that_of_a_step_up_to_a_microsecond_or_a_tenth_of_a_shorter_step(
    h, stamp, step
):
    assert StepClock(h).step(stamp) == step
