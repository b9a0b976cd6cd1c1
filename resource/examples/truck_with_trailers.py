"""A truck with two trailers that is parked in reverse, where trailers jackknife without feedback.

python truck_with_trailers.py                       tracked and free, with numbers
nh_control simulate truck_with_trailers.py          the maneuver under LQR, with figures
nh_control run truck_with_trailers.py --perturb-displacement 0.05
nh_control simulate truck_with_trailers.py --reference least_effort --perturb-displacement 0 \
    --controller mpc                                around obstacles that the reference leads into
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.control.collocation import resample
from nh_control.control.costs import Cost
from nh_control.scenarios import Joint, PlanarBody, Scenario, ScenarioConstraint
from nh_control.scenarios.constraints import OBSTACLES as FRAME
from nh_control.scenarios.declared_frames import FrameTree, fixed, planar, revolute
from nh_control.scenarios.obstacles import RED, clear_of
from nh_control.scenarios.perturbation import Displacement
from nh_control.scenarios.visual_model import (
    BLUE,
    RUBBER,
    STEEL,
    WOOD,
    Shape,
    VisualModel,
)

OUT_S, DRIVE, STEERED = 30.0, 1500.0, 0.25
"""Duration of the way out in s, largest force in N, largest steering angle in rad."""
PARK_S, AHEAD, ASIDE = 25.0, 20.0, 4.0
"""Duration of the way between obstacles in s, where it begins before and beside the bay in m."""
OBSTACLES = (
    *(((x, y), 1.15) for x in (-2.5, -5.5) for y in (2.3, -2.3)),
    *(((9.0, 6.2), 1.65), ((6.0, 0.4), 1.35)),
)
"""Circles in m that the middles of the axles stay out of: beside the bay, and to both sides of
the way there.
"""
HALF_WIDTH = 0.75
"""Of truck and trailers in m: obstacles are drawn smaller by that."""
MARGIN = 0.15
"""How far in m the reference stays away from them."""
ANGLES = np.array([0.6, 1.0, 1.0])
"""Largest angles in rad of the steering and of the trailers."""


@dataclass(frozen=True)
class TruckParameters(nh.Parameters):
    """Lengths and masses of truck and trailers; centers of mass are on the rear axles."""

    wheelbase: float = nh.parameter(2.0, "m", "of the truck")
    drawbar: float = nh.parameter(3.0, "m", "from a trailer's hitch to its axle")
    truck_mass: float = nh.parameter(2000.0, "kg", "of the truck")
    trailer_mass: float = nh.parameter(800.0, "kg", "of each trailer")
    turn: float = nh.parameter(1500.0, "kg m^2", "inertia of each of them about the vertical")
    steering: float = nh.parameter(5.0, "kg m^2", "inertia of the steering")


def truck_with_trailers(parameters: TruckParameters) -> nh.System:
    """Pose of the truck's rear axle on SE(2), steering angle, angles of the trailers against what
    pulls them; hitches are above the axles.
    """

    def twists(q, v, p):
        """Yaw rate, forward and side velocity of the axles of the truck and both trailers."""
        found = [(v[0], v[1], v[2])]
        for angle, rate in ((q[4], v[4]), (q[5], v[5])):
            omega, forward, side = found[-1]
            omega, cos, sin = omega + rate, ca.cos(angle), ca.sin(angle)
            along, across = cos * forward + sin * side, cos * side - sin * forward
            found.append((omega, along, across - p.drawbar * omega))
        return found

    def lagrangian(q, v, p):
        masses = p.truck_mass, p.trailer_mass, p.trailer_mass
        moving = sum(
            m * (forward**2 + side**2) + p.turn * omega**2
            for m, (omega, forward, side) in zip(masses, twists(q, v, p))
        )
        return (moving + p.steering * v[3] ** 2) / 2

    def rolling(q, p):
        """No axle slips sideways, the front axle neither."""
        v = ca.SX.sym("v", 6)
        front = p.wheelbase * ca.cos(q[3]) * v[0] - ca.sin(q[3]) * v[1] + ca.cos(q[3]) * v[2]
        sides = [side for _, _, side in twists(q, v, p)]
        return ca.jacobian(ca.vertcat(front, *sides), v)

    return nh.System(
        name="truck_with_trailers",
        space=nh.Product(nh.SE2(), nh.Rn("steer", "first", "second")),
        lagrangian=lagrangian,
        velocity_constraint=rolling,
        inputs=("drive", "steering"),
        input_units=("N", "N m"),
        input_limits=np.array([[-4e3, 4e3], [-200.0, 200.0]]),
        force=lambda q, v, u, p: ca.vertcat(0, u[0], 0, u[1], 0, 0),
        parameters=parameters,
    )


def parking(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Out of the bay and back: the way out, in which trailers follow, is simulated, and taken in
    reverse. The midpoint rule is symmetric, so a motion backwards in time is a motion.
    """
    steps = round(OUT_S / model.h)
    phase = 2 * np.pi * (np.arange(steps) + 0.5) / steps
    sin, cos = np.sin(phase), np.cos(phase)
    # the torque that steers by STEERED sin(phase)^3
    bend = 3 * STEERED * (2 * np.pi / OUT_S) ** 2 * sin * (2 * cos**2 - sin**2)
    inputs = np.column_stack([DRIVE * sin, model.system.parameters.steering * bend])
    out = model.simulate(model.state(np.zeros(6), np.zeros(6)), inputs)
    q, v = model.configuration(out.states[::-1]), -out.velocities[::-1]
    states = np.array([model.state(*one) for one in zip(q, v)])
    return nh.Trajectory(
        model.h, states, out.inputs[::-1], model.state_names, model.inputs, dsys=model
    )


