"""Services that answer whatever is asked, and say why they cannot do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.exceptions import ParameterException
from rclpy.executors import await_or_execute
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.service import Service

from nh_control.ros.runtime.callback_errors import CallbackErrors, of_rclpy


def guard(node: Node, service: Service[Any, Any], errors: CallbackErrors) -> None:
    """Have a service of the node answer a request whose callback raises, and tell `errors`.

    Parameters are set one by one, or at once, as by rclpy, whose services raise at a type that
    there is not.
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

    own = {SetParameters: set_one_by_one, SetParametersAtomically: set_at_once}
    service.callback = own.get(service.srv_type, answer)


def _set(
    node: Node, what: str, messages: Sequence[ParameterMessage], errors: CallbackErrors
) -> SetParametersResult:
    try:
        given = [Parameter.from_parameter_msg(message) for message in messages]
    except ValueError as reason:
        errors.malformed(what, reason)
        return SetParametersResult(successful=False, reason=str(reason))
    try:
        return node.set_parameters_atomically(given)
    except ParameterException as reason:
        return SetParametersResult(successful=False, reason=str(reason))
    except Exception as error:
        errors.raised(what, error)
        return SetParametersResult(successful=False, reason=_error_text(error))


def _refusal(response: Any, error: Exception) -> Any:
    """A response that says, as far as its type can, that the request failed, and why."""
    for name, value in (("success", False), ("message", _error_text(error))):
        if hasattr(response, name):
            setattr(response, name, value)
    if hasattr(getattr(response, "result", None), "error_message"):  # of simulation_interfaces
        response.result.error_message = _error_text(error)
    return response


def _error_text(error: Exception) -> str:
    return f"an error of the node, see its log: {type(error).__name__}: {error}"
