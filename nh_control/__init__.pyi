"""The public names of nh_control by theme, for `__init__.py`, editors and type checkers."""

# ruff: isort: skip_file
from collections.abc import Callable, Mapping
from typing import Any

# a system
from nh_control.mechanics.system import System as System
from nh_control.mechanics.symmetry import Symmetry as Symmetry
from nh_control.mechanics.parameters import Parameters as Parameters
from nh_control.mechanics.parameters import parameter as parameter

# configuration spaces
from nh_control.geometry.spaces import Rn as Rn
from nh_control.geometry.rotations import S2 as S2
from nh_control.geometry.rotations import SO3 as SO3
from nh_control.geometry.spaces import SE2 as SE2
from nh_control.geometry.rotations import SE3 as SE3
from nh_control.geometry.spaces import Product as Product

# functions in a system
from nh_control.numerics.spline import Spline as Spline
from nh_control.mechanics.kinematics import velocity as velocity
from nh_control.mechanics.kinematics import kinetic_energy as kinetic_energy

# mechanisms of rigid bodies
from nh_control.multibody.model import Multibody as Multibody
from nh_control.multibody.urdf import load_urdf as load_urdf
from nh_control.multibody.robot import Robot as Robot

# wheels of a mechanism
from nh_control.multibody.wheels import RollingWheel as RollingWheel
from nh_control.multibody.wheels import Skate as Skate

# contacts of a mechanism, their shapes and grounds
from nh_control.multibody.contacts import Contact as Contact
from nh_control.multibody.contact_shapes import Corner as Corner
from nh_control.multibody.contact_shapes import Sphere as Sphere
from nh_control.multibody.contact_shapes import Ellipsoid as Ellipsoid
from nh_control.multibody.contact_shapes import Disc as Disc
from nh_control.multibody.contact_shapes import Cylinder as Cylinder
from nh_control.multibody.contact_shapes import Capsule as Capsule
from nh_control.multibody.contact_shapes import BoxCorners as BoxCorners
from nh_control.multibody.contact_grounds import Plane as Plane
from nh_control.multibody.contact_grounds import HeightField as HeightField
from nh_control.multibody.contact_pairs import BodySurface as BodySurface

# contacts of any system
from nh_control.mechanics.contacts import UnilateralConstraint as UnilateralConstraint
from nh_control.mechanics.contacts import Grip as Grip
from nh_control.discrete.contact_forces import contact_forces as contact_forces
from nh_control.discrete.contact_forces import ContactReadout as ContactReadout

# integrators
from nh_control.integrators import midpoint as midpoint
from nh_control.integrators import nonholonomic_midpoint as nonholonomic_midpoint
from nh_control.integrators import rdp as rdp
from nh_control.integrators.adaptive import solve_ivp as solve_ivp
from nh_control.studies.convergence import convergence as convergence

# a discrete system and its results
from nh_control.discrete.system import DiscreteSystem as DiscreteSystem
from nh_control.discrete.trajectory import Trajectory as Trajectory
from nh_control.discrete.results import StepFailed as StepFailed
from nh_control.control.rollout import rollout as rollout

# control
from nh_control.control import lqr as lqr
from nh_control.control.tracking import LqrTracker as LqrTracker
from nh_control.control.equilibrium import equilibrium as equilibrium
from nh_control.control.projection import project_trajectory as project_trajectory

# your own controllers
from nh_control.control.controller import Controller as Controller
from nh_control.runs.simulation import closed_loop as closed_loop
from nh_control.runs.simulation import ClosedLoop as ClosedLoop
from nh_control.studies.in_process import study as study

# motions of joints
from nh_control.control.joint_trajectory import JointTrajectory as JointTrajectory
from nh_control.control.joint_reference import joint_reference as joint_reference

# optimal control
from nh_control.control.optimize import optimize as optimize
from nh_control.control.optimal.optimal_control import OptimalControl as OptimalControl
from nh_control.control.collocation import collocate as collocate
from nh_control.control.costs import quadratic_cost as quadratic_cost
from nh_control.control.optimal.sensitivity import differentiate_optimum as differentiate_optimum
from nh_control.control.optimal.mpc import MpcTracker as MpcTracker

# limits and constraints
from nh_control.control.costs import Limits as Limits
from nh_control.control.constraints import Constraint as Constraint
from nh_control.control.path_constraints import keep_out as keep_out
from nh_control.control.path_constraints import tilt_limit as tilt_limit
from nh_control.control.path_constraints import tension_limit as tension_limit

# estimation
from nh_control.control.estimation import KalmanFilter as KalmanFilter
from nh_control.control.smoothing import smooth as smooth

# parameters from measured motions
from nh_control.runs.identification import identify as identify

# pictures
from nh_control.figures import plot as plot

# other programs
from nh_control.control.python_control import to_control as to_control
from nh_control.control.python_control import to_iosys as to_iosys
from nh_control.interop.c_code import export_c as export_c
from nh_control.interop.autodiff import to_torch as to_torch
from nh_control.interop.autodiff import to_jax as to_jax
from nh_control.interop.latex_equations import latex as latex

# subpackages
from nh_control import geometry as geometry
from nh_control import mechanics as mechanics
from nh_control import multibody as multibody
from nh_control import discrete as discrete
from nh_control import integrators as integrators
from nh_control import systems as systems
from nh_control import control as control
from nh_control import scenarios as scenarios
from nh_control import figures as figures
from nh_control import view as view
from nh_control import gym as gym

__version__: str
__all__: list[str]

def _homes_of(file: str) -> dict[str, str]: ...
def _on_demand(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]: ...
