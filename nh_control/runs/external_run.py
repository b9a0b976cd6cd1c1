"""A run whose commands come from a user's process: the nodes run in lock-step and return a
result.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from nh_control.runs import dds_domain, launcher
from nh_control.runs.experiment import Experiment
from nh_control.runs.fork_server import node_server
from nh_control.runs.output import RECORDING
from nh_control.runs.settings import RunSettings
from nh_control.runs.simulation import ClosedLoop

NODES = RunSettings(lockstep=True, speed_factor=0.0, display=False)


class NoController(ValueError):
    """No process answered the states of a run; the message contains the topic and the domain."""


class Interrupted(ValueError):
    """A signal ended the nodes of a run."""


def external_run(experiment: Experiment) -> ClosedLoop:
    """Run the plant and the recorder in the DDS domain given by ROS_DOMAIN_ID, as fast as the
    controller in that domain answers. Raises NoController, NodeFailed, ForkServerFailed,
    RecordingError and Interrupted.
    """
    from nh_control.runs import recording  # needs rosbags

    # the user's controller must know the domain before the run
    domain = dds_domain.fixed_domain()
    if domain is None:
        raise ValueError(
            f"an external controller needs a DDS domain: set {dds_domain.VARIABLE}, or --domain"
        )
    with tempfile.TemporaryDirectory(prefix="nh_control_run_") as name:
        folder = Path(name)
        try:
            with node_server() as server:
                finished = launcher.run(experiment, NODES, folder, domain, server)
            if not finished:
                raise Interrupted("a signal ended the nodes")
        except launcher.NodeFailed as failure:
            if failure.unanswered:
                raise NoController(str(failure)) from failure
            raise
        read = recording.read(folder / RECORDING, experiment.scenario, experiment.model)
        return recording.closed_loop(read, experiment)
