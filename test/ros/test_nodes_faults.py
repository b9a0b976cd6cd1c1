"""Faults in nodes are those of the loop in one process, to the last step; the truth has topics of
its own; and they change while the nodes run.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import PlanarPerturbation, PlantOptions, fault

LOCKSTEP = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
PERTURBED = {"perturb.position": 0.1, "perturb.heading": 0.1, "perturb.momentum": 0.1}
SCENARIO = scenarios.get("snakeboard")
H = SCENARIO.step_s
FAULTS = (
    "noise=0.001,seed=1",
    "velocities:noise=0.01",
    "delay=0.014",
    "jitter=0.02",
    "dropout=0.2",
    "phi:bias=0.01,start=0.5",
    "rotor_torque:lag=0.02",
    "commands:dropout=0.1",
    "dead_band=0.05",
    "steer_torque:stuck,start=1,duration=0.2",
)


def simulated(steps, *texts):
    """The closed loop in this process."""
    options = PlantOptions(faults=tuple(fault.parse(text) for text in texts))
    perturbation = PlanarPerturbation(0.1, 0.1, 0.1)
    e = Experiment.make(SCENARIO, options=options, perturbation=perturbation, duration_s=steps * H)
    return e.run()


def rotor(messages):
    """Angles of the rotor by step."""
    from probe import by_step

    return {k: m.position[0] for k, m in by_step(messages, H).items()}


@pytest.mark.slow
def test_lockstep_with_faults_equals_the_simulation(nodes, probe):
    from probe import by_step
    from sensor_msgs.msg import JointState

    truth = probe.listen(JointState, "ground_truth/joint_states")
    nodes.start("tracker")
    probe.wait_publishers("joint_commands")
    faults = "[" + ", ".join(f"'{text}'" for text in FAULTS) + "]"
    nodes.start("plant", {**LOCKSTEP, **PERTURBED, "duration_s": 2.0, "fault": faults})
    probe.wait(lambda: 200 in by_step(truth, H), "true state 200")
    expected = simulated(200, *FAULTS).trajectory
    angles = rotor(truth)
    assert sorted(angles) == list(range(201))
    there = np.array([angles[k] for k in range(201)])
    assert np.abs(there - expected.states[:, 0]).max() < 1e-9
    assert np.abs(there - simulated(200).trajectory.states[:, 0]).max() > 1e-3
    probe.wait_mode("finished")
    draws = (np.random.default_rng([0, k, *b"measurements:dropout"]).random() for k in range(201))
    lost = [k for k, draw in enumerate(draws) if draw < 0.2 and k]
    kept = [k for k in range(201) if k not in lost]
    probe.wait(lambda: kept[-1] in by_step(probe.joint_states, H), "last measurement")
    assert len(lost) > 20 and sorted(by_step(probe.joint_states, H)) == kept
    assert f"{len(lost)} lost" in probe.values()["fault measurements:dropout=0.2"]
    assert {probe.values()[key] for key in ("commands_rejected", "fallback_steps")} == {"0"}