def axles(p: TruckParameters) -> list:
    """Middles of the front axle, the rear axle and the trailers' axles, of the configuration."""

    def behind(trailers, q):
        heading, place = q[0], q[1:3]
        for i in range(trailers):
            heading = heading + q[4 + i]
            place = place - p.drawbar * ca.vertcat(ca.cos(heading), ca.sin(heading))
        return place

    front = lambda q: q[1:3] + p.wheelbase * ca.vertcat(ca.cos(q[0]), ca.sin(q[0]))  # noqa: E731
    return [front, *(partial(behind, trailers) for trailers in range(3))]


def frames(parameters: TruckParameters) -> FrameTree:
    """On the ground: the truck below its rear axle, its front axle, hitches, which turn with the
    trailers behind them, and the trailers below their axles.
    """
    p, behind = parameters, (-parameters.drawbar, 0.0, 0.0)
    return FrameTree(
        ("theta", "x", "y", "steer", "first", "second"),
        (
            planar("truck", "odom"),
            revolute("front_axle", "truck", "steer", position=(p.wheelbase, 0.0, 0.0)),
            revolute("hitch1", "truck", "first"),
            fixed("trailer1", "hitch1", behind),
            revolute("hitch2", "trailer1", "second"),
            fixed("trailer2", "hitch2", behind),
        ),
        no_bodies="the front axle's energy is that of its steering rate alone",
    )


def pillar(center: tuple[float, float], radius: float) -> Shape:
    """An obstacle as it stands there."""
    width = 2 * (radius - HALF_WIDTH)
    return Shape("cylinder", (width, width, 1.0), RED, FRAME, (*center, 0.5))


def visual(parameters: TruckParameters) -> VisualModel:
    """A cabin on its chassis, and loads on the trailers with their drawbars."""
    l, d = parameters.wheelbase, parameters.drawbar
    shapes = [
        Shape("box", (1.5 * l, 0.9, 0.3), STEEL, "truck", (0.45 * l, 0.0, 0.5)),
        Shape("box", (0.6 * l, 1.4, 1.3), BLUE, "truck", (0.9 * l, 0.0, 1.3)),
    ]
    for trailer in ("trailer1", "trailer2"):
        shapes.append(Shape("box", (0.75 * d, 1.4, 1.0), WOOD, trailer, (0.2, 0.0, 1.2)))
        shapes.append(Shape("box", (d, 0.12, 0.12), STEEL, trailer, (d / 2, 0.0, 0.5)))
    for axle in ("truck", "front_axle", "trailer1", "trailer2"):
        for side in (0.6, -0.6):
            shapes.append(
                Shape("cylinder", (0.8, 0.8, 0.25), RUBBER, axle, (0.0, side, 0.4), np.pi / 2)
            )
    return VisualModel("odom", frames(parameters), tuple(shapes), trail="truck")


def least_effort(model: nh.DiscreteSystem) -> nh.Trajectory:
    """In reverse from the road beside the bay, with the least effort, through two obstacles."""
    return _along(model, _parked(model, []))


def between_obstacles(model: nh.DiscreteSystem) -> nh.Trajectory:
    """In reverse from the road beside the bay, with the least effort between the obstacles, within
    limits of forces and angles.
    """
    wide = [(center, radius + MARGIN) for center, radius in OBSTACLES]
    return _along(model, _parked(model, wide))


