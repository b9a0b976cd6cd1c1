"""Symbolic stages of Lie group methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nh_control.geometry.homogeneous import HomogeneousSpace
from nh_control.integrators.lie_tableaux import CommutatorFree, Exponentials, MuntheKaas
from nh_control.integrators.stages import weighted
from nh_control.numerics.expressions import Graph

Field = Callable[[Graph], Graph]


@dataclass(frozen=True)
class MuntheKaasStages:
    """`k_i = dtau^{-1}_{u_i}(h f_i),  f_i = f(tau(u_i) . x),  u_i = sum_j a_ij k_j`
    [celledoni2021 (6)], or brackets instead of dtau^{-1}.
    """

    table: MuntheKaas
    action: HomogeneousSpace
    x: Graph
    fields: list[Graph]
    derivatives: list[Graph]

    def sum(self, weights: Sequence[float], stage: int) -> Graph:
        """u_i for stage i with the given weights, or for the end of the step if i = s."""
        u = weighted(weights, self.derivatives)
        # u_i += sum c [k_j, k_l]
        for c, i, j in self.table.brackets[stage] if self.table.brackets else ():
            u += c * self.action.bracket(self.derivatives[i], self.derivatives[j])
        return u

    def end(self, weights: Sequence[float]) -> Graph:
        """u for the end of the step with the given weights."""
        return self.sum(weights, len(self.table.a))


def munthe_kaas_stages(
    table: MuntheKaas, action: HomogeneousSpace, field: Field, x: Graph, h: Graph, f: Graph
) -> MuntheKaasStages:
    """Stages of a step h from x (nx), where the field is f (dim)."""
    stages = MuntheKaasStages(table, action, x, [f], [h * f])
    for i in range(1, len(table.a)):
        u = stages.sum(table.a[i], i)
        stages.fields.append(field(action.act(u, x)))
        derivative = h * stages.fields[-1]
        stages.derivatives.append(
            # k_i = dtau^-1_{u_i}(h f_i)
            derivative if table.brackets else action.dtau_inverse(u, derivative)
        )
    return stages


@dataclass(frozen=True)
class CommutatorFreeStages:
    """The points `x_i = tau(h sum_k w_k f_k) ... . x_base` with `f_i = f(x_i)`
    [celledoni2021 2.2], and the derivatives h f_i.
    """

    table: CommutatorFree
    action: HomogeneousSpace
    points: list[Graph]
    derivatives: list[Graph]

    def moved(self, path: Exponentials) -> Graph:
        """The end of a path."""
        point = self.points[path.base]
        for row in path.rows:
            point = self.action.act(weighted(row, self.derivatives), point)
        return point

    def exponents(self, path: Exponentials) -> list[Graph]:
        """The algebra elements of a path that begins at the initial state of the step."""
        # a path on stage i continues that stage's path
        before = self.exponents(self.table.stages[path.base - 1]) if path.base else []
        return [*before, *(weighted(row, self.derivatives) for row in path.rows)]


def commutator_free_stages(
    table: CommutatorFree, action: HomogeneousSpace, field: Field, x: Graph, h: Graph, f: Graph
) -> CommutatorFreeStages:
    """Stages of a step h from x (nx), where the field is f (dim)."""
    stages = CommutatorFreeStages(table, action, [x], [h * f])
    for path in table.stages:
        stages.points.append(stages.moved(path))
        stages.derivatives.append(h * field(stages.points[-1]))
    return stages
