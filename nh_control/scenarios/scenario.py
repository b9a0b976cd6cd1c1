"""The declaration of a scenario, and the validated construction of its model, plant, reference and
tracker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any

import numpy as np

from nh_control.control import LqrTracker
from nh_control.control.weights import StateWeight, weighted_coordinates, with_memory
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Space
from nh_control.integrators import INTEGRATORS
from nh_control.integrators.registry import Make
from nh_control.mechanics.external_forces import (
    ForceTarget,
    on_coordinates,
    on_ground,
    on_planar_body,
)
from nh_control.mechanics.parameters import declarations
from nh_control.mechanics.system import System
from nh_control.scenarios.constraints import ScenarioConstraint, with_obstacles
from nh_control.scenarios.declaration_checks import checked_reference, require_whole_state
from nh_control.scenarios.default_visual import (
    bodies_visual,
    body_visual,
    system_visual,
    with_axes,
)
from nh_control.scenarios.disturbance import Disturbance, DisturbanceForces
from nh_control.scenarios.fault import Fault
from nh_control.scenarios.frames import with_forces
from nh_control.scenarios.free_motion import FREE, SYNTAX, free_motion, is_free
from nh_control.scenarios.guidance import Guidance
from nh_control.scenarios.joint_motion import is_file, joint_motion
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.perturbation import Displacement, displaced
from nh_control.scenarios.sensor import SensingOptions, Sensor, check_sensors
from nh_control.scenarios.shown import Body as Body
from nh_control.scenarios.shown import BodyState as BodyState
from nh_control.scenarios.shown import Joint as Joint
from nh_control.scenarios.shown import MonitoredOutput as MonitoredOutput
from nh_control.scenarios.vehicle_guidance import Drive
from nh_control.scenarios.visual_model import VisualModel


@dataclass(frozen=True)
class PlantOptions:
    """Differences between the plant and the tracker's model: another `integrator`, `substeps` of h
    / substeps, other physical `parameters`, `disturbances`, whose external forces are further
    inputs after the model's forces, and `faults` of sensors and actuators.
    """

    integrator: str = ""
    substeps: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)
    disturbances: tuple[Disturbance, ...] = ()
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.substeps, int) and self.substeps >= 1):
            raise ValueError(
                f"PlantOptions.substeps must be an integer >= 1, got {self.substeps!r}"
            )


@dataclass(frozen=True)
class Scenario:
    """A system with everything needed to run it. The first of `integrators` and `references` is
    the default; any registered integrator that takes the system can replace the former.

    - `parameters`: a frozen dataclass of numbers; `parameter` gives them units and meanings.
    - `weights`: (Q, R, Qf) in local coordinates; Qf is None with `hold`.
    - `perturbation`: the default initial error, an instance of a frozen dataclass whose fields are
      the options of `nh_control`; its class has zero errors as defaults.
    - `perturb`: `perturb(model, x, perturbation)` is the state x (nx) with that initial error; the
      default function takes a `Displacement`.
    - `joints`, `body`: joints with one coordinate, and the planar body, in messages; or bodies in
      space, by `to_bodies(parameters, q, v)` and its inverse `from_bodies(bodies) -> (q, v)`.
    - `sensors`: measured outputs of the system; `sensing`: options of their filter.
    - `external`: `external(system)` are further targets of disturbances, see `targets`; `monitor`:
      a further output to monitor, with its unit.
    - `visual`: `visual(parameters)` is the visual model; by default boxes and sticks.
    - `guidance`: `guidance(model, reference)` replans a reference in motion; or `drive`: the
      motion of a vehicle along velocity commands and to goals.
    - `disturbance_gain`: the gain of the tracker's integral action; `hold`: whether references end
      at rest and are held; `excluded`, `stance`: what feedback leaves out; see `LqrTracker`.
    - `constraints`: constraints of motions by name, besides the limits of inputs; `horizon_s`: the
      horizon of the predictive tracker.
    - `limits`: beyond them a robot counts as out of control; `nodes`: parameters for launch files.
    - `source`: the parameters from which nodes make the scenario if its name is not enough;
      `file`: the file that declares it, "" for the package's own scenarios.
    - `label`: another name in titles and folders, such as a robot's.
    """

    name: str
    title: str
    parameters: Any
    make_system: Callable[[Any], System]
    integrators: Mapping[str, Make]
    references: Mapping[str, Callable[[DiscreteSystem], Trajectory]]
    weights: tuple[StateWeight, np.ndarray, StateWeight | None]
    perturbation: Any = Displacement(displacement=0.1, momentum=0.1)
    perturb: Callable[[DiscreteSystem, np.ndarray, Any], np.ndarray] = displaced
    joints: tuple[Joint, ...] = ()
    body: Body | None = None
    to_bodies: Callable[[Any, np.ndarray, np.ndarray], tuple[BodyState, ...]] | None = None
    from_bodies: Callable[[Sequence[BodyState]], tuple[np.ndarray, np.ndarray]] | None = None
    sensors: tuple[Sensor, ...] = ()
    sensing: SensingOptions = SensingOptions()
    external: Callable[[System], Sequence[ForceTarget]] | None = None
    monitor: MonitoredOutput | None = None
    visual: Callable[[Any], VisualModel] | None = None
    guidance: Callable[[DiscreteSystem, Trajectory], Guidance] | None = None
    drive: Drive | None = None
    step_s: float = 0.01
    disturbance_gain: float = 0.2
    hold: bool = False
    excluded: tuple[str, ...] = ()
    stance: bool = False
    constraints: Mapping[str, ScenarioConstraint] = field(default_factory=dict)
    horizon_s: float = 1.0
    limits: SafetyLimits = SafetyLimits()
    nodes: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, str | bool] = field(default_factory=dict)
    file: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        if self.perturb is displaced and not isinstance(self.perturbation, Displacement):
            raise ValueError(
                f"scenario {self.name}: the perturbation {type(self.perturbation).__name__} needs "
                f"a function perturb(model, x, perturbation) that applies it"
            )
        if self.parameters is not None and not (
            is_dataclass(self.parameters) and not isinstance(self.parameters, type)
        ):
            raise ValueError(
                f"scenario {self.name}: parameters must be an instance of a dataclass, or None, "
                f"got {self.parameters!r}"
            )
        if self.from_bodies is not None and self.to_bodies is None:
            raise ValueError(f"scenario {self.name}: from_bodies needs to_bodies, its inverse")
        for what in ("integrators", "references"):
            if not getattr(self, what):
                raise ValueError(f"scenario {self.name}: {what} must not be empty")

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, {self.title!r})"

    @property
    def origin(self) -> dict[str, str | bool]:
        """The nodes' parameters from which this scenario can be made again."""
        return {"scenario": self.name, **self.source}

    @property
    def no_perturbation(self) -> Any:
        """No initial error."""
        return type(self.perturbation)()

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
        makes = self.usable_integrators(model.system)
        integrator = options.integrator or next(
            (n for n, make in makes.items() if self._same_method(make, model)), ""
        )
        parameters, h = self.plant_parameters(options), model.h / options.substeps
        make = makes.get(integrator)
        same = make is not None and self._same_method(make, model)
        own = type(model.system.parameters) is type(self.parameters)
        if same and own and not options.disturbances:
            return model.with_parameters(**options.parameters).with_step(h)
        system = self.make_system(parameters) if options.parameters else model.system
        if options.disturbances:
            forces = self.disturbance(model, options)
            system = with_forces(system, forces.targets)
        return self._discrete(system, integrator, h)

    def usable_integrators(self, system: System) -> dict[str, Make]:
        """Integrators by name: the scenario's own, then the registered ones that take the
        system.
        """
        registered = {name: one.make for name, one in INTEGRATORS.fitting(system).items()}
        return {
            **self.integrators,
            **{n: m for n, m in registered.items() if n not in self.integrators},
        }

    def plant_parameters(self, options: PlantOptions) -> Any:
        """Physical parameters of the plant; raises UnknownName, and ValueError for values that
        they refuse.
        """
        known = [declared.name for declared in declarations(self.parameters)]
        for name in options.parameters:
            if name not in known:
                raise UnknownName(f"{self.name} parameter", name, known)
        return replace(self.parameters, **options.parameters) if known else self.parameters

    def targets(self, system: System) -> dict[str, ForceTarget]:
        """Targets of disturbances in this system, by name: those of `external`, the planar body,
        and all coordinates with inertia.
        """
        self._check(system)
        declared = [] if self.external is None else list(self.external(system))
        units = {joint.coordinate: "N" if joint.unit == "m" else "N m" for joint in self.joints}
        if self.body is not None:
            first, _ = self.body.place(system.space)
            declared.append(
                on_planar_body(system.space, self.body.frame, lambda q, p: q[first : first + 3])
            )
        if system.has_contacts:
            declared.append(on_ground(system.space))
        coordinates = on_coordinates(
            system.space, (*system.first_order, *system.prescribed), units
        )
        return {target.name: target for target in (*coordinates, *declared)}

    def disturbance(self, model: DiscreteSystem, options: PlantOptions) -> DisturbanceForces:
        """The external forces of the plant in every step of the model; raises UnknownName,
        ValueError.
        """
        return DisturbanceForces(options.disturbances, self.targets(model.system), model.h)

    def reference(self, model: DiscreteSystem, name: str = "") -> Trajectory:
        """The reference of that name ("" is the default) on the model, along the joint trajectory
        in a file (see `joint_motion`), or the `free_motion` of that name; raises UnknownName,
        OSError, ValueError, StepFailed.
        """
        name = name or next(iter(self.references))
        if name not in self.references:
            if is_file(name):
                return joint_motion(self.joints, model, name)
            if is_free(name):
                return free_motion(model, name, self.references.get(FREE))
            hint = f"; or a joint trajectory, path/to/file.csv or .yaml; or {SYNTAX}"
            raise UnknownName(f"{self.name} reference", name, self.references, hint)
        where = f"{self.name}: reference {name!r}"
        made = checked_reference(where, self.references[name](model), model)
        return replace(made, name=name)

    def make_guidance(self, model: DiscreteSystem, reference: Trajectory) -> Guidance | None:
        """The guidance that plans further motions from a reference on the model, None
        without one.
        """
        return None if self.guidance is None else self.guidance(model, reference)

    def tracker(
        self, model: DiscreteSystem, reference: Trajectory, integral: bool = False
    ) -> LqrTracker:
        """LQR tracker of the reference with the scenario's weights, with a disturbance estimate if
        `integral`; further numbers in a method's state have no weight.
        """
        Q, R, Qf = self.weights
        weights = with_memory(model, Q), R, None if Qf is None else with_memory(model, Qf)
        return LqrTracker(
            *(model, reference, *weights),
            disturbance_gain=self.disturbance_gain if integral else 0.0,
            hold=self.hold and not is_free(reference.name, self.references),
            excluded=self.excluded,
            stance=self.stance,
        )

    def tracked(self, space: Space) -> np.ndarray:
        """The mask (nv) of local coordinates of the configuration with a weight, without a wheel's
        turns.
        """
        return weighted_coordinates(space, self.weights[0])

    def resting_bodies(self, space: Space) -> tuple[BodyState, ...]:
        """The bodies in space, if there are any, at rest at the origin of the system's space, in
        the order of `to_bodies`.
        """
        if self.to_bodies is None:
            return ()
        return self.to_bodies(self.parameters, space.origin, np.zeros(space.nw))

    def visual_model(self, parameters: Any = None, reference: str = "") -> VisualModel:
        """The visual model of the nominal system, or that of other parameters: `visual`, with the
        axes of its frames if it draws nothing, or else a ball with axes for every body, or of
        joints alone that of `system_visual`; with the obstacles along a reference.
        """
        return with_obstacles(self._visual_model(parameters), self.constraints, reference)

    def _visual_model(self, parameters: Any) -> VisualModel:
        p = self.parameters if parameters is None else parameters
        if self.visual is not None:
            return with_axes(self.visual(p), p, lambda: self.make_system(p).space.origin)
        space, to_bodies = (system := self.make_system(p)).space, self.to_bodies
        if to_bodies is not None:
            still = np.zeros(space.nw)
            return bodies_visual(space, lambda q: to_bodies(p, q, still))
        if self.body is not None:
            return body_visual(space, self.body)
        units = {joint.coordinate: joint.unit for joint in self.joints}
        return system_visual(system, units)

    @property
    def has_messages(self) -> bool:
        """Whether messages carry its states, so that it runs as nodes."""
        return bool(self.joints or self.body or self.from_bodies)

    def require_messages(self, system: System) -> None:
        """Raise ValueError, with the names, unless messages carry the system's whole state."""
        rest, invert = self.resting_bodies(system.space), self.from_bodies
        bodies = (np.empty(0), np.empty(0)) if invert is None else invert(rest)
        require_whole_state(self.name, system, self.joints, self.body, bodies)

    def _check(self, system: System) -> None:
        """Raise ValueError for declarations that do not fit the system."""
        check_sensors(f"scenario {self.name}", self.sensors, system)
        if self.has_messages:
            self.require_messages(system)

    def _discrete(self, system: System, integrator: str, h: float) -> DiscreteSystem:
        self._check(system)
        integrator = integrator or next(iter(self.integrators))
        if integrator in self.integrators:
            return self.integrators[integrator](system, h)
        if integrator in INTEGRATORS and (reason := INTEGRATORS[integrator].reason(system)):
            raise ValueError(
                f"{self.name}: {integrator} cannot take {system.name}, which {reason}"
            )
        makes = self.usable_integrators(system)
        if integrator not in makes:
            raise UnknownName(f"{self.name} integrator", integrator, makes)
        return makes[integrator](system, h)

    def _same_method(self, make: Make, model: DiscreteSystem) -> bool:
        return make(model.system, model.h).method.name == model.method.name
