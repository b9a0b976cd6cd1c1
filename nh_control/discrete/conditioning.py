"""Checks for singular steps, whose linearizations cannot be trusted [johnson2014 VII]."""

from __future__ import annotations

import logging

from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

log = logging.getLogger(__name__)

ILL_CONDITIONED, SINGULAR = 1e8, 1e12
"""Condition numbers above which a warning is logged or an error is raised. Derivatives lose as
many digits as the condition number has.
"""

REMEDIES = {
    "M": "the configurations are singular in these coordinates, or the step is too coarse for "
    "them: choose other coordinates, or reduce h",
    "Dh M^-1 Dh^T": "constraints are dependent, or a step rotates a constraint by a right angle: "
    "drop redundant constraints, or reduce h",
}


class SingularStep(ArithmeticError):
    """Raised for a step about which the dynamics cannot be linearized. The attributes are its
    `conditioning` and its number `step`.
    """

    def __init__(self, message: str, conditioning: Conditioning, step: int):
        super().__init__(message)
        self.conditioning, self.step = conditioning, step


def require_regular(dsys: DiscreteSystem, trajectory: Trajectory) -> Conditioning:
    """The worst condition numbers of M and Dh M^{-1} Dh^T along a trajectory.

    Raises SingularStep at the first step with a condition number above SINGULAR, and StepFailed if
    a step cannot be solved. Logs a warning that names the step and a remedy if the worst number
    exceeds ILL_CONDITIONED.
    """
    worst, worst_step = Conditioning(1.0, 1.0, 1.0), 0
    for k, (x, u) in enumerate(zip(trajectory.states, trajectory.inputs)):
        try:
            conditioning = dsys.conditioning(x, u)
        except StepFailed as failure:
            raise failure.at_step(k) from None
        # "not <=" is also true for NaN
        if not _worse(conditioning)[1] <= SINGULAR:
            raise SingularStep(_report(dsys, conditioning, k, "singular"), conditioning, k)
        if _worse(conditioning)[1] > _worse(worst)[1]:
            worst, worst_step = conditioning, k
    if _worse(worst)[1] > ILL_CONDITIONED:
        log.warning(_report(dsys, worst, worst_step, "ill-conditioned"))
    return worst


def _worse(conditioning: Conditioning) -> tuple[str, float]:
    """The name of the matrix with the larger condition number, and this number. If both are
    singular, the matrix is M, because Dh M^{-1} Dh^T contains M^{-1}.
    """
    return (
        ("M", conditioning.mass)
        if conditioning.mass >= min(conditioning.constraint, SINGULAR)
        else ("Dh M^-1 Dh^T", conditioning.constraint)
    )


def _report(dsys: DiscreteSystem, conditioning: Conditioning, k: int, quality: str) -> str:
    matrix, number = _worse(conditioning)
    return (
        f"{dsys} at step {k} (t = {k * dsys.h:g} s): {matrix} is {quality}, condition number "
        f"{number:.1e}: {REMEDIES[matrix]}"
    )
