"""The heavy top by diffrax's Dopri8 (order 8) in compiled JAX, 64 bits, with projection.
`lie_group_solvers.py` runs this file in a Python environment that has diffrax, which may differ
from its own.

Takes the problem as JSON in its only argument and prints a list of {tolerance, seconds, q, steps}.
"""

import json
import sys
import time

import diffrax
import jax
import jax.numpy as jnp
from sizes import sized

jax.config.update("jax_enable_x64", True)
REPEATS = sized(5, 1)


def rates(t, y, problem):
    """Return q' and w' of a unit quaternion and the body angular velocity."""
    q, w = y[:4], y[4:]
    j, weight, chi = problem
    v = q[1:]
    q_rate = jnp.concatenate([-(v @ w)[None], q[0] * w + jnp.cross(v, w)]) / 2
    up = jnp.array([0.0, 0.0, 1.0])
    in_body = up - 2 * q[0] * jnp.cross(v, up) + 2 * jnp.cross(v, jnp.cross(v, up))
    return jnp.concatenate([q_rate, (jnp.cross(j * w, w) + weight * jnp.cross(in_body, chi)) / j])


@jax.jit
def solve(start, end, tolerance, problem):
    """Return the final state with a normalized quaternion, and the number of steps."""
    run = diffrax.diffeqsolve(
        diffrax.ODETerm(rates),
        diffrax.Dopri8(),
        0.0,
        end,
        None,
        start,
        problem,
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
        saveat=diffrax.SaveAt(t1=True),
        max_steps=10**6,
    )
    y = run.ys[-1]
    return y.at[:4].divide(jnp.linalg.norm(y[:4])), run.stats["num_steps"]


def main(given: str) -> None:
    g = json.loads(given)
    problem = jnp.array(g["inertia"]), g["weight"], jnp.array(g["chi"])
    start, rows = jnp.array(g["q"] + g["v"]), []
    for tolerance in g["tolerances"]:
        least = float("inf")
        for _ in range(REPEATS + 1):  # the first of all compiles
            before = time.process_time()
            y, steps = jax.block_until_ready(solve(start, g["duration"], tolerance, problem))
            least = min(least, time.process_time() - before)
        rows.append(
            {"tolerance": tolerance, "seconds": least, "q": y[:4].tolist(), "steps": int(steps)}
        )
    print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1])
