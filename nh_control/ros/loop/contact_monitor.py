"""The contacts of a plant, monitored for its report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from nh_control.discrete.contact_forces import ContactForce


class ContactMonitor:
    """The contacts of the last step, with the least margins of friction and the numbers of steps
    with contacts that slide since the last report.
    """

    def __init__(self) -> None:
        self._last: Mapping[str, ContactForce] = {}
        self._clear()

    def _clear(self) -> None:
        self._margins: dict[str, float] = {}
        self._sliding = Counter[str]()

    def observe(self, contacts: Mapping[str, ContactForce]) -> None:
        """Take the contacts of a step by name."""
        self._last = contacts
        for name, one in contacts.items():
            if math.isfinite(one.margin):
                self._margins[name] = min(one.margin, self._margins.get(name, math.inf))
            self._sliding[name] += one.slides

    def report(self) -> tuple[dict[str, object], str]:
        """Normal forces, gaps and margins of friction with their least values since the last
        report, and a warning of contacts that slid, "" without.
        """
        values: dict[str, object] = {}
        for name, one in self._last.items():
            if math.isfinite(one.gap):
                values |= {f"normal force {name} (N)": one.normal, f"gap {name} (m)": one.gap}
            if math.isfinite(one.margin):
                values[f"margin of friction {name}"] = one.margin
        values |= {f"least margin of friction {n}": least for n, least in self._margins.items()}
        slid = {name: count for name, count in self._sliding.items() if count}
        self._clear()
        if not slid:
            return values, ""
        return values, f"{max(slid.values())} steps with sliding contacts ({', '.join(slid)})"
