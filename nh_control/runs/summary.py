"""The summary of a run: as plain values for machines, as a table for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.loop.fault_effects import FaultEffect
from nh_control.mechanics.parameters import declarations
from nh_control.mechanics.states import has_rotations, rotation_problem
from nh_control.runs.contacts import contact_numbers, contact_text
from nh_control.runs.experiment import Result
from nh_control.runs.kept_constraints import kept_constraints
from nh_control.runs.simulation import ClosedLoop
from nh_control.scenarios.error_metrics import error_unit, input_units
from nh_control.scenarios.sensor import SENSORS

if TYPE_CHECKING:
    from rich.table import Table

STOPPED, TURNED = "stopped early", "half a turn"
TOLERATED = 1e-6
"""Violations up to this size are ignored."""
ROUND_OFF = 1e13
"""Ratio of errors below which the smaller one is round-off."""


@np.errstate(over="ignore")  # of numbers that are far away sizes are infinite
def summarize(result: Result) -> dict:
    """Summary of a run in plain values, SI units; None for numbers that do not exist."""
    e, loop = result.experiment, result.loop
    trajectory = loop.trajectory
    return {
        "scenario": e.scenario.name,
        "title": ", ".join(e.labels),
        "model": str(e.model),
        "plant": str(e.plant),
        "plant_substeps": e.options.substeps,
        "plant_parameters": _values(e.plant_parameters),
        "reference": e.tracker.reference.name,
        "reference_steps": len(e.tracker.reference),
        "integral": e.integral,
        "mpc": None
        if e.mpc is None
        else {**asdict(e.mpc), "horizon_s": e.mpc.horizon_s or e.scenario.horizon_s},
        "estimate": e.estimate,
        "feedback": result.feedback,
        "perturbation": _values(e.perturbation),
        "disturbances": [str(disturbance) for disturbance in e.options.disturbances],
        "faults": [asdict(effect) for effect in result.fault_effects],
        "step_s": e.model.h,
        "steps": len(trajectory),
        "steps_planned": e.steps,
        "stopped": result.stopped or None,
        "error": _error(result),
        "inputs": {name: _input(result, i) for i, name in enumerate(e.model.inputs)},
        "monitored": _monitored(result),
        "constraints": _constraints(result),
        "outputs": _outputs(result),
        "contacts": {} if result.contacts is None else contact_numbers(result.contacts),
        "constraint_residual_max_m": float(np.nanmax(np.abs(loop.constraint), initial=0.0))
        if e.plant.system.n_velocity_constraints
        else None,
        "manifold_residual_max": None
        if result.manifold_residual is None
        else float(result.manifold_residual.max()),
        "turn_per_step_max_rad": float(e.model.rotation_angles(trajectory.states).max())
        if has_rotations(e.model.system.space)
        else None,
        "energy_J": {
            "initial": float(loop.energy[0]),
            "final": float(loop.energy[-1]),
            "reference_final": float(e.model.energy(result.targets[-1])),
        },
        "wall_s": result.wall_s,
        "ros": result.ros,
    }


def _values(parameters: Any) -> dict[str, Any]:
    return {declared.name: declared.value for declared in declarations(parameters)}


def _error(result: Result) -> dict:
    """Tracking error at the start, at the end and the largest one: of the whole configuration
    (norm over m and rad), by its parts, and in open loop.
    """
    e, total = result.experiment, result.configuration_error()
    opened = None if result.open_loop is None else result.configuration_error(result.open_loop)
    failed = None if result.open_loop is None else _stopped(result.open_loop)
    return {
        "unit": error_unit(e.scenario, e.model.system.space),
        "initial": float(total[0]),
        "final": float(total[-1]),
        "largest": float(total.max()),
        "rms": float(np.sqrt(np.mean(total**2))),
        "reduction": float(total[0] / total[-1]) if total[0] and 0 < total[-1] < np.inf else None,
        "parts": {
            part.name: {"unit": part.unit, **_extent(part.values)} for part in result.error_parts
        },
        "open_loop_final": float(opened[-1]) if opened is not None and not failed else None,
        "open_loop_stopped": failed,
        "without_faults": None
        if result.without_faults is None
        else _extent(result.configuration_error(result.without_faults)),
    }


def _stopped(loop: ClosedLoop) -> str | None:
    """The reason why a loop ended early, None if it did not."""
    return None if loop.failure is None else str(loop.failure)


def _extent(values: np.ndarray) -> dict[str, float]:
    return {
        "initial": float(values[0]),
        "final": float(values[-1]),
        "largest": float(values.max()),
        "rms": float(np.sqrt(np.mean(values**2))),
    }


def _monitored(result: Result) -> dict:
    """Smallest value of every monitored output, and the number of steps with values below the
    minimum.
    """
    monitor = result.experiment.scenario.monitor
    if monitor is None or not len(result.loop.trajectory):
        return {}
    low, bad = result.monitored.min(axis=0), (result.monitored <= monitor.minimum).sum(axis=0)
    common = {"unit": monitor.unit, "warning": monitor.warning}
    return {
        f"{name} {monitor.title}": {"min": float(m), "steps_with_warning": int(n), **common}
        for name, m, n in zip(monitor.names, low, bad)
    }


def _constraints(result: Result) -> dict:
    """Smallest margin of every constraint, and the number of steps in which it is violated."""
    return {
        name: {
            "margin_min": float(kept.margins.min()),
            "steps_violated": int((kept.margins < -TOLERATED).sum()),
            "unit": kept.unit,
        }
        for name, kept in kept_constraints(result).items()
    }


def _outputs(result: Result) -> dict:
    """Smallest, largest and last value of every declared output, with its unit."""
    outputs = result.outputs
    return {
        name: {
            "min": float(values.min()),
            "max": float(values.max()),
            "final": float(values[-1]),
            "unit": unit,
        }
        for name, unit, values in zip(outputs.names, outputs.units, outputs.values.T)
    }


def _input(result: Result, i: int) -> dict:
    lower, upper = (
        float(v) if np.isfinite(v) else None for v in result.experiment.tracker.limits[i]
    )
    e = result.experiment
    return {
        "max": float(np.abs(result.loop.trajectory.inputs[:, i]).max(initial=0.0)),
        "limits": [lower, upper],
        "unit": input_units(e.scenario, e.model.system)[i] or None,
        "saturated_steps": int(result.loop.saturated[:, i].sum()),
    }


def table(summary: dict) -> Table:
    """The summary as a rich table."""
    from rich.table import Table
    from rich.text import Text

    out = Table(
        title=summary["title"],
        title_justify="left",
        show_header=False,
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    out.add_column(style="bold")
    out.add_column(overflow="fold")
    for label, text in _rows(summary):
        out.add_row(label, Text(text), style="red" if label in (STOPPED, TURNED) else None)
    return out


def _rows(s: dict) -> Iterator[tuple[str, str]]:
    """Label and text of every row of the table of a summary."""
    yield from _setup_rows(s)
    yield "steps", _steps(s)
    yield from _error_rows(s)
    if s["feedback"]:  # otherwise the run is the open loop
        yield from _open_loop_rows(s["error"])
    for name, u in s["inputs"].items():
        yield name, _input_text(u)
    for name, m in s["monitored"].items():
        steps = m["steps_with_warning"]
        warning = f", {m['warning']} in {steps} steps" if steps else ""
        yield name, f"min {m['min']:.3g} {m['unit']}{warning}"
    for name, c in s["constraints"].items():
        steps = c["steps_violated"]
        violated = f", violated in {steps} steps" if steps else ""
        yield name, f"least margin {_with_unit(c['margin_min'], c['unit'])}{violated}"
    for name, o in s["outputs"].items():
        yield name, f"{o['min']:.3g} ... {_with_unit(o['max'], o['unit'])}"
    for name, c in s["contacts"].items():
        yield name, contact_text(c)
    if s["constraint_residual_max_m"] is not None:
        yield "constraint residual", f"max {s['constraint_residual_max_m']:.1e} m"
    if s["manifold_residual_max"] is not None:
        yield "distance from manifold", f"max {s['manifold_residual_max']:.1e}"
    if (angle := s["turn_per_step_max_rad"]) and rotation_problem(angle, s["step_s"]):
        yield TURNED, rotation_problem(angle, s["step_s"])
    energy = s["energy_J"]
    yield (
        "energy",
        f"{energy['initial']:.4g} -> {energy['final']:.4g} J (reference ends with "
        f"{energy['reference_final']:.4g} J)",
    )
    yield from _ros_rows(s["ros"] or {})
    yield "wall time", f"{s['wall_s']:.2f} s"
    if s["stopped"]:
        yield STOPPED, s["stopped"]


def _setup_rows(s: dict) -> Iterator[tuple[str, str]]:
    """The system, its controller and the conditions."""
    yield "model", s["model"]
    substeps = s["plant_substeps"]
    yield "plant", s["plant"] + (f", {substeps} steps per command" if substeps > 1 else "")
    tracker = _tracker(s["mpc"]) + (" with disturbance estimate" if s["integral"] else "")
    tracker += ", states estimated from sensors" if s["estimate"] == SENSORS else ""
    without = "none (open loop)" if s["inputs"] else "none (the system has no inputs)"
    yield "control", tracker if s["feedback"] else without
    for disturbance in s["disturbances"]:
        yield "disturbance", disturbance
    for effect in s["faults"]:
        yield "fault", f"{effect['fault']}: {FaultEffect(**effect)}"


def _tracker(mpc: dict | None) -> str:
    """The tracker in words."""
    if mpc is None:
        return "LQR"
    late = f", {mpc['late']:.0%} of its plans late" if mpc["late"] else ""
    return f"MPC over {mpc['horizon_s']:g} s, {mpc['iterations']} iterations{late}"


def _steps(s: dict) -> str:
    """The numbers of steps taken and planned, and whether the reference has ended."""
    steps, h = s["steps"], s["step_s"]
    short = "" if steps == s["steps_planned"] else f" of {s['steps_planned']}"
    end_s = s["reference_steps"] * h
    past = f"; the reference ends after {end_s:g} s" if steps > s["reference_steps"] else ""
    return f"{steps}{short} ({steps * h:g} s{past})"


def _error_rows(s: dict) -> Iterator[tuple[str, str]]:
    """The tracking error, its parts, and the error without faults."""
    error, label = s["error"], "tracking error" if s["inputs"] else "difference from reference"
    change = "" if error["reduction"] is None else f", {_factor(error['reduction'])}"
    unit = _error_unit(error)
    yield label, f"{error['initial']:.3g} -> {error['final']:.3g} {unit}{change}"
    for name, part in error["parts"].items():
        yield (
            f"  {name}",
            f"{part['initial']:.3g} -> {part['final']:.3g} {part['unit']}, largest "
            f"{part['largest']:.3g}, rms {part['rms']:.3g}",
        )
    clean = error["without_faults"]
    if clean is not None:
        yield (
            "  with faults",
            f"largest {error['largest']:.3g}, rms {error['rms']:.3g} {unit}; without them "
            f"{clean['initial']:.3g} -> {clean['final']:.3g} {unit}, largest "
            f"{clean['largest']:.3g}, rms {clean['rms']:.3g}",
        )


def _error_unit(error: dict) -> str:
    """The unit of the tracking error, several units in parentheses."""
    return f"({error['unit']})" if "," in error["unit"] else error["unit"]


def _open_loop_rows(error: dict) -> Iterator[tuple[str, str]]:
    """The error of the reference's inputs without the tracker, or where they end."""
    if error["open_loop_final"] is not None:
        unit = _error_unit(error)
        yield "  open loop", f"{error['initial']:.3g} -> {error['open_loop_final']:.3g} {unit}"
    if error["open_loop_stopped"] is not None:
        yield (
            "  open loop",
            f"ends early: {error['open_loop_stopped']}. This is the motion under the reference's "
            "inputs without the tracker, for comparison; it is not the run",
        )


