"""Parameters of the tracker that choose its controller, and of the predictive controller."""

from __future__ import annotations

from nh_control.ros.runtime.spec import AUTO, Spec

HALF_A_STEP = -1.0
"""Value of the deadline of plans that stands for half a step."""

MPC = (
    Spec(
        "controller",
        "lqr",
        "Tracker: lqr, linear feedback; or mpc, which plans ahead within the limits of inputs and "
        "the scenario's constraints in every step.",
        choices=("lqr", "mpc"),
    ),
    Spec(
        "mpc.horizon_s",
        0.0,
        "How far it plans in s; 0 is the scenario's horizon.",
        minimum=0.0,
    ),
    Spec("mpc.iterations", 3, "Interior-point iterations in a step.", minimum=1),
    Spec(
        "mpc.constraints",
        [AUTO],
        "Names of the scenario's constraints that it keeps; auto are those of the reference, "
        "empty is none.",
    ),
    Spec(
        "mpc.deadline_s",
        HALF_A_STEP,
        "How long after a state its plan may come in s; then an earlier plan's gains answer, or "
        "LQR, where that plan is older than half the horizon. -1 is half a step. Lock-step waits.",
        minimum=HALF_A_STEP,
    ),
    Spec(
        "mpc.late",
        0.0,
        "Share of plans that count as late, to see what becomes of the motion.",
        minimum=0.0,
    ),
    Spec("mpc.seed", 0, "Seed with which these are drawn.", minimum=0),
)
