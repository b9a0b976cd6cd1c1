"""An executor and services that survive, count and report errors in callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.context import Context
from rclpy.exceptions import ParameterException
from rclpy.executors import SingleThreadedExecutor, await_or_execute
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.service import Service
from rclpy.task import Task

from nh_control.ros.runtime.callback_errors import CallbackErrors, of_rclpy

Work = Callable[[], Any]


class GuardedExecutor(SingleThreadedExecutor):
    """An executor that reports errors in callbacks, and unreadable messages and requests, to
    `errors`. An error in the executor itself ends it.

    rclpy's executors raise all these errors in the thread that spins, and an unreadable message
    blocks its callback group forever. Therefore this class overrides `_make_handler`, which rclpy
    does not document.
    """

    def __init__(self, errors: CallbackErrors, context: Context | None = None):
        super().__init__(context=context)
        self._errors = errors

    def create_task(self, callback: Any, *args: Any, **kwargs: Any) -> Task[Any]:
        """Return a task, such as the execution of an action's goal, whose errors are reported."""
        # rclpy runs the execution of an action's goal as a task
        name = getattr(callback, "__qualname__", "a task")
        work = self._guarded(name, partial(callback, *args, **kwargs), self._errors.raised)
        return super().create_task(work)

    def _make_handler(
        self, entity: Any, node: Any, take_from_wait_list: Callable[[Any], Work | None]
    ) -> Task[None]:
        # an argument that rclpy cannot read is malformed, and other errors belong to the callback
        what, errors = _name(entity), self._errors
        report = errors.malformed if of_rclpy(getattr(entity, "callback", None)) else errors.raised

        def take(ready: Any) -> Work | None:
            try:
                work = take_from_wait_list(ready)
            except Exception as reason:
                errors.malformed(what, reason)
                return None
            return None if work is None else self._guarded(what, work, report)

        return super()._make_handler(entity, node, take)

    def _guarded(
        self, what: str, callback: Work, report: Callable[[str, Exception], None]
    ) -> Work:
        async def work() -> Any:
            try:
                return await await_or_execute(callback)
            except Exception as error:
                report(what, error)
                return None

        return work


def _name(entity: Any) -> str:
    """Return the name of a service or topic, or the kind of another entity."""
    for name in ("srv_name", "topic_name"):
        if hasattr(entity, name):
            return str(getattr(entity, name))
    return type(entity).__name__


def guard(node: Node, service: Service[Any, Any], errors: CallbackErrors) -> None:
    """Make a service of the node answer even if its callback raises an error, and report the error
    to `errors`.

    Callbacks of parameter services are replaced, because rclpy's callbacks raise an error if a
    parameter has an unknown type.
    """
    callback, what = service.callback, service.srv_name
    report = errors.malformed if of_rclpy(callback) else errors.raised

    def set_all(messages: Sequence[ParameterMessage]) -> SetParametersResult:
        return _set(node, what, messages, errors)

    def set_one_by_one(request: Any, response: Any) -> Any:
        response.results = [set_all([message]) for message in request.parameters]
        return response

    def set_at_once(request: Any, response: Any) -> Any:
        response.result = set_all(request.parameters)
        return response

    async def answer(request: Any, response: Any) -> Any:
        try:
            return await await_or_execute(callback, request, response)
        except Exception as error:
            report(what, error)
            return _refusal(type(response)(), error)

    replacements = {SetParameters: set_one_by_one, SetParametersAtomically: set_at_once}
    service.callback = replacements.get(service.srv_type, answer)


def _set(
    node: Node, what: str, messages: Sequence[ParameterMessage], errors: CallbackErrors
) -> SetParametersResult:
    try:
        parameters = [Parameter.from_parameter_msg(message) for message in messages]
    except ValueError as reason:
        errors.malformed(what, reason)
        return SetParametersResult(successful=False, reason=str(reason))
    try:
        return node.set_parameters_atomically(parameters)
    except ParameterException as reason:
        return SetParametersResult(successful=False, reason=str(reason))
    except Exception as error:
        errors.raised(what, error)
        return SetParametersResult(successful=False, reason=_error_text(error))


def _refusal(response: Any, error: Exception) -> Any:
    """Return the response with the failure and its reason, in the fields that its type has."""
    for name, value in (("success", False), ("message", _error_text(error))):
        if hasattr(response, name):
            setattr(response, name, value)
    if hasattr(getattr(response, "result", None), "error_message"):  # in simulation_interfaces
        response.result.error_message = _error_text(error)
    return response


def _error_text(error: Exception) -> str:
    return f"an error of the node, see its log: {type(error).__name__}: {error}"
