"""Multibody systems as trees of frames."""

from nh_control.multibody.bodies import Body
from nh_control.multibody.constraints import Coincident, Distance, PointOnPlane
from nh_control.multibody.elements import Damper, JointDamper, JointInput, JointSpring, Spring, Wrench
from nh_control.multibody.frames import WORLD, Frame, Mimic, fixed, floating, planar, prismatic, revolute, spherical
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.multibody.model import Multibody, Pose

__all__ = [
    "WORLD", "Body", "Coincident", "Damper", "Distance", "Frame", "JointDamper", "JointInput", "JointSpring", "Kinematics", "Mimic", "Multibody", "Point",
    "PointOnPlane", "Pose", "Spring", "Wrench", "fixed", "floating", "planar", "prismatic", "revolute", "spherical",
]  # fmt: skip
