"""Faults in a study's runs, by the names of settings:

    fault.[TARGET:]KIND        the fault's number, as in `--fault [TARGET:]KIND=NUMBER`
    fault.[TARGET:]KIND.NAME   another value of it: start, duration, seed

A fault that such a name is of is there without being declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.scenarios.fault import KINDS, Fault
from nh_control.scenarios.names import UnknownName

FAULT = "fault"
SIZE = "size"


def label(fault: Fault) -> str:
    """[TARGET:]KIND, without the target that the kind has anyway."""
    usual = fault.target == fault.effect.default
    return fault.kind if usual else f"{fault.target}:{fault.kind}"


def declared(faults: Sequence[Fault]) -> Iterator[Declaration]:
    """The settings of the faults."""
    for fault in faults:
        for d in declarations(fault.effect):
            yield replace(d, name=_name(label(fault), d.name))


def with_those_of(faults: Sequence[Fault], settings: Iterable[str]) -> tuple[Fault, ...]:
    """The faults and, after them, those that settings of these names are of; raises UnknownName,
    and ValueError where there are two of one name or a number is missing.
    """
    settings = [name for name in settings if name.startswith(f"{FAULT}.")]
    found = {label(fault): fault for fault in faults}
    if len(found) < len(faults):
        raise ValueError(
            f"a study takes one fault of each kind and target, got {[*map(label, faults)]}"
        )
    for name in settings:
        fault = _of(name)
        if label(fault) in found:
            continue
        found[label(fault)] = fault
        number = _name(label(fault), SIZE)
        sized = any(d.name == SIZE for d in declarations(fault.effect))
        if sized and number not in settings:
            raise ValueError(f"{name}: how large is this fault? set {number}, or let it vary")
    return tuple(found.values())


def changed(faults: Sequence[Fault], values: Mapping[str, Any]) -> tuple[Fault, ...]:
    """The faults with the values of a run; raises ValueError for one that a fault refuses."""
    out = []
    for fault in faults:
        names = {_name(label(fault), d.name): d.name for d in declarations(fault.effect)}
        own = {names[name]: value for name, value in values.items() if name in names}
        out.append(replace(fault, effect=replace(fault.effect, **own)))
    return tuple(out)


def _name(label: str, field: str) -> str:
    return f"{FAULT}.{label}" if field == SIZE else f"{FAULT}.{label}.{field}"


def _of(setting: str) -> Fault:
    """The fault that a setting is of, as its kind usually is."""
    target, _, rest = setting.removeprefix(f"{FAULT}.").rpartition(":")
    kind = rest.partition(".")[0]
    if kind not in KINDS:
        raise UnknownName(f"kind of the fault in {setting!r},", kind, KINDS)
    return Fault(target or KINDS[kind].default, KINDS[kind]())
