"""Wake-ups of a working thread, by other threads of Python and by the middleware.

A wait set of rclpy takes about 20 us of processor time more for each wait than the wake-up of a
thread itself, and it is filled again before each wait. Therefore a thread waits for a native
wake-up instead, which the middleware posts when a message arrives. Only this file calls rcl.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from nh_control.loop.clocks import NANOSECONDS
from nh_control.numerics.library import library, releasing_library

LONGEST_S = 3600.0
"""Maximum duration of a single wait."""


class Wakeup:
    """One thread waits until another thread posts. A post while no thread waits ends the next wait
    unless it is cleared before.
    """

    def __init__(self) -> None:
        native, new = library(), library()["nh_wakeup_new"]
        new.restype = ctypes.c_void_p
        self._data = ctypes.c_void_p(new())
        if not self._data:
            raise MemoryError("no memory for a wake-up")
        self._post, self._clear = native["nh_wakeup_post"], native["nh_wakeup_clear"]
        self._wait = releasing_library()["nh_wakeup_wait"]

    def post(self) -> None:
        """Wake the thread. Thread-safe."""
        self._post(self._data, ctypes.c_size_t(1))

    def clear(self) -> None:
        """Forget earlier posts."""
        self._clear(self._data)

    def wait(self, timeout_s: float | None) -> None:
        """Wait until there is a post, for at most timeout_s (None: LONGEST_S)."""
        longest_s = LONGEST_S if timeout_s is None else min(timeout_s, LONGEST_S)
        self._wait(self._data, ctypes.c_int64(int(longest_s * NANOSECONDS)))

    def listen(self, subscription: Any, on: bool) -> None:
        """Let every message of a subscription (its handle in rclpy) post, or no longer. If
        messages have arrived before, this method posts. Raises RuntimeError if the middleware
        refuses.
        """
        post = ctypes.cast(self._post, ctypes.c_void_p) if on else None
        with subscription:
            status = _set_callback()(ctypes.c_void_p(subscription.pointer), post, self._data)
        if status:
            raise RuntimeError(
                f"{subscription.get_topic_name()}: the middleware cannot report the arrival of "
                f"messages (status {status} of rcl); use RMW_IMPLEMENTATION=rmw_fastrtps_cpp"
            )


@cache
def _set_callback() -> Any:
    """The function of rcl that sets what is called when a message arrives. rclpy has loaded the
    library.
    """
    return ctypes.CDLL("librcl.so")["rcl_subscription_set_on_new_message_callback"]
