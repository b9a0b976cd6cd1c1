"""The rows of `performance.py`, each measured in a process of its own:

    PYTHONPATH=CHECKOUT python performance_rows.py ROW PYTHON

PYTHON is that of the environment with the peers, whose packages are found here, too. Each line of
the output is a row as JSON. Times are processor time, the least of several batches, in which ours
and the peer take turns.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sizes import sized

TEST = Path(__file__).parents[1]
BATCHES, CALLS, ROUNDS = *sized((9, 200), (2, 5)), sized(3, 1)
H = 1e-3


@dataclass(frozen=True)
class Row:
    """What was measured, and the goal: of ours, or of the ratio of ours to the peer, `at least` or
    at most `limit`; without a limit there is none.
    """

    work: str
    unit: str
    ours: float
    peer: str = ""
    theirs: float = np.nan
    limit: float = np.nan
    of: str = "ratio"
    at_least: bool = False
    note: str = ""


def in_turns(calls: dict[str, Callable[[], object]], each: int = 1) -> dict[str, float]:
    """Least processor time (us) of a call's parts, of which it has `each`."""
    from nh_control.numerics import compiled

    least = dict.fromkeys(calls, np.inf)
    for call in calls.values():
        call()
    getattr(compiled, "wait_for_compiler", lambda: None)()
    for _ in range(BATCHES):
        for name, call in calls.items():
            start = time.process_time()
            call()
            least[name] = min(least[name], (time.process_time() - start) * 1e6 / each)
    return least


# --- waiting -------------------------------------------------------------------------------------

WAITS = {
    ("simulate", "quadrotor_payload"): 2.5,
    ("simulate", "quadrotor_payload", "--no-plots"): 1.2,
    ("simulate", "snakeboard"): 2.0,
    ("simulate", "snakeboard", "--no-plots"): 1.0,
    ("list",): 0.4,
    ("--help",): 0.15,
}
"""Commands, and what they may take in s."""
FIRST = {"snakeboard": ("joint_states", "state", 2.0)}
FIRST |= {"quadrotor_payload": ("joint_commands", "command", 3.0)}
QUIETLY = "--json", "--no-plots", "--no-display"


def commands() -> Iterator[Row]:
    """Commands of which everything is cached."""
    from import_times import cost

    words = sized([*WAITS], [("list",), ("--help",)])
    run = "from nh_control.cli import main; main()"
    least = dict.fromkeys(words, np.inf)
    for k in range(ROUNDS + 1):
        for of in words:
            spent, _ = cost(run, of)
            least[of] = min(least[of], spent if k else np.inf)
    for of in words:
        yield Row(f"`nh_control {' '.join(of)}`", "s", least[of], limit=WAITS[of], of="ours")


def first_messages() -> Iterator[Row]:
    """From the start of `nh_control run` to its first state or command, by the wall clock."""
    sys.path[:0] = [str(TEST), str(TEST / "ros")]
    from import_times import ENVIRONMENT
    from probe import Probe

    from nh_control.runs.dds_domain import reserved_domain

    for scenario, (topic, what, limit) in FIRST.items():
        waits = list[float]()
        for _ in range(sized(2, 1)):
            with reserved_domain() as domain:
                pass
            probe = Probe(domain)
            heard = {"joint_states": probe.joint_states, "joint_commands": probe.commands}[topic]
            command = [sys.executable, "-m", "nh_control", "run", scenario, *QUIETLY]
            command += ["--domain", str(domain)]
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                run = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, **quiet)
                try:
                    probe.wait(lambda heard=heard: heard, f"{scenario}: the first {what}")
                    waits.append(time.perf_counter() - start)
                finally:
                    run.send_signal(signal.SIGINT)
                    run.wait(60)
                    probe.close()
        work = f"`nh_control run {scenario}`: first {what} (wall clock)"
        yield Row(work, "s", float(np.median(waits)), limit=limit, of="ours")


# --- optimal control -----------------------------------------------------------------------------


def optimize() -> Iterator[Row]:
    """Calls with a known structure, with all set-up, beside crocoddyl's FDDP by Euler."""
    from optimal_control import call_ms, crocoddyl_ms

    for name in sized(("pendulum", "quadrotor", "ur5e"), ("pendulum",)):
        ours, theirs = list[dict[str, float]](), list[tuple]()
        for _ in range(sized(2, 1)):
            ours.append(call_ms(name))
            theirs.append(crocoddyl_ms(PEERS, name)["euler"])
        known, each, single = (min(o[k] for o in ours) for k in ("known", "each", "single"))
        (iterations, iteration), whole = theirs[0][2:0:-1], min(t[1] for t in theirs)
        peer, iteration = "crocoddyl FDDP, Euler", min(t[0] for t in theirs)
        count = f"{ours[0]['iterations']:.0f} and {iterations} iterations"
        yield Row(f"`nh.optimize`, {name}", "ms", known, peer, whole, 1.0, note=count)
        yield Row(f"`nh.optimize`, {name}, an iteration", "ms", each, peer, iteration, 1.0)
        work = f"`nh.optimize`, {name}, a call with one iteration"
        yield Row(work, "ms", single, limit=0.5, of="ours")


