"""The predictive tracker as a node: runs in lock-step, plans that are late, options refused."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import MpcOptions
from nh_control.scenarios.joints import JointPerturbation

SCENARIO = scenarios.get("cart_pole")
H, STEPS = SCENARIO.step_s, 60
GIVEN = {"scenario": "cart_pole", "lockstep": True}
PLANT = {**GIVEN, "speed_factor": 0.0, "wait_for": "[probe]", "duration_s": STEPS * H}


def expected(share: float) -> np.ndarray:
    """Inputs (STEPS, 1) of the same run in this process."""
    error = JointPerturbation(angle=0.3)
    mpc = MpcOptions(late=share)
    experiment = Experiment.make(SCENARIO, perturbation=error, duration_s=STEPS * H, mpc=mpc)
    return experiment.run(by_messages=True).trajectory.inputs


def commands(probe) -> np.ndarray:
    """Commands (STEPS, 1) that were heard."""
    from probe import by_step

    probe.wait(lambda: by_step(probe.commands, H).keys() >= set(range(STEPS)), "all commands")
    heard = by_step(probe.commands, H)
    return np.array([heard[k].effort for k in range(STEPS)])


def test_lockstep_with_late_plans_repeats_and_equals_the_simulation(nodes, probe):
    heard = {"heard_by": "[probe]"}  # the first commands, too
    nodes.start("tracker", {**GIVEN, **heard, "controller": "mpc", "mpc.late": 0.7})
    nodes.start("plant", {**PLANT, "perturb.angle": 0.3})
    first = commands(probe)
    np.testing.assert_array_equal(first, expected(0.7))
    probe.wait(lambda: "commands_by_plan" in probe.values("tracker"), "counts")
    probe.reset()
    np.testing.assert_array_equal(commands(probe), first)
    probe.wait_value("step", str(STEPS), "tracker")
    counted = probe.values("tracker")
    by_plan, by_earlier = (int(counted[f"commands_by_{w}"]) for w in ("plan", "earlier_plan"))
    assert 0 < by_plan < by_earlier and counted["commands_by_lqr"] == "0"
    assert (
        counted["plans_failed"] == counted["plans_outdated"] == "0"
        and float(counted["margin: track"]) > 0
    )


@pytest.mark.slow
def test_the_plan_is_published_and_drawn(nodes, probe):
    """From the state that was answered on, for the whole horizon."""
    from nav_msgs.msg import Path
    from probe import time_ns
    from std_msgs.msg import Float64MultiArray
    from visualization_msgs.msg import MarkerArray

    plans, markers = probe.listen(Path, "plan"), probe.listen(MarkerArray, "markers")
    numbers = probe.listen(Float64MultiArray, "controller_state/plan")
    nodes.start("display", {"scenario": "cart_pole"})
    nodes.start("tracker", {**GIVEN, "controller": "mpc", "mpc.horizon_s": 0.5})
    probe.wait_publishers("plan", "markers", "controller_state/plan", "joint_commands")
    nodes.start("plant", {**GIVEN, "wait_for": "[probe, display]", "duration_s": 2.0})
    probe.wait_mode("finished")
    probe.wait(lambda: plans and numbers, "plans")
    assert plans[0].header.frame_id == "odom"
    last = plans[-1]
    first, end = (time_ns(last.poses[i]) for i in (0, -1))
    assert first == time_ns(last) and 0.2e9 <= end - first <= 0.5e9
    assert numbers[-1].layout.dim[0].label == "solve_s,margin,plan_age_steps"
    assert numbers[-1].data[0] > 0 and 0 < numbers[-1].data[1] < 1
    drawn = lambda: [m for array in markers for m in array.markers if m.ns == "plan"]  # noqa: E731
    assert len(probe.wait(drawn, "drawn plan")[-1].points) == 20


@pytest.mark.slow
def test_what_a_scenario_does_not_have_is_refused(nodes):
    given = {**GIVEN, "controller": "mpc"}
    for more, reason in (
        ({"mpc.constraints": "[roof]"}, "roof"),
        ({"mpc.late": 1.5}, "share in"),
        ({"mpc.horizon_s": 0.01}, "at least 2 steps"),
        ({"mpc.iterations": 0}, "an integer >= 1"),
    ):
        node = nodes.start("tracker", {**given, **more})
        assert node.wait() != 0
        assert reason in node.log
