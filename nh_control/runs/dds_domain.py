"""DDS domains for runs. Nodes in different domains do not receive each other's messages, and each
run has a domain that no other run on this machine uses.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "ROS_DOMAIN_ID"
LARGEST = 101
"""Largest domain whose ports are below Linux's ephemeral ports."""
CHOSEN = range(1, LARGEST + 1)
"""Domains that runs choose from: all except the default, 0."""
DISCOVERY = (0, 10, 11)
"""Offsets of the UDP ports on which the first participants of a domain listen."""


class DomainInUse(ValueError):
    """Another run on this machine uses the domain."""


def fixed_domain(number: int = -1) -> int | None:
    """Return the domain that the user has fixed. This is the number unless it is negative,
    otherwise the value of ROS_DOMAIN_ID, or None if that is not set. Raises ValueError for a
    domain that does not exist in DDS.
    """
    text = os.environ.get(VARIABLE, "") if number < 0 else str(number)
    if not text:
        return None
    if not text.isdecimal() or int(text) > LARGEST:
        name = VARIABLE if number < 0 else "--domain"
        raise ValueError(f"{name} must be a DDS domain, 0 to {LARGEST}, got {text!r}")
    return int(text)


@contextmanager
def reserved_domain(fixed: int | None = None) -> Iterator[int]:
    """Within this context, reserve a DDS domain that no other run on this machine uses. This is
    the `fixed` domain, which other programs may have joined, or a domain that no other program has
    joined.

    A domain is reserved among all users who share the ports by listening on the TCP port with the
    same number as the domain's first UDP port. The reservation ends with this process. Raises
    DomainInUse if another run has the fixed domain, and RuntimeError if all domains are in use.
    """
    # random order: runs that start at the same time rarely try the same domain
    for number in [fixed] if fixed is not None else random.sample(CHOSEN, len(CHOSEN)):
        if fixed is None and _has_nodes(number):
            continue
        with socket.socket() as reserved:
            if _binds(reserved, "127.0.0.1", discovery_port(number)):
                reserved.listen()
                yield number
                return
    if fixed is not None:
        raise DomainInUse(
            f"another run on this machine uses the DDS domain {fixed}, and nodes of both runs "
            f"would receive each other's messages: leave out --domain and {VARIABLE}, so that "
            "each run chooses a different domain, or wait for the end of that run"
        )
    raise RuntimeError(
        f"no DDS domain of {CHOSEN[0]} to {CHOSEN[-1]} is free: end runs, or fix one with --domain"
    )


def domains_of_runs() -> list[int]:
    """Return the domains that runs on this machine have reserved."""
    # a run holds the TCP port of its domain
    return [number for number in range(LARGEST + 1) if not _is_free(number)]


def discovery_port(number: int) -> int:
    """Return the UDP port on which all participants of a domain listen."""
    # from the RTPS standard: PB + DG domain, with PB = 7400 and DG = 250
    return 7400 + 250 * number


def _is_free(number: int) -> bool:
    with socket.socket() as tried:
        return _binds(tried, "127.0.0.1", discovery_port(number))


def _has_nodes(number: int) -> bool:
    """Whether a program on this machine listens in the domain."""
    # a participant may listen on the multicast port or on its unicast ports
    for offset in DISCOVERY:
        with socket.socket(type=socket.SOCK_DGRAM) as tried:
            if not _binds(tried, "", discovery_port(number) + offset):
                return True
    return False


def _binds(listener: socket.socket, host: str, port: int) -> bool:
    """Bind the socket to the port. Returns False if the port is in use."""
    try:
        listener.bind((host, port))
    except OSError:
        return False
    return True
