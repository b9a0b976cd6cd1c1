"""Structure-preserving simulation and control of mechanical systems: integrators, exact
linearizations, LQR, ROS 2 nodes.

`import nh_control as nh` gives the everyday names by theme:

- a system: System, Symmetry, Parameters, parameter; its configuration space: Rn, S2, SO3, SE2,
  SE3, Product; functions through points: Spline
- a mechanism of rigid bodies: Multibody, load_urdf, Robot
- wheels of a mechanism: RollingWheel, Skate
- contacts: of a mechanism Contact, its shape Corner, Sphere, Ellipsoid, Disc, Cylinder, Capsule or
  BoxCorners and its ground Plane or HeightField, or the BodySurface of another body; of any system
  UnilateralConstraint, Grip; contact_forces, ContactReadout
- integrators: midpoint, nonholonomic_midpoint, rdp, solve_ivp, convergence
- a discrete system and its results: DiscreteSystem, Trajectory, StepFailed, rollout
- control: lqr, LqrTracker, equilibrium, project_trajectory
- motions of joints: JointTrajectory, joint_reference
- optimal control: optimize, collocate, quadratic_cost, differentiate_optimum, MpcTracker
- limits and constraints: Limits, Constraint, keep_out, tilt_limit, tension_limit
- estimation: KalmanFilter, smooth
- pictures: plot (compare, convergence, phase, trajectory)
- other programs: to_control, to_iosys (python-control), export_c (C code),
  to_torch, to_jax; equations for papers: latex

and the subpackages with everything else: nh.geometry, nh.mechanics, nh.multibody, nh.discrete,
nh.integrators, nh.systems, nh.control, nh.scenarios, nh.figures, nh.view, nh.gym. A name and a
subpackage are imported when they are first used: the import of nh_control alone takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for editors and type checkers
    from nh_control import control as control
    from nh_control import discrete as discrete
    from nh_control import figures as figures
    from nh_control import geometry as geometry
    from nh_control import gym as gym
    from nh_control import integrators as integrators
    from nh_control import mechanics as mechanics
    from nh_control import multibody as multibody
    from nh_control import scenarios as scenarios
    from nh_control import systems as systems
    from nh_control import view as view
    from nh_control.control import lqr as lqr
    from nh_control.control.collocation import collocate as collocate
    from nh_control.control.constraints import Constraint as Constraint
    from nh_control.control.costs import Limits as Limits
    from nh_control.control.costs import quadratic_cost as quadratic_cost
    from nh_control.control.equilibrium import equilibrium as equilibrium
    from nh_control.control.estimation import KalmanFilter as KalmanFilter
    from nh_control.control.joint_reference import joint_reference as joint_reference
    from nh_control.control.joint_trajectory import JointTrajectory as JointTrajectory
    from nh_control.control.optimal.mpc import MpcTracker as MpcTracker
    from nh_control.control.optimal.sensitivity import (
        differentiate_optimum as differentiate_optimum,
    )
    from nh_control.control.optimize import optimize as optimize
    from nh_control.control.path_constraints import keep_out as keep_out
    from nh_control.control.path_constraints import tension_limit as tension_limit
    from nh_control.control.path_constraints import tilt_limit as tilt_limit
    from nh_control.control.projection import project_trajectory as project_trajectory
    from nh_control.control.python_control import to_control as to_control
    from nh_control.control.python_control import to_iosys as to_iosys
    from nh_control.control.rollout import rollout as rollout
    from nh_control.control.smoothing import smooth as smooth
    from nh_control.control.tracking import LqrTracker as LqrTracker
    from nh_control.discrete.contact_forces import ContactReadout as ContactReadout
    from nh_control.discrete.contact_forces import contact_forces as contact_forces
    from nh_control.discrete.results import StepFailed as StepFailed
    from nh_control.discrete.system import DiscreteSystem as DiscreteSystem
    from nh_control.discrete.trajectory import Trajectory as Trajectory
    from nh_control.figures import plot as plot
    from nh_control.geometry.rotations import S2 as S2
    from nh_control.geometry.rotations import SE3 as SE3
    from nh_control.geometry.rotations import SO3 as SO3
    from nh_control.geometry.spaces import SE2 as SE2
    from nh_control.geometry.spaces import Product as Product
    from nh_control.geometry.spaces import Rn as Rn
    from nh_control.integrators import midpoint as midpoint
    from nh_control.integrators import nonholonomic_midpoint as nonholonomic_midpoint
    from nh_control.integrators import rdp as rdp
    from nh_control.integrators.adaptive import solve_ivp as solve_ivp
    from nh_control.interop.autodiff import to_jax as to_jax
    from nh_control.interop.autodiff import to_torch as to_torch
    from nh_control.interop.c_code import export_c as export_c
    from nh_control.interop.latex_equations import latex as latex
    from nh_control.mechanics.contacts import Grip as Grip
    from nh_control.mechanics.contacts import UnilateralConstraint as UnilateralConstraint
    from nh_control.mechanics.parameters import Parameters as Parameters
    from nh_control.mechanics.parameters import parameter as parameter
    from nh_control.mechanics.symmetry import Symmetry as Symmetry
    from nh_control.mechanics.system import System as System
    from nh_control.multibody.contact_grounds import HeightField as HeightField
    from nh_control.multibody.contact_grounds import Plane as Plane
    from nh_control.multibody.contact_pairs import BodySurface as BodySurface
    from nh_control.multibody.contact_shapes import BoxCorners as BoxCorners
    from nh_control.multibody.contact_shapes import Capsule as Capsule
    from nh_control.multibody.contact_shapes import Corner as Corner
    from nh_control.multibody.contact_shapes import Cylinder as Cylinder
    from nh_control.multibody.contact_shapes import Disc as Disc
    from nh_control.multibody.contact_shapes import Ellipsoid as Ellipsoid
    from nh_control.multibody.contact_shapes import Sphere as Sphere
    from nh_control.multibody.contacts import Contact as Contact
    from nh_control.multibody.model import Multibody as Multibody
    from nh_control.multibody.robot import Robot as Robot
    from nh_control.multibody.urdf import load_urdf as load_urdf
    from nh_control.multibody.wheels import RollingWheel as RollingWheel
    from nh_control.multibody.wheels import Skate as Skate
    from nh_control.numerics.spline import Spline as Spline
    from nh_control.studies.convergence import convergence as convergence

    __version__: str

_HOMES = {
    "System": "mechanics.system",
    "Symmetry": "mechanics.symmetry",
    "Parameters": "mechanics.parameters",
    "parameter": "mechanics.parameters",
    "Spline": "numerics.spline",
    "Rn": "geometry.spaces",
    "SE2": "geometry.spaces",
    "Product": "geometry.spaces",
    "SO3": "geometry.rotations",
    "S2": "geometry.rotations",
    "SE3": "geometry.rotations",
    "Contact": "multibody.contacts",
    "Ellipsoid": "multibody.contact_shapes",
    "BodySurface": "multibody.contact_pairs",
    "Corner": "multibody.contact_shapes",
    "Sphere": "multibody.contact_shapes",
    "Cylinder": "multibody.contact_shapes",
    "Disc": "multibody.contact_shapes",
    "Capsule": "multibody.contact_shapes",
    "BoxCorners": "multibody.contact_shapes",
    "Plane": "multibody.contact_grounds",
    "HeightField": "multibody.contact_grounds",
    "RollingWheel": "multibody.wheels",
    "Skate": "multibody.wheels",
    "UnilateralConstraint": "mechanics.contacts",
    "Grip": "mechanics.contacts",
    "ContactReadout": "discrete.contact_forces",
    "contact_forces": "discrete.contact_forces",
    "Multibody": "multibody.model",
    "load_urdf": "multibody.urdf",
    "Robot": "multibody.robot",
    "midpoint": "integrators",
    "nonholonomic_midpoint": "integrators",
    "rdp": "integrators",
    "solve_ivp": "integrators.adaptive",
    "convergence": "studies.convergence",
    "DiscreteSystem": "discrete.system",
    "StepFailed": "discrete.results",
    "Trajectory": "discrete.trajectory",
    "lqr": "control",
    "LqrTracker": "control.tracking",
    "rollout": "control.rollout",
    "equilibrium": "control.equilibrium",
    "JointTrajectory": "control.joint_trajectory",
    "joint_reference": "control.joint_reference",
    "project_trajectory": "control.projection",
    "quadratic_cost": "control.costs",
    "Limits": "control.costs",
    "Constraint": "control.constraints",
    "keep_out": "control.path_constraints",
    "tilt_limit": "control.path_constraints",
    "tension_limit": "control.path_constraints",
    "MpcTracker": "control.optimal.mpc",
    "optimize": "control.optimize",
    "collocate": "control.collocation",
    "differentiate_optimum": "control.optimal.sensitivity",
    "KalmanFilter": "control.estimation",
    "smooth": "control.smoothing",
    "to_control": "control.python_control",
    "to_iosys": "control.python_control",
    "plot": "figures",
    "export_c": "interop.c_code",
    "latex": "interop.latex_equations",
    "to_torch": "interop.autodiff",
    "to_jax": "interop.autodiff",
}
"""Everyday names and the modules that they come from."""

_SUBPACKAGES = (
    "geometry",
    "mechanics",
    "multibody",
    "discrete",
    "integrators",
    "systems",
    "control",
    "scenarios",
    "figures",
    "view",
    "gym",
)

__all__ = [*_HOMES, *_SUBPACKAGES, "__version__"]


def __getattr__(name: str) -> Any:
    value: Any
    if name == "__version__":
        from importlib import metadata

        value = metadata.version(__name__)
    elif name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _SUBPACKAGES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
