"""Many runs of a scenario that differ in what varies, on this machine or on a Dask cluster."""

from nh_control.studies.conducting import conduct
from nh_control.studies.reading import read, study_of
from nh_control.studies.running import METRICS, Run, command, run_indices
from nh_control.studies.store import Store
from nh_control.studies.study import Study
from nh_control.studies.variation import Variation
from nh_control.studies.workers import Cluster, MissingExtra, Processes, WorkersLost

__all__ = [
    "METRICS",
    "Cluster",
    "MissingExtra",
    "Processes",
    "Run",
    "Store",
    "Study",
    "Variation",
    "WorkersLost",
    "command",
    "conduct",
    "read",
    "run_indices",
    "study_of",
]
