"""Multibody systems as trees of frames.

The following example has a cart that is pushed by a motor, and a pendulum that carries a hook:

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

`midpoint` computes a step of a tree in time linear in the number of bodies. A single C kernel
reads the model as data, so no code is generated for the model, and A and B are exact
(`doc/tree_kernel.md` explains the theory). The kernel supports all joints, elements, inputs and
constraints in this package, prescribed coordinates, and joints that follow others. Some of them
add a small dense system to every step. Its unknowns are constraint multipliers, the forces of
springs and dampers between points, or the coordinates that several joints share. The rows for
wheels (`Multibody(wheels=[RollingWheel(...)])`) and contacts are generated functions of the
kinematics alone. CasADi's virtual machine evaluates the contracted second derivatives at the
kernel's solution.

For models with user-defined joint or element classes, with spatial wrenches, or with two
`NonlinearJointSpring` elements on one joint, code for the same step is generated from the
Lagrangian. Code for derivatives with respect to parameters and h is also generated for systems
with constraints, wrenches, or springs and dampers between points.

In maximal coordinates, each body of the same model has its own configuration space, and the joints
become constraints. Every body then needs an inertia:

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
    CoordinateLimits,
    Frame,
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
    "CoordinateLimits",
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
