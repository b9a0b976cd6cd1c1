"""Whom the values of a command are for: actuators, or the joints that they drive."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from nh_control.scenarios.driven_joints import DrivenJoint


class CommandNames:
    """The names that a command may have: every one of the `inputs` once, as itself or as the joint
    that it drives alone, in any order, and any other of the `joints`, which get no value, or
    `driving`.

    What has no value is what topic_based_ros2_control sends: all joints' names, and the efforts of
    those that have an effort to command.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        driven: Sequence[DrivenJoint] = (),
        joints: Collection[str] = (),
    ):
        self.inputs = tuple(inputs)
        self._as_they_are = tuple((i, 1.0) for i in range(len(self.inputs)))
        self._targets = {joint.name: (joint.input, joint.gain) for joint in driven}
        self._targets |= {name: (i, 1.0) for i, name in enumerate(self.inputs)}
        self._others = frozenset(joints) - self._targets.keys()

    def order(self, names: Sequence[str]) -> tuple[tuple[int, float], ...] | None:
        """For every input the place of its value in the command and the factor on it, or None if
        names are missing, unknown, or there twice.
        """
        names = tuple(names)
        if names == self.inputs:
            return self._as_they_are
        driving = [name for name in names if name not in self._others]
        found: dict[int, tuple[int, float]] = {}
        for place, name in enumerate(driving):
            target = self._targets.get(name)
            if target is None or target[0] in found:
                return None
            found[target[0]] = place, target[1]
        if len(found) != len(self.inputs) or len(set(names)) != len(names):
            return None
        return tuple(found[i] for i in range(len(self.inputs)))

    def driving(self, names: Sequence[str], values: Sequence[float]) -> tuple[float, ...] | None:
        """The values of the names that drive, where every name has one; None where they have not,
        or where one that drives nothing has another value than 0 or NaN.
        """
        if len(values) != len(names):
            return None
        pairs = list(zip(names, values))
        if any(v and not math.isnan(v) for name, v in pairs if name in self._others):
            return None
        return tuple(v for name, v in pairs if name not in self._others)
