"""Sensors of a plant as messages: their values are those of the run, at their rates and stamps."""

from pathlib import Path

import numpy as np
import pytest

SCENARIO = Path(__file__).parent / "sensing_arm.py"
STEPS = 100


@pytest.mark.slow
def test_a_plant_publishes_its_sensors(nodes, probe):
    """In lock-step: the IMU, which has no noise, shows the motion to 1e-9; the encoder is late."""
    from geometry_msgs.msg import PoseWithCovarianceStamped
    from probe import time_ns
    from sensing_arm import SENSING_ARM
    from sensor_msgs.msg import Imu, JointState

    from nh_control.runs.experiment import Experiment, Result

    h = SENSING_ARM.step_s
    imus = probe.listen(Imu, "sensors/imu")
    encoders = probe.listen(JointState, "sensors/encoder")
    poses = probe.listen(PoseWithCovarianceStamped, "sensors/tracking")
    nodes.start("tracker", {"scenario": str(SCENARIO)})
    lockstep = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
    nodes.start(
        "plant",
        {
            "scenario": str(SCENARIO),
            "perturb.displacement": 0.2,
            **lockstep,
            "duration_s": STEPS * h,
        },
    )

    def steps(messages):
        """Steps of the measurements; the first and the last may be published again."""
        return list(dict.fromkeys(round(time_ns(message) / 1e9 / h) for message in messages))

    ends = (imus, STEPS), (poses, STEPS), (encoders, STEPS - 4)
    probe.wait(lambda: all(k in steps(come) for come, k in ends), "last measurements")
    perturbation = type(SENSING_ARM.perturbation)(displacement=0.2)
    experiment = Experiment.make(SENSING_ARM, perturbation=perturbation, duration_s=STEPS * h)
    run = Result(experiment, experiment.run(), None, 0.0)
    names = list(run.outputs.names)
    first = names.index("imu_angular_velocity_x")
    assert steps(imus) == list(range(STEPS + 1))
    by_step = {round(time_ns(message) / 1e9 / h): message for message in imus}
    for k, values in list(enumerate(run.outputs.values))[1:]:
        message = by_step[k]
        shown = [message.angular_velocity.y, message.linear_acceleration.x]
        assert shown == pytest.approx([values[first + 1], values[first + 3]], abs=1e-9)
    assert steps(encoders) == list(range(0, STEPS - 3, 2))
    shown = {round(time_ns(message) / 1e9 / h): message.position[0] for message in encoders}
    angles = np.array([shown[k] for k in sorted(shown)])
    errors = angles - run.outputs.values[: STEPS - 3 : 2, 0]
    assert 0.0005 < errors.std() < 0.0015
    assert steps(poses) == list(range(0, STEPS + 1, 4))


@pytest.mark.slow
def test_a_tracker_that_gets_sensors_alone_runs_as_in_one_process(nodes, probe):
    """In lock-step, with measurements that are late: the same motion to 1e-9, and the filter's
    report in the diagnostics.
    """
    from probe import by_step
    from sensing_arm import SENSING_ARM

    from nh_control.runs.experiment import Experiment

    h = SENSING_ARM.step_s
    nodes.start("tracker", {"scenario": str(SCENARIO), "estimate": "sensors"})
    lockstep = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
    start = {"perturb.displacement": 0.1, "duration_s": STEPS * h}
    nodes.start("plant", {"scenario": str(SCENARIO), **lockstep, **start, "on_finish": "stay"})
    probe.wait(lambda: STEPS in by_step(probe.joint_states, h), "last state")
    perturbation = type(SENSING_ARM.perturbation)(displacement=0.1)
    given = dict(perturbation=perturbation, duration_s=STEPS * h)
    run = Experiment.make(SENSING_ARM, **given, estimate="sensors").run()
    plain = Experiment.make(SENSING_ARM, **given).run()
    states = by_step(probe.joint_states, h)
    found = np.array([states[k].position[0] for k in range(STEPS + 1)])
    assert found == pytest.approx(run.trajectory.states[:, 0], abs=1e-9)
    assert np.abs(found - plain.trajectory.states[:, 0]).max() > 1e-4
    assert abs(found[-1] - 0.5) < 0.02
    probe.wait(lambda: "sensor imu: measurements" in probe.values("tracker"), "report")


@pytest.mark.slow
def test_a_tracker_without_sensors_refuses_to_be_given_them(nodes):
    node = nodes.start("tracker", {"scenario": "pendulum_swing_up", "estimate": "sensors"})
    assert node.wait() != 0
    assert "parameter 'estimate'" in node.log and "needs sensors" in node.log
