"""Joints that have one actuator each. A command may name such a joint instead of the actuator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import casadi as ca
import numpy as np

from nh_control.control.joint_servo import POSITION, VELOCITY
from nh_control.mechanics.driven import single_drives
from nh_control.mechanics.system import System
from nh_control.scenarios.scenario import Joint

Efforts: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], list[float]]
"""A function that returns the efforts (n) on joints for a configuration (nq), velocity (nw) and
inputs.
"""


@dataclass(frozen=True)
class DrivenJoint:
    """A joint's `name`, the index of its `input` in the system, and the `gain`, which is the input
    per unit effort on the joint, including the joint's sign.
    """

    name: str
    input: int
    gain: float


def driven_joints(joints: Sequence[Joint], system: System, inputs: int) -> tuple[DrivenJoint, ...]:
    """The joints whose coordinate c is driven by exactly one of the system's first `inputs`
    inputs. This input must not drive anything else: `df/du_i = a e_c` with a constant a. An effort
    tau on such a joint corresponds to the input `sign tau / a`.

    If several joints represent the same coordinate, the first one is the driven joint.
    """
    drives = single_drives(system.numeric, inputs)
    by_input: dict[int, DrivenJoint] = {}
    for joint in joints:
        _, row = joint.place(system.space)
        driving, a = drives.get(row, (-1, 0.0))
        if driving >= 0 and driving not in by_input:
            by_input[driving] = DrivenJoint(joint.name, driving, joint.sign / a)
    return tuple(by_input[i] for i in sorted(by_input))


def joint_efforts(joints: Sequence[Joint], system: System, inputs: int) -> Efforts:
    """A function that returns the efforts `sign (df/du u)_c` (N, N m) that the system's first
    `inputs` inputs exert on the joints' coordinates c. The efforts are zero for coordinates
    without inertia.
    """
    system = system.numeric
    q, v, u = system.symbols
    slope = ca.jacobian(system.generalized_force(q, v, u), u)[:, :inputs]
    signs = np.zeros((len(joints), system.space.nw))
    for i, joint in enumerate(joints):
        if joint.coordinate not in system.first_order:
            signs[i, joint.place(system.space)[1]] = joint.sign
    effects = ca.simplify(ca.DM(signs) @ slope)
    # A constant matrix is evaluated with NumPy. Other matrices need a CasADi function.
    if effects.is_constant():
        constant = np.array(ca.DM(effects))
        return lambda q, v, u: (constant @ u[:inputs]).tolist()
    function = ca.Function("efforts", [q, v, u], [ca.densify(effects @ u[:inputs])])
    nothing = np.zeros(u.numel() - inputs)
    return lambda q, v, u: function(q, v, np.append(u[:inputs], nothing)).full()[:, 0].tolist()


def target_kinds(text: str, joints: Sequence[str]) -> dict[str, str]:
    """The kind of target, position or velocity, for each of the `joints`. The text is a single
    kind for all joints, or JOINT:KIND,JOINT:KIND. Raises ValueError for unknown kinds and joints,
    and for missing joints.
    """
    pairs = dict.fromkeys(joints, text)
    if ":" in text:
        pairs = dict(part.strip().rpartition(":")[::2] for part in text.split(","))
    if set(pairs) != set(joints) or not set(pairs.values()) <= {POSITION, VELOCITY}:
        every = ",".join(f"{name}:{POSITION}" for name in joints)
        raise ValueError(
            f"expected the command interface effort, {POSITION} or {VELOCITY}, or one of the last "
            f"two for every driven joint, such as {every or 'JOINT:position'}; got {text!r}"
        )
    return {name: pairs[name] for name in joints}
