"""Steps per second of vectorized Gymnasium environments under random actions, with the resets at
the ends of episodes.

    python test/benchmark/vectorized_environments.py [SCENARIO ...]
"""

from __future__ import annotations

import sys
import time

from sizes import sized

import nh_control as nh
from nh_control.numerics.compiled import wait_for_compiler


def rate(name: str, count: int, steps: int) -> float:
    """Return the steps per second of `count` environments."""
    envs = nh.gym.make_vec(name, count)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(10)]
    envs.step(actions[0])
    wait_for_compiler()
    start = time.perf_counter()
    for k in range(steps):
        envs.step(actions[k % len(actions)])
    return count * steps / (time.perf_counter() - start)


if __name__ == "__main__":
    for name in sys.argv[1:] or sized(
        ["cart_pole", "snakeboard", "quadrotor_payload"], ["cart_pole"]
    ):
        for count in sized((1, 64, 256, 1024, 4096), (4,)):
            print(
                f"{name:20} {count:5} environments {rate(name, count, sized(500, 5)):9.0f} steps/s"
            )
