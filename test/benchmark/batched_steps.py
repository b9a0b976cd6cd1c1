"""Steps of 1000 cart-poles at once: one after another, in lanes, in vectorized environments, by
JAX, and by MuJoCo's own rollout, alternating in one run.

    pip install jax mujoco
    python test/benchmark/batched_steps.py

Numbers are the least processor time of all threads together, in us a step. JAX and MuJoCo take
explicit Runge-Kutta steps of order 4, our steps are implicit ones of order 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import rollout
from sizes import sized

import nh_control as nh
from nh_control.control.parallel_steps import step_all
from nh_control.discrete.lanes import LaneCode
from nh_control.systems.cart_pole import CartPoleParameters, cart_pole

jax.config.update("jax_enable_x64", True)
RUNS, STEPS, REPEATS = sized(1000, 8), sized(100, 2), sized(7, 1)
H, FORCE, P = 0.01, 0.3, CartPoleParameters()
MODEL = f"""<mujoco><option timestep="{H}" integrator="RK4" gravity="0 0 -{P.g}"/><worldbody>
<body><joint name="cart" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0" mass="{P.m_cart}" diaginertia="1 1 1"/><body>
<joint type="hinge" axis="0 -1 0"/>
<inertial pos="0 0 -{P.l}" mass="{P.m_pole}" diaginertia="1e-9 1e-9 1e-9"/></body></body>
</worldbody><actuator><motor joint="cart"/></actuator></mujoco>"""


@contextmanager
def one_after_another() -> Iterator[None]:
    """Steps as they are made without code for lanes."""
    simulate = LaneCode.simulate
    LaneCode.simulate = lambda self, stepper, tables: None
    try:
        yield
    finally:
        LaneCode.simulate = simulate


def alone(run: Callable[[], object]) -> Callable[[], None]:
    """The same, one run after another."""

    def alone() -> None:
        with one_after_another():
            run()

    return alone


def runge_kutta(x: jax.Array, u: jax.Array) -> jax.Array:
    """Return the state (q, v) after a step of order 4 by JAX."""

    def rate(x: jax.Array) -> jax.Array:
        sin, cos, m, M, l = jnp.sin(x[1]), jnp.cos(x[1]), P.m_pole, P.m_cart + P.m_pole, P.l
        push, fall = u[0] + m * l * sin * x[3] ** 2, -m * P.g * l * sin
        det = M * m * l * l - (m * l * cos) ** 2
        a = (m * l * l * push - m * l * cos * fall) / det
        return jnp.stack([x[2], x[3], a, (M * fall - m * l * cos * push) / det])

    k1 = rate(x)
    k2 = rate(x + H / 2 * k1)
    k3 = rate(x + H / 2 * k2)
    return x + H / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + H * k3))


def many(step: Callable, x: np.ndarray, u: np.ndarray) -> Callable[[], np.ndarray]:
    """Return a loop of steps of a batch, compiled by JAX."""
    steps = jax.vmap(step)

    @jax.jit
    def loop(x: jax.Array, u: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, STEPS, lambda _, x: steps(x, u), x)

    return lambda: np.asarray(loop(x, u))


def by_mujoco(q: np.ndarray, v: np.ndarray) -> Callable[[], np.ndarray]:
    model = mujoco.MjModel.from_xml_string(MODEL)
    data, states = [mujoco.MjData(model) for _ in range(2)], np.hstack([np.zeros((RUNS, 1)), q, v])
    control = np.full((1, STEPS, 1), FORCE)
    return lambda: rollout.rollout(model, data, states, control, persistent_pool=True)[0]


def ways() -> dict[str, Callable[[], object]]:
    """Return what makes STEPS steps of all runs, by name."""
    dsys = nh.midpoint(cart_pole(P), H).prepare(lanes=True)
    rng = np.random.default_rng(0)
    q, v = rng.normal(scale=0.5, size=(RUNS, 2)), rng.normal(scale=0.5, size=(RUNS, 2))
    x, u = dsys.state(q, v), np.full((RUNS, 1), FORCE)
    environments = nh.gym.make_vec("cart_pole", RUNS)
    environments._task.dsys.prepare(lanes=True)
    environments.reset(seed=0)

    def recorded() -> nh.control.Rollouts:
        return nh.rollout(dsys, x, [FORCE], steps=STEPS)

    def ends() -> np.ndarray:
        return nh.rollout(dsys, x, [FORCE], steps=STEPS, every=STEPS).states[:, -1]

    def one_by_one() -> None:
        after = x
        for _ in range(STEPS):
            after, _ = step_all(dsys, after, u)

    def act() -> None:
        for _ in range(STEPS):
            environments.step(u)

    native = {"nh.rollout": recorded, "nh.rollout, ends": ends, "step_all": one_by_one, "Gym": act}
    found: dict[str, Callable[[], object]] = {}
    for name, run in native.items():
        found |= {f"{name}, one after another": alone(run), f"{name}, {dsys.vectorization}": run}
    found["nh.to_jax, batched"] = many(nh.to_jax(dsys, batched=True).step, x, u)
    found["JAX, RK4"] = many(runge_kutta, np.hstack([q, v]), u)
    found["MuJoCo rollout, RK4"] = by_mujoco(q, v)
    return found


def main() -> None:
    least: dict[str, float] = {}
    every = ways()
    for run in every.values():
        run()
    for _ in range(REPEATS):
        for name, run in every.items():
            start = time.process_time()
            run()
            spent = 1e6 * (time.process_time() - start) / RUNS / STEPS
            least[name] = min(least.get(name, np.inf), spent)
    for name, spent in least.items():
        print(f"{name:40s} {spent:7.3f} us a step")


if __name__ == "__main__":
    main()
