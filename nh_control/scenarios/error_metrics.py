"""Names and units of a scenario's coordinates, and the tracking error divided into physically
meaningful parts.
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
    """The size (N + 1) of a part of the tracking error at the nodes of a run, in `unit`."""

    name: str
    unit: str
    values: np.ndarray


def coordinate_units(scenario: Scenario, space: Space) -> dict[str, str]:
    """The units of the coordinates by name: the units of the joints, of the planar body (rad, m,
    m) and of the space, and m for all other coordinates.
    """
    declared = space.units | (
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
    """A coordinate or a momentum `p_<coordinate>` with its unit, or with SI if the unit is
    unknown.
    """
    coordinate = name.removeprefix("p_")
    unit = units.get(name) or MOMENTUM_UNITS.get(units.get(coordinate, ""), "SI")
    return f"{name if name == coordinate else f'p of {coordinate}'} ({unit})"


def input_units(scenario: Scenario, system: System) -> tuple[str, ...]:
    """The units of the inputs: first those of the forces, then those of the prescribed
    coordinates. Unknown units are "".
    """
    units = coordinate_units(scenario, system.space)
    forces = system.input_units or ("",) * system.nu
    return (*forces, *(units[name] for name in system.prescribed))


def error_unit(scenario: Scenario, space: Space) -> str:
    """The unit of the norm of the configuration error, such as "m, rad" for a norm that includes
    both.
    """
    still = np.array([space.origin])
    units = {part.unit for part in error_parts(scenario, space, still, still)}
    return ", ".join(sorted(units))


def error_parts(
    scenario: Scenario, space: Space, q: np.ndarray, targets: np.ndarray
) -> list[Part]:
    """The distances between the configurations q and `targets`, each (N + 1, nq): distances
    between positions in m, and angles between rotations or directions in rad.
    """
    parts: list[Part] = []
    for factor, columns, _ in simple_factors(space):
        parts += _PARTS[type(factor)](scenario, factor, q[:, columns], targets[:, columns])
    return parts


def manifold_residual(space: Space, q: np.ndarray) -> np.ndarray | None:
    """The largest deviation (N) from the manifold, `|retract(q, 0) - q|`, over the entries of each
    of the configurations (N, nq). The result is None if the space has no quaternions or unit
    vectors.
    """
    if not any(isinstance(factor, (S2, SO3, SE3)) for factor, _, _ in simple_factors(space)):
        return None
    return np.abs(space.retract(q, np.zeros(space.nv)) - q).max(axis=1)


def _angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The angles between the unit vectors in the rows of a and b, which are accurate even near 0
    and pi.
    """
    return 2 * np.arctan2(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1))


def _rotation_angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The angles of the rotations between unit quaternions. The signs of the quaternions do not
    matter.
    """
    # The quaternions q and -q are the same rotation, so take the smaller of the two angles.
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
    """A name for several coordinates, such as `payload position` for payload_x, payload_y,
    payload_z. If the coordinates have no common prefix, the name is a list of their names or, if
    there are too many, their kind.
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
    """The common prefix of a factor's names, as words that precede another word."""
    return factor.tangent_names[0].removesuffix(first).replace("_", " ")


_PARTS: dict[type, Callable[..., Iterator[Part]]] = {
    Rn: _vector_parts,
    SE2: _pose_parts,
    SO3: _rotation_parts,
    S2: _direction_parts,
    SE3: _spatial_pose_parts,
}


def norms(table: np.ndarray) -> np.ndarray:
    """The norms (n) of the rows of a table (n, k). Norms that overflow are infinite."""
    with np.errstate(over="ignore"):
        return np.linalg.norm(table, axis=1)
