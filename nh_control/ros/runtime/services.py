"""Services whose requests the working thread carries out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as CallTimeout
from typing import TypeVar

from std_srvs.srv import SetBool, Trigger

from nh_control.ros.runtime.inbox import Inbox

Response = TypeVar("Response", SetBool.Response, Trigger.Response)


def answered(
    inbox: Inbox,
    response: Response,
    request: Callable[[], None],
    outcome: Callable[[], str],
    refusals: tuple[type[Exception], ...] = (),
) -> Response:
    """The response after a request: `outcome()`, or why there is none, one of the `refusals` or no
    answer in time.
    """
    # Python 3.10 has two kinds of TimeoutError
    expected: tuple[type[Exception], ...] = (*refusals, TimeoutError, CallTimeout)
    try:
        inbox.call(request)
        response.success, response.message = True, outcome()
    except expected as reason:
        response.success = False
        response.message = str(reason) or f"the {inbox.name} did not answer in time"
    return response
