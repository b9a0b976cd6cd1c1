"""The exported packages in C++: their core gives the commands of the package's tracker of hardware
to round-off, refuses what it must, and both have the files of their kind.
"""

import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from tiers import c_compiler, needs_compiler

import nh_control as nh
from nh_control.interop.cpp_package import FILES, RobotJoints, cpp_package
from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.loop.hardware_tracker import HardwareTracker, Timing
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.scenarios import get
from nh_control.scenarios.robot_joints import robot_joints

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-ffp-contract=off")
NOISE, ACCELERATION = 1e-3, 2.0
DRIVER = """
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <type_traits>
#include "model.hpp"
#include "tracker_core.hpp"
using Core = nh_control::TrackerCore<%(package)s::Model>;
static double next() { std::string s; std::cin >> s; return std::strtod(s.c_str(), nullptr); }
int main(int argc, char **argv)
{
    std::map<std::string, std::string> given;
    for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
    const auto declare = [&given](const std::string &name, const auto &value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>)
            return given.count(name) ? given[name] : value;
        else if constexpr (std::is_same_v<Value, double>)
            return given.count(name) ? std::stod(given[name]) : value;
        else if constexpr (std::is_same_v<Value, std::vector<double>>)
            return given.count(name) ? Value{std::stod(given[name])} : value;
        else
            return value;
    };
    try {
        Core core(nh_control::read_settings<%(package)s::Model>(declare));
        Core::Joints positions, velocities;
        Core::Efforts efforts{};
        const std::int64_t start_ns = std::stoll(given["start_ns"]);
        bool is_active = false;
        for (long rows = static_cast<long>(next()); rows > 0; --rows) {
            const auto time_ns = static_cast<std::int64_t>(next());
            for (double &q : positions) q = next();
            for (double &v : velocities) v = next();
            auto result = nh_control::Result::ok;
            if (!is_active) result = core.check_start(time_ns, positions, velocities);
            is_active = true;
            if (!core.started() && time_ns >= start_ns) core.start(start_ns);
            if (result == nh_control::Result::ok)
                result = core.update(time_ns, positions, velocities, efforts);
            if (result != nh_control::Result::ok) {
                std::printf("%%s\\n", core.problem(result).c_str());
                return 1;
            }
            for (double effort : efforts) std::printf("%%a\\n", effort);
        }
        std::printf("%%ld %%ld\\n", core.report().steps, core.report().missed);
    } catch (const std::invalid_argument &reason) {
        std::printf("%%s\\n", reason.what());
        return 1;
    }
}
"""


@cache
def tracked():
    """The cart-pole's swing-up with integral action, and its code."""
    scenario = get("cart_pole")
    dsys = scenario.model()
    tracker = scenario.tracker(dsys, scenario.reference(dsys), integral=True)
    return scenario, tracker, nh.export_c(dsys, tracker)


def package(kind):
    scenario, tracker, code = tracked()
    return cpp_package(kind, code, tracker, robot_joints(scenario))


SIGN, GAIN, SCALE = np.array([-1.0, 1.0]), -0.5, 3.0
"""Of the joints of another robot, of its effort, and of the effort's command."""


def other_robot():
    """The package for the other robot."""
    scenario, tracker, code = tracked()
    robot = robot_joints(scenario)
    joints = tuple(replace(joint, sign=sign) for joint, sign in zip(robot.joints, SIGN.tolist()))
    efforts = tuple(replace(effort, gain=GAIN) for effort in robot.efforts)
    return cpp_package("controller", code, tracker, RobotJoints(joints, efforts))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The core as a program: rows of time, positions and velocities in, efforts out."""
    if not shutil.which("g++") or c_compiler() is None:
        pytest.skip("needs a C and a C++ compiler")
    top = other_robot().write(tmp_path_factory.mktemp("package")) / "src"
    top.joinpath("main.cpp").write_text(DRIVER % {"package": "cart_pole_controller"})
    for command in (
        (c_compiler(), "-std=c99", *STRICT, "-c", "cart_pole.c"),
        ("g++", "-std=c++17", *STRICT, "main.cpp", "cart_pole.o", "-o", "program"),
    ):
        done = subprocess.run(command, cwd=top, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return top / "program"


def output(program, rows, settings, start_ns=0):
    """The lines that the program prints."""
    settings = settings | {"start_ns": start_ns}
    options = [text for name, value in settings.items() for text in (name, str(value))]
    numbers = [len(rows), *(value for row in rows for value in row)]
    text = "\n".join(float(value).hex() for value in numbers)
    command = [program, *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


@dataclass(frozen=True)
class Case:
    """How states come: with velocities or to a filter, at these times, to a reference that starts
    at another time (steps).
    """

    filtered: bool
    times: tuple[float, ...]
    start: int = 0


def python_run(case):
    """Rows of measurements of a disturbed run, and the efforts of the package's tracker."""
    _, tracker, _ = tracked()
    dsys = tracker.dsys
    filtered = FilteredState(dsys, NOISE, ACCELERATION)
    estimate = filtered if case.filtered else MeasuredState(dsys)
    hardware = HardwareTracker(ReferenceSequence(tracker), estimate, Timing())
    x = dsys.retract(tracker.reference.states[0], np.array([0.05, -0.02, 0.0, 0.0]))
    rows, commands = [], []
    for at, after in zip(case.times, (*case.times[1:], case.times[-1] + 1)):
        time_ns = round(at * dsys.h * 1e9)
        q, v = dsys.configuration(x), dsys.velocity(x)
        if at == case.start:
            hardware.start(time_ns)
        measured = [np.nan, np.nan] if case.filtered else v
        u = hardware.answer(time_ns, q, measured, time_ns).command.u
        hardware.add_input(u, time_ns)
        rows.append((time_ns, *(SIGN * q), *(SIGN * measured)))
        commands.append(SCALE * (u / GAIN))
        x = dsys.with_step((after - at) * dsys.h).step(x, u + 0.3)  # a push
    return rows, np.array(commands)


