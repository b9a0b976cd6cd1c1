"""DDS domains for tests, so that those that run side by side do not hear each other."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

DOMAINS = range(1, 101)


@contextmanager
def reserved_domain() -> Iterator[int]:
    """A DDS domain that nobody else on this machine has reserved: whoever listens on the TCP port
    of the number of its first UDP port has it.
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
