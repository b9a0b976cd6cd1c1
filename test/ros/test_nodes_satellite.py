"""The satellite's nodes: attitude and wheels travel on topics of their own, and the run is the
simulation's.
"""

import numpy as np
import pytest

from nh_control.runs.experiment import Experiment
from nh_control.scenarios import PlantOptions
from nh_control.scenarios.satellite import SATELLITE, SatellitePerturbation

STEPS = 100
H = SATELLITE.step_s


PLANT = PlantOptions(integrator="midpoint", substeps=4)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["midpoint", "rkmk4"])
def test_lockstep_equals_the_simulation(nodes, probe, integrator):
    """With a tracker whose model is by another integrator than the plant, too."""
    from probe import by_step

    shared = {"scenario": "satellite", "integrator": integrator}
    nodes.start("tracker", shared)
    error = {"perturb.attitude": 0.3, "perturb.rate": 0.01}
    run = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]", "duration_s": STEPS * H}
    plant = {"plant.integrator": PLANT.integrator, "plant.substeps": PLANT.substeps}
    nodes.start("plant", {**shared, **plant, **run, **error})
    topics = (probe.joint_states, probe.bodies)
    probe.wait(lambda: all(STEPS in by_step(topic, H) for topic in topics), "last state")
    experiment = Experiment.make(
        SATELLITE,
        integrator=integrator,
        options=PLANT,
        perturbation=SatellitePerturbation(0.3, 0.01),
        duration_s=STEPS * H,
    )
    joints, bodies = (by_step(topic, H) for topic in topics)
    model = experiment.model
    assert model.method.name == integrator
    for k, x in enumerate(experiment.run().trajectory.states):
        q, v = model.configuration(x), model.velocity(x)
        (pose,), (twist,) = bodies[k].transforms, bodies[k].twist
        turned = [getattr(pose.rotation, c) for c in "wxyz"]
        omega = [getattr(twist.angular, c) for c in "xyz"]
        found = [*turned, *joints[k].position, *omega, *joints[k].velocity]
        wanted = [*q, *v]
        assert np.abs(np.subtract(found, wanted)).max() <= 1e-9 * (1 + np.abs(wanted).max())
    assert list(joints[0].name) == [joint.name for joint in SATELLITE.joints]
