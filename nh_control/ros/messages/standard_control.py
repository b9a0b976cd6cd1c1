"""Control of a plant through simulation_interfaces, the standard services and action for
simulators. This module requires that package.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import TimeoutError as CallTimeout
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import (
    EntityCategory,
    EntityFilters,
    EntityState,
    Result,
    SimulationState,
    SimulatorFeatures,
)
from simulation_interfaces.srv import (
    GetEntities,
    GetEntitiesStates,
    GetEntityInfo,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    StepSimulation,
)

from nh_control.loop.simulation_loop import STOPPED, Mode, Refused, SimulationLoop
from nh_control.ros.messages import conversions
from nh_control.ros.messages.entities import Entities
from nh_control.ros.messages.plant_control import Steps
from nh_control.ros.runtime.inbox import Inbox

FEATURES = (
    SimulatorFeatures.ENTITY_STATE_GETTING,
    SimulatorFeatures.ENTITY_STATE_SETTING,
    SimulatorFeatures.ENTITY_INFO_GETTING,
    SimulatorFeatures.SIMULATION_RESET,
    SimulatorFeatures.SIMULATION_RESET_TIME,
    SimulatorFeatures.SIMULATION_RESET_STATE,
    SimulatorFeatures.SIMULATION_STATE_GETTING,
    SimulatorFeatures.SIMULATION_STATE_SETTING,
    SimulatorFeatures.SIMULATION_STATE_PAUSE,
    SimulatorFeatures.STEP_SIMULATION_SINGLE,
    SimulatorFeatures.STEP_SIMULATION_MULTIPLE,
    SimulatorFeatures.STEP_SIMULATION_ACTION,
)


class StandardControl:
    """The services, in the node's namespace, and the action `simulate_steps`. They control `loop`.
    The entities are the bodies of the scenario with the given `title`. `quit_` ends the process.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        loop: SimulationLoop,
        entities: Entities,
        title: str,
        quit_: Callable[[], None],
    ):
        self._node, self._inbox, self._loop = node, inbox, loop
        self._entities, self._title, self._quit = entities, title, quit_
        for kind, name, handle in (
            (GetSimulatorFeatures, "get_simulator_features", self._features),
            (GetSimulationState, "get_simulation_state", self._get_state),
            (SetSimulationState, "set_simulation_state", self._set_state),
            (ResetSimulation, "reset_simulation", self._reset),
            (GetEntities, "get_entities", self._get_entities),
            (GetEntitiesStates, "get_entities_states", self._get_entities_states),
            (GetEntityInfo, "get_entity_info", self._get_entity_info),
            (GetEntityState, "get_entity_state", self._get_entity_state),
            (SetEntityState, "set_entity_state", self._set_entity_state),
        ):
            node.create_service(kind, name, handle)
        group = ReentrantCallbackGroup()  # other services must be served during long steps
        node.create_service(StepSimulation, "step_simulation", self._step, callback_group=group)
        self._action = ActionServer(
            node,
            SimulateSteps,
            "simulate_steps",
            self._simulate_steps,
            callback_group=group,
            cancel_callback=self._cancel,
        )

    def close(self) -> None:
        """End the action. The node destroys its services."""
        self._action.destroy()

    # Time ----------------------------------------------------------------------------------------

    def _features(self, _: Any, response: Any) -> Any:
        response.features.features = list(FEATURES)
        response.features.custom_info = f"nh_control: {self._title}"
        return response

    def _get_state(self, _: Any, response: Any) -> Any:
        response.state.state = self._state()
        response.result = Result(result=Result.RESULT_OK)
        return response

    def _state(self) -> int:
        """State of the simulation. A run that has finished or failed counts as paused."""
        mode, reason = self._loop.mode, self._loop.reason
        if mode is Mode.RUNNING:
            return int(SimulationState.STATE_PLAYING)
        # a stop is a pause that resets the run
        stopped = mode is Mode.PAUSED and reason == STOPPED
        return int(SimulationState.STATE_STOPPED if stopped else SimulationState.STATE_PAUSED)

    def _set_state(self, request: Any, response: Any) -> Any:
        target, loop = request.state.state, self._loop
        requests = {
            SimulationState.STATE_STOPPED: loop.stop,
            SimulationState.STATE_PLAYING: loop.resume,
            SimulationState.STATE_PAUSED: loop.pause,
        }

        def change() -> None:
            if target == SimulationState.STATE_QUITTING:
                self._quit()
            elif target not in requests:
                raise _Failed(Result.RESULT_FEATURE_UNSUPPORTED, f"no state {target}")
            # the standard has an error code for this case
            elif target == self._state():
                code = SetSimulationState.Response.ALREADY_IN_TARGET_STATE
                raise _Failed(code, f"the plant is already {loop.mode.value}")
            else:
                self._inbox.call(requests[target])

        return _answer(response, change, SetSimulationState.Response.STATE_TRANSITION_ERROR)

    def _reset(self, request: Any, response: Any) -> Any:
        kinds, loop = ResetSimulation.Request, self._loop
        requests = {
            kinds.SCOPE_DEFAULT: loop.reset,
            kinds.SCOPE_TIME | kinds.SCOPE_STATE: loop.reset,
            kinds.SCOPE_TIME: loop.reset_time,
            kinds.SCOPE_STATE: loop.reset_state,
        }
        # scope 0 means everything, and spawned entities do not exist
        scope = request.scope & (kinds.SCOPE_TIME | kinds.SCOPE_STATE)

        def change() -> None:
            if request.scope and not scope:
                text = "this simulator spawns no entities"
                raise _Failed(Result.RESULT_FEATURE_UNSUPPORTED, text)
            self._inbox.call(requests[scope])

        return _answer(response, change)

    # Steps ---------------------------------------------------------------------------------------

    async def _step(self, request: Any, response: Any) -> Any:
        response.result = await self._take_steps(request.steps, lambda completed: None)
        return response

    async def _simulate_steps(self, goal: Any) -> Any:
        requested = goal.request.steps

        def tell(completed: int) -> None:
            goal.publish_feedback(
                SimulateSteps.Feedback(
                    completed_steps=completed, remaining_steps=requested - completed
                )
            )

        result = SimulateSteps.Result(result=await self._take_steps(requested, tell))
        if goal.is_cancel_requested:
            goal.canceled()
        elif result.result.result == Result.RESULT_OK:
            goal.succeed()
        else:
            goal.abort()
        return result

    async def _take_steps(self, requested: int, tell: Callable[[int], None]) -> Result:
        """Take the steps, call `tell` with the number of completed steps, and return the
        result.
        """
        if requested < 1:
            text = f"expected at least 1 step, got {requested}"
            return Result(result=Result.RESULT_OPERATION_FAILED, error_message=text)
        steps, loop = Steps(self._node), self._loop
        request = lambda: loop.step(requested, steps.progress)  # noqa: E731
        result = _outcome(lambda: self._inbox.call(request))
        if result.result != Result.RESULT_OK:
            return result
        # feedback after each group of completed steps
        over = False
        while not over:
            over = await steps.next()
            tell(steps.completed)
        if steps.completed == requested:
            return result
        reason = f"{loop.mode.value}{f': {loop.reason}' if loop.reason else ''}"
        text = f"{steps.completed} of {requested} steps taken, the plant is {reason}"
        return Result(result=Result.RESULT_OPERATION_FAILED, error_message=text)

    def _cancel(self, _: Any) -> CancelResponse:
        self._inbox.post(self._loop.end_steps)
        return CancelResponse.ACCEPT

    # Entities ------------------------------------------------------------------------------------

    def _get_entities(self, request: Any, response: Any) -> Any:
        def fill() -> None:
            response.entities = self._matching(request.filters)

        return _answer(response, fill)

    def _get_entities_states(self, request: Any, response: Any) -> Any:
        def fill() -> None:
            # all states belong to the same step, because the loop waits for this request
            names = self._matching(request.filters)
            response.states = [self._shown(name) for name in names]
            response.entities = names

        return _answer(response, lambda: self._inbox.call(fill))

    def _get_entity_info(self, request: Any, response: Any) -> Any:
        def fill() -> None:
            self._require(request.entity)
            response.info.category.category = EntityCategory.CATEGORY_ROBOT
            response.info.description = f"{request.entity} of {self._title}"

        return _answer(response, fill)

    def _get_entity_state(self, request: Any, response: Any) -> Any:
        def fill() -> None:
            self._require(request.entity)
            response.state = self._shown(request.entity)

        return _answer(response, lambda: self._inbox.call(fill))

    def _set_entity_state(self, request: Any, response: Any) -> Any:
        target, loop = request.state, self._loop

        def change() -> None:
            self._require(request.entity)
            state = self._entities.state_with(
                request.entity,
                loop.plant.state,
                target.header.frame_id,
                target.pose if request.set_pose else None,
                target.twist if request.set_twist else None,
            )
            loop.set_state(state)

        failed = SetEntityState.Response.INVALID_POSE
        return _answer(response, lambda: self._inbox.call(change), failed)

    def _shown(self, name: str) -> EntityState:
        """The current state of a body. Called in the loop's thread."""
        plant, state = self._loop.plant, EntityState()
        state.header.frame_id = self._entities.show(name, plant.state, state.pose, state.twist)
        conversions.set_time(state.header.stamp, self._loop.validator.clock.stamp(plant.step))
        return state

    def _matching(self, filters: EntityFilters) -> list[str]:
        """The names that match the filters. Raises _Failed."""
        if filters.categories or filters.tags.tags or filters.bounds.type:
            text = "entities can only be filtered by name"
            raise _Failed(Result.RESULT_FEATURE_UNSUPPORTED, text)
        try:
            # the filter is a regular expression
            pattern = re.compile(filters.filter)
        except re.error as error:
            text = f"filter {filters.filter!r}: {error}"
            raise _Failed(Result.RESULT_OPERATION_FAILED, text) from error
        return [name for name in self._entities.names if pattern.search(name)]

    def _require(self, name: str) -> None:
        """Raise _Failed unless there is an entity with the given name."""
        names = self._entities.names
        if name not in names:
            text = f"no entity '{name}'; entities: {', '.join(names) or 'none'}"
            raise _Failed(Result.RESULT_NOT_FOUND, text)


class _Failed(Exception):
    """The failure of a request, with a code for its result."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


def _answer(
    response: Any, request: Callable[[], None], failed: int = Result.RESULT_OPERATION_FAILED
) -> Any:
    """The response with the request's result. If the request is refused, the result has the code
    `failed` and the reason.
    """
    response.result = _outcome(request, failed)
    return response


def _outcome(request: Callable[[], None], failed: int = Result.RESULT_OPERATION_FAILED) -> Result:
    try:
        request()
    except _Failed as reason:
        return Result(result=reason.code, error_message=str(reason))
    except (Refused, ValueError) as reason:
        return Result(result=failed, error_message=str(reason))
    except (TimeoutError, CallTimeout) as reason:  # two classes before Python 3.11
        text = str(reason) or "the plant did not answer in time"
        return Result(result=Result.RESULT_OPERATION_FAILED, error_message=text)
    return Result(result=Result.RESULT_OK)
