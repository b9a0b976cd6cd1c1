"""Progress on stderr: a line that says what is being done, and a bar where it is known how much
there is to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars


class Progress:
    """A context in which `phase` and `steps` show what is going on; nothing remains of it on the
    terminal.
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
        """Something of unknown length begins."""
        self._bars.reset(self._task, description=text, total=None)

    def steps(self, text: str, total: int) -> Callable[[int], None]:
        """Something of `total` steps begins; the returned function is to be called with the number
        of steps done.
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
        """Something begins at the first call of the returned function that takes
        `simulated_s / speed_factor` s (unknown, if that is 0); to be called often.
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