# --- steps ---------------------------------------------------------------------------------------

TREES = {"ur5e": "UR5e", "upkie": "Upkie", "jvrc1": "JVRC-1", "tree": "tree of 100"}
WITH_SLOPES = "ur5e", "upkie"


def extrapolates(dsys: Any) -> bool:
    """Whether `simulate` has extrapolated starts; older commits have none."""
    return "extrapolate" in signature(dsys.simulate).parameters


def steps() -> Iterator[Row]:
    """Steps of trees, and with A and B, beside Pinocchio as a C++ program."""
    from pinocchio_steps import Pinocchio
    from robots import Ours, agree, random_tree, urdf

    from nh_control.control.lqr import linearize_along

    for name in sized([*TREES], ["tree"]):
        ours = Ours(*((random_tree(100), "fixed") if name == "tree" else urdf(name)))
        other = Pinocchio(ours.model, ours.q, ours.v)
        agree(ours, other)

        def slopes(ours: Ours = ours) -> None:
            for _ in range(CALLS):
                ours.slopes()

        calls = {
            "step": lambda ours=ours: ours.steps(CALLS),
            "euler": lambda other=other: other.euler(H, CALLS),
            "slopes": slopes,
            "along": partial(linearize_along, ours.dsys, ours.motion(CALLS)),
            "aba slopes": lambda other=other: other.derivatives(CALLS),
        }
        if extrapolates(ours.dsys):
            calls["run"] = lambda ours=ours: ours.steps(CALLS, extrapolate=True)
        least, title = in_turns(calls, CALLS), TREES[name]
        peer = "Pinocchio, ABA and Euler, C++"
        yield Row(f"step, {title}", "us", least["step"], peer, least["euler"], 1.3)
        if "run" in least:
            work = f"step, {title}, `extrapolate=True`"
            yield Row(work, "us", least["run"], peer, least["euler"], 1.3)
        peer, limit = "Pinocchio, derivatives of ABA, C++", 1.8 if name in WITH_SLOPES else np.nan
        ways = {"along": "`linearize_along`", "slopes": "one call each from Python"}
        for key, way in ways.items():
            work = f"step with A and B, {title}, {way}"
            yield Row(work, "us", least[key], peer, least["aba slopes"], limit)


def payload() -> Iterator[Row]:
    """Two quadrotors with a payload that fall and swing, beside MuJoCo's step."""
    from payload_mujoco import Mujoco, mujoco, swing, warm_step

    from nh_control.systems.quadrotor_payload import quadrotor_payload

    dsys, other = warm_step(quadrotor_payload()), Mujoco("hinges")
    other.set(*swing())
    x, still = dsys.state(*other.ours()), np.zeros((CALLS, dsys.nu))

    def theirs() -> None:
        other.set(*swing())
        mujoco.mj_step(other.model, other.data, CALLS)

    calls = {"ours": lambda: dsys.simulate(x, still), "MuJoCo": theirs}
    if extrapolates(dsys):
        calls["run"] = lambda: dsys.simulate(x, still, extrapolate=True)
    least, work, peer = in_turns(calls, CALLS), "step, falling payload", "MuJoCo, Euler"
    yield Row(work, "us", least["ours"], peer, least["MuJoCo"], 1.2)
    if "run" in least:
        work += ", `extrapolate=True`"
        yield Row(work, "us", least["run"], peer, least["MuJoCo"], 1.2)


CONTACTS = {"box": ("box", 3.0), "upkie": ("Upkie", 2.0), "jvrc1": ("JVRC-1", 2.0)}


def contact() -> Iterator[Row]:
    """Bodies that stand on eight points, beside MuJoCo's step."""
    from contact_speed import standing

    for name in sized([*CONTACTS], ["box"]):
        title, limit = CONTACTS[name]
        rounds = [standing(name) for _ in range(ROUNDS)]
        own, theirs = (min(r[k] for r in rounds) for k in ("contact", "Euler"))
        yield Row(f"step in contact, {title}", "us", own, "MuJoCo, Euler", theirs, limit)
        if name == "box":
            own = min(r["flight"] for r in rounds)
            yield Row(
                "step in free flight above the ground, box", "us", own, limit=20.0, of="ours"
            )


