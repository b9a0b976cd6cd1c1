"""The summary of a run: all its numbers for programs, and a page of the most important numbers
for people, without residuals and condition numbers.
"""

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
from nh_control.runs.settings import EXTERNAL, LQR
from nh_control.runs.simulation import ClosedLoop
from nh_control.scenarios.error_metrics import error_unit, input_units
from nh_control.scenarios.sensor import SENSORS

if TYPE_CHECKING:
    from rich.table import Table

STOPPED, TURNED = "stopped early", "half a turn"
TOLERATED = 1e-6
"""Constraint violations up to this size are ignored."""
ROUND_OFF = 1e13
"""Ratio of errors above which the smaller error counts as round-off."""


@np.errstate(over="ignore")  # errors of a diverged run may be infinite
def summarize(result: Result) -> dict:
    """Return a summary of a run as plain values in SI units. Undefined numbers are None."""
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
        "controller": e.controller,
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
        "autopilot": e.settings.autopilot,
        "link": loop.link,
        "ros": result.ros,
    }


def _values(parameters: Any) -> dict[str, Any]:
    return {declared.name: declared.value for declared in declarations(parameters)}


def _error(result: Result) -> dict:
    """Return the initial, final and largest tracking errors: those of the whole configuration
    (norm over m and rad), those of its parts, and those in open loop.
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
        # a reduction is defined only for finite errors that are not zero
        "reduction": float(total[0] / total[-1]) if total[0] and 0 < total[-1] < np.inf else None,
        "parts": {
            part.name: {"unit": part.unit, **_extent(part.values)} for part in result.error_parts
        },
        "open_loop_final": float(opened[-1]) if opened is not None and not failed else None,
        "open_loop_stopped": failed,
        "open_loop_steps": None if result.open_loop is None else len(result.open_loop.trajectory),
        "without_faults": None
        if result.without_faults is None
        else _extent(result.configuration_error(result.without_faults)),
    }


def _stopped(loop: ClosedLoop) -> str | None:
    """Return the reason why a loop ended early, or None."""
    return None if loop.failure is None else str(loop.failure)


def _extent(values: np.ndarray) -> dict[str, float]:
    return {
        "initial": float(values[0]),
        "final": float(values[-1]),
        "largest": float(values.max()),
        "rms": float(np.sqrt(np.mean(values**2))),
    }


def _monitored(result: Result) -> dict:
    """Return the smallest value of every monitored output, and the number of steps with values
    below the minimum.
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
    """Return the smallest margin of each constraint, and the number of steps that violate it."""
    return {
        name: {
            "margin_min": float(constraint.margins.min()),
            "steps_violated": int((constraint.margins < -TOLERATED).sum()),
            "unit": constraint.unit,
        }
        for name, constraint in result.kept_constraints.items()
    }


def _outputs(result: Result) -> dict:
    """Return the smallest, largest and last value of every declared output, with its unit."""
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
    # JSON has no infinity
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
    """Return a summary as a rich table, which shows the run and how well it tracked."""
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
    """Yield the label and the text of each row in a summary's table."""
    yield "run", _steps(s)
    yield from _setup_rows(s)
    yield from _error_rows(s)
    if s["feedback"]:  # otherwise the run is the open loop
        yield from _open_loop_rows(s["error"], s["step_s"])
    for name, u in s["inputs"].items():
        yield name, _input_text(u)
    for name, m in s["monitored"].items():
        steps = m["steps_with_warning"]
        warning = f", {m['warning']} in {_counted(steps)}" if steps else ""
        yield name, f"at least {m['min']:.3g} {m['unit']}{warning}"
    for name, c in s["constraints"].items():
        steps = c["steps_violated"]
        violated = f", violated in {_counted(steps)}" if steps else ""
        yield name, f"smallest margin {_with_unit(c['margin_min'], c['unit'])}{violated}"
    for name, o in s["outputs"].items():
        yield name, f"{o['min']:.3g} to {_with_unit(o['max'], o['unit'])}"
    for name, c in s["contacts"].items():
        yield name, contact_text(c)
    if (angle := s["turn_per_step_max_rad"]) and rotation_problem(angle, s["step_s"]):
        yield TURNED, rotation_problem(angle, s["step_s"])
    yield from _ros_rows(s["ros"] or {})
    if s["stopped"]:
        yield STOPPED, s["stopped"]


def _setup_rows(s: dict) -> Iterator[tuple[str, str]]:
    """Yield the system, its controller and the conditions."""
    yield "model", s["model"]
    substeps = s["plant_substeps"]
    if substeps > 1 or s["plant"] != s["model"]:
        yield "plant", s["plant"] + (f", {substeps} steps per command" if substeps > 1 else "")
    tracker = _tracker(s["controller"], s["mpc"])
    tracker += " with disturbance estimate" if s["integral"] else ""
    tracker += ", states estimated from sensors" if s["estimate"] == SENSORS else ""
    without = "none (open loop)" if s["inputs"] else "none (the system has no inputs)"
    yield "control", tracker if s["feedback"] else without
    if s["autopilot"]:
        yield "autopilot", f"{s['autopilot']}: {s['link']}" if s["link"] else s["autopilot"]
    for disturbance in s["disturbances"]:
        yield "disturbance", disturbance
    for effect in s["faults"]:
        yield "fault", f"{effect['fault']}: {FaultEffect(**effect)}"


