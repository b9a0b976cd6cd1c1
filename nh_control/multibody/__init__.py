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

`midpoint` steps a tree in time linear in its bodies, by one kernel in C that reads the model as
data: no code is generated for a model, and A and B are exact (`doc/tree_kernel.md` has the
theory). The kernel knows all joints, elements, inputs and constraints of this package, prescribed
coordinates and joints that follow others. Some of them add a small dense system to every step:
constraints one of their multipliers, springs and dampers between points one of their forces,
joints that follow others one of the shared coordinates. The rows of wheels
(`Multibody(wheels=[RollingWheel(...)])`) and of contacts are generated functions of the kinematics
alone. CasADi's virtual machine evaluates the
contracted second derivatives at the kernel's solution.

The same step is generated from the Lagrangian for models with joints or elements of a user's own
class, with spatial wrenches, or with two `NonlinearJointSpring`s of one joint. Derivatives by
parameters and h are generated, too, for systems with constraints, wrenches, or springs and dampers
between points.

The same model in maximal coordinates: every body has a configuration space of its own, and the
joints are constraints. There every body needs an inertia:

    free = maximal_coordinates(crane, {"cart": "SO3xR3", "pole": "SE3"})
    q, v = maximal_state(crane, crane.configuration(), crane.velocity(), free)
    rkmk = INTEGRATORS["rkmk4_projected"].make(free.system, h=0.01)
"""

from nh_control.multibody.bodies import Body
from nh_control.multibody.constraints import Coincident, Distance, PointOnPlane
from nh_control.multibody.elements import (
    ConstantWrench,
    Damper,
    Element,
    JointDamper,
    JointFriction,
    JointInput,
    JointSpring,
    NonlinearJointSpring,
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
    helical,
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
from nh_control.multibody.robot import NoSolution, Robot
from nh_control.multibody.tape_measure import TapeMeasure
from nh_control.multibody.urdf import UrdfError, load_urdf

__all__ = [
    "Body",
    "Coincident",
    "ConstantWrench",
    "Damper",
    "Distance",
    "Element",
    "Frame",
    "JointConstraint",
    "JointDamper",
    "JointFriction",
    "JointInput",
    "JointSpring",
    "Kinematics",
    "Limits",
    "Mimic",
    "Multibody",
    "NoSolution",
    "NonlinearJointSpring",
    "Point",
    "PointOnPlane",
    "Pose",
    "Robot",
    "Spring",
    "TapeMeasure",
    "UrdfError",
    "WORLD",
    "Wrench",
    "cylindrical",
    "fixed",
    "floating",
    "helical",
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