def chain() -> Iterator[Row]:
    """A chain of links in space at 1 ms, with the largest step that runs if that does not."""
    from pinocchio_steps import Pinocchio
    from tree_scaling import spatial_chain

    from nh_control.discrete.results import StepFailed
    from nh_control.integrators import midpoint

    n, seconds = sized(128, 4), sized(1.0, 0.02)
    model = spatial_chain(n)
    q, v = 0.5 * np.cos(np.arange(n)), np.sin(1.0 + np.arange(n))
    other, h, note = Pinocchio(model, q, v), H, ""
    while True:
        dsys, count = midpoint(model.system, h), round(seconds / h)
        x, still = dsys.state(q, v), np.zeros((count, 0))
        try:
            dsys.simulate(x, still)
            break
        except StepFailed as failure:
            note = note or f"fails at {1e3 * h:g} ms after {failure.step} steps"
            h /= 2
    calls = {
        "ours": lambda: dsys.simulate(x, still),
        "euler": lambda: other.euler(h, count),
        "rk4": lambda: other.runge_kutta(h, count),
    }
    least = in_turns(calls, count)
    work = f"step, chain of {n} links in space, h = {1e3 * h:g} ms"
    for kind, peer in (("euler", "Pinocchio, ABA and Euler, C++"), ("rk4", "Pinocchio, RK4, C++")):
        yield Row(work, "us", least["ours"], peer, least[kind])
    work = f"largest step that runs for {seconds:g} s, chain of {n}"
    yield Row(work, "ms", 1e3 * h, limit=1.0, of="ours", at_least=True, note=note)


def large() -> Iterator[Row]:
    """A and B of long chains, beside writing as many numbers."""
    import chain_scaling
    from tree_scaling import chain as links
    from tree_scaling import moving

    from nh_control.integrators import midpoint

    taken = dict[int, dict[str, float]]()
    for n in sized((128, 256, 512), (4, 8)):
        dsys = midpoint(links(n).system, 0.01)
        x, numbers = moving(dsys, 1000.0), np.ones((2 * n, 2 * n))
        calls = {
            "step": lambda dsys=dsys, x=x: dsys.step(x),
            "A": lambda dsys=dsys, x=x: dsys.linearize(x),
            "copy": lambda numbers=numbers: numbers.copy(),
        }
        taken[n] = in_turns(calls)
        peer = "a copy of A"
        yield Row(f"A and B, chain of {n}", "us", taken[n]["A"], peer, taken[n]["copy"])
    few, many = [*taken][-2:]
    exponent = np.log2(taken[many]["A"] / taken[few]["A"]) / np.log2(many / few)
    work = f"A and B, chains of {few} and {many}: exponent of the time"
    yield Row(work, "", exponent, limit=2.0, of="ours")
    products = chain_scaling.product_times(sized((64, 128, 256, 512), (4, 8)))
    peer = "NumPy, A as a matrix"
    for kind in ("A v", "A^T v"):
        times = products[kind]
        us, dense = times[many], products["dense A v"][many]
        yield Row(f"`linearize_operator`: {kind}, chain of {many}", "us", us, peer, dense)
        work = (
            f"`linearize_operator`: {kind}, chains of {min(times)} to {many}: exponent of the time"
        )
        yield Row(work, "", chain_scaling.exponent(times), limit=1.1, of="ours")


def batch() -> Iterator[Row]:
    """1000 cart-poles at once."""
    from batched_steps import RUNS, STEPS, ways

    every = {name: run for name, run in ways().items() if "one after" not in name}
    least = in_turns(every, RUNS * STEPS)
    ours = min((name for name in every if "nh.rollout" in name), key=least.__getitem__)
    for peer in [name for name in every if name.startswith(("JAX", "MuJoCo"))]:
        limit = 0.3 if peer.startswith("JAX") else np.nan
        work, of = f"{RUNS} cart-poles, a step (`{ours.replace(', ', '`, ', 1)})", "ours"
        yield Row(work, "us", least[ours], peer, least[peer], limit, of)


# --- nodes ---------------------------------------------------------------------------------------


