"""The payload's LQR gains in hover as a function of the payload's mass, with one compilation.

    python test/benchmark/payload_gains_by_mass.py [--output nh_control_output/payload_gains]

One model is compiled; every other mass is a call of `with_parameters`. The figure shows gains of
the first quadrotor (thrust over the payload's height, torques over its displacement across the
plane of the links) and the decay rate of the slowest closed-loop motion. Printed are the time per
mass and the number of loaded libraries.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sizes import sized

from nh_control.control import lqr
from nh_control.discrete.system import DiscreteSystem
from nh_control.figures.style import save
from nh_control.numerics import compiled
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD

MASSES = np.linspace(0.1, 0.9, sized(33, 2))


def gains(dsys: DiscreteSystem) -> lqr.StationaryGain:
    """Return the LQR of the scenario about hover."""
    hover = QUADROTOR_PAYLOAD.references["hover"](dsys)
    Q, R, _ = QUADROTOR_PAYLOAD.weights
    return lqr.infinite_horizon(dsys, hover.states[0], hover.inputs[0], Q, R)


def main() -> None:
    """Compute and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("nh_control_output/payload_gains"))
    args = parser.parse_args()
    model = QUADROTOR_PAYLOAD.model()
    gains(model)
    loaded, load = [], compiled.Native.__init__
    compiled.Native.__init__ = lambda *a, **k: (loaded.append(a[1]), load(*a, **k))[1]
    start = time.perf_counter()
    models = [model.with_parameters(payload_mass=mass) for mass in MASSES]
    changed = time.perf_counter() - start
    found = [gains(dsys) for dsys in models]
    total = time.perf_counter() - start
    compiled.Native.__init__ = load
    names, inputs = model.state_space.tangent_names, model.inputs
    K = np.array([one.K for one in found])

    def entry(u: str, x: str) -> np.ndarray:
        return np.abs(K[:, inputs.index(u), names.index(x)])

    def draw() -> plt.Figure:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        left.plot(MASSES, entry("quad1_thrust", "payload_z"), label="thrust by height (N/m)")
        torque = entry("quad1_torque_y", "payload_x")
        left.plot(MASSES, torque, label="torque by the way across (N m/m)")
        left.set(xlabel="payload mass (kg)", ylabel="gain of quadrotor 1", title="LQR in hover")
        left.legend()
        slowest = [-np.log(np.abs(one.poles).max()) / model.h for one in found]
        right.plot(MASSES, slowest)
        title = "slowest closed-loop motion"
        right.set(xlabel="payload mass (kg)", ylabel="rate of decay (1/s)", title=title)
        return figure

    args.output.mkdir(parents=True, exist_ok=True)
    save(draw, args.output / "gains.png")
    print(f"{len(MASSES)} masses: {1e6 * changed / len(MASSES):.0f} us each to change the model,")
    print(
        f"{total / len(MASSES):.3f} s each with hover and gains; libraries loaded: {len(loaded)}"
    )
    print(f"figure: {args.output / 'gains.png'}")


if __name__ == "__main__":
    main()
