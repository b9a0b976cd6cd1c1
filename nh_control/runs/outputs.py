"""The plant's declared outputs in a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.discrete.plant_steps import with_external
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


@dataclass(frozen=True)
class OutputValues:
    """Values (N + 1, ny) of the outputs at the nodes of a run, with their names and units."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: np.ndarray

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The output arrays by their names in results; empty without outputs."""
        if not self.names:
            return {}
        return {
            "outputs": self.values,
            "output_names": np.array(self.names),
            "output_units": np.array(self.units),
        }


def outputs_of(
    plant: DiscreteSystem, model: DiscreteSystem, path: Trajectory, external: np.ndarray
) -> OutputValues:
    """Return the plant's outputs at every node of the model's path, for the plant's parameters and
    the `external` forces (N, k). The outputs depend on the inputs in the step before the node or,
    at the first node, in the step after it.
    """
    if not plant.system.outputs:
        return OutputValues((), (), np.empty((len(path.states), 0)))
    outputs = plant.outputs()
    inputs = [with_external(plant, u, w) for u, w in zip(path.inputs, external)]
    # a run without steps
    inputs = inputs or [np.zeros(plant.nu)]
    rows = [
        outputs.values(model.configuration(x), model.velocity(x), inputs[max(0, k - 1)])
        for k, x in enumerate(path.states)
    ]
    return OutputValues(outputs.names, outputs.units, np.array(rows))
