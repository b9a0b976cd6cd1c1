"""Progress on stderr: a line that names the current work, with a bar if the amount of work is
known.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars


class Progress:
    """A context in which `phase`, `steps` and `clock` show the current work. On leaving the
    context, the line is removed from the terminal.
    """

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._bars.disable = not console.is_terminal
        self._task = self._bars.add_task("", total=None)

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def phase(self, text: str) -> None:
        """Begin work of unknown length."""
        self._bars.reset(self._task, description=text, total=None)

    def steps(self, text: str, total: int) -> Callable[[int], None]:
        """Begin work of `total` steps. Call the returned function with the number of finished
        steps.
        """
        self._bars.reset(self._task, description=text, total=total)
        # at most 200 updates
        every, shown = max(1, total // 200), 0

        def done(k: int) -> None:
            nonlocal shown
            if k >= shown:
                self._bars.update(self._task, completed=k)
                shown = k + every

        return done

    def counter(self, text: str) -> Callable[[int, int], None]:
        """A function that shows the number of finished steps and the total number of steps."""
        done: list[Callable[[int], None]] = []

        def count(finished: int, total: int) -> None:
            if not done:
                done.append(self.steps(f"{text} ({total})", total))
            done[0](finished)

        return count

    def clock(self, text: str, simulated_s: float, speed_factor: float) -> Callable[[], None]:
        """Begin work that takes `simulated_s / speed_factor` s (or an unknown time if
        `speed_factor` is 0), counted from the first call to the returned function. Call this
        function often.
        """
        start: list[float] = []

        def tick() -> None:
            if not start:
                start.append(time.monotonic())
                self._bars.reset(
                    self._task, description=text, total=simulated_s if speed_factor else None
                )
            self._bars.update(
                self._task,
                completed=min(simulated_s, speed_factor * (time.monotonic() - start[0])),
            )

        return tick
