"""A page for each scenario: a run as live page and as figure, and all that can be chosen."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nh_control import scenarios
from nh_control.command.list_scenarios import explained
from nh_control.figures import gallery
from nh_control.figures.style import save
from nh_control.runs import topics
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import Scenario
from nh_control.view.page import page as live_page
from nh_control.view.sources import of_result

PICTURES = "_static/scenarios"
RATE_HZ = 20.0
"""Frames per second of time in the live pages; more frames make the files larger."""
LIVE = """```{{raw}} html
<iframe src="../../{file}" title="{name}: a run to turn, scrub and play" loading="lazy"
  style="width: 100%; height: 34rem; border: 1px solid #8884"></iframe>
```
"""


def write(folder: Path) -> dict[str, str]:
    """Draw a run of every scenario into PICTURES of `folder`; returns the texts of the pages and
    of their index by file name.
    """
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    pages, rows = {}, []
    for name in scenarios.names():
        scenario = scenarios.get(name)
        _draw(_run(scenario), folder / PICTURES)
        pages[f"scenarios/{name}.md"] = _page(scenario)
        rows.append((f"[{name}](scenarios/{name}.md)", scenario.title))
    pages["scenarios.md"] = (
        "# Scenarios\n\n"
        "`nh_control simulate NAME`, `nh_control run NAME` and "
        "`ros2 launch nh_control NAME.launch.py` take these names. Each page shows a run.\n\n"
        f"{table(('scenario', 'system'), rows)}\n"
        "```{toctree}\n:hidden:\n:glob:\n\nscenarios/*\n```\n"
    )
    return pages


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in markdown, empty without rows."""
    lines = [[str(cell) or "-" for cell in row] for row in rows]
    lines = [list(head), ["---"] * len(head), *lines] if lines else []
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _run(scenario: Scenario) -> Result:
    """A run of the first reference from the initial error that the command takes by default."""
    experiment, start = Experiment.make(scenario), time.perf_counter()
    return Result(experiment, experiment.run(), None, time.perf_counter() - start)


def _draw(result: Result, folder: Path) -> None:
    """The figure of a run's path, and its live page."""
    name = result.experiment.scenario.name
    save(partial(gallery.path, result), folder / f"{name}.png")
    text = live_page(of_result(result, RATE_HZ))
    (folder / f"{name}.html").write_text(text, encoding="utf-8")


def _page(scenario: Scenario) -> str:
    name, choices = scenario.name, explained(scenario)
    motions = [(f"`{key}`", text) for key, text in choices["references"].items()]
    named = any(text for _, text in motions)
    sections = {
        "References": table(("`--reference`", "motion"), motions)
        if named
        else ", ".join(key for key, _ in motions) + "\n",
        "Actuators": table(
            ("actuator", "lower", "upper", "unit"),
            (
                (f"`{one['name']}`", f"{one['lower']:g}", f"{one['upper']:g}", one["unit"])
                for one in choices["inputs"]
            ),
        ),
        "Topics": table(
            ("topic", "contents"),
            ((f"`{topic}`", ", ".join(lines)) for topic, lines in choices["messages"].items()),
        ),
        "Targets": table(
            ("topic", "message"), ((f"`{k}`", kind) for k, kind in topics.goals(scenario).items())
        ),
        "Parameters": _declared(choices["parameters"]),
        "Initial error": _declared(choices["initial_error"]),
        "Disturbances": table(
            ("target", "values", "description"),
            (
                (f"`{one['name']}`", ", ".join(one["values"]), one["description"])
                for one in choices["disturbances"]["targets"]
            ),
        ),
    }
    return (
        f"# {name}\n\n{scenario.title}.\n\n"
        f"{LIVE.format(file=f'{PICTURES}/{name}.html', name=name)}\n"
        f"![The path of the same run](../../{PICTURES}/{name}.png)\n\n"
        f"```bash\nnh_control simulate {name}\nnh_control run {name}\n"
        f"ros2 launch nh_control {name}.launch.py\n```\n\n"
        f"Integrators: {', '.join(f'`{one}`' for one in scenario.integrators)}; "
        f"step {scenario.step_s:g} s. [The nodes](../nodes.md) describes topics and services.\n"
        + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items() if text)
    )


def _declared(declarations: Iterable[dict[str, Any]]) -> str:
    return table(
        ("name", "value", "unit", "meaning"),
        ((f"`{d['name']}`", d["value"], d["unit"], d["description"]) for d in declarations),
    )
