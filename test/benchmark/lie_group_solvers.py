"""Lie group methods: us per step of all methods on the heavy top of [celledoni2021] and on two
quadrotors with a payload, and work and precision of the adaptive methods. These are compared with
SciPy's DOP853 and RK45 with projection onto the manifold after each step (compiled right-hand side
and projection), and on the top with diffrax's Dopri8 with projection.

Run with `python test/benchmark/lie_group_solvers.py [steps] [work] [PYTHON]`; PYTHON is the path
of an interpreter that has diffrax, by default this one. Times are the least of several processor
times, of the thread or, for JAX, of the process; all methods alternate within one run.
"""

import json
import subprocess
import sys
from functools import cache, partial

import casadi as ca
import numpy as np
import scipy.integrate
from sizes import sized
from work_precision import hanging_payload

from nh_control.integrators import INTEGRATORS
from nh_control.integrators.adaptive import METHODS, AdaptiveIntegrator
from nh_control.mechanics.lie_equations import LieEquations
from nh_control.numerics.compiled import Functions
from nh_control.studies.comparison import (
    Reference,
    WorkPoint,
    method_table,
    seconds_at,
    timed,
)
from nh_control.studies.motion import InitialValueProblem
from nh_control.systems.rigid_body import heavy_top

ADAPTIVE = list(METHODS)[: sized(None, 1)]
CONSTANT = [n for n, one in INTEGRATORS.items() if "celledoni2021" in one.source][: sized(None, 2)]
AT = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
TOLERANCES = tuple(10.0 ** -np.arange(3, sized(14, 5)))
LEAST = 2.3e-14
ROUNDS, REPEATS = sized((2, 3), (1, 1))
LONGEST = 0.3
STEP = 1e-3
SOLVERS = sized(("DOP853", "RK45"), ("DOP853",))


def top() -> InitialValueProblem:
    """The fast top of the paper for one second: 24 revolutions."""
    system = heavy_top()
    return InitialValueProblem(
        system, system.space.origin, np.array([0.0, 150.0, -4.61538]), sized(1.0, 0.1)
    )


MOTIONS = sized({"heavy top": top, "payload": hanging_payload}, {"heavy top": top})


