"""A scenario of one's own, of a joint alone: `python pendulum_nodes.py NODE` runs the package's
NODE with it.
"""

import importlib
import sys

import numpy as np

from nh_control import scenarios
from nh_control.integrators import midpoint
from nh_control.scenarios import Joint, Scenario
from nh_control.scenarios.joints import TurningPerturbation
from nh_control.systems.pendulum import PendulumParameters, pendulum


def swing(model):
    """A motion from rest under a torque that grows."""
    return model.simulate(model.state([0.3], [0.0]), np.linspace(0.0, 2.0, 200)[:, None])


def perturbed(model, x, perturbation):
    """The state with the pendulum turned."""
    return x + np.array([perturbation.angle, 0.0])


PENDULUM = Scenario(
    name="pendulum",
    title="Pendulum",
    parameters=PendulumParameters(),
    make_system=pendulum,
    integrators={"midpoint": midpoint},
    references={"swing": swing},
    weights=(np.eye(2), np.eye(1), np.eye(2)),
    perturbation=TurningPerturbation(),
    perturb=perturbed,
    joints=(Joint("pivot", "theta"),),
)


def main() -> int:
    """Run the node that the command line names; returns the exit code."""
    scenarios._SCENARIOS["pendulum"] = PENDULUM
    return importlib.import_module(f"nh_control.ros.nodes.{sys.argv.pop(1)}").main()


if __name__ == "__main__":
    sys.exit(main())