def _tracker(controller: str, mpc: dict | None) -> str:
    """Return the controller in words."""
    if mpc is None:
        return {LQR: "LQR", EXTERNAL: "external, by joint_commands"}.get(controller, controller)
    late = f", {mpc['late']:.0%} of its plans late" if mpc["late"] else ""
    return f"MPC over {mpc['horizon_s']:g} s, {mpc['iterations']} iterations{late}"


def _steps(s: dict) -> str:
    """Return the simulated time, the numbers of completed and planned steps, whether the reference
    has ended, and the wall time.
    """
    steps, h = s["steps"], s["step_s"]
    short = "" if steps == s["steps_planned"] else f" of {s['steps_planned']}"
    end_s = s["reference_steps"] * h
    past = f"; the reference ends after {end_s:g} s" if steps > s["reference_steps"] else ""
    return f"{steps * h:g} s in {steps}{short} steps{past}; took {s['wall_s']:.2f} s"


def _error_rows(s: dict) -> Iterator[tuple[str, str]]:
    """Yield the tracking error, its parts, and the error without faults."""
    error, label = s["error"], "tracking error" if s["inputs"] else "difference from reference"
    change = "" if error["reduction"] is None else f", {_factor(error['reduction'])}"
    unit = _error_unit(error)
    yield label, f"{error['initial']:.3g} -> {error['final']:.3g} {unit}{change}"
    for name, part in error["parts"].items():
        yield (
            f"  {name}",
            f"{part['initial']:.3g} -> {part['final']:.3g} {part['unit']}, at most "
            f"{part['largest']:.3g}",
        )
    clean = error["without_faults"]
    if clean is not None:
        yield (
            "  with faults",
            f"at most {error['largest']:.3g} {unit}; without them "
            f"{clean['initial']:.3g} -> {clean['final']:.3g} {unit}, at most "
            f"{clean['largest']:.3g}",
        )


def _error_unit(error: dict) -> str:
    """Return the unit of the tracking error. Several units are in parentheses."""
    return f"({error['unit']})" if "," in error["unit"] else error["unit"]


def _open_loop_rows(error: dict, h: float) -> Iterator[tuple[str, str]]:
    """Yield the error with the reference's inputs alone, or the time at which this run fails."""
    if error["open_loop_final"] is not None:
        unit = _error_unit(error)
        yield "  no feedback", f"{error['initial']:.3g} -> {error['open_loop_final']:.3g} {unit}"
    if error["open_loop_stopped"] is not None:
        yield (
            "  no feedback",
            f"the reference's inputs alone fail after {error['open_loop_steps'] * h:g} s, because "
            "nothing corrects the error",
        )


def _input_text(u: dict) -> str:
    """Return an input's largest value, limits and saturation."""
    lower, upper = u["limits"]
    limits = (
        " (no limit)"
        if lower is None and upper is None
        else f" (limits {-math.inf if lower is None else lower:g} to "
        f"{math.inf if upper is None else upper:g})"
    )
    steps = u["saturated_steps"]
    saturated = f", at the limit in {_counted(steps)}" if steps else ""
    return f"at most {_with_unit(u['max'], u['unit'])}{limits}{saturated}"


def _ros_rows(ros: dict) -> Iterator[tuple[str, str]]:
    """Yield the nodes' rate, and information about the commands if some were not used at their
    step.
    """
    if not ros:
        return
    yield "rate", f"{ros['rate_hz']:.1f} steps/s, {ros['missed_steps']} late"
    if ros["commands_rejected"] or ros["held_steps"] or ros["fallback_steps"]:
        yield (
            "commands",
            f"{ros['commands_accepted']} accepted, {ros['commands_rejected']} rejected, "
            f"{ros['held_steps']} steps used an earlier command, {ros['fallback_steps']} the "
            "fallback",
        )


def _counted(steps: int) -> str:
    return f"{steps} step{'s' * (steps != 1)}"


def _with_unit(value: float, unit: str | None) -> str:
    return f"{value:.3g} {unit}" if unit else f"{value:.3g}"


def _factor(reduction: float) -> str:
    # write the factor so that it is greater than 1
    factor, word = (reduction, "smaller") if reduction >= 1 else (1 / reduction, "larger")
    if factor >= ROUND_OFF:
        return "down to round-off" if reduction >= 1 else "up from round-off"
    number = (
        f"{factor:.2f}" if factor < 10 else f"{factor:,.0f}" if factor < 1e6 else f"{factor:.1e}"
    )
    return f"{number} times {word}"
