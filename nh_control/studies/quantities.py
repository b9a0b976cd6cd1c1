"""Quantities of a run by name, for requirements: metrics, and series over the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nh_control.runs.experiment import Result
from nh_control.scenarios import error_metrics

if TYPE_CHECKING:
    from nh_control.discrete.system import DiscreteSystem
    from nh_control.scenarios import Scenario
    from nh_control.studies.metrics import Metric

GROUPS = {"position": "m", "angle": "rad"}
"""Combined errors in all lengths and in all angles, with the unit of their parts."""
STEPS = 100
"""Number of steps in an example run."""


def examples(
    scenario: Scenario, model: DiscreteSystem, metrics: Mapping[str, Metric]
) -> dict[str, Callable[[], float | np.ndarray]]:
    """Return arrays of ones with the shapes of all quantities of a scenario's run, by name. They
    show whether a requirement can be evaluated.
    """
    tables = {"effort": (STEPS, len(model.inputs))}
    if scenario.monitor is not None:
        tables["monitor"] = (STEPS, len(scenario.monitor.names))
    ones: dict[str, Callable[[], float | np.ndarray]] = {}
    for name in names(scenario, model, metrics):
        # Efforts belong to the N steps, and all other series belong to the N + 1 nodes.
        series = (STEPS + (not name.startswith("effort.")),)
        ones[name] = partial(np.ones, () if name in metrics else tables.get(name, series))
    return ones


def names(
    scenario: Scenario, model: DiscreteSystem, metrics: Mapping[str, Metric]
) -> tuple[str, ...]:
    """Return the names of all quantities of a scenario's run."""
    # The units of the error's parts determine which groups exist. They do not depend on the state.
    space = model.system.space
    still = np.array([space.origin])
    units = {part.unit for part in error_metrics.error_parts(scenario, space, still, still)}
    groups = [name for name, unit in GROUPS.items() if unit in units]
    declared = [name for output in model.system.outputs for name in output.names]
    return tuple(
        dict.fromkeys(
            (
                *metrics,
                "time",
                "energy",
                *_members("error", (*space.tangent_names, *groups)),
                *_members("state", model.state_names)[1:],
                *_members("effort", model.inputs),
                *_members("output", declared)[1:],
                *["monitor"] * (scenario.monitor is not None),
            )
        )
    )


def values(
    result: Result, metrics: Mapping[str, Metric]
) -> dict[str, Callable[[], float | np.ndarray]]:
    """Return functions that compute the quantities of a run, by name: metrics, series (N + 1) at
    the nodes, and efforts (N, nu) and (N) for the steps.
    """
    loop, e = result.loop, result.experiment
    model, path = e.model, loop.trajectory
    errors, n = loop.errors, model.system.space.nv
    out: dict[str, Callable[[], float | np.ndarray]] = {
        name: partial(metric.of, result) for name, metric in metrics.items()
    }
    out["time"], out["energy"] = (lambda: path.times), (lambda: loop.energy)
    for name, unit in GROUPS.items():
        out[f"error.{name}"] = partial(_norm, result, unit)
    out["error"] = result.configuration_error
    tables: dict[str, tuple[Sequence[str], np.ndarray]] = {
        "error": (model.system.space.tangent_names, errors[:, :n]),
        "state": (model.state_names, path.states),
        "effort": (model.inputs, path.inputs),
    }
    # partial binds the table now, whereas a lambda in the loop would use the last table.
    for owner, (columns, table) in tables.items():
        for i, name in enumerate(columns):
            out[f"{owner}.{name}"] = partial(_column, table, i)
    out["effort"] = lambda: path.inputs
    for i, name in enumerate(name for o in model.system.outputs for name in o.names):
        out[f"output.{name}"] = partial(_output, result, i)
    if e.scenario.monitor is not None:
        out["monitor"] = lambda: result.monitored
    return out


def _norm(result: Result, unit: str) -> np.ndarray:
    parts = [part.values for part in result.error_parts if part.unit == unit]
    return error_metrics.norms(np.transpose(parts))


def _column(table: np.ndarray, i: int) -> np.ndarray:
    return table[:, i]


def _output(result: Result, i: int) -> np.ndarray:
    return result.outputs.values[:, i]


def _members(owner: str, columns: Sequence[str]) -> tuple[str, ...]:
    return owner, *(f"{owner}.{name}" for name in columns)
