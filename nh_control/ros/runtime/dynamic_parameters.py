"""Parameters that change while a node runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from nh_control.discrete.results import StepFailed
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.parameters import Parameters

SLOW_S = 0.1
"""Preparations that take longer than this are logged."""


@dataclass(frozen=True)
class Change:
    """A change of the parameters `names`. `prepare(values)` takes the new values of all these
    parameters and returns a function that the working thread calls. To refuse the change,
    `prepare` raises ValueError or StepFailed with the reason.
    """

    names: Sequence[str]
    prepare: Callable[[Mapping[str, Any]], Callable[[], None]]


class DynamicParameters:
    """Checks and prepares changes in the thread that sets the parameters, while the working thread
    continues. Parameters that are set together (`set_parameters_atomically`) take effect together,
    between two steps.
    """

    def __init__(
        self, node: Node, inbox: Inbox, parameters: Parameters, changes: Sequence[Change]
    ):
        self._node, self._inbox, self._parameters = node, inbox, parameters
        # rclpy calls the first callback before it sets values, and the second afterwards
        self._changes, self._prepared = changes, list[Callable[[], None]]()
        node.add_on_set_parameters_callback(self._prepare)
        node.add_post_set_parameters_callback(self._carry_out)

    def close(self) -> None:
        """Accept no more changes."""
        self._node.remove_on_set_parameters_callback(self._prepare)
        self._node.remove_post_set_parameters_callback(self._carry_out)

    def _prepare(self, parameters: list[Parameter]) -> SetParametersResult:
        self._prepared, began = [], time.monotonic()
        result = self._parameters.checked(parameters)
        if not result.successful:
            return result
        new = {parameter.name: parameter.value for parameter in parameters}
        try:
            # a change receives all its parameters, including those that keep their values
            for change in self._changes:
                if not new.keys().isdisjoint(change.names):
                    values = {name: self._value(name, new) for name in change.names}
                    self._prepared.append(change.prepare(values))
        except (ValueError, StepFailed, np.linalg.LinAlgError) as reason:
            return SetParametersResult(successful=False, reason=str(reason))
        elapsed = time.monotonic() - began
        if elapsed > SLOW_S:
            names = ", ".join(new)
            self._node.get_logger().info(f"{names}: prepared in {elapsed:.2f} s")
        return SetParametersResult(successful=True)

    def _value(self, name: str, new: Mapping[str, Any]) -> Any:
        return self._parameters.read(name, new[name]) if name in new else self._parameters[name]

    def _carry_out(self, _: list[Parameter]) -> None:
        prepared, self._prepared = self._prepared, []

        # one request carries out all changes, because the inbox handles requests between two steps
        def together() -> None:
            for change in prepared:
                change()

        self._inbox.post(together)
