"""Contracted second derivatives of a step of trees: from the kernel's first derivatives in
CasADi's virtual machine, as the package does, and by generated and compiled code, in one run.

    python test/benchmark/tree_hessians.py [--bodies 4 8 16 32 64] [--compiled 8]

"first" is the wall time of the first call in s, including all construction, after a step and its A
and B; "each" is the time of a later call in us, the best of several. Code is compiled for up to
--compiled bodies, into a temporary cache.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

import numpy as np
from sizes import sized


def times(dsys, x: np.ndarray, adjoint: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Return seconds of the first call, microseconds of a later one, and the result."""
    from nh_control.numerics.compiled import wait_for_compiler

    u = np.zeros(dsys.nu)
    dsys.linearize(x, u)
    start = time.perf_counter()
    result = dsys.hessian(x, u, adjoint)
    wait_for_compiler()
    first, each = time.perf_counter() - start, []
    for _ in range(20):
        start = time.perf_counter()
        dsys.hessian(x, u, adjoint)
        each.append(time.perf_counter() - start)
    return first, min(each) * 1e6, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bodies", type=int, nargs="+", default=sized([4, 8, 16, 32, 64], [2]))
    parser.add_argument("--compiled", type=int, default=8)
    options = parser.parse_args()
    from tree_scaling import chain, moving, tree

    from nh_control.integrators import midpoint

    print(" system     N   first s   each us compiled: s   each us     apart")
    for make, momentum in ((chain, 100.0), (tree, 10.0)):
        for n in options.bodies:
            system = make(n).system
            dsys, generated = midpoint(system, 0.001), midpoint(system, 0.001)
            x = moving(dsys, momentum)
            adjoint = np.random.default_rng(0).normal(size=dsys.ndx)
            first, each, found = times(dsys, x, adjoint)
            text = f"{make.__name__:>6} {n:5d} {first:9.2f} {each:9.0f}"
            if n <= options.compiled:
                generated._functions.code.__dict__["engine"] = (
                    generated._functions.code.generated()
                )
                first, each, wanted = times(generated, x, adjoint)
                apart = np.abs(found - wanted).max() / np.abs(wanted).max()
                text += f" {first:11.2f} {each:9.0f} {apart:9.1e}"
            print(text, flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NH_CONTROL_CACHE"] = folder
        main()
