"""What `nh_control doctor` finds, says and returns."""

import importlib.util
import json
import os
import subprocess
from types import SimpleNamespace

import pytest
from tiers import with_compiler

from nh_control.cli import main
from nh_control.command import doctor
from nh_control.command.doctor import ERROR, GOOD, NOTE, WARNING, Finding


def found(check):
    """Findings of a check by subject, the last one of each."""
    return {one.subject: one for one in check()}


@pytest.fixture
def ros(monkeypatch):
    """A machine with the packages of ROS that are named."""
    for name in ("ROS_DOMAIN_ID", "RMW_IMPLEMENTATION", "ROS_LOCALHOST_ONLY", "ROS_DISTRO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    present, found_spec = set(), importlib.util.find_spec
    names = {*doctor.OPTIONAL_ROS, "rclpy", "std_srvs", "builtin_interfaces", "rcl_interfaces"}

    def find(name, *rest):
        if name in names or name.endswith("_msgs"):
            return True if name in present else None
        return found_spec(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    return present


def test_it_checks_this_machine_and_fails_with_an_error_only(capsys, monkeypatch):
    code = main(["doctor", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == any(one["level"] == ERROR for one in told)
    assert {"Python", "nh_control", "C compiler", "pace", "clock", "ROS 2"} <= {
        one["subject"] for one in told
    }
    assert all(one["remedy"] for one in told if one["level"] != GOOD)
    checks = (lambda: iter([Finding("sun", ERROR, "dark", "wait")]),)
    monkeypatch.setattr(doctor, "CHECKS", checks)
    assert main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert "dark" in printed and "wait" in printed and "1 error, 0 warnings, 0 notes" in printed


def test_missing_packages_are_errors_and_extras_notes(monkeypatch):
    wanted = ["numpy", "nothing-like-it>=1", 'absent; extra == "film"', 'numpy; extra == "plot"']
    monkeypatch.setattr(doctor, "requires", lambda _: wanted)
    monkeypatch.setattr(doctor, "version", doctor.version)
    extras = SimpleNamespace(get_all=lambda _: ["plot", "film"])
    monkeypatch.setattr(doctor, "metadata", lambda _: extras)
    package, complete, lacking = doctor._packages()
    assert package.level == ERROR and package.remedy == "pip install nothing-like-it"
    assert complete.message == "complete: plot" and lacking.level == NOTE
    assert lacking.message == "film lacks absent"


def test_a_compiler_is_tried(monkeypatch, tmp_path):
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path / "cache"))
    assert found(doctor._compiler)["C compiler"].level == WARNING
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    broken.chmod(0o755)
    works, what = doctor._compiles(str(broken))
    assert not works and "no space left" in what
    with with_compiler():
        told = found(doctor._compiler)
    assert told["C compiler"].level == told["cache"].level == GOOD
    (tmp_path / "open").mkdir()
    os.chmod(tmp_path / "open", 0o777)
    monkeypatch.setenv("NH_CONTROL_CACHE", str(tmp_path / "open"))
    with with_compiler():
        assert "chmod 700" in found(doctor._compiler)["cache"].remedy


@pytest.mark.parametrize(
    ("late", "free", "levels"),
    [(1e-5, 1 << 30, (GOOD, GOOD)), (5e-3, 1 << 20, (WARNING, WARNING)), (1e-5, None, (GOOD,))],
)
def test_a_machine_that_is_busy_or_full_is_told(monkeypatch, late, free, levels):
    monkeypatch.setattr(doctor, "_lateness", lambda: late)
    monkeypatch.setattr(doctor, "_shared_memory", lambda: free)
    assert tuple(one.level for one in doctor._machine()) == levels


def test_a_clock_that_nothing_synchronizes_is_a_note(monkeypatch):
    for state, level in ((doctor.UNSYNCHRONIZED, NOTE), (0, GOOD), (None, GOOD)):
        monkeypatch.setattr(doctor, "_clock_state", lambda state=state: state)
        (told,) = doctor._clock()
        assert told.level == level


def test_ros_is_absent_or_incomplete(ros):
    assert found(doctor._ros)["ROS 2"].level == NOTE  # the rest works without
    ros.add("rclpy")
    told = found(doctor._ros)["ROS 2"]
    assert told.level == ERROR and "sensor_msgs" in told.message and "std_msgs" in told.message


def test_the_middleware_is_tried_by_a_node(ros, monkeypatch):
    from nh_control.runs.launcher import PACKAGES

    ros.update(PACKAGES, ["tf2_ros"])
    asked = []

    def run(command, env, **_):
        asked.append(env["ROS_AUTOMATIC_DISCOVERY_RANGE"])
        return SimpleNamespace(returncode=0, stdout="rmw_fastrtps_cpp\n", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    told = found(doctor._ros)
    assert told["ROS 2"].level == GOOD and told["middleware"].message == "rmw_fastrtps_cpp"
    assert asked == ["LOCALHOST"] and "tf2_ros" not in told
    assert told["nav2_msgs"].level == NOTE and "navigate_to_pose" in told["nav2_msgs"].message
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_other")
    failed = SimpleNamespace(returncode=1, stdout="", stderr="a\ncould not load rmw_other\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    told = found(doctor._ros)["middleware"]
    assert told.level == ERROR and told.message.endswith("could not load rmw_other")
    assert "install rmw_other, or unset" in told.remedy


@pytest.mark.parametrize(
    ("settings", "domain", "discovery"),
    [
        ({}, GOOD, GOOD),
        ({"ROS_DOMAIN_ID": "7", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, GOOD, GOOD),
        ({"ROS_DOMAIN_ID": "300"}, ERROR, GOOD),
        ({"ROS_DOMAIN_ID": "seven"}, ERROR, GOOD),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}, GOOD, WARNING),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "here"}, GOOD, ERROR),
        ({"ROS_LOCALHOST_ONLY": "1"}, GOOD, WARNING),
    ],
)
def test_domain_and_discovery_range_are_looked_at(ros, monkeypatch, settings, domain, discovery):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    told = found(doctor._discovery)
    assert (told["domain"].level, told["discovery"].level) == (domain, discovery)
    assert all(one.remedy for one in told.values() if one.level != GOOD)
