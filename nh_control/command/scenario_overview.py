"""The overview of each scenario in `nh_control list`. An overview requires constructing the
scenario's system, which takes most of the time. The overviews of this package's scenarios are
therefore cached.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nh_control.numerics.cache_folder import cache_directory, is_private
from nh_control.numerics.files import whole_file

if TYPE_CHECKING:
    from nh_control.mechanics.system import System
    from nh_control.scenarios import Scenario

FILE = "scenarios.json"
SOURCES = (".py", ".urdf", ".json")
"""Extensions of the files in this package that determine its scenarios."""


def overview(scenario: Scenario) -> dict[str, Any]:
    """Return the references, integrators, step, parameters and actuators as JSON values."""
    from nh_control.mechanics.parameters import declarations

    values = {d.name: d.value for d in declarations(scenario.parameters)}
    return {
        "title": scenario.title,
        "references": list(scenario.references),
        "integrators": list(scenario.integrators),
        "step_s": scenario.step_s,
        "parameters": {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()},
        "actuators": actuators(scenario, scenario.system),
    }


def actuators(scenario: Scenario, system: System) -> dict[str, list[Any]]:
    """Return the lower limit, upper limit and unit of every input."""
    from nh_control.scenarios.error_metrics import input_units

    names, units = system.inputs + system.prescribed, input_units(scenario, system)
    bounds = system.input_bounds.tolist()
    return {name: [*limits, unit] for name, limits, unit in zip(names, bounds, units)}


def stored() -> dict[str, dict[str, Any]]:
    """Return, by name, the overviews that `keep` stored for the present files of this package."""
    try:
        content = json.loads((cache_directory() / FILE).read_bytes())
        return dict(content["overviews"]) if content["sources"] == _sources() else {}
    except (OSError, ValueError, KeyError, TypeError):  # the file is missing or damaged
        return {}


def keep(overviews: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the overviews in the cache if it is private and has space."""
    if not is_private(cache_directory()):
        return
    try:
        with whole_file(cache_directory() / FILE) as file:
            file.write(json.dumps({"sources": _sources(), "overviews": overviews}).encode())
    except OSError as error:
        print(f"cannot store {cache_directory() / FILE}: {error}", file=sys.stderr)


def _sources() -> str:
    """Return a digest of the names, sizes and modification times of this package's files."""
    digest = hashlib.sha256()
    for path, status in _files(Path(__file__).parents[1]):
        # the size and the modification time are enough, and faster to read than the contents
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _files(folder: str | Path) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                yield from _files(entry.path)
            elif entry.name.endswith(SOURCES):
                yield entry.path, entry.stat()
