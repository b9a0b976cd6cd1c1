"""Nodes without a network: what they publish is read from their publishers."""

import copy
import itertools
import os
import threading
import types
from contextlib import contextmanager
from unittest import mock

import rclpy
from rclpy.context import Context
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message

from nh_control.ros.messages import conversions
from nh_control.ros.runtime.callback_errors import CallbackErrors


def listener(name, latched=False):
    """What the graph of nodes knows of a subscription."""
    kind = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
    return types.SimpleNamespace(
        node_name=name, qos_profile=types.SimpleNamespace(durability=kind)
    )


class Publisher:
    """Keeps copies of what is published; `subscribers` may be changed."""

    def __init__(self, kind, topic, quality, order):
        self.msg_type, self.topic_name, self.quality, self._order = kind, topic, quality, order
        self.sent, self.at, self.waits, self.subscribers = [], [], [], 1

    def publish(self, message):
        whole = isinstance(message, self.msg_type)
        self.sent.append(
            copy.deepcopy(message) if whole else deserialize_message(message, self.msg_type)
        )
        self.at.append(next(self._order))

    def get_subscription_count(self):
        return self.subscribers

    def wait_for_all_acked(self, timeout):
        self.waits.append(timeout.nanoseconds * 1e-9)
        return True


class Bench(Node):
    """A node that talks to nobody: it keeps what is `sent` and `logged`."""

    def __init__(self, name, context, namespace="", **parameters):
        self.made = None
        super().__init__(
            name,
            context=context,
            namespace=namespace,
            parameter_overrides=[Parameter(key, value=value) for key, value in parameters.items()],
            automatically_declare_parameters_from_overrides=True,
        )
        self.made, self.served, self.timed, self.logged = {}, {}, [], []
        self.seen_publishers, self.seen_subscriptions = {}, {}
        self._order, self.wall_ns = itertools.count(), 0

    def create_publisher(self, kind, topic, quality, **options):
        if self.made is None:  # of the node itself
            return super().create_publisher(kind, topic, quality, **options)
        name = self.resolve_topic_name(topic)
        self.made[topic] = Publisher(kind, name, quality, self._order)
        return self.made[topic]

    def create_service(self, kind, name, callback, **options):
        if self.made is None:
            return super().create_service(kind, name, callback, **options)
        self.served[name] = kind, callback
        return None

    def create_timer(self, period_s, callback, **options):
        self.timed.append((period_s, callback, options))

    def create_guard_condition(self, callback, **options):
        if getattr(self, "made", None) is None:
            return super().create_guard_condition(callback, **options)
        return types.SimpleNamespace(trigger=callback)

    def get_logger(self):
        if getattr(self, "made", None) is None:
            return super().get_logger()
        levels = ("debug", "info", "warning", "error", "fatal")
        keep = lambda level: lambda text, **_: self.logged.append((level, text))  # noqa: E731
        return types.SimpleNamespace(**{level: keep(level) for level in levels})

    def get_clock(self):
        if getattr(self, "made", None) is None:
            return super().get_clock()
        return types.SimpleNamespace(now=lambda: rclpy.time.Time(nanoseconds=self.wall_ns))

    @property
    def publishers(self):
        return iter(self.made.values())

    def count_publishers(self, topic):
        return len(self.seen_publishers.get(topic, ()))

    def get_publishers_info_by_topic(self, topic):
        return self.seen_publishers.get(topic, [])

    def get_subscriptions_info_by_topic(self, topic):
        return self.seen_subscriptions.get(topic, [])

    def sent(self, topic):
        return self.made[topic].sent

    def call(self, name, **request):
        kind, callback = self.served[name]
        return callback(kind.Request(**request), kind.Response())

    def report(self):
        [report] = [callback for period_s, callback, _ in self.timed if period_s == 1.0]
        report()
        return self.told

    @property
    def told(self):
        """The last report on /diagnostics: level, message and values."""
        (status,) = self.sent("/diagnostics")[-1].status
        values = {pair.key: pair.value for pair in status.values}
        return int.from_bytes(status.level, "little"), status.message, values


class Desk:
    """An inbox whose requests are carried out at once."""

    def __init__(self, name="node"):
        self.name, self.closed, self.subscribed, self.served = name, False, {}, []
        self.on_serve, self.handling = lambda: None, threading.Lock()
        self.errors = CallbackErrors(get_logger(name))

    def subscribe(self, kind, topic, callback, qos, raw=False, awaited=lambda: True, local=None):
        self.subscribed[topic] = types.SimpleNamespace(
            kind=kind, callback=callback, qos=qos, raw=raw, awaited=awaited
        )

    def post(self, request):
        if not self.closed:
            request()

    call = staticmethod(lambda request: request())

    def serve(self, timeout_s):
        self.served.append(timeout_s)
        self.on_serve()

    def close(self):
        self.closed = True

    def incompatible_publishers(self):
        return {}

    def mistyped_publishers(self):
        return []

    def give(self, topic, message, stamp_ns=None):
        if stamp_ns is not None:
            conversions.set_time(message.header.stamp, stamp_ns)
        subscribed = self.subscribed[topic]
        if subscribed.raw and not isinstance(message, bytes):
            message = serialize_message(message)
        subscribed.callback(copy.deepcopy(message))

    def state(self, codecs, q, v, stamp_ns, prefix=""):
        for codec in codecs:
            codec.write(list(q), list(v))
            self.give(prefix + codec.topic, codec.message, stamp_ns)


class Ended:
    """What a component asks of its process."""

    def __init__(self):
        self.requests = []

    def request(self, error=None, code=0):
        self.requests.append((error, code))


@contextmanager
def alone():
    """A context whose nodes find nobody and are found by nobody: Fast DDS may never return from
    the end of a node by which another one is discovered (its issue 6513).
    """
    context = Context()
    with mock.patch.dict(os.environ, ROS_AUTOMATIC_DISCOVERY_RANGE="OFF"):
        rclpy.init(context=context)
    try:
        yield context
    finally:
        context.shutdown()


@contextmanager
def benches():
    """Makes benches: f(name, namespace="", **parameters); all end."""
    made = []
    with alone() as context:

        def make(name, namespace="", **parameters):
            made.append(Bench(name, context, namespace, **parameters))
            return made[-1]

        try:
            yield make
        finally:
            for bench in made:
                bench.made = None
                bench.destroy_node()
