"""Time per step, and per step with A and B, of serial chains of N revolute links, and the cost of
their generated code; a table and a plot. Before these, the time per product with A and A^T of the
same chains by the linear-time kernel, and the exponent of N in it.

    python test/benchmark/chain_scaling.py [--links 4 8 16 32 64 128] [--products 64 128 256 512]
    [--output nh_control_output/chain_scaling]

The chain has N links of 1 m in the plane with 1 kg at their ends; joint angles are relative to the
previous link, and the Lagrangian is a recursion of body-frame velocities from the base. h = 0.01
s, free swing under gravity, with initial velocities that give a largest momentum of about
--momentum kg m^2/s. Times are this thread's processor time per step, medians over the motion; the
tolerance is the package's default, 16 units of round-off relative to the terms of every row. The
line "DART" is the time per step that the authors of DART's linear-time variational integrator
report for their machine, without derivatives; only its order of magnitude can be compared.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import casadi as ca
import numpy as np
from sizes import sized

from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import wait_for_compiler

DART_US = {4: 68, 8: 98, 16: 202, 32: 378, 64: 1740, 128: 2660}
H, G = 0.01, 9.81
BATCHES = sized(5, 1)


def revolute_chain(n: int) -> System:
    """Planar chain of n links: `omega_i = omega_{i-1} + q_i'`, velocity of the end of link i in
    its own axes
    `(v_x, v_y)_i = R(q_i)^T (v_x, v_y)_{i-1} + (0, omega_i)`."""

    def lagrangian(q, v):
        omega, vx, vy, height, total = 0, 0, 0, 0, 0
        up, side = (
            -1,
            0,
        )  # vertical components of a link's axes, x along the link, which hangs down at q = 0
        for i in range(n):
            s, c = ca.sin(q[i]), ca.cos(q[i])
            omega = omega + v[i]
            vx, vy = c * vx + s * vy, c * vy - s * vx
            up, side = c * up + s * side, c * side - s * up
            vy, height = vy + omega, height + up
            total += (vx**2 + vy**2) / 2 - G * height
        return total

    return System(f"revolute_chain_{n}", Rn(*(f"q_{i}" for i in range(n))), lagrangian)


def cpu_seconds() -> float:
    """Return the processor time of this process and of the compilers it started, in s."""
    return sum(
        resource.getrusage(who).ru_utime
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def timed(call, arguments) -> np.ndarray:
    """Return microseconds of processor time of call(argument) for every argument except the
    first.
    """
    times = []
    for argument in arguments:
        wait_for_compiler()
        start = time.thread_time()
        call(argument)
        times.append((time.thread_time() - start) * 1e6)
    return np.array(times[1:])


def measure(n: int, momentum: float, steps: int) -> dict:
    """Return one row of the table."""
    start = cpu_seconds()
    dsys = midpoint(revolute_chain(n), H)
    angles, rates = 0.5 * np.cos(np.arange(n)), np.sin(1.0 + np.arange(n))
    for _ in range(3):  # momenta are linear in the rates
        x = dsys.state(angles, rates)
        rates *= momentum / np.abs(x[n:]).max()
    x = dsys.state(angles, rates)
    dsys.step(x)
    step_ready = cpu_seconds() - start
    dsys.linearize(x)
    row = {
        "N": n,
        "compile step": step_ready,
        "compile A, B": cpu_seconds() - start - step_ready,
        "|p|": np.abs(x[n:]).max(),
    }
    states = dsys.simulate(x, steps).states
    energies = np.array([dsys.energy(s) for s in states[:: max(1, steps // 10)]])
    row["energy"] = float(np.abs(energies - energies[0]).max())
    row["step"] = timed(dsys.step, states)
    row["step, A, B"] = timed(dsys.linearize, states[: max(20, min(steps, 20_000 // n))])
    return row


def product_times(counts) -> dict[str, dict[int, float]]:
    """Return microseconds per product, by the kind of product and the number of links: the best
    of batches that measure all chains in turns.
    """
    from tree_scaling import best, chain, moving

    calls = dict[str, dict[int, Callable]]()
    for n in counts:
        dsys = midpoint(chain(n).system, H)
        x = moving(dsys, 1000.0)
        A, _ = dsys.linearize_operator(x)
        v, block, dense = np.ones(2 * n), np.ones((2 * n, 8)), dsys.linearize(x).A
        kinds = {
            "A v": partial(A.matvec, v),
            "A^T v": partial(A.rmatvec, v),
            "A V, 8 vectors": partial(A.matmat, block),
            "A^T V, 8 vectors": partial(A.rmatmat, block),
            "dense A v": partial(np.dot, dense, v),
            "A and B, dense": partial(dsys.linearize, x),
            "operators": partial(dsys.linearize_operator, x),
        }
        for kind, call in kinds.items():
            calls.setdefault(kind, {})[n] = call
    times = {kind: dict.fromkeys(of, np.inf) for kind, of in calls.items()}
    for _ in range(BATCHES):
        for kind, of in calls.items():
            for n, call in of.items():
                times[kind][n] = min(times[kind][n], best(call, 1))
    return times


def exponent(times: dict[int, float]) -> float:
    """Return the slope of log time over log N, fitted to all chains."""
    return float(np.polyfit(np.log([*times]), np.log([*times.values()]), 1)[0])


def print_products(counts) -> None:
    print(f"{'us':>18} " + "".join(f"{f'N = {n}':>10}" for n in counts) + "  exponent")
    for kind, times in product_times(counts).items():
        row = "".join(f"{us:10.1f}" for us in times.values())
        print(f"{kind:>18} {row} {exponent(times):9.2f}", flush=True)


def plot(rows, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    links = [row["N"] for row in rows]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name in ("step", "step, A, B"):
        axes.loglog(
            links, [np.median(row[name]) for row in rows], "o-", label=f"nh_control, {name}"
        )
    axes.loglog(
        DART_US.keys(), DART_US.values(), "s--", color="gray", label="DART, step (reported)"
    )
    axes.set(xlabel="links N", ylabel="us", xticks=links, xticklabels=links)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", type=int, nargs="+", default=sized(list(DART_US), [2]))
    parser.add_argument(
        "--products", type=int, nargs="+", default=sized([64, 128, 256, 512], [2, 4])
    )
    parser.add_argument("--steps", type=int, default=sized(200, 20))
    parser.add_argument("--momentum", type=float, default=1000.0)
    parser.add_argument("--output", type=Path, default=Path("nh_control_output/chain_scaling"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    print_products(options.products)
    print(
        f"{'N':>4} {'step us':>10} {'(max)':>8} {'step, A, B us':>14} {'DART us':>8} "
        f"{'compile step, A, B: cpu s':>26} {'|p|':>6} {'energy error J':>15}"
    )
    rows = []
    for n in options.links:
        row = measure(n, options.momentum, options.steps)
        rows.append(row)
        print(
            f"{n:4d} {np.median(row['step']):10.1f} {row['step'].max():8.1f} "
            f"{np.median(row['step, A, B']):14.1f} {DART_US.get(n, '-'):>8} "
            f"{row['compile step']:17.1f} {row['compile A, B']:8.1f} {row['|p|']:6.0f} "
            f"{row['energy']:15.2e}",
            flush=True,
        )
    plot(rows, options.output / "chain_scaling.png")
    np.savez(
        options.output / "chain_scaling.npz",
        N=options.links,
        **{name: [np.median(row[name]) for row in rows] for name in ("step", "step, A, B")},
    )
    print(f"plot and numbers in {options.output}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        import os

        os.environ["NH_CONTROL_CACHE"] = cache  # compile times are those of a first run
        main()