def nodes() -> Iterator[Row]:
    """Lock-step of plant and tracker beside a bare exchange of messages; the payload at 1 kHz."""
    import node_rates as rates

    with tempfile.TemporaryDirectory() as folder, rates.reserved_domain() as domain:
        started = rates.Nodes(domain, Path(folder))
        try:
            kinds = "plant and tracker", "composed", "ping-pong"
            found: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(ROUNDS):
                for kind in kinds:
                    found[kind].append(rates.KINDS[kind](started)[0])
            own, both, bare = (float(np.median(found[kind])) for kind in kinds)
            peer = "ping-pong of two bare rclpy nodes"
            yield Row(
                "lock-step of two processes (wall clock)",
                "1/s",
                own,
                peer,
                bare,
                0.85,
                at_least=True,
            )
            yield Row(
                "lock-step of composed nodes (wall clock)",
                "1/s",
                both,
                peer,
                bare,
                2.0,
                at_least=True,
            )
            missed, *_, share, _ = rates.real_time(started, *sized(PLANT, ("snakeboard", 100)))
        finally:
            with redirect_stdout(None):  # the nodes' logs
                started.end()
    work = f"payload's plant at 1 kHz for {rates.RUN_S:g} s"
    yield Row(f"{work}, of a core", "%", share, limit=50.0, of="ours")
    yield Row(f"{work}, missed steps (wall clock)", "", missed, limit=10.0, of="ours")


PLANT = "quadrotor_payload", 1000


# --- accuracy ------------------------------------------------------------------------------------

VARIATIONAL = "midpoint_order6", "midpoint_order8", "variational_gauss_4"
ADAPTIVE, ERROR = "rkmk853", 1e-8


def accuracy() -> Iterator[Row]:
    """The payload that hangs and swings under gravity, to an error of its last configuration."""
    from lie_group_solvers import adaptive_points
    from work_precision import hanging_payload

    from nh_control.integrators import INTEGRATORS
    from nh_control.integrators.adaptive import AdaptiveIntegrator
    from nh_control.studies.comparison import (
        Reference,
        seconds_at,
        solver_precision,
        work_precision,
    )

    motion = hanging_payload()
    reference = Reference(motion)
    adaptive = AdaptiveIntegrator(motion.system, ADAPTIVE)
    runs: dict[str, Callable] = {
        name: lambda name=name: work_precision(reference, INTEGRATORS[name], 0.05)
        for name in sized(VARIATIONAL, VARIATIONAL[:1])
    }
    runs[ADAPTIVE] = lambda: adaptive_points(reference, adaptive)
    runs["DOP853"] = lambda: solver_precision(reference, "DOP853", 0.05)
    least = dict.fromkeys(runs, np.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            least[name] = min(least[name], 1e3 * seconds_at(run(), sized(ERROR, 1e-3)))
    best = min((name for name in runs if name in VARIATIONAL), key=least.__getitem__)
    work = f"payload under gravity, {motion.duration:g} s to {ERROR:g}"
    peer = "SciPy DOP853, compiled right-hand side"
    title = f"{work}, best variational method"
    yield Row(title, "ms", least[best], peer, least["DOP853"], 0.2, note=f"`{best}`")
    yield Row(f"{work}, `{ADAPTIVE}`", "ms", least[ADAPTIVE], peer, least["DOP853"])


def adaptive() -> Iterator[Row]:
    """The shortest call of an adaptive integrator, beside SciPy's compiled DOP853."""
    from scipy.integrate import ode

    from nh_control.integrators.adaptive import AdaptiveIntegrator
    from nh_control.mechanics.reduced import ReducedEquations
    from nh_control.systems.rigid_body import heavy_top

    system = heavy_top()
    one = AdaptiveIntegrator(system, ADAPTIVE)
    q, v, equations = system.space.origin, np.array([0.0, 1.0, -1.0]), ReducedEquations(system)
    x = np.concatenate([q, equations.start(q, v)[len(q) :]])
    rates, w = equations.rates(np.zeros(system.nu)), equations.start(q, v)
    solver = ode(rates).set_integrator("dop853", rtol=1e-6, atol=1e-9)

    def ours() -> None:
        for _ in range(CALLS):
            one.solve((0, 1e-4), x)

    def theirs() -> None:
        for _ in range(CALLS):
            solver.set_initial_value(w, 0.0).integrate(1e-4)

    least = in_turns({"ours": ours, "dop853": theirs}, 1000 * CALLS)
    work, peer = f"one call of `{ADAPTIVE}` over one step", 'SciPy `ode("dop853")`'
    yield Row(work, "ms", least["ours"], peer, least["dop853"], 0.05, "ours")


ROWS: dict[str, Callable[[], Iterator[Row]]] = {
    made.__name__: made
    for made in (commands, first_messages, optimize, steps, payload, contact, chain, large, batch,
                 nodes, accuracy, adaptive)
}  # fmt: skip
PEERS = sys.executable


def packages(python: str) -> str:
    """The folder of an environment's packages."""
    code = "import sysconfig; print(sysconfig.get_path('platlib'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main(name: str, python: str) -> None:
    """Measure and print."""
    global PEERS
    PEERS = python
    if os.path.abspath(python) != os.path.abspath(sys.executable):
        sys.path.append(packages(python))
    for row in ROWS[name]():
        print("ROW " + json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
