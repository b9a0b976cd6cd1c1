"""The published marionette once more, in numpy on 4 x 4 matrices: an independent account of its
energies, constraints and discrete equations.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import nh_control

DATA = json.loads((Path(nh_control.__file__).parent / "data" / "marionette.json").read_text())
NAMES = DATA["dynamic_configs"] + DATA["kinematic_configs"]
INDEX = {name: i for i, name in enumerate(NAMES)}
H, DYNAMIC = DATA["simulation"]["dt"], len(DATA["dynamic_configs"])
GRAVITY, DAMPING = np.array(DATA["conventions"]["gravity"]), DATA["dimensions"]["damping"]
AXES = np.eye(3)
TINY = 1e-30


def elementary(kind, value):
    """Transform along or about a local axis, and its derivative with respect to the value."""
    place, slope = np.eye(4, dtype=complex), np.zeros((4, 4), dtype=complex)
    axis = AXES["XYZ".index(kind[1])]
    if kind[0] == "T":
        place[:3, 3], slope[:3, 3] = value * axis, axis
        return place, slope
    hat = np.cross(np.eye(3), axis)
    place[:3, :3] += np.sin(value) * hat + (1 - np.cos(value)) * hat @ hat
    slope[:3, :3] = np.cos(value) * hat + np.sin(value) * hat @ hat
    return place, slope


def frames(q, v):
    """Poses (4, 4) of all frames by index, and their time derivatives."""
    poses, rates = [np.eye(4, dtype=complex)], [np.zeros((4, 4), dtype=complex)]
    for entry in DATA["frames"][1:]:
        if entry["type"] == "CONST_TXYZ":
            place, slope, speed = np.eye(4, dtype=complex), np.zeros((4, 4)), 0.0
            place[:3, 3] = entry["xyz"]
        else:
            at = INDEX.get(entry.get("config"))
            place, slope = elementary(entry["type"], entry["value"] if at is None else q[at])
            speed = 0.0 if at is None else v[at]
        parent = entry["parent"]
        poses.append(poses[parent] @ place)
        rates.append(rates[parent] @ place + speed * (poses[parent] @ slope))
    return poses, rates


def lagrangian(q, v):
    poses, rates = frames(q, v)
    total = 0
    for entry in DATA["frames"]:
        if "inertia" in entry:
            body, pose, rate = entry["inertia"], poses[entry["index"]], rates[entry["index"]]
            spin = pose[:3, :3].T @ rate[:3, :3]
            omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
            moments = np.array([body[key] for key in ("Ixx", "Iyy", "Izz")])
            total += (
                body["m"] / 2 * np.sum(rate[:3, 3] ** 2)
                + np.sum(moments * omega**2) / 2
                + body["m"] * GRAVITY @ pose[:3, 3]
            )
    return total


def constraints(q):
    """h(q), (6)."""
    poses = frames(q, np.zeros(len(q)))[0]
    at = {entry["name"]: poses[entry["index"]][:3, 3] for entry in DATA["frames"]}
    return np.array(
        [
            np.sum((at[c["frame1"]] - at[c["frame2"]]) ** 2) - q[INDEX[c["distance_config"]]] ** 2
            for c in DATA["constraints"]
        ]
    )


def gradient(f, q, columns=DYNAMIC):
    """Derivative with respect to the first entries of q, by complex steps: exact to round-off."""
    return np.array(
        [np.imag(f(q + 1j * TINY * np.eye(len(q))[i])) / TINY for i in range(columns)]
    ).T


def discrete_lagrangian(q1, q2):
    return H * lagrangian((q1 + q2) / 2, (q2 - q1) / H)


def first_momentum(q):
    """`p = D2 Ld(q, q)`, (22)."""
    return gradient(lambda end: discrete_lagrangian(q, end), q)


def left_out(q1, p1, q2, p2):
    """What the published equations leave: the two balances of momenta, (22) each, with the best
    multipliers, and h(q2), (6).
    """
    balance = (
        p1
        + gradient(lambda start: discrete_lagrangian(start, q2), q1)
        - DAMPING * (q2 - q1)[:DYNAMIC]
    )
    slope = gradient(constraints, q1)
    multipliers = np.linalg.lstsq(slope.T, balance, rcond=None)[0]
    return (
        balance - slope.T @ multipliers,
        p2 - gradient(lambda end: discrete_lagrangian(q1, end), q2),
        np.real(constraints(q2)),
    )


def string_targets(step):
    """Prescribed coordinates (18) that the published loop sets in a step, counted from 0: those of
    the time before its step.
    """
    values = np.array(DATA["initial_configuration"]["q0"])[DYNAMIC:]
    for name, sign in (("left_leg", -1), ("right_leg", 1), ("left_arm", 1), ("right_arm", -1)):
        values[DATA["kinematic_configs"].index(f"{name}_string-length")] += (
            sign * 0.1 * np.sin(0.6 * np.pi * step * H)
        )
    return values
