"""DDS domains for tests: tests that run at the same time do not receive each other's messages."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

DOMAINS = range(1, 101)


@contextmanager
def reserved_domain() -> Iterator[int]:
    """Return a DDS domain that no other test on this machine uses. A listener on the TCP port with
    the number of the domain's first UDP port reserves it.
    """
    for number in random.sample(DOMAINS, len(DOMAINS)):
        with socket.socket() as reserved:
            try:
                reserved.bind(("127.0.0.1", 7400 + 250 * number))
            except OSError:
                continue
            reserved.listen()
            yield number
            return
    raise RuntimeError("no DDS domain is free: 100 others run on this machine")
