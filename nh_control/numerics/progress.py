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
    """A context in which `phase`, `steps` and `clock` show the current work; they leave nothing on
    the terminal.
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
        """Start work of unknown length."""
        self._bars.reset(self._task, description=text, total=None)

    def steps(self, text: str, total: int) -> Callable[[int], None]:
        """Start work of `total` steps; call the returned function with the number of finished
        steps.
        """
        self._bars.reset(self._task, description=text, total=total)
        every, shown = max(1, total // 200), 0

        def done(k: int) -> None:
            nonlocal shown
            if k >= shown:
                self._bars.update(self._task, completed=k)
                shown = k + every

        return done

    def clock(self, text: str, simulated_s: float, speed_factor: float) -> Callable[[], None]:
        """Start work of `simulated_s / speed_factor` s (unknown if `speed_factor` is 0) at the
        first call of the returned function; call this function often.
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
