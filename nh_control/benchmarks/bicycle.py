"""The Whipple/Carvallo bicycle with the parameters of Meijaard et al. (2007), table 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

import nh_control as nh
from nh_control.benchmarks.benchmark import PRINTED, Benchmark
from nh_control.benchmarks.motion import acceleration_of_point
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.systems.bicycle import BicycleParameters, bicycle_model

PARAMETERS = BicycleParameters()
REAR, FRONT = PARAMETERS.rear_radius, PARAMETERS.front_radius
"""Wheel radii, m."""
NO_TORQUES = (0.0, 0.0)
"""Torques on the steering and on the rear wheel."""

# forward speed (m/s): weave re, im, capsize, castering (1/s)
TABLE_2 = {
    1: ("3.52696170990070", "0.80774027519930", "-3.13423125066578", "-7.11008014637442"),
    2: ("2.68234517512745", "1.68066296590675", "-3.07158645641514", "-8.67387984831735"),
    3: ("1.70675605663975", "2.31582447384325", "-2.63366137253667", "-10.3510146724592"),
    4: ("0.41325331521125", "3.07910818603206", "-1.42944427361326", "-12.1586142657645"),
    5: ("-0.77534188219585", "4.46486771378823", "-0.32286642900409", "-14.0783896927982"),
    6: ("-1.52644486584142", "5.87673060598709", "-0.00406690076970", "-16.0853712309803"),
    7: ("-2.13875644258362", "7.19525913329805", "0.10268170574766", "-18.1578846612526"),
    8: ("-2.69348683581097", "8.46037971396931", "0.14327879765713", "-20.2794089439457"),
    9: ("-3.21675402252485", "9.69377351531791", "0.15790184030917", "-22.4378855904086"),
    10: ("-3.72016840437287", "10.9068113947629", "0.16105338653172", "-24.6245963501740"),
}
MODES = ("weave re", "weave im", "capsize", "castering")
STANDING = ("3.13164324790656", "5.53094371765393", "-3.13164324790656", "-5.53094371765393")
LATERAL = ("lean", "steer", "lean_dot", "steer_dot")
FREE = ("lean_dot", "pitch_dot", "rear_wheel_dot", "steer_dot")
"""Rates that determine all others, ordered as in the velocity."""

# Basu-Mandal et al. (2007), table 1: theta is the heading, psi = pi/2 - lean, phi = pi + pitch,
# psi_f the steering angle, beta the wheel angles, and (x, y, z) the rear hub; x points back
SPEEDS = {
    "contact_omega": 0.7830033527065,
    "lean_dot": -0.6068425835418,
    "pitch_dot": -0.0119185528069,
    "rear_wheel_dot": 8.9129896614890,
    "steer_dot": 0.4859824687093,
    "front_wheel_dot": 8.0133620584155,
}
POSE = {
    "lean": np.pi / 2 - 0.9501292851472,
    "pitch": 3.1257073014894 - np.pi,
    "steer": 0.2311385135743,
}
ACCELERATIONS = {
    "x''": "-0.5041626315047",
    "y''": "-0.3449706619454",
    "z''": "-1.4604528332980",
    "theta''": "0.8353281706379",
    "psi''": "-7.8555281128244",
    "phi''": "0.1205543897884",
    "psi_f''": "-4.6198904039403",
    "beta_r''": "1.8472554144217",
    "beta_f''": "2.4548072904550",
}


def bicycle(tree: nh.Multibody) -> nh.System:
    """Return the system with the independent rates FREE."""
    names = tree.space.velocity_names
    dependent = tuple(i for i, name in enumerate(names) if name not in FREE)
    return replace(tree.system, dependent=dependent, nominal=tuple(tree.configuration()))


def eigenvalues() -> Mapping[str, float]:
    """Return the eigenvalues of the lateral motion at all speeds in table 2, and the speeds at
    which they cross the imaginary axis.
    """
    tree = bicycle_model(PARAMETERS)
    system = bicycle(tree)
    continuous, q = ContinuousSystem(system), tree.configuration()
    # Rows and columns of A that belong to lean, steering and their rates.
    lateral_indices = [tree.space.names.index(n) for n in LATERAL[:2]]
    lateral_indices += [tree.space.nq + FREE.index(n) for n in LATERAL[2:]]

    def lateral(speed: float) -> np.ndarray:
        rates = {"rear_wheel_dot": speed / REAR, "front_wheel_dot": speed / FRONT}
        v = tree.velocity({"contact_v_forward": speed, **rates})
        A = continuous.linearize(q, v, NO_TORQUES).A
        return np.linalg.eigvals(A[np.ix_(lateral_indices, lateral_indices)])

    # At zero speed there are four real eigenvalues, ordered as in STANDING.
    modes = dict(zip(_names(0), np.sort(lateral(0.0).real)[[2, 3, 1, 0]]))
    for speed in TABLE_2:
        values = lateral(speed)
        weave, real = values[values.imag > 0][0], np.sort(values[values.imag == 0].real)
        modes |= dict(zip(_names(speed), (weave.real, weave.imag, real[1], real[0])))
    # The bicycle is stable between the zeros of the largest real part.
    growth = lambda speed: lateral(speed).real.max()
    modes["weave speed, m/s"] = brentq(growth, 4.0, 5.0, xtol=1e-14)
    modes["capsize speed, m/s"] = brentq(growth, 5.5, 7.0, xtol=1e-14)
    return modes


def _names(speed: int) -> list[str]:
    modes = MODES if speed else ("first", "second", "third", "fourth")
    return [f"{mode} at {speed} m/s, 1/s" for mode in modes]


def turn() -> Mapping[str, float]:
    """Return the accelerations in a state far from upright, in the coordinates used in table 1."""
    tree = bicycle_model(PARAMETERS)
    system = bicycle(tree)
    continuous, q = ContinuousSystem(system), tree.configuration(POSE)
    # The table gives the hub's speed. A turn about the vertical adds `around` to the speed of the
    # contact point.
    hub_speed, around = 2.8069345714545, SPEEDS["contact_omega"] * REAR * np.sin(POSE["lean"])
    v = tree.velocity({**SPEEDS, "contact_v_forward": hub_speed - around})
    rate = continuous.acceleration(q, v, NO_TORQUES)
    hub = acceleration_of_point(tree, "frame", q, v, rate)
    rates = dict(zip(tree.space.velocity_names, rate))
    return {
        "x''": -hub[0],
        "y''": -hub[1],
        "z''": hub[2],
        "theta''": rates["contact_omega"],
        "psi''": -rates["lean_dot"],
        "phi''": rates["pitch_dot"],
        "psi_f''": rates["steer_dot"],
        "beta_r''": rates["rear_wheel_dot"],
        "beta_f''": rates["front_wheel_dot"],
    }


EIGENVALUES = Benchmark(
    name="bicycle",
    title="bicycle: eigenvalues of table 2, 0 to 10 m/s, weave and capsize speeds",
    source="Meijaard, Papadopoulos, Ruina, Schwab (2007), Proc. R. Soc. A 463, table 2",
    reference=PRINTED,
    published={
        **dict(zip(_names(0), STANDING)),
        **{n: text for v, row in TABLE_2.items() for n, text in zip(_names(v), row)},
        "weave speed, m/s": "4.29238253634111",
        "capsize speed, m/s": "6.02426201538837",
    },
    compute=eigenvalues,
    method="exact linearization of the nonlinear equations",
)
TURN = Benchmark(
    name="bicycle_turn",
    title="bicycle: nonlinear accelerations at a lean of 36 and a steering angle of 13 degrees",
    source="Basu-Mandal, Chatterjee, Papadopoulos (2007), Proc. R. Soc. A 463, table 1",
    reference=PRINTED,
    published=ACCELERATIONS,
    compute=turn,
    method="accelerations of the nonlinear equations",
)
