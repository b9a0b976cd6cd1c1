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

Each name is imported when it is first used, because many scenarios need only a few of them.
"""

from typing import TYPE_CHECKING

from nh_control import _homes_of, _on_demand

if TYPE_CHECKING:  # declares the names for editors, type checkers, and `_HOMES`
    from nh_control.multibody.bodies import Body as Body
    from nh_control.multibody.constraints import Coincident as Coincident
    from nh_control.multibody.constraints import Distance as Distance
    from nh_control.multibody.constraints import PointOnPlane as PointOnPlane
    from nh_control.multibody.elements import ConstantWrench as ConstantWrench
    from nh_control.multibody.elements import Damper as Damper
    from nh_control.multibody.elements import Element as Element
    from nh_control.multibody.elements import JointDamper as JointDamper
    from nh_control.multibody.elements import JointFriction as JointFriction
    from nh_control.multibody.elements import JointInput as JointInput
    from nh_control.multibody.elements import JointSpring as JointSpring
    from nh_control.multibody.elements import NonlinearJointSpring as NonlinearJointSpring
    from nh_control.multibody.elements import Spring as Spring
    from nh_control.multibody.elements import Wrench as Wrench
    from nh_control.multibody.frames import WORLD as WORLD
    from nh_control.multibody.frames import CoordinateLimits as CoordinateLimits
    from nh_control.multibody.frames import Frame as Frame
    from nh_control.multibody.frames import Mimic as Mimic
    from nh_control.multibody.frames import cylindrical as cylindrical
    from nh_control.multibody.frames import fixed as fixed
    from nh_control.multibody.frames import floating as floating
    from nh_control.multibody.frames import helical as helical
    from nh_control.multibody.frames import planar as planar
    from nh_control.multibody.frames import prismatic as prismatic
    from nh_control.multibody.frames import revolute as revolute
    from nh_control.multibody.frames import spherical as spherical
    from nh_control.multibody.frames import universal as universal
    from nh_control.multibody.joints import JointConstraint as JointConstraint
    from nh_control.multibody.kinematics import Kinematics as Kinematics
    from nh_control.multibody.kinematics import Point as Point
    from nh_control.multibody.maximal import joint_reactions as joint_reactions
    from nh_control.multibody.maximal import maximal_coordinates as maximal_coordinates
    from nh_control.multibody.maximal import maximal_state as maximal_state
    from nh_control.multibody.model import Multibody as Multibody
    from nh_control.multibody.model import Pose as Pose
    from nh_control.multibody.robot import NoSolution as NoSolution
    from nh_control.multibody.robot import Robot as Robot
    from nh_control.multibody.tape_measure import TapeMeasure as TapeMeasure
    from nh_control.multibody.urdf import UrdfError as UrdfError
    from nh_control.multibody.urdf import load_urdf as load_urdf

_HOMES = _homes_of(__file__)
"""Public names and the modules that define them."""

__all__ = [*_HOMES]

__getattr__, __dir__ = _on_demand(__name__, _HOMES)
