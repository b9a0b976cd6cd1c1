"""What a scenario declares, and the validated construction of its model, plant, reference and
tracker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.control import LqrTracker
from nh_control.control.guidance import Guidance
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.mechanics.system import System
from nh_control.scenarios.visual_model import Pose, VisualModel, balls


class UnknownName(ValueError):
    """A name that is not declared; the message lists the valid ones."""

    def __init__(self, what: str, name: str, valid: Iterable[str]):
        super().__init__(f"unknown {what} {name!r}, choose one of: {', '.join(valid)}")


@dataclass(frozen=True)
class Joint:
    """A one-dof joint as ROS shows it: `name`, the `coordinate` it follows, the sign it follows it
    with, and its `unit`, m for one that slides.
    """

    name: str
    coordinate: str
    sign: float = 1.0
    unit: str = "rad"


@dataclass(frozen=True)
class Body:
    """A planar body as ROS shows it: `frame` in `parent`, with the names of its SE(2) coordinates
    (theta, x, y).
    """

    frame: str
    parent: str
    coordinates: tuple[str, str, str] = ("theta", "x", "y")


@dataclass(frozen=True)
class BodyState:
    """A body in space as ROS shows it: `frame` in `parent`, `position` (3) in m and
    `linear_velocity` (3) in m/s in the parent's axes, unit `quaternion_wxyz` (4),
    `angular_velocity_body` (3) in rad/s in the body's axes."""

    frame: str
    parent: str
    position: np.ndarray
    quaternion_wxyz: np.ndarray
    linear_velocity: np.ndarray
    angular_velocity_body: np.ndarray


