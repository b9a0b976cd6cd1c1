"""The declaration of a scenario. The model, plant, reference and tracker are built from it and
checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property
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
from nh_control.scenarios.flight import AutopilotOptions, Flight
from nh_control.scenarios.frames import with_forces
from nh_control.scenarios.free_motion import FREE, SYNTAX, free_motion, is_free
from nh_control.scenarios.guidance import Guidance
from nh_control.scenarios.joint_motion import is_file, joint_motion
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.perturbation import Displacement, displaced
from nh_control.scenarios.sensor import SensingOptions, Sensor, check_sensors
from nh_control.scenarios.shown import BodyState as BodyState
from nh_control.scenarios.shown import Joint as Joint
from nh_control.scenarios.shown import MonitoredOutput as MonitoredOutput
from nh_control.scenarios.shown import PlanarBody as PlanarBody
from nh_control.scenarios.vehicle_guidance import Drive
from nh_control.scenarios.visual_model import VisualModel
from nh_control.scenarios.wheeled_base import WheeledBase


@dataclass(frozen=True)
class PlantOptions:
    """Differences between the plant and the tracker's model: a different `integrator`, `substeps`
    of h / substeps, different physical `parameters`, `disturbances`, and `faults` of sensors and
    actuators. The external forces of disturbances are additional inputs, which come after the
    model's inputs.
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
    """A system with everything that is needed to run it. The first entries of `integrators` and
    `references` are the defaults. Any registered integrator that accepts the system can also be
    used.

    - `parameters`: a frozen dataclass of numbers. `parameter` declares their units and meanings.
    - `weights`: (Q, R, Qf) in local coordinates. Qf is None if `hold` is true.
    - `perturbation`: the default initial error, an instance of a frozen dataclass. The fields of
      the class are options of `nh_control`, and their defaults are zero errors.
    - `perturb`: `perturb(model, x, perturbation)` returns the state x (nx) with the initial error.
      The default function takes a `Displacement`.
    - `joints`, `body`: the joints with one coordinate and the planar body that messages contain.
      Alternatively, `to_bodies(parameters, q, v)` returns spatial bodies, and
      `from_bodies(bodies) -> (q, v)` is its inverse.
    - `sensors`: the measured outputs of the system. `sensing`: the options of their filter.
    - `external`: `external(system)` returns additional disturbance targets (see `targets`).
    - `monitor`: an additional output to monitor, with its unit.
    - `visual`: `visual(parameters)` returns the visual model. The default is boxes and sticks.
    - `guidance`: `guidance(model, reference)` replans a reference during motion.
    - `drive`: the motion of a vehicle that follows velocity commands and moves to goals.
    - `base`: `base(parameters)` returns the wheels of a vehicle.
    - `disturbance_gain`: the gain of the tracker's integral action.
    - `hold`: whether references end at an equilibrium that the tracker maintains.
    - `excluded`, `stance`: the directions that feedback ignores (see `LqrTracker`).
    - `constraints`: constraints on motions by name, in addition to the input limits.
    - `horizon_s`: the horizon of the predictive tracker.
    - `limits`: the limits beyond which a robot is considered out of control.
    - `nodes`: the parameters for launch files.
    - `source`: the parameters from which nodes build the scenario if its name does not suffice.
    - `file`: the file that declares the scenario, or "" for the scenarios in this package.
    - `label`: a different name for titles and folders, such as the name of a robot.
    - `meanings`: descriptions of references by name, for lists and pages. The default is the first
      sentence of the reference's docstring.
    - `flight`: how flight controllers fly the scenario's craft.
    - `behind`: the plant's scenario, if a flight controller flies this scenario (see
      `scenarios.flown`).
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
    body: PlanarBody | None = None
    to_bodies: Callable[[Any, np.ndarray, np.ndarray], tuple[BodyState, ...]] | None = None
    from_bodies: Callable[[Sequence[BodyState]], tuple[np.ndarray, np.ndarray]] | None = None
    sensors: tuple[Sensor, ...] = ()
    sensing: SensingOptions = SensingOptions()
    external: Callable[[System], Sequence[ForceTarget]] | None = None
    monitor: MonitoredOutput | None = None
    visual: Callable[[Any], VisualModel] | None = None
    guidance: Callable[[DiscreteSystem, Trajectory], Guidance] | None = None
    drive: Drive | None = None
    base: Callable[[Any], WheeledBase | None] | None = None
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
    meanings: Mapping[str, str] = field(default_factory=dict)
    flight: Flight | None = None
    behind: Scenario | None = None

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
            # Nodes convert states in both directions, whereas figures only need `to_bodies`.
            raise ValueError(f"scenario {self.name}: from_bodies needs to_bodies, its inverse")
        for what in ("integrators", "references"):
            if not getattr(self, what):
                raise ValueError(f"scenario {self.name}: {what} must not be empty")

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, {self.title!r})"

    @cached_property
    def system(self) -> System:
        """The nominal system."""
        return self.make_system(self.parameters)

    @property
    def origin(self) -> dict[str, str | bool]:
        """The node parameters from which this scenario can be built."""
        return {"scenario": self.name, **self.source}

    @property
    def autopilot(self) -> AutopilotOptions | None:
        """The flight controller of the scenario's craft, or None if there is none."""
        # `flown` stores the text that describes the autopilot in the source.
        text = str(self.source.get("autopilot", ""))
        return AutopilotOptions.parse(text) if text else None

    @property
    def no_perturbation(self) -> Any:
        """The perturbation without initial errors."""
        return type(self.perturbation)()

    def model(self, integrator: str = "", step_s: float = 0.0) -> DiscreteSystem:
        """The tracker's model with nominal parameters, an `integrator` ("" selects the default)
        and a step (0 selects the default). Raises UnknownName and ValueError.
        """
        return self._discrete(self.system, integrator, step_s or self.step_s)

    def plant(
        self, model: DiscreteSystem, options: PlantOptions = PlantOptions()
    ) -> DiscreteSystem:
        """The simulated plant. Together, `options.substeps` of its steps take as long as a step of
        the model. Raises UnknownName and ValueError.
        """
        integrator = options.integrator or self._integrator_of(model)
        # Under a flight controller, the model has rate inputs and the plant has the original
        # inputs.
        if self.behind is not None:
            nominal = replace(self.behind, parameters=model.system.parameters)
            return self.behind.plant(nominal.model(integrator, model.h), options)
        # Substeps take h / n. The model and the tracker keep the step h.
        parameters, h = self.plant_parameters(options), model.h / options.substeps
        make = self._usable_integrator(integrator, model.system)
        same = make is not None and self._same_method(make, model)
        same_type = type(model.system.parameters) is type(self.parameters)
        # With the same method and structure, the plant shares the model's compiled code.
        if same and same_type and not options.disturbances:
            return model.with_parameters(**options.parameters).with_step(h)
        # Otherwise the plant needs a new discrete system.
        system = self.make_system(parameters) if options.parameters else model.system
        if options.disturbances:
            forces = self.disturbance(model, options)
            system = with_forces(system, forces.targets)
        return self._discrete(system, integrator, h)

    def usable_integrators(self, system: System) -> dict[str, Make]:
        """The integrators by name: those of the scenario, then the registered integrators that
        accept the system.
        """
        usable = {name: self._usable_integrator(name, system) for name in self._integrator_names}
        return {name: make for name, make in usable.items() if make is not None}

    @property
    def _integrator_names(self) -> dict[str, None]:
        """The names of the scenario's integrators, then of the registered integrators."""
        return dict.fromkeys((*self.integrators, *INTEGRATORS))

    def _usable_integrator(self, name: str, system: System) -> Make | None:
        """The entry of `usable_integrators` with the given name, or None."""
        if name in self.integrators:
            return self.integrators[name]
        registered = INTEGRATORS.get(name)
        # Registered integrators declare which systems they accept.
        return registered.make if registered and registered.takes(system) else None

    def _integrator_of(self, model: DiscreteSystem) -> str:
        """The name of the first of the `usable_integrators` that has the method of the model, or
        "".
        """
        for name in self._integrator_names:
            make = self._usable_integrator(name, model.system)
            if make is not None and self._same_method(make, model):
                return name
        return ""

    def plant_parameters(self, options: PlantOptions) -> Any:
        """The plant's physical parameters. Raises UnknownName, and ValueError for invalid
        values.
        """
        # If the parameters are None, they declare nothing, so every name is unknown.
        known = [declared.name for declared in declarations(self.parameters)]
        for name in options.parameters:
            if name not in known:
                raise UnknownName(f"{self.name} parameter", name, known)
        return replace(self.parameters, **options.parameters) if known else self.parameters

    def targets(self, system: System) -> dict[str, ForceTarget]:
        """The disturbance targets in a system by name: those from `external`, the planar body, the
        ground in contacts, and all coordinates with inertia.
        """
        self._check(system)
        declared = [] if self.external is None else list(self.external(system))
        # The unit of a generalized force is J / (unit of the coordinate).
        units = {joint.coordinate: "N" if joint.unit == "m" else "N m" for joint in self.joints}
        if self.body is not None:
            first, _ = self.body.place(system.space)
            declared.append(
                on_planar_body(
                    system.space, self.body.frame, lambda q, parameters: q[first : first + 3]
                )
            )
        if system.has_contacts:
            # Disturbances of the ground, such as ice, act on contacts.
            declared.append(on_ground(system.space))
        coordinates = on_coordinates(
            system.space, (*system.first_order, *system.prescribed), units
        )
        return {target.name: target for target in (*coordinates, *declared)}

    def disturbance(self, model: DiscreteSystem, options: PlantOptions) -> DisturbanceForces:
        """The external forces on the plant in each step of the model. Raises UnknownName and
        ValueError.
        """
        return DisturbanceForces(options.disturbances, self.targets(model.system), model.h)

    def reference(self, model: DiscreteSystem, name: str = "") -> Trajectory:
        """The reference with the given name ("" selects the default) for the model. The name may
        also be a file with a joint trajectory (see `joint_motion`) or describe a free motion (see
        `free_motion`). Raises UnknownName, OSError, ValueError and StepFailed.
        """
        # The scenario's names come first, followed by files and free motions.
        name = name or next(iter(self.references))
        if name not in self.references:
            if is_file(name):
                return joint_motion(self.joints, model, name)
            if is_free(name):
                return free_motion(model, name, self.references.get(FREE))
            hint = f"; or a joint trajectory, path/to/file.csv or .yaml; or {SYNTAX}"
            raise UnknownName(f"{self.name} reference", name, self.references, hint)
        where = f"{self.name}: reference {name!r}"
        trajectory = checked_reference(where, self.references[name](model), model)
        return replace(trajectory, name=name)

    def make_guidance(self, model: DiscreteSystem, reference: Trajectory) -> Guidance | None:
        """The guidance that plans new motions from a reference of the model, or None if the
        scenario has no guidance.
        """
        return None if self.guidance is None else self.guidance(model, reference)

    def tracker(
        self, model: DiscreteSystem, reference: Trajectory, integral: bool = False
    ) -> LqrTracker:
        """An LQR tracker for the reference, with the scenario's weights, and with a disturbance
        estimate if `integral`. If the method stores memory in its state, this memory has no
        weight.
        """
        Q, R, Qf = self.weights
        return LqrTracker(
            model,
            reference,
            with_memory(model, Q),
            R,
            None if Qf is None else with_memory(model, Qf),
            disturbance_gain=self.disturbance_gain if integral else 0.0,
            hold=self.holds(reference.name),
            excluded=self.excluded,
            stance=self.stance,
        )

    def holds(self, reference: str) -> bool:
        """Whether trackers stabilize the final state of the reference with the given name."""
        # A free motion does not end at an equilibrium.
        return self.hold and not is_free(reference, self.references)

    def tracked(self, space: Space) -> np.ndarray:
        """The mask (nv) of the configuration's local coordinates that have a weight. For example,
        wheel angles have none.
        """
        return weighted_coordinates(space, self.weights[0])

    def resting_bodies(self, space: Space) -> tuple[BodyState, ...]:
        """The states of the spatial bodies, if there are any, at rest at the origin of the
        system's space. Their order is that of `to_bodies`.
        """
        if self.to_bodies is None:
            return ()
        return self.to_bodies(self.parameters, space.origin, np.zeros(space.nw))

    def visual_model(self, parameters: Any = None, reference: str = "") -> VisualModel:
        """The visual model for the nominal or for different parameters, including the obstacles
        along a reference.

        The model comes from `visual`, and frame axes are added if it draws nothing. Without
        `visual`, the model has a ball with axes for each body. If there are only joints, it comes
        from `system_visual`.
        """
        return with_obstacles(self._visual_model(parameters), self.constraints, reference)

    def _visual_model(self, parameters: Any) -> VisualModel:
        parameters = self.parameters if parameters is None else parameters
        # The order of precedence is: declared model, spatial bodies, planar body, joints.
        if self.visual is not None:
            return with_axes(
                self.visual(parameters),
                parameters,
                lambda: self._system_with(parameters).space.origin,
            )
        space, to_bodies = (system := self._system_with(parameters)).space, self.to_bodies
        if to_bodies is not None:
            still = np.zeros(space.nw)
            return bodies_visual(space, lambda q: to_bodies(parameters, q, still))
        if self.body is not None:
            return body_visual(space, self.body)
        units = {joint.coordinate: joint.unit for joint in self.joints}
        return system_visual(system, units)

    def _system_with(self, parameters: Any) -> System:
        return self.system if parameters is self.parameters else self.make_system(parameters)

    @property
    def has_messages(self) -> bool:
        """Whether messages contain the scenario's states, so that it can run as nodes."""
        return bool(self.joints or self.body or self.from_bodies)

    def require_messages(self, system: System) -> None:
        """Raise ValueError with a list of the missing names unless messages contain the whole
        state.
        """
        # Converting the resting bodies back shows which coordinates they determine.
        rest, invert = self.resting_bodies(system.space), self.from_bodies
        bodies = (np.empty(0), np.empty(0)) if invert is None else invert(rest)
        require_whole_state(self.name, system, self.joints, self.body, bodies)

    def _check(self, system: System) -> None:
        """Raise ValueError for declarations that do not match the system."""
        check_sensors(f"scenario {self.name}", self.sensors, system)
        if self.has_messages:
            self.require_messages(system)

    def _discrete(self, system: System, integrator: str, h: float) -> DiscreteSystem:
        self._check(system)
        integrator = integrator or next(iter(self.integrators))
        if integrator in self.integrators:
            return self.integrators[integrator](system, h)
        # The reason for a refusal is more helpful than a list of valid names.
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
