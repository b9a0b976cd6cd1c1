"""Runs a program in a separate network namespace, with sockets that lead into the namespace.

Programs with fixed ports, such as Betaflight's simulator target, can run only once in a network
namespace. If this file is run as a script, it creates a namespace, opens sockets in it, passes
them to its parent through a socket pair, and executes the program. A socket belongs to the
namespace in which it was opened, so the parent needs no privileges to use it. The only network in
a namespace is its loopback, so other programs cannot reach the program's ports.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
LOOPBACK = "127.0.0.1"
PR_SET_TIMERSLACK, SLACK_NS = 29, 1
"""The option for prctl, and the maximum delay after the program's sleeps. Linux's default, 50 us,
is as long as the pause between two passes of Betaflight's scheduler.
"""


class IsolationRefused(PermissionError):
    """The system does not allow a network namespace. The message contains the remedy."""


@dataclass(frozen=True)
class Isolated:
    """A program in its namespace, with `udp` and `tcp` sockets. All UDP sockets except the last
    one are bound. The TCP sockets are not connected.
    """

    process: subprocess.Popen
    udp: tuple[socket.socket, ...]
    tcp: tuple[socket.socket, ...]


def start(
    command: Sequence[str], folder: Path, bound: Sequence[int], log: IO[bytes], tcp: int = 1
) -> Isolated:
    """Start a program in `folder` in a new namespace. The namespace has UDP sockets on the ports
    `bound` of its loopback, one more UDP socket without a port, and `tcp` TCP sockets.

    This requires user namespaces, but no root privileges. Raises IsolationRefused if the system
    does not allow them.
    """
    parent, child = socket.socketpair()
    # the child receives its task as text, and returns sockets through the pair
    text = json.dumps({"command": list(command), "bound": list(bound), "tcp": tcp})
    with parent, child:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(child.fileno()), text],
            cwd=folder,
            pass_fds=[child.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        child.close()  # so that recv_fds returns if the process ends without an answer
        n = len(bound) + 1 + tcp
        message, descriptors, _, _ = socket.recv_fds(parent, 1000, n)
    # without sockets, the message is the child's error
    if len(descriptors) != n:
        process.wait()
        reason = message.decode(errors="replace") or "no answer"
        raise IsolationRefused(
            f"{command[0]} needs its own network namespace, but: {reason}; allow user "
            "namespaces (sysctl kernel.unprivileged_userns_clone=1, or "
            "kernel.apparmor_restrict_unprivileged_userns=0), or fly one craft without a "
            "namespace, by --autopilot betaflight:isolated=0"
        )
    sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    return Isolated(process, tuple(sockets[: len(bound) + 1]), tuple(sockets[len(bound) + 1 :]))


def _enter() -> None:
    """Enter a new namespace, and bring up its loopback. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    # map the user and the group into the namespace; Linux requires setgroups to be denied first
    for name, value in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(value)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = array.array("B", struct.pack("16sh22x", b"lo", 0))  # struct ifreq
        fcntl.ioctl(any_socket, SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))


def _main(descriptor: int, text: str) -> None:
    parent, request = socket.socket(fileno=descriptor), json.loads(text)
    try:
        _enter()
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in request["bound"]]
        for bound, port in zip(sockets, request["bound"]):
            bound.bind((LOOPBACK, port))
        sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sockets += [socket.socket() for _ in range(request["tcp"])]
    except OSError as error:
        parent.sendall(str(error).encode())
        sys.exit(1)
    # the option stays in effect when the program is executed
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0)
    socket.send_fds(parent, [b"ready"], [opened.fileno() for opened in sockets])
    os.execv(request["command"][0], request["command"])


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
