"""The visual model of the snake robot."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.declared_frames import FrameTree, planar, revolute
from nh_control.scenarios.visual_model import ORANGE, RUBBER, STEEL, WOOD, Shape, VisualModel
from nh_control.systems.snake import FRAMES, JOINTS, SnakeParameters, snake_model


def frame_tree(parameters: SnakeParameters) -> FrameTree:
    """The head and the links, each of which rotates about the joint in front of it."""
    model = snake_model(parameters)
    frames = [planar(FRAMES[0], "odom", model.space.names[:3])]
    frames += [
        revolute(f.name, f.parent, f.coordinate, position=(f.position[0], 0.0, 0.0))
        for f in model.frames[1:]
    ]
    return FrameTree(model.space.names, frames, model.bodies)


def visual_model(parameters: SnakeParameters, wheeled: tuple[str, ...] = FRAMES) -> VisualModel:
    """Boxes for the links. The head is orange, and each of the `wheeled` links has an axle with
    two wheels. All sizes are proportional to the length of a link.
    """
    l = parameters.l
    wheel, gauge, height = 0.22 * l, 0.5 * l, 0.2 * l
    shapes = []
    for frame, color in zip(FRAMES, (ORANGE, *(WOOD,) * len(JOINTS))):
        x = 0.0 if frame == FRAMES[0] else -l / 2
        shapes.append(Shape("box", (0.8 * l, 0.3 * l, 0.22 * l), color, frame, (x, 0.0, height)))
        if frame != FRAMES[0]:
            hinge = (0.14 * l, 0.14 * l, 0.3 * l)
            shapes.append(Shape("cylinder", hinge, STEEL, frame, (0.0, 0.0, height)))
        if frame not in wheeled:
            continue
        axle = (0.05 * l, gauge, 0.05 * l)
        shapes.append(Shape("box", axle, STEEL, frame, (x, 0.0, wheel / 2)))
        for side in (-1, 1):
            place = (x, side * gauge / 2, wheel / 2)
            size = (wheel, wheel, 0.08 * l)
            shapes.append(Shape("cylinder", size, RUBBER, frame, place, roll=np.pi / 2))
    return VisualModel("odom", frame_tree(parameters), tuple(shapes), trail=FRAMES[0])
