"""Fault settings in a study, by name:

    fault.[TARGET:]KIND        the number of the fault, as in `--fault [TARGET:]KIND=NUMBER`
    fault.[TARGET:]KIND.NAME   another value of the fault: start, duration, seed

Such a name also declares the fault.
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
    """Return [TARGET:]KIND. The target is omitted if it is the kind's default."""
    usual = fault.target == fault.effect.default
    return fault.kind if usual else f"{fault.target}:{fault.kind}"


def declared(faults: Sequence[Fault]) -> Iterator[Declaration]:
    """Yield the settings of the faults."""
    for fault in faults:
        for d in declarations(fault.effect):
            yield replace(d, name=_name(label(fault), d.name))


def with_named_faults(faults: Sequence[Fault], settings: Iterable[str]) -> tuple[Fault, ...]:
    """Return the faults, followed by the faults that setting names declare.

    Raises UnknownName for an unknown kind, and ValueError for two faults with the same name or a
    fault without its number.
    """
    settings = [name for name in settings if name.startswith(f"{FAULT}.")]
    by_label = {label(fault): fault for fault in faults}
    if len(by_label) < len(faults):
        raise ValueError(
            f"a study takes at most one fault of each kind and target, got {[*map(label, faults)]}"
        )
    for name in settings:
        fault = _fault_named(name)
        if label(fault) in by_label:
            continue
        # The fault's number must be a setting, because the fault has no default number.
        by_label[label(fault)] = fault
        number = _name(label(fault), SIZE)
        sized = any(d.name == SIZE for d in declarations(fault.effect))
        if sized and number not in settings:
            raise ValueError(f"{name}: the fault has no size; set {number} or let it vary")
    return tuple(by_label.values())


def with_values(faults: Sequence[Fault], values: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Return the faults with the values for a run. Raises ValueError if a fault refuses a
    value.
    """
    out = []
    for fault in faults:
        names = {_name(label(fault), d.name): d.name for d in declarations(fault.effect)}
        changes = {names[name]: value for name, value in values.items() if name in names}
        out.append(replace(fault, effect=replace(fault.effect, **changes)))
    return tuple(out)


def canonical(setting: str) -> str:
    """Return the name of a setting as in `declared`, which omits a fault's target if it is the
    kind's default: fault.positions:noise becomes fault.noise.
    """
    if not setting.startswith(f"{FAULT}."):
        return setting
    # [TARGET:]KIND[.NAME]
    target, colon, rest = setting.removeprefix(f"{FAULT}.").rpartition(":")
    kind = KINDS.get(rest.partition(".")[0])
    return f"{FAULT}.{rest}" if colon and kind and target == kind.default else setting


def _name(label: str, field: str) -> str:
    return f"{FAULT}.{label}" if field == SIZE else f"{FAULT}.{label}.{field}"


def _fault_named(setting: str) -> Fault:
    """Return the fault that a setting's name declares, with default values."""
    target, _, rest = setting.removeprefix(f"{FAULT}.").rpartition(":")
    kind = rest.partition(".")[0]
    if kind not in KINDS:
        raise UnknownName(f"kind of fault in {setting!r},", kind, KINDS)
    return Fault(target or KINDS[kind].default, KINDS[kind]())
