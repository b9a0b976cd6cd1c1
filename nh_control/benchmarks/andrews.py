"""Andrews' squeezing mechanism: seven bodies in a plane, driven by a constant torque."""

from __future__ import annotations

from collections.abc import Mapping

import nh_control as nh
from nh_control.benchmarks.benchmark import PRINTED, Benchmark
from nh_control.benchmarks.motion import METHOD, integrate
from nh_control.multibody import Body, Coincident, JointInput, Point, Spring, revolute

A, B, C = (-0.06934, -0.00227, 0.0), (-0.03635, 0.03273, 0.0), (0.014, 0.072, 0.0)
D, E, RR, SS, U, ZF, ZT = 0.028, 0.02, 0.007, 0.035, 0.04, 0.02, 0.04
TORQUE, DURATION = 0.033, 0.03
START = {
    "beta": -0.0617138900142764496,
    "theta": 0.0,
    "gamma": 0.455279819163070380,
    "phi": 0.222668390165885884674,
    "delta": 0.487364979543842550,
    "omega": -0.222668390165885884674,
    "epsilon": 1.23054744454982119249,
}
END = {
    "beta": "15.81077119629904",
    "theta": "-15.75637105984298",
    "gamma": "0.04082224013073101",
    "phi": "-0.5347301163226948",
    "delta": "0.5244099658805304",
    "omega": "0.5347301163226948",
    "epsilon": "1.048080741042263",
}
RATES = {
    "beta_dot": "1139.920302151208",
    "theta_dot": "-1424.379294994111",
    "gamma_dot": "11.03291221937134",
    "phi_dot": "19.29337464421385",
    "delta_dot": "0.5735699284790808",
    "omega_dot": "-19.29337464421385",
    "epsilon_dot": "0.3231791658026955",
}


def squeezer() -> nh.Multibody:
    """Return the mechanism: three chains from the ground are connected to the end of the driven
    chain.
    """

    def link(frame: str, mass: float, x: float, y: float, inertia: float) -> Body:
        return Body(frame, mass, (x, y, 0.0), (inertia,) * 3)  # bodies only turn about z

    # A planar pin, with two rows, closes each of the three loops.
    end = Point("theta", (-D, 0.0, 0.0))
    meets = {"gamma": (0.0, -SS, 0.0), "phi": (0.0, -E, 0.0), "omega": (ZF, 0.0, 0.0)}
    return nh.Multibody(
        "squeezer",
        frames=[
            revolute("beta"),
            revolute("theta", "beta", position=(RR, 0.0, 0.0)),
            revolute("gamma", position=B),
            revolute("delta", position=A),
            revolute("phi", "delta", position=(ZT, 0.0, 0.0)),
            revolute("epsilon", position=A),
            revolute("omega", "epsilon", position=(0.0, -U, 0.0)),
        ],
        bodies=[
            link("beta", 0.04325, 0.00092, 0.0, 2.194e-6),
            link("theta", 0.00365, -0.0115, 0.0, 4.410e-7),
            link("gamma", 0.02373, 0.01043, -0.01874, 5.255e-6),
            link("phi", 0.00706, 0.0, 0.01421 - E, 5.667e-7),
            link("delta", 0.07050, 0.02308, 0.00916, 1.169e-5),
            link("omega", 0.00706, ZF - 0.01421, 0.0, 5.667e-7),
            link("epsilon", 0.05498, 0.01228, -0.00449, 1.912e-5),
        ],
        elements=[Spring(Point("world", C), Point("gamma", (0.02, -0.018, 0.0)), 4530.0, 0.07785)],
        inputs=[JointInput("beta")],
        constraints=[
            Coincident(f"{frame}_end", end, Point(frame, position), "xy")
            for frame, position in meets.items()
        ],
        gravity=(0.0, 0.0, 0.0),
    )


def compute() -> Mapping[str, float]:
    model = squeezer()
    q, v = model.configuration(START), model.velocity()
    q, v = integrate(model.system, q, v, DURATION, [TORQUE], steps=1000)
    space = model.space  # angles and rates by name, as in the test set
    return {**dict(zip(space.names, q)), **dict(zip(space.velocity_names, v))}


ANDREWS = Benchmark(
    name="andrews",
    title="Andrews' squeezing mechanism: seven angles and rates at 0.03 s",
    source="Test Set for IVP Solvers (Mazzia, Magherini 2008), Andrews' squeezing mechanism",
    reference=PRINTED,
    published={**END, **RATES},
    compute=compute,
    method=METHOD,
    note="The printed rates violate the printed constraints in the 10th digit. SciPy's DOP853 on "
    "the equations of the test set agrees with our angles in 12 digits.",
)
