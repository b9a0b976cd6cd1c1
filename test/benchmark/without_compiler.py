"""Processor time of a step, of a step with A and B, and of a command of model predictive control,
with a C compiler and without one: along the reference of a scenario, in turn, the least of some
repetitions.

    OPENBLAS_NUM_THREADS=1 python test/benchmark/without_compiler.py [SCENARIO ...]
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.numerics import compiled  # noqa: E402
from nh_control.numerics.compiled import wait_for_compiler  # noqa: E402
from nh_control.scenarios import mpc_tracker  # noqa: E402

SCENARIOS = sized(["cart_pole", "snakeboard", "urdf", "quadrotor_payload"], ["urdf"])
REFERENCES = {
    "cart_pole": "free:theta=2.0,duration=1",
    "urdf": "free:shoulder=1.0,duration=1",
}
PREDICTIVE = ("cart_pole", "quadrotor_payload")
"""Scenarios whose predictive control is measured, too."""
SECONDS, REPETITIONS = sized(0.3, 0.01), sized(5, 1)


def seconds(name: str, what: str, compiler: str | None) -> float:
    """Processor time of one call of `what` with or without a compiler."""
    with patch.object(compiled, "compiler", lambda: compiler):
        scenario = scenarios.get(name)
        model = scenario.model()
        reference = scenario.reference(model, REFERENCES.get(name, ""))
        k = len(reference) // 3
        x, u = reference.states[k], 1.01 * reference.inputs[k] + 1e-3  # off the last solution
        if what == "command":
            tracker = mpc_tracker(scenario, model, reference)
            memory = tracker.command(k, x).memory
            call = partial(tracker.command, k + 1, memory.predicted, memory)
        else:
            call = partial(getattr(model, what), x, u)
        taken, calls = [], 1
        for _ in range(REPETITIONS + 2):  # the first ones compile, and find the number of calls
            wait_for_compiler()
            start = time.process_time()
            for _ in range(calls):
                call()
            taken.append((time.process_time() - start) / calls)
            calls = max(1, round(SECONDS / taken[-1]))
    return min(taken[2:])


def main() -> None:
    """Print a row for every scenario."""
    for name in sys.argv[1:] or SCENARIOS:
        for what in ("step", "linearize", *(["command"] if name in PREDICTIVE else [])):
            fast, slow = (seconds(name, what, path) for path in (compiled.compiler(), None))
            print(
                f"{name:20} {what:10} {1e6 * fast:8.2f} us, without {1e6 * slow:8.1f} us, "
                f"ratio {slow / fast:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
