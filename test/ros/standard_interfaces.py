"""The fields and constants of simulation_interfaces, where it is not installed."""

from __future__ import annotations

import sys
from types import ModuleType

from geometry_msgs.msg import Pose, Twist
from std_msgs.msg import Header


def kind(name: str, constants: dict[str, int] | None = None, **defaults):
    """A class with constants and fields; a default is a value, or a type to make it of."""

    def __init__(self, **given):
        for field, default in defaults.items():
            made = default() if isinstance(default, type) else default
            setattr(self, field, given.pop(field, made))
        assert not given, given

    return type(name, (), {"__init__": __init__, **(constants or {})})


def service(name: str, request: type | None = None, response: type | None = None):
    return type(name, (), {"Request": request or kind("Request"), "Response": response})


def numbered(names: str, first: int = 0) -> dict[str, int]:
    return {name: first + i for i, name in enumerate(names.split())}


Result = kind(
    "Result",
    numbered(
        "RESULT_FEATURE_UNSUPPORTED RESULT_OK RESULT_NOT_FOUND RESULT_INCORRECT_STATE "
        "RESULT_OPERATION_FAILED"
    ),
    result=0,
    error_message="",
)
SimulationState = kind(
    "SimulationState", numbered("STATE_STOPPED STATE_PLAYING STATE_PAUSED STATE_QUITTING"), state=0
)
FEATURES = {
    **numbered("ENTITY_STATE_GETTING ENTITY_STATE_SETTING ENTITY_INFO_GETTING", 10),
    **numbered("SIMULATION_RESET SIMULATION_RESET_TIME SIMULATION_RESET_STATE", 20),
    **numbered("SIMULATION_STATE_GETTING SIMULATION_STATE_SETTING SIMULATION_STATE_PAUSE", 24),
    **numbered("STEP_SIMULATION_SINGLE STEP_SIMULATION_MULTIPLE STEP_SIMULATION_ACTION", 31),
}
SimulatorFeatures = kind("SimulatorFeatures", FEATURES, features=list, custom_info="")
EntityCategory = kind("EntityCategory", {"CATEGORY_ROBOT": 1}, category=0)
EntityInfo = kind("EntityInfo", category=EntityCategory, description="")
EntityState = kind("EntityState", header=Header, pose=Pose, twist=Twist)
EntityFilters = kind(
    "EntityFilters",
    filter="",
    categories=list,
    tags=kind("TagsFilter", tags=list),
    bounds=kind("Bounds", type=0),
)
SCOPES = {"SCOPE_DEFAULT": 0, "SCOPE_TIME": 1, "SCOPE_STATE": 2, "SCOPE_ALL": 255}
TRANSITIONS = numbered("ALREADY_IN_TARGET_STATE STATE_TRANSITION_ERROR INCORRECT_TRANSITION", 101)
ONLY_RESULT = kind("Response", result=Result)
FILTERED = kind("Request", filters=EntityFilters)
NAMED = kind("Request", entity="")

MESSAGES = (Result, SimulationState, SimulatorFeatures, EntityCategory, EntityInfo)
SERVICES = (
    service("GetSimulatorFeatures", None, kind("Response", features=SimulatorFeatures)),
    service("GetSimulationState", None, kind("Response", state=SimulationState, result=Result)),
    service(
        "SetSimulationState",
        kind("Request", state=SimulationState),
        kind("Response", TRANSITIONS, result=Result),
    ),
    service("ResetSimulation", kind("Request", SCOPES, scope=0), ONLY_RESULT),
    service("StepSimulation", kind("Request", steps=1), ONLY_RESULT),
    service("GetEntities", FILTERED, kind("Response", result=Result, entities=list)),
    service(
        "GetEntitiesStates", FILTERED, kind("Response", result=Result, entities=list, states=list)
    ),
    service("GetEntityInfo", NAMED, kind("Response", result=Result, info=EntityInfo)),
    service("GetEntityState", NAMED, kind("Response", result=Result, state=EntityState)),
    service(
        "SetEntityState",
        kind("Request", entity="", state=EntityState, set_pose=False, set_twist=False),
        kind("Response", {"INVALID_POSE": 101}, result=Result),
    ),
)
SimulateSteps = type(
    "SimulateSteps",
    (),
    {
        "Goal": kind("Goal", steps=0),
        "Result": kind("Result", result=Result),
        "Feedback": kind("Feedback", completed_steps=0, remaining_steps=0),
    },
)


def modules() -> dict[str, ModuleType]:
    made = {}
    parts = {
        "msg": (*MESSAGES, EntityState, EntityFilters),
        "srv": SERVICES,
        "action": (SimulateSteps,),
    }
    for part, kinds in {"": (), **parts}.items():
        name = f"simulation_interfaces.{part}".rstrip(".")
        made[name] = ModuleType(name)
        for one in kinds:
            setattr(made[name], one.__name__, one)
    return made


def installed() -> bool:
    import importlib.util

    return "simulation_interfaces" in sys.modules or bool(
        importlib.util.find_spec("simulation_interfaces")
    )
