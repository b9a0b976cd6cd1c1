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
        return [round(time_ns(message) / 1e9 / h) for message in messages]

    probe.wait(lambda: STEPS in steps(imus) and len(poses) > STEPS // 4, "last measurement")
    perturbation = type(SENSING_ARM.perturbation)(displacement=0.2)
    experiment = Experiment.make(SENSING_ARM, perturbation=perturbation, duration_s=STEPS * h)
    run = Result(experiment, experiment.run(), None, 0.0)
    names = list(run.outputs.names)
    first = names.index("imu_angular_velocity_x")
    assert steps(imus) == list(range(STEPS + 1))
    for message, values in list(zip(imus, run.outputs.values))[1:]:
        shown = [message.angular_velocity.y, message.linear_acceleration.x]
        assert shown == pytest.approx([values[first + 1], values[first + 3]], abs=1e-9)
    assert steps(encoders) == list(range(0, STEPS - 3, 2))
    angles = np.array([message.position[0] for message in encoders])
    errors = angles - run.outputs.values[: STEPS - 3 : 2, 0]
    assert 0.0005 < errors.std() < 0.0015
    assert steps(poses) == list(range(0, STEPS + 1, 4))
