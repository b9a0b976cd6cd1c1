"""Outputs of a simulation loop and of a tracker's interface, which keep what they are given."""

from types import SimpleNamespace


def loop_output(publish=lambda: None, changed=lambda: None, **conditions):
    """An output of a loop: nothing is missing, nobody is late, unless a condition says so."""
    given = {
        "missing": lambda: "",
        "late_subscribers": lambda: False,
        "placed": lambda: None,
    } | conditions
    return SimpleNamespace(publish=publish, changed=changed, **given)


def tracker_output(report, send=lambda *command: None, restarted=lambda: None, publisher=None):
    """An output of a tracker whose commands go to `send`."""
    publisher = publisher or SimpleNamespace(get_subscription_count=lambda: 0, topic_name="c")
    return SimpleNamespace(report=report, send=send, restarted=restarted, publisher=publisher)
