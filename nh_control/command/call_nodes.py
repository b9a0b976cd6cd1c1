"""`nh_control node`: services and topics of running nodes, without the command `ros2`."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nh_control.command.usage import FAILED, NoAnswer, UsageError, usage_errors
from nh_control.command.values import bounded_integer, bounded_number

if TYPE_CHECKING:
    from nh_control.ros.client import Client

SERVICES: Mapping[str, tuple[str, bool | None, str]] = {
    "arm": ("tracker/arm", True, "send commands to hardware from now on"),
    "disarm": ("tracker/arm", False, "send no more commands to hardware"),
    "start": ("tracker/start", None, "start the reference; hardware must be armed first"),
    "pause": ("plant/pause", True, "pause the plant"),
    "resume": ("plant/pause", False, "continue after a pause"),
    "step": ("plant/step", None, "take one step while paused, or step_count steps"),
    "reset": ("plant/reset", None, "return to time 0 and the initial state"),
    "reset-state": ("plant/reset_state", None, "return to the initial state; time continues"),
    "save-state": ("plant/save_state", None, "save the present state for load-state"),
    "load-state": ("plant/load_state", None, "return to the state that save-state saved"),
}
"""For each verb: its service, the value that it sets, and its purpose."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the arguments of the command."""
    parser = commands.add_parser("node")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for verb, (service, on, text) in SERVICES.items():
        # a service without a switch is a Trigger; the others are SetBool
        switch = "" if on is None else f", {str(on).lower()}"
        description = f"{text[0].upper()}{text[1:]} (service {service}{switch})."
        call = verbs.add_parser(verb, help=text, description=description)
        call.set_defaults(command=_call, service=service, on=on)
        _add_place(call)
    echo = verbs.add_parser("echo", help="show the messages of a topic", description=_echo.__doc__)
    echo.add_argument("topic", metavar="TOPIC", help="such as joint_states or /diagnostics")
    echo.add_argument(
        "--count", type=bounded_integer(0), default=0, metavar="N", help="end after N messages"
    )
    echo.set_defaults(command=_echo)
    _add_place(echo)
    names = verbs.add_parser(
        "list", help="list nodes, topics and services", description=_list.__doc__
    )
    names.set_defaults(command=_list)
    _add_place(names)


def _add_place(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "DDS domain of the nodes (default: ROS_DOMAIN_ID, or that of the only `run`, or 0)"
    add("--domain", type=bounded_integer(0), default=-1, metavar="N", help=text)
    add("--namespace", default="", metavar="NAME", help="namespace of the nodes")
    add("--timeout", type=bounded_number(0, open_=True), default=10.0, metavar="S",
        help="longest wait for a node, an answer or a message in s (default: 10)")  # fmt: skip


def _domain(args: Namespace) -> int:
    """Return the domain from the arguments, the environment or the only run. Raises UsageError."""
    from nh_control.runs import dds_domain

    with usage_errors():
        fixed = dds_domain.fixed_domain(args.domain)
    if fixed is not None:
        return fixed
    of_runs = dds_domain.domains_of_runs()
    if len(of_runs) > 1:
        raise UsageError(
            f"several runs are active, in the DDS domains {', '.join(map(str, of_runs))}: add "
            "--domain N; each run prints its domain when it starts"
        )
    # without a run of this package, the ROS 2 default
    return of_runs[0] if of_runs else 0


@contextmanager
def _client(args: Namespace) -> Iterator[Client]:
    """Provide a node for the calls. Raises UsageError without ROS, and NoAnswer without nodes."""
    from nh_control.runs import launcher

    domain = _domain(args)
    try:
        launcher.require_ros(record=False)
    except launcher.RosMissing as missing:
        raise UsageError(str(missing)) from missing
    from nh_control.ros.client import Client, NoNode

    with Client(domain, args.namespace, args.timeout) as client:
        try:
            yield client
        except NoNode as nobody:
            raise NoAnswer(str(nobody)) from nobody


def _call(args: Namespace) -> int:
    """Call the service of a verb. Returns the exit code."""
    with _client(args) as client:
        success, message = client.call(args.service, args.on)
    print(message, file=sys.stdout if success else sys.stderr)
    return 0 if success else FAILED


def _echo(args: Namespace) -> int:
    """Show the messages of a topic, one JSON object per line."""
    with _client(args) as client:
        for message in client.echo(args.topic, args.count):
            # flush: programs read the messages from a pipe
            print(json.dumps(message), flush=True)
    return 0


def _list(args: Namespace) -> int:
    """List the nodes of the domain, their topics and their services."""
    with _client(args) as client:
        # discovery takes time: wait until no new nodes appear
        client.settle()
        nodes, topics, services = client.nodes(), client.topics(), client.services()
        if not nodes:
            raise NoAnswer(
                f"no nodes in the DDS domain {client.domain}: choose another one with --domain N; "
                "each run prints its domain when it starts"
            )
    for title, names in (("nodes", nodes), ("topics", topics), ("services", services)):
        print(f"{title}:", *names, sep="\n  ")
    return 0