def _parked(model: nh.DiscreteSystem, obstacles: list) -> nh.Trajectory:
    """The way with the least effort in steps of 0.1 s, first without obstacles; they take the
    first search, which starts from a way straight back, to the wrong side.
    """
    d = nh.nonholonomic_midpoint(model.system, 0.1)
    p, steps = model.system.parameters, round(PARK_S / d.h)
    start, bay = (
        d.state([0, AHEAD, ASIDE, 0, 0, 0], np.zeros(6)),
        d.state(np.zeros(6), np.zeros(6)),
    )
    phase = 2 * np.pi * (np.arange(steps) + 0.5) / steps
    mass = p.truck_mass + 2 * p.trailer_mass
    force = -mass * AHEAD * 2 * np.pi / PARK_S**2 * np.sin(phase)
    way = d.simulate(start, np.column_stack([force, np.zeros(steps)]))
    # in kN, daN m and rad; a cost far from 1 takes many iterations
    effort = Cost(
        lambda x, u, w: 5000 * d.h * ((u[0] / 1e3) ** 2 + (u[1] / 10) ** 2 + 10 * x[3] ** 2)
    )
    limits = {"drive": (-2e3, 2e3), "steering": (-100.0, 100.0)}
    limits |= {n: (-m, m) for n, m in zip(("steer", "first", "second"), ANGLES)}
    for balls in [[], obstacles] if obstacles else [[]]:
        hard = [clear_of(axles(p), balls, np.inf).make(d)] if balls else []
        options = {"limits": limits, "constraints": hard, "end": bay, "barrier_start": 10.0}
        found = nh.optimize(d, effort, way, tolerance=1e-4, **options)
        if not found.converged:
            raise ValueError(f"no way into the bay: {found.reason}")
        way = found.trajectory
    return way


def _along(model: nh.DiscreteSystem, way: nh.Trajectory) -> nh.Trajectory:
    """The model's own motion along a way in other steps, tracked by LQR."""
    fine = resample(way, model.h)
    return nh.project_trajectory(model, fine, *TRUCK_WITH_TRAILERS.weights)


def angles(model: nh.DiscreteSystem) -> nh.Constraint:
    """Steering and trailers keep away from where a truck jackknifes."""
    names = ["steering", "first trailer", "second trailer"]
    return nh.Constraint("angles", lambda x, u, w: x[3:6], -ANGLES, ANGLES, weight=1e3, rows=names)


WEIGHTS = {"theta": 10.0, "forward": 1.0, "side": 10.0, "steer": 1.0, "first": 20.0}
WEIGHTS |= {"second": 20.0, "v_forward": 1.3, "steer_dot": 0.25}
TRUCK_WITH_TRAILERS = Scenario(
    name="truck_with_trailers",
    title="A truck with two trailers, parked in reverse",
    parameters=TruckParameters(),
    make_system=truck_with_trailers,
    integrators={"nonholonomic_midpoint": nh.nonholonomic_midpoint},
    references={
        "parking": parking,
        "between_obstacles": between_obstacles,
        "least_effort": least_effort,
    },
    # costs of errors of pose, angles and velocities, and of the inputs (N, N m)
    weights=(
        WEIGHTS,
        np.diag([1e-6, 1e-3]),
        dict.fromkeys(("theta", "forward", "side", "first", "second", "v_forward"), 1e4)
        | {"steer": 1e3, "steer_dot": 25.0},
    ),
    perturbation=Displacement(displacement=0.05),
    joints=(Joint("steer_joint", "steer"), Joint("hitch1", "first"), Joint("hitch2", "second")),
    body=PlanarBody("base_link", "odom"),
    visual=visual,
    step_s=0.02,
    constraints={
        "angles": ScenarioConstraint(angles, "rad"),
        "obstacles": clear_of(
            axles(TruckParameters()),
            OBSTACLES,
            weight=1e3,
            references=("between_obstacles", "least_effort"),
            shapes=[pillar(*one) for one in OBSTACLES],
        ),
    },
    horizon_s=4.0,
)


def main() -> None:
    """The maneuver from a start with bent trailers beside the path, with and without feedback."""
    model = TRUCK_WITH_TRAILERS.model()
    reference = TRUCK_WITH_TRAILERS.reference(model)
    defects = [
        np.abs(model.local(b, model.step(a, u))).max()
        for a, b, u in zip(reference.states, reference.states[1:], reference.inputs)
    ]
    begin = model.configuration(reference.states[0])
    print(f"from {np.round(begin, 2).tolist()} to the bay, every step to {max(defects):.0e}")
    tracker = TRUCK_WITH_TRAILERS.tracker(model, reference)
    start = model.retract(reference.states[0], [0.02, 0.1, 0.1, 0, 0.05, -0.05, 0, 0])
    tracked, free = (nh.rollout(model, [start], by) for by in (tracker, reference.inputs))
    for label, run in (("tracked", tracked), ("free", free)):
        error = np.abs(model.local(reference.states[-1], run.states[0, -1])[:6])
        place, angles = error[1:3].max(), error[[0, 4, 5]].max()
        print(f"{label}: {place:.3f} m and {angles:.3f} rad off at the end")


if __name__ == "__main__":
    main()
