"""Springs and dampers between points as records for the linear-time tree kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.multibody.constraint_rows import located
from nh_control.multibody.elements import Damper, Spring
from nh_control.multibody.kernel_layout import POINT_FORCE
from nh_control.multibody.kinematics import Point
from nh_control.multibody.parts import MultibodyParts


@dataclass(frozen=True)
class PointForceElement:
    """A spring or a damper between points a and b. Each point is given by a frame number and a
    position in the kernel's axes.
    """

    a: tuple[int, np.ndarray]
    b: tuple[int, np.ndarray]
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0

    def packed(self) -> np.ndarray:
        """The element packed as a record of type `struct point_force`."""
        return POINT_FORCE.record(
            a=self.a[0],
            b=self.b[0],
            stiffness=self.stiffness,
            rest=self.rest,
            damping=self.damping,
            at_a=self.a[1],
            at_b=self.b[1],
        )


def point_forces(
    model: MultibodyParts, index: dict[str, int], axes: dict[str, np.ndarray]
) -> tuple[list[PointForceElement], list[PointForceElement]]:
    """A model's springs and dampers between points. `index` contains the numbers of the moving
    frames. `axes` contains the kernel's axes (3, 3) in each frame's axes.
    """
    springs, dampers = list[PointForceElement](), list[PointForceElement]()
    for element in model.elements:
        if isinstance(element, (Spring, Damper)):
            a, b = (located(model, index, axes, point) for point in (element.a, element.b))
            if isinstance(element, Spring):
                springs.append(PointForceElement(a, b, element.stiffness, element.rest_length))
            else:
                dampers.append(PointForceElement(a, b, damping=element.damping))
    return springs, dampers


def damped_frames(model: MultibodyParts) -> list[str]:
    """Names of the frames to which dampers are attached."""
    # springs have a potential, so only dampers add forces that depend on rates
    dampers = (element for element in model.elements if isinstance(element, Damper))
    points = (point for damper in dampers for point in (damper.a, damper.b))
    return [point.frame if isinstance(point, Point) else point for point in points]
