"""Pictures of single states, for reinforcement learning environments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.visual_model import VisualModel
from nh_control.view.animation import Poses
from nh_control.view.painter import Painter
from nh_control.view.sources import of_trajectory


class StatePictures:
    """Pictures of states, in a view that shows the whole reference. Their `size` is (width,
    height) in pixels. Raises ValueError for a reference without a discrete system.
    """

    def __init__(
        self,
        reference: Trajectory,
        visual: VisualModel,
        parameters: Any,
        size: tuple[int, int] = (640, 360),
    ):
        self._visual, self._parameters = visual, parameters
        # The reference determines the view of all pictures.
        self._nq = reference.state_map_for("drawn").system.space.nq
        self._animation = of_trajectory(reference, visual)
        self._painter = Painter(self._animation, size)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The picture (height, width, 3) of a state x (nx), with red, green and blue bytes."""
        poses = Poses.of(self._visual, self._parameters, x[None, : self._nq])
        shown = replace(
            self._animation,
            times=np.zeros(1),
            run=poses,
            loads=self._animation.loads[:1],
            arrows=self._animation.arrows[:1],
        )
        return np.asarray(self._painter.showing(shown).picture(0))
