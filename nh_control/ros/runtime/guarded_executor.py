"""rclpy's executor, which no callback ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor, await_or_execute
from rclpy.task import Task

from nh_control.ros.runtime.callback_errors import CallbackErrors, of_rclpy

Work = Callable[[], Any]


class GuardedExecutor(SingleThreadedExecutor):
    """Tells `errors` what callbacks of services, actions, timers and subscriptions raise, and
    what of a message or request could not be read. Errors of its own end it.

    rclpy's raises all of it in the thread that spins. What could not be read would, moreover,
    block all of its callback group for ever: hence `_make_handler`, which rclpy does not document.
    """

    def __init__(self, errors: CallbackErrors, context: Context | None = None):
        super().__init__(context=context)
        self._errors = errors

    def create_task(self, callback: Any, *args: Any, **kwargs: Any) -> Task[Any]:
        """A task, such as the execution of an action's goal."""
        name = getattr(callback, "__qualname__", "a task")
        work = self._guarded(name, partial(callback, *args, **kwargs), self._errors.raised)
        return super().create_task(work)

    def _make_handler(
        self, entity: Any, node: Any, take_from_wait_list: Callable[[Any], Work | None]
    ) -> Task[None]:
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
    """Service, topic, or kind of what is waited for."""
    for name in ("srv_name", "topic_name"):
        if hasattr(entity, name):
            return str(getattr(entity, name))
    return type(entity).__name__
