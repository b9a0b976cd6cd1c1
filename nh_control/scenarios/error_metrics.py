"""Names and units of a scenario's coordinates, and the tracking error in parts with a physical
meaning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from nh_control.geometry.homogeneous import simple_factors
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Rn, Space
from nh_control.mechanics.system import System
from nh_control.scenarios import Scenario

TOGETHER = {"m": "lengths", "rad": "angles"}
MOMENTUM_UNITS = {"m": "kg m/s", "rad": "kg m²/s"}


@dataclass(frozen=True)
class Part:
    """Size (N + 1) of one part of the tracking error at the nodes of a run, in `unit`."""

    name: str
    unit: str
    values: np.ndarray


def coordinate_units(scenario: Scenario, space: Space) -> dict[str, str]:
    """Units of the coordinates: of joints, of the coordinates of a planar body (rad, m, m), and m
    for others.
    """
    declared = (
        {} if scenario.body is None else dict(zip(scenario.body.coordinates, ("rad", "m", "m")))
    )
    declared |= {joint.coordinate: joint.unit for joint in scenario.joints}
    return {
        name: declared.get(name, "m")
        for factor, _, _ in simple_factors(space)
        if isinstance(factor, (Rn, SE2))
        for name in factor.names
    }


def state_label(name: str, units: dict[str, str]) -> str:
    """A coordinate or a momentum `p_<coordinate>` with its unit, where it is known."""
    coordinate = name.removeprefix("p_")
    unit = units.get(name) or MOMENTUM_UNITS.get(units.get(coordinate, ""), "SI")
    return f"{name if name == coordinate else f'p of {coordinate}'} ({unit})"


def input_units(scenario: Scenario, system: System) -> tuple[str, ...]:
    """Units of the inputs, "" for unknown ones: units of the forces, then of the prescribed
    coordinates.
    """
    units = coordinate_units(scenario, system.space)
    forces = system.input_units or ("",) * system.nu
    return (*forces, *(units[name] for name in system.prescribed))


def error_unit(scenario: Scenario, space: Space) -> str:
    """Unit of the norm of the configuration's error, "m, rad" for a norm over both."""
    still = np.array([space.origin])
    units = {part.unit for part in error_parts(scenario, space, still, still)}
    return ", ".join(sorted(units))


def error_parts(
    scenario: Scenario, space: Space, q: np.ndarray, targets: np.ndarray
) -> list[Part]:
    """Distances of configurations q from `targets`, (N + 1, nq) each: positions in m, rotations
    and directions by their angle in rad.
    """
    parts: list[Part] = []
    for factor, columns, _ in simple_factors(space):
        parts += _PARTS[type(factor)](scenario, factor, q[:, columns], targets[:, columns])
    return parts


def manifold_residual(space: Space, q: np.ndarray) -> np.ndarray | None:
    """Largest distance (N) of the numbers of configurations (N, nq) from the manifold,
    `|retract(q, 0) - q|`; None for a space without spheres.
    """
    if not any(isinstance(factor, (S2, SO3, SE3)) for factor, _, _ in simple_factors(space)):
        return None
    still = np.zeros(space.nv)
    return np.array([np.abs(space.retract(row, still) - row).max() for row in q])


def _angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angle between the rows of a and b, unit vectors, without loss near 0 and pi."""
    return 2 * np.arctan2(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1))


def _rotation_angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angle of the rotation between unit quaternions of either sign."""
    between = _angle(a, b)
    return 2 * np.minimum(between, np.pi - between)


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a - b, axis=1)


def _vector_parts(
    scenario: Scenario, factor: Rn, q: np.ndarray, targets: np.ndarray
) -> Iterator[Part]:
    units = coordinate_units(scenario, factor)
    for unit in dict.fromkeys(units.values()):
        names = [name for name in factor.names if units[name] == unit]
        columns = [factor.names.index(name) for name in names]
        yield Part(_vector_name(names, unit), unit, _distance(q[:, columns], targets[:, columns]))


def _vector_name(names: list[str], unit: str) -> str:
    """The common name of coordinates: `payload position` for payload_x, payload_y, payload_z;
    without one, their names if they are few.
    """
    common = os.path.commonprefix(names).rpartition("_")[0]
    if common and len(names) > 1:
        return f"{common} position"
    return ", ".join(names) if len(names) <= 3 else TOGETHER.get(unit, unit)


def _pose_parts(_: Scenario, factor: SE2, q: np.ndarray, targets: np.ndarray) -> Iterator[Part]:
    yield Part("position", "m", _distance(q[:, 1:], targets[:, 1:]))
    yield Part("heading", "rad", np.abs(q[:, 0] - targets[:, 0]))


def _rotation_parts(
    _: Scenario, factor: SO3, q: np.ndarray, targets: np.ndarray
) -> Iterator[Part]:
    yield Part(f"{_prefix(factor, 'rotation_x')}attitude", "rad", _rotation_angle(q, targets))


def _direction_parts(
    _: Scenario, factor: S2, q: np.ndarray, targets: np.ndarray
) -> Iterator[Part]:
    yield Part(f"{_prefix(factor, 'swing_1')}direction", "rad", _angle(q, targets))


def _spatial_pose_parts(
    _: Scenario, factor: SE3, q: np.ndarray, targets: np.ndarray
) -> Iterator[Part]:
    prefix = _prefix(factor, "rotation_x")
    yield Part(f"{prefix}position", "m", _distance(q[:, 4:], targets[:, 4:]))
    yield Part(f"{prefix}attitude", "rad", _rotation_angle(q[:, :4], targets[:, :4]))


def _prefix(factor: Space, first: str) -> str:
    """The prefix that a factor's names have, to be put before a word."""
    return factor.tangent_names[0].removesuffix(first).replace("_", " ")


_PARTS: dict[type, Callable[..., Iterator[Part]]] = {
    Rn: _vector_parts,
    SE2: _pose_parts,
    SO3: _rotation_parts,
    S2: _direction_parts,
    SE3: _spatial_pose_parts,
}


def norms(table: np.ndarray) -> np.ndarray:
    """Norms (n) of the rows of a table (n, k); infinite for numbers that are far away."""
    with np.errstate(over="ignore"):
        return np.linalg.norm(table, axis=1)
