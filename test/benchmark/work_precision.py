"""Work and precision on smooth motions of 10 s of the snakeboard and of the payload system: all
integrators of order 4 and more against SciPy's solvers on the reduced equations with a compiled
right-hand side; and the cost of a step of every integrator.

    python test/benchmark/work_precision.py [work] [steps] [small]

small: without the large system. Times are the least of several processor times of the thread;
integrators and solvers alternate within one run, and a table is printed after every round.
"""

import argparse

import numpy as np
from sizes import sized

from nh_control.integrators import INTEGRATORS, nonholonomic_midpoint
from nh_control.integrators.composition import composition
from nh_control.studies.comparison import (
    Reference,
    method_table,
    seconds_at,
    solver_precision,
    work_precision,
)
from nh_control.studies.motion import InitialValueProblem
from nh_control.systems import snakeboard
from nh_control.systems.chaotic_quartic import (
    ChaoticQuarticParameters,
    chaotic_quartic,
    random_start,
)
from nh_control.systems.quadrotor_payload import quadrotor_payload

AT = (1e-4, 1e-6, 1e-8, 1e-10)
ROUNDS = sized(3, 1)
DURATION = sized(10.0, 1.0)
STEP = 0.01
PARTS = ("work", "steps", "small")
BASIC = "nonholonomic_midpoint"
TIMED = sized(INTEGRATORS, {BASIC: INTEGRATORS[BASIC]})
"""Methods a step of which is timed."""
SOLVERS = sized(("DOP853", "RK45", "LSODA"), ("DOP853",))


def moving(system, q, v, u=None) -> InitialValueProblem:
    """Return the motion with the admissible part of a velocity."""
    dsys = nonholonomic_midpoint(system, STEP)
    u = np.zeros(system.nu) if u is None else u
    return InitialValueProblem(system, q, dsys.velocity(dsys.state(q, v)), DURATION, u)


def board() -> InitialValueProblem:
    """The board coasts in a curve while its rotor rotates and its trucks swing."""
    phi = 0.4
    across, along = -0.8 * np.sin(phi), 1.6 * np.cos(phi)
    q, v = [0.2, phi, 0.3, 0.0, 0.0], [1.7, -0.03, across, along, 0.0]
    return moving(snakeboard(), np.array(q), np.array(v))


def free_payload() -> InitialValueProblem:
    """Payload and quadrotors rotate about one another, and the quadrotors about themselves, in
    free fall, in a falling frame without gravity.
    """
    system, rng = quadrotor_payload().with_parameters(g=1e-9), np.random.default_rng(0)
    q = system.space.retract(system.space.origin, 0.3 * rng.normal(size=system.space.nv))
    return moving(system, q, 0.3 * rng.normal(size=system.space.nw))


def hanging_payload() -> InitialValueProblem:
    """The payload swings below quadrotors that rotate about their thrusts, which balance the
    weight.
    """
    system, rng = quadrotor_payload(), np.random.default_rng(0)
    p = system.parameters
    tilt = np.concatenate([np.zeros(9), [0.3, 0.2, -0.2, 0.3]])
    q = system.space.retract(system.space.origin, tilt)
    v = np.concatenate([np.zeros(3), [0, 0, 1.0], [0, 0, -1.0], 0.3 * rng.normal(size=6)])
    thrust = (p.quadrotor_mass + p.payload_mass / 2) * p.g
    return moving(system, q, v, np.array([thrust, 0, 0, 0] * 2))


def chaotic(n: int) -> InitialValueProblem:
    """The quartic system with n pairs of coordinates and the energy of [celledoni2016] per
    pair.
    """
    system = chaotic_quartic(ChaoticQuarticParameters(n=n))
    q, v = random_start(np.random.default_rng(0), 1.02 * n, n)
    return InitialValueProblem(system, q, v, DURATION)


def methods() -> dict:
    """Return the integrators of order 4 and more, with compositions of fewer substeps."""
    chosen = {name: one for name, one in INTEGRATORS.items() if one.order >= 4}
    for order, substeps in ((6, 7), (8, 15)):
        one = composition(INTEGRATORS[BASIC], order, substeps)
        chosen[one.name] = one
    return {BASIC: INTEGRATORS[BASIC], **sized(chosen, {})}


def work(name: str, motion: InitialValueProblem) -> None:
    """Print the least times at which each method reaches errors; the methods alternate."""
    print(f"\n{name}: a reference of {motion.duration:g} s", flush=True)
    reference = Reference(motion)
    fitting = {n: one for n, one in methods().items() if one.takes(motion.system)}
    best: dict[str, list[float]] = {n: [np.inf] * len(AT) for n in (*fitting, *SOLVERS)}
    for k in range(ROUNDS):
        for n in best:
            points = (
                work_precision(reference, fitting[n], 0.05)
                if n in fitting
                else solver_precision(reference, n, 0.05)
            )
            best[n] = [min(b, seconds_at(points, e)) for b, e in zip(best[n], AT)]
        print(f"\n{name}, {motion.duration:g} s: ms for an error of the last configuration of")
        print(f"(the reference's uncertainty: {reference.uncertainty:.1e}; {k + 1} of {ROUNDS})")
        print(f"{'':34}" + "".join(f"{e:>10.0e}" for e in AT))
        for n, times in best.items():
            print(f"{n:34}" + "".join(f"{1e3 * t:10.3f}" for t in times), flush=True)


def steps(motions: dict[str, InitialValueProblem], integrators: dict) -> None:
    """Print us per step of integrators on these motions, method by method in one run: large
    systems take minutes to compile.
    """
    print(f"us a step, h = {STEP:g} s, within a native trajectory; (numbers of a state, unknowns)")
    print(f"{'':34}" + "".join(f"{name:>20}" for name in motions), flush=True)
    tables = (method_table(integrators, motion, STEP) for motion in motions.values())
    for name, rows in zip(integrators, zip(*tables)):
        cells = (
            "-" if row.refused else f"{row.microseconds:.2f} ({row.state_size}, {row.unknowns})"
            for row in rows
        )
        print(f"{name:34}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def main() -> None:
    """Fast parts run first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    args = parser.parse_args()
    if unknown := {*args.parts} - {*PARTS}:
        parser.error(f"unknown parts {sorted(unknown)}; choose from {', '.join(PARTS)}")
    parts = {*args.parts} or {"work", "steps"}
    if {"steps", "small"} & parts:
        steps({"snakeboard": board(), "chaotic 3": chaotic(3)}, TIMED)
    if "work" in parts:
        for motion in sized((board, free_payload, hanging_payload), (board,)):
            work(motion.__name__.replace("_", " "), motion())
    if "steps" in parts:
        steps({"chaotic 30": chaotic(sized(30, 4))}, TIMED)


if __name__ == "__main__":
    main()