STEADY = (*range(40), *range(43, 320))  # three steps are missed
JITTER = tuple(k + 0.3 * np.sin(k) * (k > 0) for k in range(260))


@needs_compiler()
@pytest.mark.parametrize(
    ("case", "missed"),
    [
        (Case(False, STEADY), 3),
        (Case(False, JITTER), 0),
        (Case(True, STEADY[:200]), 3),
        (Case(False, tuple(range(50)), start=5), 0),
    ],
    ids=["measured", "jitter", "filtered", "before the start"],
)
def test_commands_are_those_of_the_tracker_of_hardware(case, missed, program):
    """Over the swing-up and beyond its end, to round-off, which grows in the filter."""
    rows, commands = python_run(case)
    settings = {"scale": SCALE}
    if case.filtered:
        settings |= {"filter.noise": NOISE, "filter.acceleration": ACCELERATION}
    start_ns = round(case.start * tracked()[1].dsys.h * 1e9)
    lines = output(program, rows, settings, start_ns)
    efforts = np.array([float.fromhex(line) for line in lines[:-1]])
    scale = np.abs(commands).max()
    np.testing.assert_allclose(efforts, commands[:, 0], rtol=0, atol=1e-12 * scale)
    assert lines[-1] == f"{len(rows) - case.start} {missed}"


@needs_compiler()
def test_what_cannot_be_tracked_is_refused_with_a_sentence(program):
    nan = float("nan")
    for words, row, settings in (
        ("position of joint 'pole_joint' is not a number", (0, 0, nan, 0, 0), {}),
        ("with filter.noise > 0 it is estimated", (0, 0, 0, nan, 0), {}),
        (
            "'pole_joint' is at 0.5 rad, the reference at 0 rad, more than 0.2",
            (0, 0, 0.5, 0, 0),
            {},
        ),
        ("'cart_joint' moves by 2 m/s", (0, 0, 0, 2, 0), {}),
        ("reference has ended", (0, 0, 0, 0, 0), {"at_end": "error"}),
        ("more than 0.1 away", (0, 0.15, 0, 0, 0), {"abort_tolerance.position": 0.1}),
        (
            "at_end must be one of hold, zero, error, got 'stay'",
            (0, 0, 0, 0, 0),
            {"at_end": "stay"},
        ),
    ):
        late = [(int(1e12), *row[1:])] if words.startswith("reference") else []
        assert words in output(program, [row, *late], settings)[-1]


@pytest.mark.parametrize("kind", FILES)
def test_a_package_is_complete(kind, tmp_path):
    """Its files name each other, and its parameters are those of the core."""
    top = package(kind).write(tmp_path)
    name = f"cart_pole_{kind}"
    assert top.name == name
    assert ElementTree.parse(top / "package.xml").findtext("name") == name
    build = (top / "CMakeLists.txt").read_text()
    sources = [word for word in build.split() if word.strip(")").endswith((".c", ".cpp"))]
    assert len(sources) == 2 and all((top / source.strip(")")).is_file() for source in sources)
    parameters = yaml.safe_load(next(top.glob("config/*.yaml")).read_text())
    settings = parameters["tracker" if kind == "controller" else name]["ros__parameters"]
    known = (top / "src" / "tracker_settings.hpp").read_text()
    own = ("update_rate", "command_interface", "command_prefix", "state_prefix")
    assert [one for one in settings if one not in own and f'"{one}"' not in known] == []
    assert settings["joints"] == ["cart_joint", "pole_joint"] and settings["scale"] == [1.0]
    if kind == "controller":
        (plugin,) = ElementTree.parse(top / "plugin.xml").getroot()
        assert parameters["controller_manager"]["ros__parameters"]["tracker"] == {
            "type": plugin.get("name")
        }
    assert not [file for file in top.rglob("*") if file.is_file() and "@" in plain(file)]


def plain(file):
    """The text of a file without the address in package.xml."""
    return file.read_text().replace("you@example.com", "")


def test_the_command_writes_packages_and_refuses_bodies(tmp_path, capsys):
    from nh_control import cli

    command = ["export", "cart_pole", "--rclcpp", "--integral", "--output", str(tmp_path)]
    assert cli.main(command) == 0
    expected = package("tracker").files
    assert {
        str(file.relative_to(tmp_path / "cart_pole_tracker")): file.read_text()
        for file in tmp_path.rglob("*")
        if file.is_file()
    } == expected
    assert cli.main(["export", "snakeboard", "--controller"]) == 2
    assert "its state is in odom" in capsys.readouterr().err
