"""Inverse kinematics of the ur5e from random starts, beside the loop of Pinocchio's example
(closed-loop inverse kinematics, damped least squares), in one run.

    pip install pin airo-models
    python test/benchmark/inverse_kinematics.py

Every pose is that of a random configuration, and every start is another one. A pose counts as
reached within 1e-4, the example's own tolerance, and within the ranges of the joints. `one start`
is a single search from the start; `restarts` is `inverse_kinematics` as users call it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import airo_models
import numpy as np
import pinocchio
from sizes import sized

import nh_control as nh
from nh_control.multibody import NoSolution
from nh_control.numerics.compiled import wait_for_compiler

URDF = Path(airo_models.__file__).parent / "arms/ur5e/ur5e.urdf"
POSES, FRAME, REACHED = sized(100, 3), "tool0", 1e-4
ROUNDS, RATE, DAMPING = 1000, 0.1, 1e-12
"""Of Pinocchio's example."""


class Example:
    """The loop of Pinocchio's example, for a link."""

    def __init__(self, path: Path):
        self.model = pinocchio.buildModelFromUrdf(str(path))
        self.data, self.frame = self.model.createData(), self.model.getFrameId(FRAME)

    def __call__(self, start: np.ndarray, rotation: np.ndarray, position: np.ndarray):
        goal, q = pinocchio.SE3(rotation, position), start.copy()
        for _ in range(ROUNDS):
            pinocchio.forwardKinematics(self.model, self.data, q)
            pinocchio.updateFramePlacement(self.model, self.data, self.frame)
            error = self.data.oMf[self.frame].actInv(goal)
            twist = pinocchio.log(error).vector
            if np.linalg.norm(twist) < REACHED:
                return q
            jacobian = pinocchio.computeFrameJacobian(self.model, self.data, q, self.frame)
            jacobian = -pinocchio.Jlog6(error.inverse()) @ jacobian
            damped = jacobian @ jacobian.T + DAMPING * np.eye(6)
            q = pinocchio.integrate(
                self.model, q, -RATE * jacobian.T @ np.linalg.solve(damped, twist)
            )
        return None


def main() -> None:
    """Print the table."""
    robot, random = nh.Robot(nh.load_urdf(URDF)), np.random.default_rng(0)
    limits = {frame.coordinate: frame.limits for frame in robot.model.frames}
    lower, upper = np.array([(limits[n].lower, limits[n].upper) for n in robot.joint_names]).T
    goals, begins = random.uniform(lower, upper, (2, POSES, len(lower)))

    def ours(starts: int):
        def solve(start, rotation, position):
            try:
                return robot.inverse_kinematics(
                    FRAME, position, rotation, start, starts=starts, tolerance=REACHED
                )
            except NoSolution:
                return None

        return solve

    methods: dict[str, Callable] = {
        "nh_control, one start": ours(1),
        "nh_control, restarts": ours(30),
        "Pinocchio's example": Example(URDF),
    }
    print(f"{'ur5e, ' + FRAME:24} reached  in the ranges  median ms  largest ms")
    for name, solve in methods.items():
        times, reached, inside = [], 0, 0
        for goal, start in zip(goals, begins):
            rotation, position = robot.frame_pose(goal, FRAME)
            wait_for_compiler()
            before = time.perf_counter()
            q = solve(start, rotation, position)
            times.append(1e3 * (time.perf_counter() - before))
            if q is not None:
                pose = robot.frame_pose(q, FRAME)
                assert np.abs(pose.rotation - rotation).max() < 10 * REACHED
                assert np.abs(pose.position - position).max() < 10 * REACHED
                reached += 1
                inside += bool(((q >= lower - 1e-9) & (q <= upper + 1e-9)).all())
        print(
            f"{name:24} {reached:4d} / {POSES:<4d} {inside:8d} "
            f"{np.median(times):12.1f} {max(times):11.1f}"
        )


if __name__ == "__main__":
    main()
