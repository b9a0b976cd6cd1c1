"""Processor milliseconds of an iteration and of a whole call of crocoddyl's native FDDP (one
thread, no limits, from rest), its iterations and the cost that it finds, on the problems of
test/optimal/swing_ups.py, by semi-implicit Euler and by RK4, as JSON. A call makes its shooting
problem and its solver.

    python test/benchmark/crocoddyl_fddp.py NAME [URDF] [--box]

With --box, of chains, BoxFDDP swings up within limits: a JSON object {limit, guesses: [[states,
inputs], ...]} comes in, and for each guess seconds, iterations, and whether it ends within 0.1 of
the goal go out. The humanoid "jvrc1_N" over N nodes has its mimic joints locked.

It needs crocoddyl and pinocchio, in an environment of their own: `pip install crocoddyl==3.2.1
pin==4.0.0`. `optimal_control.py --crocoddyl PYTHON` runs it beside ours. Passive joints have an
input that costs 1e4, so that everything runs in C++.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

REPEATS, ITERATIONS, BOX_MOST = 5, 60, 1000


def chain(pin: Any, links: list[tuple]) -> Any:
    """A model of links: prismatic "x" or revolute "y", mass, center below the joint, inertia, and
    how far below the last joint it begins.
    """
    import numpy as np

    model, parent = pin.Model(), 0
    joints = {"x": pin.JointModelPX, "y": pin.JointModelRY}
    for i, (kind, mass, center, inertia, below) in enumerate(links):
        place = pin.SE3(np.eye(3), np.array([0.0, 0.0, -below]))
        parent = model.addJoint(parent, joints[kind](), place, f"joint_{i}")
        body = pin.Inertia(mass, np.array([0.0, 0.0, -center]), inertia * np.eye(3))
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
    return model


CHAINS = {
    "pendulum": ([("y", 1.0, 1.0, 1e-9, 0.0)], 0.05, []),
    "cart_pole": ([("x", 1.0, 0.0, 1e-9, 0.0), ("y", 0.3, 0.5, 1e-9, 0.0)], 0.03, [1]),
    "acrobot": ([("y", 1.0, 0.5, 1 / 12, 0.0), ("y", 1.0, 0.5, 1 / 12, 1.0)], 0.05, [0]),
}
"""Links, step and passive joints."""


def problem(name: str, urdf: str) -> dict[str, Any]:
    """Model, actuation, states, inputs, step, nodes and weights, the last ones in parts of the
    others.
    """
    import crocoddyl
    import numpy as np
    import pinocchio as pin

    last: Any = 5000.0

    if name in CHAINS:
        links, h, passive = CHAINS[name]
        model, n = chain(pin, links), len(links)
        goal = np.zeros(2 * n)
        goal[n - 1 if name != "acrobot" else 0] = np.pi
        held, weights = np.zeros(n), np.repeat([0.1, 0.01], n)
        weight_u, x0, steps = np.full(n, 0.1), np.zeros(2 * n), 100
        weight_u[passive] = 1e4
    elif name.startswith("jvrc1"):
        whole = pin.buildModelFromUrdf(urdf)
        mimics = re.findall(
            r'<joint name="(\w+)"(?:(?!</joint>).)*?<mimic', Path(urdf).read_text(), re.S
        )
        locked = [whole.getJointId(joint) for joint in mimics]
        model = pin.buildReducedModel(whole, locked, pin.neutral(whole))
        n, h, steps = model.nv, 0.02, int(name.partition("_")[2])
        x0, goal, last = np.zeros(2 * n), np.repeat([0.2, 0.0], n), 1000.0
        held = pin.computeGeneralizedGravity(model, model.createData(), goal[:n])
        weights, weight_u = np.repeat([1.0, 0.1], n), np.full(n, 1e-3)
    elif name == "ur5e":
        model = pin.buildModelFromUrdf(urdf)
        model.armature = np.zeros(model.nv)
        x0 = np.array([0.0, -1.2, 1.5, -1.0, -1.5, 0.0, *np.zeros(6)])
        goal = np.array([1.5, -1.8, 0.8, 0.5, 1.0, 1.0, *np.zeros(6)])
        held = pin.computeGeneralizedGravity(model, model.createData(), goal[:6])
        weights, weight_u, h, steps = np.repeat([1.0, 0.1], 6), np.full(6, 1e-3), 0.02, 50
        last = 1000.0
    else:
        model = pin.Model()
        root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
        inertia = np.diag([0.01, 0.01, 0.02])
        model.appendBodyToJoint(root, pin.Inertia(1.0, np.zeros(3), inertia), pin.SE3.Identity())
        x0 = np.concatenate([pin.neutral(model), np.zeros(6)])
        goal = x0.copy()
        goal[:3], goal[5:7] = [2.0, 1.0, 1.0], np.sqrt(0.5)
        held, h, steps = np.full(4, 9.81 / 4), 0.02, 100
        weights, weight_u = np.repeat([1.0, 0.1, 0.1, 1.0], 3), np.full(4, 0.1)
        last = np.repeat([500.0, 5000.0, 500.0, 500.0], 3)
    state = crocoddyl.StateMultibody(model)
    if name == "quadrotor":
        turns = crocoddyl.ThrusterType.CCW, crocoddyl.ThrusterType.CW
        arms = [(0.2, 0, 0), (0, 0.2, 0), (-0.2, 0, 0), (0, -0.2, 0)]
        rotors = [
            crocoddyl.Thruster(pin.SE3(np.eye(3), np.array(arm)), 0.05, turns[i % 2])
            for i, arm in enumerate(arms)
        ]
        actuation = crocoddyl.ActuationModelFloatingBaseThrusters(state, rotors)
    else:
        actuation = crocoddyl.ActuationModelFull(state)
    given = dict(state=state, actuation=actuation, x0=x0, goal=goal, held=held, h=h)
    return given | dict(steps=steps, weights=weights, weight_u=weight_u, last=last)


def shooting(p: dict[str, Any], kind: str) -> tuple[Any, Any]:
    """The shooting problem on one thread, and its running model."""
    import crocoddyl as c

    state, actuation = p["state"], p["actuation"]

    def stage(last: bool) -> Any:
        costs = c.CostModelSum(state, actuation.nu)
        weights = c.ActivationModelWeightedQuad(p["weights"] * (p["last"] if last else 1.0))
        off = c.ResidualModelState(state, p["goal"], actuation.nu)
        costs.addCost("x", c.CostModelResidual(state, weights, off), 1.0)
        if not last:
            effort = c.ActivationModelWeightedQuad(p["weight_u"])
            force = c.ResidualModelControl(state, p["held"])
            costs.addCost("u", c.CostModelResidual(state, effort, force), 1.0)
        return c.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)

    if kind == "rk4":
        running = c.IntegratedActionModelRK(stage(False), c.RKType.four, p["h"])
    else:
        running = c.IntegratedActionModelEuler(stage(False), p["h"])
    end = c.IntegratedActionModelEuler(stage(True), 0.0)
    made = c.ShootingProblem(p["x0"], [running] * p["steps"], end)
    made.nthreads = 1
    return made, running


def milliseconds(name: str, urdf: str, kind: str) -> tuple[float, float, int, float]:
    """Of an iteration and of a call, the best of some runs, iterations, and the cost."""
    import crocoddyl as c

    p = problem(name, urdf)
    n, each, whole = p["steps"], [], []
    for _ in range(REPEATS):
        begin = time.process_time()
        solver = c.SolverFDDP(shooting(p, kind)[0])
        solver.th_stop = 1e-9
        made = time.process_time()
        solver.solve([p["x0"]] * (n + 1), [p["held"]] * n, ITERATIONS, False)
        end = time.process_time()
        each.append(1e3 * (end - made) / max(1, solver.iter))
        whole.append(1e3 * (end - begin))
    return min(each), min(whole), solver.iter, solver.cost


def box(name: str, kind: str, given: dict[str, Any]) -> list[tuple[float, int, bool]]:
    """Seconds, iterations and success of BoxFDDP from the guesses."""
    import crocoddyl as c
    import numpy as np

    p, found = problem(name, ""), []
    most = np.where(p["weight_u"] > 1e3, 1e-6, given["limit"])
    for states, inputs in given["guesses"]:
        made, running = shooting(p, kind)
        running.u_lb, running.u_ub = -most, most
        solver = c.SolverBoxFDDP(made)
        solver.th_stop = 1e-6
        begin = time.process_time()
        solver.solve([np.array(x) for x in states], [np.array(u) for u in inputs], BOX_MOST, False)
        spent = time.process_time() - begin
        off = np.abs(p["state"].diff(p["goal"], solver.xs[-1])).max()
        found.append((spent, solver.iter, bool(off < 0.1)))
    return found


if __name__ == "__main__":
    if sys.argv[1:2] in ([], ["--help"], ["--short"]):
        print(__doc__)
    else:
        given = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
        if given[1] == "--box":
            guesses = json.load(sys.stdin)
            print(json.dumps({kind: box(given[0], kind, guesses) for kind in ("euler", "rk4")}))
            sys.exit()
        print(json.dumps({kind: milliseconds(*given, kind) for kind in ("euler", "rk4")}))