def steps() -> None:
    """Print us per step of every Lie group method with constant steps, and per trial of every
    adaptive method.
    """
    motions = {name: make() for name, make in MOTIONS.items()}
    methods = {name: INTEGRATORS[name] for name in CONSTANT}
    print(f"us a step, h = {STEP:g} s, within a native trajectory")
    print(f"{'':34}" + "".join(f"{name:>14}" for name in motions), flush=True)
    tables = (method_table(methods, motion, STEP) for motion in motions.values())
    for name, rows in zip(methods, zip(*tables)):
        cells = ("-" if row.refused else f"{row.microseconds:.2f}" for row in rows)
        print(f"{name:34}" + "".join(f"{cell:>14}" for cell in cells), flush=True)
    print("us a trial of a step of variable size, of at most h")
    for name in ADAPTIVE:
        cells = (f"{trial_microseconds(name, motion):.2f}" for motion in motions.values())
        print(f"{name:34}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def trial_microseconds(method: str, motion: InitialValueProblem) -> float:
    one, x = AdaptiveIntegrator(motion.system, method), state(motion)
    seconds, run = timed(partial(one.solve, (0, 1), x, motion.u[0], max_step=STEP), REPEATS)
    return 1e6 * seconds / (run.naccepted + run.nrejected)


def state(motion: InitialValueProblem) -> np.ndarray:
    """Return (q, rho) of the motion's start."""
    system = motion.system
    q, v = ca.SX.sym("q", system.space.nq), ca.SX.sym("v", system.space.nw)
    momentum = ca.Function("momentum", [q, v], [system.numeric.mechanics.momentum(q, v)])
    return np.concatenate([motion.q, np.asarray(momentum(motion.q, motion.v))[:, 0]])


def adaptive_points(reference: Reference, one: AdaptiveIntegrator) -> list[WorkPoint]:
    motion = reference.motion
    points, x = [], state(motion)
    for tol in TOLERANCES:
        run = partial(
            one.solve, (0, motion.duration), x, motion.u[0], rtol=max(tol, LEAST), atol=tol
        )
        seconds, result = timed(run, REPEATS)
        end = result.y[: motion.system.space.nq, -1]
        points.append(WorkPoint(tol, seconds, reference.error(end)))
        if seconds > LONGEST:
            break
    return points


@cache
def projection(system) -> Functions:
    """`normalize(q, v)` of configurations and velocities."""
    action = LieEquations(system).action
    x = ca.SX.sym("x", action.nx)
    return Functions(
        f"{system.name}_normalize", [ca.Function("normalize", [x], [action.normalize(x)])]
    )


def projected_points(reference: Reference, solver: str) -> list[WorkPoint]:
    motion = reference.motion
    rates = reference.equations.rates(motion.u[0])
    start = reference.equations.start(motion.q, motion.v)
    normalize = projection(motion.system).direct("normalize")
    (given,), (settled,) = normalize.inputs, normalize.outputs
    if len(given) != len(start):
        raise ValueError(f"{motion.system.name}: no projection for its reduced equations")

    def run(tol: float) -> np.ndarray:
        method = getattr(scipy.integrate, solver)
        one = method(rates, 0, start, motion.duration, rtol=max(tol, LEAST), atol=tol)
        while one.status == "running":
            one.step()
            given[:] = one.y
            normalize.run()
            one.y = settled[:, 0].copy()
        return one.y

    points = []
    for tol in TOLERANCES:
        seconds, end = timed(partial(run, tol), REPEATS)
        points.append(WorkPoint(tol, seconds, reference.error(end[: motion.system.space.nq])))
        if seconds > LONGEST:
            break
    return points


def diffrax_points(reference: Reference, python: str) -> list[WorkPoint]:
    """Return the points of diffrax, or print a message and return None if diffrax cannot run."""
    motion = reference.motion
    p = motion.system.parameters
    problem = {
        "inertia": [p.Jx, p.Jy, p.Jz],
        "weight": p.M * p.g * p.l,
        "chi": list(p.chi),
        "q": motion.q.tolist(),
        "v": motion.v.tolist(),
        "duration": motion.duration,
        "tolerances": list(TOLERANCES),
    }
    script = __file__.replace("lie_group_solvers", "heavy_top_diffrax")
    done = subprocess.run(
        [python, script, json.dumps(problem)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"diffrax is left out: {done.stderr.strip().splitlines()[-1]}")
        return []
    rows = json.loads(done.stdout)
    return [
        WorkPoint(r["tolerance"], r["seconds"], reference.error(np.array(r["q"]))) for r in rows
    ]


def work(name: str, motion: InitialValueProblem, python: str | None) -> None:
    """Print the least times at which each method reaches errors; the methods alternate."""
    reference = Reference(motion)
    runs = {
        n: partial(adaptive_points, reference, AdaptiveIntegrator(motion.system, n))
        for n in ADAPTIVE
    }
    runs |= {f"{n}, projected": partial(projected_points, reference, n) for n in SOLVERS}
    if python is not None:
        runs["diffrax Dopri8, projected"] = partial(diffrax_points, reference, python)
    best = {n: [np.inf] * len(AT) for n in runs}
    for _ in range(ROUNDS):
        for n, run in runs.items():
            points = run()
            best[n] = [min(b, seconds_at(points, e)) for b, e in zip(best[n], AT)]
    print(f"\n{name}, {motion.duration:g} s: ms for an error of the last configuration of")
    print(f"(the reference's uncertainty: {reference.uncertainty:.1e})")
    print(f"{'':34}" + "".join(f"{e:>10.0e}" for e in AT))
    for n, times in best.items():
        print(f"{n:34}" + "".join(f"{1e3 * t:10.3f}" for t in times), flush=True)


def main(arguments: list[str]) -> None:
    parts = [a for a in arguments if a in ("steps", "work")]
    python = next((a for a in arguments if a not in parts), sys.executable)
    if not parts or "steps" in parts:
        steps()
    if not parts or "work" in parts:
        for name, make in MOTIONS.items():
            work(name, make(), python if make is top else None)


if __name__ == "__main__":
    main(sys.argv[1:])
