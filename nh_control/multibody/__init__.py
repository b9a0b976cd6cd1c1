"""Multibody systems as trees of frames."""

from nh_control.multibody.bodies import Body
from nh_control.multibody.constraints import Coincident, Distance, PointOnPlane
from nh_control.multibody.elements import Damper, JointDamper, JointInput, JointSpring, Spring, Wrench
from nh_control.multibody.frames import WORLD, Frame, Limits, Mimic, fixed, floating, planar, prismatic, revolute, spherical
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.multibody.model import Multibody, Pose
from nh_control.multibody.urdf import UrdfError, load_urdf

__all__ = [
    "WORLD", "Body", "Coincident", "Damper", "Distance", "Frame", "JointDamper", "JointInput", "JointSpring", "Kinematics", "Limits", "Mimic", "Multibody", "Point",
    "PointOnPlane", "Pose", "Spring", "UrdfError", "Wrench", "fixed", "floating", "load_urdf", "planar", "prismatic", "revolute", "spherical",
]  # fmt: skip
