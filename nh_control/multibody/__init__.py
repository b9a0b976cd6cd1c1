"""Multibody systems as trees of frames.

A cart that a motor pushes, and a pendulum with a hook on it:

    crane = Multibody(
        "crane",
        frames=[
            prismatic("cart", axis="x"),
            revolute("pole", "cart", axis="y"),
            fixed("hook", "pole", position=(0, 0, -0.8)),
        ],
        bodies=[
            Body("cart", mass=2.0),
            Body("pole", mass=1.0, center=(0, 0, -0.4), inertia=(0.05, 0.05, 0.001)),
        ],
        elements=[JointDamper("pole", 0.01)],
        inputs=[JointInput("cart", limit=20.0)],
    )
    model = midpoint(crane.system, h=0.01)
    x = model.state(crane.configuration({"pole": 0.3}), crane.velocity())
    crane.point(model.configuration(model.step(x, [1.0])), "hook")

`midpoint` steps trees of all joints with gravity, springs and dampers on joints and between
points, inputs on joints and wrenches, prescribed coordinates, joints that follow others and
constraints, in time linear in the bodies, by one compiled kernel that reads the model as numbers:
nothing is generated, and A and B are exact. Constraints add a dense system of their multipliers,
springs and dampers between points one of their forces, followers one of the coordinates that they
share; A and B with wrenches or such dampers one of the coordinates that carry the bodies they act
on. Contracted second derivatives are evaluated by CasADi's virtual machine where the kernel ended:
nothing is compiled for them either. With parts of a user's own kind, or without a compiler, the
same step is generated from the Lagrangian; of systems with constraints, wrenches, or springs and
dampers between points those by parameters and h always are.

The same in maximal coordinates, every body free on a configuration space of its own, the joints
as constraints (a body there needs an inertia, too):

    free = maximal_coordinates(crane, {"cart": "SO3xR3", "pole": "SE3"})
    q, v = maximal_state(crane, crane.configuration(), crane.velocity(), free)
    rkmk = INTEGRATORS["rkmk4_projected"].make(free.system, h=0.01)
"""

from nh_control.multibody.bodies import Body
from nh_control.multibody.constraints import Coincident, Distance, PointOnPlane
from nh_control.multibody.elements import (
    Damper,
    JointDamper,
    JointInput,
    JointSpring,
    Spring,
    Wrench,
)
from nh_control.multibody.frames import (
    WORLD,
    Frame,
    Limits,
    Mimic,
    cylindrical,
    fixed,
    floating,
    planar,
    prismatic,
    revolute,
    spherical,
    universal,
)
from nh_control.multibody.joints import JointConstraint
from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.multibody.maximal import joint_reactions, maximal_coordinates, maximal_state
from nh_control.multibody.model import Multibody, Pose
from nh_control.multibody.urdf import UrdfError, load_urdf

__all__ = [
    "Body",
    "Coincident",
    "Damper",
    "Distance",
    "Frame",
    "JointConstraint",
    "JointDamper",
    "JointInput",
    "JointSpring",
    "Kinematics",
    "Limits",
    "Mimic",
    "Multibody",
    "Point",
    "PointOnPlane",
    "Pose",
    "Spring",
    "UrdfError",
    "WORLD",
    "Wrench",
    "cylindrical",
    "fixed",
    "floating",
    "joint_reactions",
    "load_urdf",
    "maximal_coordinates",
    "planar",
    "prismatic",
    "revolute",
    "spherical",
    "maximal_state",
    "universal",
]
