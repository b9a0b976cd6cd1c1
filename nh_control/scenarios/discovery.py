"""Discovery of scenarios: built-in scenarios, entry points of other packages, files and
modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.user_code import UserCodeError, load_file, load_module

if TYPE_CHECKING:
    from nh_control.scenarios.scenario import Scenario

BuiltIn = Mapping[str, "Callable[[], Scenario]"]
"""Functions that build this package's scenarios, by name."""
GROUP = "nh_control.scenarios"
"""Group of the entry points with which installed packages declare scenarios."""


class AmbiguousName(ValueError):
    """Several packages declare a scenario with the same name."""

    def __init__(self, name: str, origins: Iterable[str]):
        super().__init__(
            f"the scenario {name!r} is declared by {' and by '.join(origins)}; choose one with "
            f"module:NAME, or uninstall the other"
        )


def installed() -> dict[str, list[EntryPoint]]:
    """The entry points of scenarios by name. If several packages declare a name, it has several
    entry points.
    """
    by_name: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        by_name.setdefault(entry.name, []).append(entry)
    return by_name


def find(name: str, built_in: BuiltIn) -> Scenario:
    """Return the built-in or installed scenario with the given name, or the scenario in
    `path/to/file.py:NAME` or `module:NAME`. NAME may be omitted if the file declares a single
    scenario (names that begin with "_" do not count), or if one of its scenarios is named after
    the file, such as ARM in arm.py.

    Raises UnknownName, AmbiguousName, FileNotFoundError, and UserCodeError, which contains the
    file and line of an error in a user's code.
    """
    place, colon, attribute = name.rpartition(":")
    if name.endswith(".py"):
        place, attribute = name, ""
    if place.endswith(".py"):
        path = Path(place).expanduser().resolve()
        return _declared(load_file(path), attribute, str(path), built_in)
    if colon:
        return _declared(load_module(place), attribute, place, built_in)
    declared = installed()
    entries = declared.get(name, [])
    origins = [f"{_package(entry)} ({entry.value})" for entry in entries]
    if name in built_in:
        origins.insert(0, "nh_control itself")
    if len(origins) > 1:
        raise AmbiguousName(name, origins)
    if name in built_in:
        return built_in[name]()
    if not entries:
        valid = sorted({*built_in, *declared})
        hint = "; for others use path/to/file.py:NAME or module:NAME"
        raise UnknownName("scenario", name, valid, hint)
    # Entry points are written as "module:NAME".
    module, _, attribute = (part.strip() for part in entries[0].value.partition(":"))
    scenario = _declared(load_module(module), attribute, module, built_in)
    return replace(scenario, source={"scenario": name})


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def _declared(module: ModuleType, attribute: str, place: str, built_in: BuiltIn) -> Scenario:
    """The scenario with the given name in a module, or the module's only scenario. Its `source` is
    set, so that nodes can find it again.
    """
    from nh_control.scenarios.scenario import Scenario

    file = getattr(module, "__file__", "") or place
    scenarios = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Scenario)
        and not (value.name in built_in and value is built_in[value.name]())
    }
    listed = f"; it declares {', '.join(scenarios) or 'no nh_control Scenario'}"
    if not attribute:
        public = [name for name in scenarios if not name.startswith("_")]
        stem = Path(file).stem.upper()
        if len(public) != 1 and stem not in scenarios:
            raise UserCodeError(
                f"{file}: expected one scenario, or one named {stem} after the file{listed}; name "
                f"it as {place}:NAME, or let the names of the others begin with _"
            )
        attribute = public[0] if len(public) == 1 else stem
    if not hasattr(module, attribute):
        raise UserCodeError(f"{file}: there is no {attribute}{listed}")
    scenario = getattr(module, attribute)
    if not isinstance(scenario, Scenario):
        line = _assignment(file, attribute)
        raise UserCodeError(
            f"{file}{line}\n{attribute} must be a nh_control Scenario, got "
            f"{type(scenario).__name__}{listed}"
        )
    # Other processes run the file again, so the source does not need other data, such as a URDF.
    return replace(scenario, source={"scenario": f"{place}:{attribute}"}, file=file)


def _assignment(file: str, name: str) -> str:
    """The number and the text of the line in a file that defines the name, for an error
    message.
    """
    lines = Path(file).read_text(encoding="utf-8").splitlines() if Path(file).is_file() else []
    starts = tuple(
        f"{before}{name}{after}" for before in ("", "def ", "class ") for after in " =(:"
    )
    for number, line in enumerate(lines, start=1):
        if line.startswith(starts):
            return f", line {number}:\n    {line.strip()}"
    return ":"
