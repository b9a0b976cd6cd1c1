"""Discovery of scenarios: built in, entry points of other packages, files and modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.user_code import UserCodeError, load_file, load_module

GROUP = "nh_control.scenarios"
"""Entry points of this group in any installed package are scenarios, by name."""


class AmbiguousName(ValueError):
    """A name under which several packages declare a scenario."""

    def __init__(self, name: str, origins: Iterable[str]):
        super().__init__(
            f"the scenario {name!r} is declared by {' and by '.join(origins)}; choose one by "
            f"module:NAME, or uninstall the other"
        )


def installed() -> dict[str, list[EntryPoint]]:
    """Entry points of scenarios by name; a name has several if packages disagree."""
    by_name: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        by_name.setdefault(entry.name, []).append(entry)
    return by_name


def find(name: str, built_in: Mapping[str, Scenario]) -> Scenario:
    """The built-in or installed scenario of that name, or the scenario in `path/to/file.py:NAME`
    or `module:NAME`. NAME is not needed if the file has one scenario (names that begin with "_" do
    not count), or one with the name of the file: ARM in arm.py.

    Raises UnknownName, AmbiguousName, FileNotFoundError, and UserCodeError with file and line of
    an error in a user's code.
    """
    place, colon, attribute = name.rpartition(":")
    if name.endswith(".py"):
        place, attribute = name, ""
    if place.endswith(".py"):
        path = Path(place).expanduser().resolve()
        return _declared(load_file(path), attribute, str(path), built_in)
    if colon:
        return _declared(load_module(place), attribute, place, built_in)
    entries = installed().get(name, [])
    origins = [f"{_package(entry)} ({entry.value})" for entry in entries]
    if name in built_in:
        origins.insert(0, "nh_control itself")
    if len(origins) > 1:
        raise AmbiguousName(name, origins)
    if name in built_in:
        return built_in[name]
    if not entries:
        valid = sorted({*built_in, *installed()})
        hint = "; other ones are given as path/to/file.py:NAME or module:NAME"
        raise UnknownName("scenario", name, valid, hint)
    module, _, attribute = (part.strip() for part in entries[0].value.partition(":"))
    scenario = _declared(load_module(module), attribute, module, built_in)
    return replace(scenario, source={"scenario": name})


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def _declared(
    module: ModuleType, attribute: str, place: str, built_in: Mapping[str, Scenario]
) -> Scenario:
    """The scenario of that name in a module, or its only one, with the data by which nodes find it
    again.
    """
    file = getattr(module, "__file__", "") or place
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Scenario) and not any(value is s for s in built_in.values())
    }
    listed = f"; it declares {', '.join(own)}" if own else "; it declares no nh_control Scenario"
    if not attribute:
        public = [name for name in own if not name.startswith("_")]
        stem = Path(file).stem.upper()
        if len(public) != 1 and stem not in own:
            raise UserCodeError(
                f"{file}: expected one scenario, or one named {stem} as the file{listed}; name it "
                f"as {place}:NAME, or let the names of the others begin with _"
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
    # the file makes it again: nothing else that it was made of, such as a URDF, has to be told
    return replace(scenario, source={"scenario": f"{place}:{attribute}"}, file=file)


def _assignment(file: str, name: str) -> str:
    """Number and text of the line of a file that assigns the name, if there is one."""
    lines = Path(file).read_text(encoding="utf-8").splitlines() if Path(file).is_file() else []
    starts = tuple(
        f"{before}{name}{after}" for before in ("", "def ", "class ") for after in " =(:"
    )
    for number, line in enumerate(lines, start=1):
        if line.startswith(starts):
            return f", line {number}:\n    {line.strip()}"
    return ":"
