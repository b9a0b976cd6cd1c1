"""How far a bar is."""

import time
import types

import pytest
import rich.console

from nh_control.numerics.progress import Progress


class Bars:
    """Stands in for the bars of a terminal: what they were told."""

    def __init__(self, *columns, **options):
        self.totals, self.completed = [], []

    def add_task(self, description, total):
        return 0

    def reset(self, task, description, total):
        self.totals.append((description, total))

    def update(self, task, completed):
        self.completed.append(completed)


@pytest.fixture
def bars(monkeypatch):
    """Those of the only progress of a test."""
    bars = Bars()
    monkeypatch.setattr("nh_control.numerics.progress.Bars", lambda *_, **__: bars)
    return bars


@pytest.fixture
def progress(bars):
    return Progress()


def test_a_bar_moves_with_every_step_of_few_and_at_most_200_times_with_many(progress, bars):
    done = progress.steps("few", 3)
    for k in (1, 2, 3):
        done(k)
    assert bars.completed == [1, 2, 3]
    bars.completed.clear()
    done = progress.steps("many", 1000)
    for k in range(1, 1001):
        done(k)
    assert bars.completed == list(range(1, 1001, 5))
    progress.phase("of unknown length")
    assert bars.totals == [("few", 3), ("many", 1000), ("of unknown length", None)]


def test_a_clock_starts_at_its_first_tick_and_stops_at_its_end(progress, bars, monkeypatch):
    clock = types.SimpleNamespace(now=50.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    tick = progress.clock("run", 10.0, 2.0)
    for now in (60.0, 61.5, 64.0, 70.0):
        clock.now = now
        tick()
    assert bars.totals == [("run", 10.0)]
    assert bars.completed == [0.0, 3.0, 8.0, 10.0]
    progress.clock("as fast as possible", 10.0, 0.0)()
    assert bars.totals[-1] == ("as fast as possible", None)


@pytest.mark.parametrize("terminal", [True, False])
def test_bars_are_on_the_error_stream_of_a_terminal_alone(terminal, monkeypatch, capfd):
    monkeypatch.setattr(rich.console.Console, "is_terminal", terminal)
    with Progress() as progress:
        progress.phase("being built")
    out, err = capfd.readouterr()
    assert not out and bool(err) == terminal
