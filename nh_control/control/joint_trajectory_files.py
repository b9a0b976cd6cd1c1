"""Joint trajectories in CSV files, YAML files, and trajectory_msgs/JointTrajectory messages."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.discrete.trajectory_files import TIME, write_csv
from nh_control.numerics.files import whole_file

DERIVATIVES = {"velocities": "_velocity", "accelerations": "_acceleration"}
"""The fields, and the suffixes of their column names."""
ENDINGS = (".csv", ".yaml", ".yml")


def read(path: Path) -> dict[str, Any]:
    """The fields of the JointTrajectory that a file contains. Raises OSError, and ValueError with
    the position of the error.
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path}: expected a file {', '.join(ENDINGS)}")
    text = path.read_text(encoding="utf-8")
    try:
        return _of_csv(text) if path.suffix == ".csv" else from_message(_of_yaml(text))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write(
    path: Path,
    names: Sequence[str],
    times: np.ndarray,
    positions: np.ndarray,
    velocities: np.ndarray | None,
    accelerations: np.ndarray | None,
) -> None:
    """Write a file that `read` can read. Raises OSError, and ValueError for an unknown suffix."""
    optional = {"positions": positions, "velocities": velocities, "accelerations": accelerations}
    tables = {field: table for field, table in optional.items() if table is not None}
    if path.suffix == ".csv":
        columns = {TIME: times}
        for field, table in tables.items():
            ending = DERIVATIVES.get(field, "")
            columns |= {f"{name}{ending}": column for name, column in zip(names, table.T)}
        write_csv(path, columns)
    elif path.suffix in ENDINGS:
        import yaml  # slow to import

        points = [
            {**{field: table[i].tolist() for field, table in tables.items()}, "time_from_start": t}
            for i, t in enumerate(times.tolist())
        ]
        whole = {"joint_names": list(names), "points": points}
        with whole_file(path) as file:
            file.write(yaml.safe_dump(whole, sort_keys=False, default_flow_style=None).encode())
    else:
        raise ValueError(f"{path}: expected a file {', '.join(ENDINGS)}")


def from_message(message: Any) -> dict[str, Any]:
    """The fields of a JointTrajectory message, or of a dictionary with the same entries. Raises
    ValueError with the number of the invalid point.
    """
    names, points = _entry(message, "joint_names"), _entry(message, "points")
    if not names or not points:
        raise ValueError("expected joint_names and points, as in trajectory_msgs/JointTrajectory")
    tables: dict[str, Any] = {}
    for field in ("positions", *DERIVATIVES):
        rows = [_numbers(_entry(point, field), field, i) for i, point in enumerate(points)]
        # 0: the field is missing at a point
        lengths = {len(row) for row in rows}
        if lengths == {0} and field != "positions":
            continue
        if lengths != {len(names)}:
            raise ValueError(
                f"expected {len(names)} {field} in every point, one for each joint (velocities "
                f"and accelerations may be missing in all points); got {sorted(lengths)}"
            )
        tables[field] = np.array(rows)
    times = [_time(_entry(point, "time_from_start"), i) for i, point in enumerate(points)]
    return {"names": tuple(map(str, names)), "times": np.array(times), **tables}


def _of_yaml(text: str) -> Any:
    """The message in a YAML file. The file may contain the message several times, separated by
    `---`, as in the output of `ros2 topic echo`. Raises ValueError if the text is not YAML or the
    messages differ.
    """
    import yaml  # slow to import

    try:
        messages = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise ValueError(error) from error
    messages = messages or [None]
    motions = [
        [_entry(message, name) for name in ("joint_names", "points")] for message in messages
    ]
    # repeated messages differ only in their headers
    if any(motion != motions[0] for motion in motions):
        raise ValueError(
            f"expected one joint trajectory, got {len(messages)} different messages; delete all "
            f"but one, or record with `ros2 topic echo --once`"
        )
    return messages[-1]


def _entry(of: Any, name: str) -> Any:
    """An entry of a dictionary or a field of a message. The result is an empty list if there is no
    such entry or field.
    """
    entry = of.get(name) if isinstance(of, dict) else getattr(of, name, None)
    return [] if entry is None else entry


def _numbers(values: Any, field: str, point: int) -> list[float]:
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise ValueError(f"point {point}: {field} must be numbers, got {values!r}") from None


def _time(duration: Any, point: int) -> float:
    """A duration in seconds, from a number or from sec and nanosec, each of which is 0 if it is
    missing.
    """
    if isinstance(duration, (int, float)):
        return float(duration)
    known = [_entry(duration, name) for name in ("sec", "nanosec")]
    # files may contain only one of the two
    parts = [0 if part == [] else part for part in known]
    if known == [[], []] or not all(type(part) is int for part in parts):
        raise ValueError(
            f"point {point}: time_from_start must be seconds, or sec and nanosec, got {duration!r}"
        )
    return float(parts[0] + parts[1] / 1e9)


def _of_csv(text: str) -> dict[str, Any]:
    rows = [row for row in csv.reader(text.splitlines()) if row]
    header = [name.strip() for name in rows[0]] if rows else []
    if TIME not in header or len(set(header)) < len(header) or len(rows) < 2:
        raise ValueError(
            f"expected a header of different names that contains {TIME}, such as "
            f"{TIME},shoulder,elbow, and a row for each point; got the header {header}"
        )
    table = np.array([_row(row, header, i) for i, row in enumerate(rows[1:], start=2)]).T
    columns = dict(zip(header, table))
    times, derivatives = columns.pop(TIME), {}
    # the joints are the columns that are not derivatives of other columns
    names = [name for name in columns if not _is_rate(name, columns)]
    for field, ending in DERIVATIVES.items():
        rates = [f"{name}{ending}" for name in names]
        if present := [rate for rate in rates if rate in columns]:
            if len(present) < len(rates):
                raise ValueError(f"expected the columns {rates} or none of them, got {present}")
            derivatives[field] = np.column_stack([columns[rate] for rate in rates])
    positions = np.column_stack([columns[name] for name in names]) if names else np.zeros((0, 0))
    return {"names": tuple(names), "times": times, "positions": positions, **derivatives}


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