@dataclass(frozen=True)
class MonitoredOutput:
    """What else is worth watching, one value for each of `names`: `values(parameters, q, v, u)` in
    `unit`; one at or below `minimum` is `warning`.
    """

    title: str
    names: tuple[str, ...]
    unit: str
    values: Callable[[object, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    minimum: float
    warning: str


@dataclass(frozen=True)
class Perturbation:
    """Initial error: `position` (m), `heading` (rad), `momentum` (fraction of every momentum), and
    of links and quadrotors `swing` and `tilt` (rad).

    With seed < 0 the body is moved to its left, turned left and sped up; otherwise the directions
    and the signs are drawn from the seed.
    """

    position: float = 0.0
    heading: float = 0.0
    momentum: float = 0.0
    seed: int = -1
    swing: float = 0.0
    tilt: float = 0.0

    def __post_init__(self):
        for f in fields(self):
            if not np.isfinite(getattr(self, f.name)):
                raise ValueError(
                    f"Perturbation.{f.name} must be finite, got {getattr(self, f.name)}"
                )

    def drawn(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Horizontal direction (2) of the position's error and n signs: left and positive, or
        drawn from the seed.
        """
        if self.seed < 0:
            return np.array([0.0, 1.0]), np.ones(n)
        draw = np.random.default_rng(self.seed)
        angle = draw.uniform(0, 2 * np.pi)
        return np.array([np.cos(angle), np.sin(angle)]), draw.choice([-1.0, 1.0], n)

    def refuse_swing_and_tilt(self, name: str) -> None:
        """Raise ValueError for an error that only quadrotors with a payload can have."""
        if self.swing or self.tilt:
            raise ValueError(
                f"{name}: swing and tilt are for quadrotors with a payload, leave swing and tilt "
                f"at 0 and use position, heading and momentum"
            )


@dataclass(frozen=True)
class Gust:
    """A constant external `force` (3), in N and the parent frame, on the first body of a windy
    plant, from `start_s` on for `duration_s`, 0 for ever after.
    """

    force: tuple[float, float, float]
    start_s: float = 0.0
    duration_s: float = 0.0

    def __post_init__(self):
        values = (*self.force, self.start_s, self.duration_s)
        if (
            len(values) != 5
            or not np.isfinite(values).all()
            or min(self.start_s, self.duration_s) < 0
        ):
            raise ValueError(
                f"Gust: expected three finite forces and times >= 0, got force {self.force}, "
                f"start {self.start_s} s, duration {self.duration_s} s"
            )

    def disturbance(
        self, model: DiscreteSystem, plant: DiscreteSystem
    ) -> Callable[[int], np.ndarray]:
        """The windy plant's inputs (plant.nu - model.nu) beyond the model's, at every step of the
        model.
        """
        calm = np.zeros(plant.nu - model.nu)
        windy = np.concatenate([self.force, calm[3:]])
        first = round(self.start_s / model.h)
        end = first + round(self.duration_s / model.h) if self.duration_s else np.inf
        return lambda k: windy if first <= k < end else calm


@dataclass(frozen=True)
class PlantOptions:
    """How the plant differs from the tracker's model: another `integrator`, `substeps` of h /
    substeps, other physical `parameters`, and, with `wind`, external forces as further inputs
    after the model's."""

    integrator: str = ""
    substeps: int = 1
    parameters: Mapping[str, object] = field(default_factory=dict)
    wind: bool = False

    def __post_init__(self):
        if not (isinstance(self.substeps, int) and self.substeps >= 1):
            raise ValueError(
                f"PlantOptions.substeps must be an integer >= 1, got {self.substeps!r}"
            )


@dataclass(frozen=True)
class Scenario:
    """A system with everything needed to run it; the first of `integrators` and `references` is
    the default.

    weights                 (Q, R, Qf) in local coordinates; Qf is None with `hold`
    perturb                 `perturb(model, x, perturbation)` is the state x (nx) with that initial
                            error
    joints, body            what is seen: one-dof joints and a planar body, either or both, or else
    to_bodies, from_bodies  bodies in space: `to_bodies(parameters, q, v)` and its inverse
                            `from_bodies(bodies) -> (q, v)`, without the joints that follow
    make_windy_system       the system with external forces as further inputs
    monitor                 what else is worth watching
    visual                  `visual(parameters)` is what is drawn; balls for bodies without it
    guidance                `guidance(model, reference)` replans one of the `references` in flight
    disturbance_gain        that of the tracker when its integral action is on
    hold                    whether references end at rest and are held there
    source                  what the nodes need besides its name to make it again, by parameter
    """

    name: str
    title: str
    parameters: object
    make_system: Callable[[object], System]
    integrators: Mapping[str, Callable[[System, float], DiscreteSystem]]
    references: Mapping[str, Callable[[DiscreteSystem], Trajectory]]
    weights: tuple[np.ndarray, np.ndarray, np.ndarray | None]
    perturb: Callable[[DiscreteSystem, np.ndarray, Perturbation], np.ndarray]
    joints: tuple[Joint, ...] = ()
    body: Body | None = None
    to_bodies: Callable[[object, np.ndarray, np.ndarray], tuple[BodyState, ...]] | None = None
    from_bodies: Callable[[Sequence[BodyState]], tuple[np.ndarray, np.ndarray]] | None = None
    make_windy_system: Callable[[object], System] | None = None
    monitor: MonitoredOutput | None = None
    visual: Callable[[object], VisualModel] | None = None
    guidance: Callable[[DiscreteSystem, Trajectory], Guidance] | None = None
    step_s: float = 0.01
    disturbance_gain: float = 0.2
    hold: bool = False
    source: Mapping[str, str] = field(default_factory=dict)

    def model(self, integrator: str = "", step_s: float = 0.0) -> DiscreteSystem:
        """The tracker's model: nominal parameters, `integrator` ("" is the default) and step (0 is
        the default); raises UnknownName, ValueError.
        """
        return self._discrete(self.make_system(self.parameters), integrator, step_s or self.step_s)

    def plant(
        self, model: DiscreteSystem, options: PlantOptions = PlantOptions()
    ) -> DiscreteSystem:
        """The simulated plant, `options.substeps` of whose steps make one step of the model;
        raises UnknownName, ValueError.
        """
        integrator = options.integrator or next(
            (n for n, make in self.integrators.items() if self._same_method(make, model)), ""
        )
        make_system = self.make_windy_system if options.wind else self.make_system
        if make_system is None:
            raise ValueError(f"{self.name} has no wind")
        known = [f.name for f in fields(self.parameters)]
        for name in options.parameters:
            if name not in known:
                raise UnknownName(f"{self.name} parameter", name, known)
        h = model.h / options.substeps
        make = self.integrators.get(integrator)
        same = make is not None and self._same_method(make, model)
        if same and not options.wind and type(model.system.parameters) is type(self.parameters):
            return model.with_parameters(**options.parameters).with_step(h)
        system = model.system
        if options.parameters or options.wind:
            system = make_system(replace(self.parameters, **options.parameters))
        return self._discrete(system, integrator, h)

    def reference(self, model: DiscreteSystem, name: str = "") -> Trajectory:
        """The reference of that name ("" is the default) on the model; raises UnknownName."""
        name = name or next(iter(self.references))
        if name not in self.references:
            raise UnknownName(f"{self.name} reference", name, self.references)
        return replace(self.references[name](model), name=name)

    def tracker(
        self, model: DiscreteSystem, reference: Trajectory, integral: bool = False
    ) -> LqrTracker:
        """LQR tracker of the reference with the scenario's weights, with a disturbance estimate if
        `integral`.
        """
        return LqrTracker(
            model,
            reference,
            *self.weights,
            disturbance_gain=self.disturbance_gain if integral else 0.0,
            hold=self.hold,
        )

    def visual_model(self) -> VisualModel:
        """The visual model of the nominal system: `visual`, or else a ball for every body; nothing
        of joints alone.
        """
        if self.visual is not None:
            return self.visual(self.parameters)
        if self.to_bodies is not None:
            space = self.make_system(self.parameters).space
            rest = np.zeros(space.nw)
            bodies = self.to_bodies(self.parameters, space.origin, rest)

            def poses(parameters, q):
                return {
                    body.frame: Pose(body.position, quat2mat(body.quaternion_wxyz))
                    for body in self.to_bodies(parameters, q, rest)
                }

            return balls(bodies[0].parent, poses, (body.frame for body in bodies))
        if self.body is not None:
            at = self.make_system(self.parameters).space.names.index(self.body.coordinates[0])
            return balls(
                self.body.parent,
                lambda _, q: {self.body.frame: Pose.planar(*q[at : at + 3])},
                [self.body.frame],
            )
        return balls("", lambda parameters, q: {}, ())

    def _discrete(self, system: System, integrator: str, h: float) -> DiscreteSystem:
        integrator = integrator or next(iter(self.integrators))
        if integrator not in self.integrators:
            raise UnknownName(f"{self.name} integrator", integrator, self.integrators)
        return self.integrators[integrator](system, h)

    def _same_method(self, make, model: DiscreteSystem) -> bool:
        return make(model.system, model.h).method.name == model.method.name
