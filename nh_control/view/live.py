"""The data of a live page: its initial view, and each state of a running plant as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from nh_control.discrete.contact_forces import ContactPlaces
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios import Scenario, error_metrics
from nh_control.view.animation import Animation, Curves, Poses, by_unit, chosen_rows
from nh_control.view.contacts import ContactArrows, arrow_frames, arrow_scale
from nh_control.view.sources import arrow_lengths, cable_loads, coordinate_curves, error_curves

NO_FORCES: Mapping[str, np.ndarray] = MappingProxyType({})
VIEWED_HZ = 10.0
"""Sampling rate of the reference when the view is computed."""


class LiveMotion:
    """The states of a scenario as frames for a page's live.js module. The signs of quaternions do
    not flip between frames.
    """

    def __init__(self, scenario: Scenario, dsys: DiscreteSystem, reference: Trajectory):
        self._scenario, self._dsys, self._reference = scenario, dsys, reference
        self._visual = scenario.visual_model(reference=reference.name)
        self._places = ContactPlaces(dsys.system)
        self._force_scale = arrow_scale(self._visual, scenario.parameters, dsys, reference)
        self._units = error_metrics.input_units(scenario, dsys.system)
        self._last: dict[str, np.ndarray] = {}

    @property
    def animation(self) -> Animation:
        """The reference as an animation with the page's curves. It determines the view."""
        nq, dsys = self._dsys.system.space.nq, self._dsys
        rows = chosen_rows(self._reference.times, VIEWED_HZ)
        states, steps = self._reference.states[rows], self._reference.inputs
        # Inputs belong to steps, so the last input is repeated at the last node.
        inputs = np.vstack([steps, steps[-1:]])[rows]
        watched = [
            self._watched(x[:nq], dsys.velocity(x), dict(zip(dsys.inputs, u)))
            for x, u in zip(states, inputs)
        ]
        q = states[:, :nq]
        contacts = self._contacts(q, {})
        poses = contacts.with_frames(Poses.of(self._visual, self._scenario.parameters, q))
        monitor, visual = self._scenario.monitor, self._visual
        return Animation(
            f"{self._scenario.name}, live",
            contacts.shown_by(visual),
            self._reference.times[rows],
            poses,
            poses,
            tuple(self._curves(q[0], None, q[0], {}, {}, np.array(watched[:1]))),
            cable_loads(visual, monitor, np.array(watched), len(rows)),
            self._arrow_lengths(dict(zip(dsys.inputs, inputs.T)), contacts),
        )

    def frame(
        self,
        time_s: float,
        q: np.ndarray,
        v: np.ndarray | None,
        target: np.ndarray,
        inputs: Mapping[str, float],
        of_one_time: bool = True,
        forces: Mapping[str, np.ndarray] = NO_FORCES,
    ) -> dict[str, Any]:
        """A frame for JSON, computed from a configuration q (nq), the velocity v (nw) if it is
        known, the target (nq), the inputs by name, and the known contact forces (3) in N by name.
        Unknown numbers are null. For example, the error is unknown if the configuration and the
        target belong to different times.
        """
        visual = self._visual
        input_rows = {name: np.array([value]) for name, value in inputs.items()}
        watched = self._watched(q, v, inputs)[None]
        # Errors between different times would be misleading, so they are NaN, which becomes null.
        compared = target if of_one_time else np.full_like(target, np.nan)
        curves = self._curves(q, v, compared, inputs, forces, watched)
        contacts = self._contacts(q[None], forces)
        return {
            "time": time_s,
            "run": self._placed("run", q, contacts),
            "reference": self._placed("reference", target, contacts),
            "loads": _plain(cable_loads(visual, self._scenario.monitor, watched, 1)),
            "arrowLengths": _plain(self._arrow_lengths(input_rows, contacts)),
            "curves": [_plain(curve.values) for curve in curves],
        }

    def _contacts(self, q: np.ndarray, forces: Mapping[str, np.ndarray]) -> ContactArrows:
        """The arrows for contacts at configurations q (N, nq) with the given forces by name."""
        names = self._places.names
        shape = len(q), len(names), 3
        positions = np.reshape([list(self._places(row).values()) for row in q], shape)
        known = np.reshape([forces.get(name, np.zeros(3)) for name in names], shape[1:])
        return ContactArrows(arrow_frames(names), positions, np.broadcast_to(known, shape))

    def _arrow_lengths(
        self, inputs: Mapping[str, np.ndarray], contacts: ContactArrows
    ) -> np.ndarray:
        """The lengths (N, arrows) in m of the arrows for the inputs (N) by name and for the
        contacts.
        """
        # The scale is the same for the whole run, so lengths can be compared over time.
        size = self._force_scale * np.linalg.norm(contacts.forces, axis=2)
        return np.hstack([arrow_lengths(self._visual, inputs, len(size)), size])

    def _placed(self, part: str, q: np.ndarray, contacts: ContactArrows) -> list[float | None]:
        """The positions and quaternions of all frames. The frames of contacts come last."""
        poses = Poses.of(self._visual, self._scenario.parameters, q[None])
        poses = contacts.with_frames(poses)
        wxyz = poses.wxyz[0]
        last = self._last.get(part, wxyz)
        # Choose the sign of each quaternion that is closer to the previous frame.
        wxyz = self._last[part] = np.where((wxyz * last).sum(axis=1)[:, None] < 0, -wxyz, wxyz)
        return _plain(np.hstack([poses.position[0], wxyz]))

    def _curves(
        self,
        q: np.ndarray,
        v: np.ndarray | None,
        target: np.ndarray,
        inputs: Mapping[str, float],
        forces: Mapping[str, np.ndarray],
        watched: np.ndarray,
    ) -> list[Curves]:
        """All curves with their values (1, n) for a single state, always in the same order."""
        scenario, dsys = self._scenario, self._dsys
        space, monitor = dsys.system.space, scenario.monitor
        u = np.array([[inputs.get(name, np.nan) for name in dsys.inputs]])
        energy = np.nan if v is None else dsys.energy(dsys.state(q, v))
        curves = error_curves(scenario, space, q[None], target[None], whole=True)
        curves += by_unit("input", dsys.inputs, self._units, u)
        if monitor is not None:
            curves.append(Curves(monitor.title, monitor.unit, tuple(monitor.names), watched))
        if names := self._places.names:
            size = [np.linalg.norm(forces[name]) if name in forces else np.nan for name in names]
            curves.append(Curves("contact force", "N", names, np.array([size])))
        curves.append(Curves("energy", "J", ("energy",), np.array([[energy]])))
        return curves + coordinate_curves(scenario, space, q[None])

    def _watched(
        self, q: np.ndarray, v: np.ndarray | None, inputs: Mapping[str, float]
    ) -> np.ndarray:
        """The values of the monitored output, which are NaN if the velocity or an input is
        unknown.
        """
        if self._scenario.monitor is None:
            return np.zeros(0)
        u = [inputs.get(name) for name in self._dsys.inputs]
        return self._scenario.monitor.known_values(self._scenario.parameters, q, v, u)


def _plain(values: np.ndarray) -> list[float | None]:
    """The numbers for JSON. Numbers that are not finite become None."""
    flat = np.asarray(values, dtype=float).ravel()
    return [x if finite else None for x, finite in zip(flat.tolist(), np.isfinite(flat).tolist())]
