"""Joint trajectories as CSV and YAML files, and in the form of trajectory_msgs/JointTrajectory."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from nh_control.discrete.trajectory_files import TIME, write_csv
from nh_control.numerics.files import whole_file

DERIVATIVES = {"velocities": "_velocity", "accelerations": "_acceleration"}
"""Fields and the ends of their columns' names."""
ENDINGS = (".csv", ".yaml", ".yml")


def read(path: Path) -> dict[str, Any]:
    """The fields of a JointTrajectory in a file. Raises OSError, and ValueError that names the
    place.
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path}: a joint trajectory is a file {', '.join(ENDINGS)}")
    text = path.read_text(encoding="utf-8")
    try:
        return _of_csv(text) if path.suffix == ".csv" else from_message(_of_yaml(text))
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: {error}") from error


def write(
    path: Path,
    names: Sequence[str],
    times: np.ndarray,
    positions: np.ndarray,
    velocities: np.ndarray | None,
    accelerations: np.ndarray | None,
) -> None:
    """Write a file that `read` reads; raises OSError, and ValueError for another ending."""
    tables = {"positions": positions, "velocities": velocities, "accelerations": accelerations}
    given = {field: table for field, table in tables.items() if table is not None}
    if path.suffix == ".csv":
        columns = {TIME: times}
        for field, table in given.items():
            ending = DERIVATIVES.get(field, "")
            columns |= {f"{name}{ending}": column for name, column in zip(names, table.T)}
        write_csv(path, columns)
    elif path.suffix in ENDINGS:
        points = [
            {**{field: table[i].tolist() for field, table in given.items()}, "time_from_start": t}
            for i, t in enumerate(times.tolist())
        ]
        whole = {"joint_names": list(names), "points": points}
        with whole_file(path) as file:
            file.write(yaml.safe_dump(whole, sort_keys=False, default_flow_style=None).encode())
    else:
        raise ValueError(f"{path}: a joint trajectory is a file {', '.join(ENDINGS)}")


def from_message(message: Any) -> dict[str, Any]:
    """The fields of a JointTrajectory in a message, or a dictionary of its form; raises ValueError
    that names the point.
    """
    names, points = _entry(message, "joint_names"), _entry(message, "points")
    if not names or not points:
        raise ValueError("expected joint_names and points, as trajectory_msgs/JointTrajectory has")
    tables: dict[str, Any] = {}
    for field in ("positions", *DERIVATIVES):
        rows = [_numbers(_entry(point, field), field, i) for i, point in enumerate(points)]
        lengths = {len(row) for row in rows}
        if lengths == {0} and field != "positions":
            continue
        if lengths != {len(names)}:
            raise ValueError(
                f"expected {len(names)} {field} in every point, one for each joint, or, but for "
                f"positions, in none; got {sorted(lengths)}"
            )
        tables[field] = np.array(rows)
    times = [_time(_entry(point, "time_from_start"), i) for i, point in enumerate(points)]
    return {"names": tuple(map(str, names)), "times": np.array(times), **tables}


def _of_yaml(text: str) -> Any:
    """The message in a YAML file, which may be there several times, ended by `---`, as `ros2 topic
    echo` writes it; raises ValueError for different ones.
    """
    messages = [one for one in yaml.safe_load_all(text) if one is not None] or [None]
    motions = [[_entry(one, name) for name in ("joint_names", "points")] for one in messages]
    if any(motion != motions[0] for motion in motions):
        raise ValueError(
            f"expected one joint trajectory, got {len(messages)} different messages; keep one of "
            f"them, or write `ros2 topic echo --once`"
        )
    return messages[-1]


def _entry(of: Any, name: str) -> Any:
    """An entry of a dictionary, or a field of a message; an empty list without one."""
    entry = of.get(name) if isinstance(of, dict) else getattr(of, name, None)
    return [] if entry is None else entry


def _numbers(values: Any, field: str, point: int) -> list[float]:
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise ValueError(f"point {point}: {field} must be numbers, got {values!r}") from None


def _time(given: Any, point: int) -> float:
    """Seconds of a duration: a number, or sec and nanosec, of which one may be left out."""
    if isinstance(given, (int, float)):
        return float(given)
    known = [_entry(given, name) for name in ("sec", "nanosec")]
    parts = [0 if part == [] else part for part in known]
    if known == [[], []] or not all(type(part) is int for part in parts):
        raise ValueError(
            f"point {point}: time_from_start must be seconds, or sec and nanosec, got {given!r}"
        )
    return float(parts[0] + parts[1] / 1e9)


def _of_csv(text: str) -> dict[str, Any]:
    rows = [row for row in csv.reader(text.splitlines()) if row]
    header = [name.strip() for name in rows[0]] if rows else []
    if TIME not in header or len(set(header)) < len(header) or len(rows) < 2:
        raise ValueError(
            f"expected a header of different names with {TIME}, such as {TIME},shoulder,elbow, "
            f"and a row for each point, got the header {header}"
        )
    table = np.array([_row(row, header, i) for i, row in enumerate(rows[1:], start=2)]).T
    columns = dict(zip(header, table))
    times, own = columns.pop(TIME), {}
    names = [name for name in columns if not _is_rate(name, columns)]
    for field, ending in DERIVATIVES.items():
        rates = [f"{name}{ending}" for name in names]
        if present := [rate for rate in rates if rate in columns]:
            if len(present) < len(rates):
                raise ValueError(f"expected the columns {rates}, or none of them, got {present}")
            own[field] = np.column_stack([columns[rate] for rate in rates])
    positions = np.column_stack([columns[name] for name in names]) if names else np.zeros((0, 0))
    return {"names": tuple(names), "times": times, "positions": positions, **own}


def _is_rate(column: str, columns: dict[str, np.ndarray]) -> bool:
    return any(
        column.endswith(ending) and column.removesuffix(ending) in columns
        for ending in DERIVATIVES.values()
    )


def _row(row: list[str], header: list[str], line: int) -> list[float]:
    try:
        values = [float(value) for value in row]
    except ValueError:
        values = []
    if len(values) != len(header):
        raise ValueError(f"row {line}: expected {len(header)} numbers, got {row}")
    return values
