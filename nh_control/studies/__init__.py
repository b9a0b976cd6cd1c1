"""Studies: many runs of a scenario with varied settings, on this machine or on a Dask cluster.
This package also contains comparisons of integrators on one motion.
"""

from nh_control.studies.metrics import METRICS
from nh_control.studies.pools import DaskCluster, MissingExtra, ProcessPool, WorkersLost
from nh_control.studies.scheduler import run_missing
from nh_control.studies.store import Store
from nh_control.studies.study import Study
from nh_control.studies.study_file import make_study, read
from nh_control.studies.variation import Variation
from nh_control.studies.worker import StudyRun, command, run_indices

__all__ = [
    "METRICS",
    "DaskCluster",
    "MissingExtra",
    "ProcessPool",
    "StudyRun",
    "Store",
    "Study",
    "Variation",
    "WorkersLost",
    "command",
    "run_missing",
    "read",
    "run_indices",
    "make_study",
]
