"""Classical benchmarks of multibody dynamics: published numbers compared with those that this
package computes.

Each file contains one mechanism and is short enough to serve as an example. `BENCHMARKS` contains
all of them by name.
"""

from __future__ import annotations

from nh_control.benchmarks import (
    andrews,
    bicycle,
    bricard,
    car_axis,
    euler_disk,
    four_bars,
    governor,
    rattleback,
    slider_crank,
    tippe_top,
    turntable,
)
from nh_control.benchmarks.benchmark import Benchmark, Result, Value

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        bicycle.EIGENVALUES,
        bicycle.TURN,
        andrews.ANDREWS,
        car_axis.CAR_AXIS,
        slider_crank.ELASTIC,
        slider_crank.FORCES_AT_END,
        slider_crank.RIGID,
        four_bars.FOUR_BARS,
        bricard.BRICARD,
        governor.RIGID,
        governor.STIFF,
        rattleback.ROCKING,
        rattleback.REVERSAL,
        tippe_top.TIPPE_TOP,
        euler_disk.EULER_DISK,
        turntable.TURNTABLE,
    )
}

__all__ = ["BENCHMARKS", "Benchmark", "Result", "Value"]