def _input_text(u: dict) -> str:
    """An input's largest value, limits and saturation."""
    lower, upper = u["limits"]
    limits = (
        "no limit"
        if lower is None and upper is None
        else f"limits {-math.inf if lower is None else lower:g} ... "
        f"{math.inf if upper is None else upper:g}"
    )
    return (
        f"max {_with_unit(u['max'], u['unit'])}, {limits}, {u['saturated_steps']} steps saturated"
    )


def _ros_rows(ros: dict) -> Iterator[tuple[str, str]]:
    if not ros:
        return
    yield "rate", f"{ros['rate_hz']:.1f} steps/s, {ros['missed_steps']} missed"
    if ros["jitter_max_us"]:
        yield (
            "jitter",
            " / ".join(f"{ros[f'jitter_{key}_us']:.0f}" for key in ("mean", "p99", "max"))
            + " us (mean / 99 % / max)",
        )
    yield (
        "commands",
        f"{ros['commands_accepted']} accepted, {ros['commands_rejected']} rejected, "
        f"{ros['held_steps']} steps under an earlier state's, "
        f"{ros['fallback_steps']} with the fallback",
    )
    yield (
        "against simulation",
        f"largest difference to the run in one process {ros['difference_to_simulation']:.1e}",
    )


def _with_unit(value: float, unit: str | None) -> str:
    return f"{value:.3g} {unit}" if unit else f"{value:.3g}"


def _factor(reduction: float) -> str:
    factor, word = (reduction, "smaller") if reduction >= 1 else (1 / reduction, "larger")
    if factor >= ROUND_OFF:
        return "down to round-off" if reduction >= 1 else "up from round-off"
    number = (
        f"{factor:.2f}" if factor < 10 else f"{factor:,.0f}" if factor < 1e6 else f"{factor:.1e}"
    )
    return f"{number} times {word}"
