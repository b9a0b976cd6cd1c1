"""What README, CONTRIBUTING and the nodes' reference say is so: the example runs, commands, tables
and links are those of the code.
"""

import importlib
import re
import subprocess
import sys

import pytest
import yaml
from command import ROOT, environment
from test_rooms import ROOMS

from nh_control import scenarios
from nh_control.runs import topics

README = (ROOT / "README.md").read_text()
REFERENCE = ROOT / "nh_control" / "ros" / "README.md"
NODES = REFERENCE.read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


EXAMPLES = [text for language, text in BLOCKS if language == "python"]


def printed(example, folder):
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_own_system_runs_and_balances(tmp_path):
    (example,) = EXAMPLES
    assert len(example.splitlines()) <= 25
    numbers = re.findall(r"-?\d+\.\d*(?:e[+-]?\d+)?", printed(example, tmp_path))
    assert len(numbers) == 4
    assert max(abs(float(number)) for number in numbers) < 0.01


def test_the_options_it_names_exist(capsys):
    from nh_control.cli import main

    for name in ("simulate", "run"):
        with pytest.raises(SystemExit):
            main([name, "snakeboard", "--help"])
    for name in ("paper", "study", "replay", "identify", "view", "film", "plot"):
        with pytest.raises(SystemExit):
            main([name, "--help"])
    known = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    section = README[README.index("## The command") : README.index("## A system of your own")]
    section += (ROOT / "doc" / "tutorials" / "study.md").read_text()
    assert set(re.findall(r"--[a-z][a-z-]+", section)) <= known | {"--help"}


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", REFERENCE]
)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_contributing_names_rooms_and_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rooms = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    assert rooms and rooms == [room for room in ROOMS if room in rooms]
    assert {*rooms, "__main__.py", "cli.py"} == set(ROOMS)
    for path in re.findall(r"`((?:nh_control|test|config|launch|\.ci)/[\w./]*)`", text):
        assert (ROOT / path).exists(), path


def row(nodes, spec):
    """The line of a parameter in the table."""
    usual = {True: "true", False: "false", "": '""'}
    default = (
        usual.get(spec.value, spec.value) if isinstance(spec.value, bool | str) else spec.value
    )
    named = ", ".join(f"`{one}`" for one in spec.choices if one)
    choices = f" One of {named}." if len(spec.choices) > 1 else ""
    return f"| `{spec.name}` | {nodes} | `{default}` | {spec.sentence}{choices} |"


def test_the_documented_parameters_are_the_declared_ones():
    """Those of a scenario's fields and names come last."""
    pytest.importorskip("rclpy", reason="needs ROS: install the extra 'ros' or a ROS distribution")
    from nh_control.ros.runtime import declared

    names = ("plant", "tracker", "display", "view", "recorder", "shadow")
    nodes = {name: {one.name: one for one in getattr(declared, name.upper())} for name in names}
    known = {one.name: one for one in declared.SHARED}
    for specs in nodes.values():
        known |= specs
    rows = [
        row(", ".join(node for node, specs in nodes.items() if name in specs), spec)
        for name, spec in known.items()
    ]
    lines = NODES.splitlines()
    start = lines.index("| parameter | node | default | meaning |")
    stated = lines[start + 2 : lines.index("", start)]
    assert stated[: len(rows)] == rows
    of_scenarios = [line.split("`")[1].partition("<")[0] for line in stated[len(rows) :]]
    assert of_scenarios == [
        declared.PLANT_PARAMETERS,
        declared.MODEL_PARAMETERS,
        declared.WEIGHT_FACTORS,
        declared.PERTURBATION,
        declared.WEIGHTS,
    ]


def test_the_documented_conventions_are_those_of_the_help():
    from nh_control.runs.conventions import CONVENTIONS, table

    assert "\n".join(table()) in NODES
    told = {topic for one in CONVENTIONS for topic in one.topics}
    for name in scenarios.names():
        scenario = scenarios.get(name)
        assert {*topics.states(scenario), *topics.goals(scenario)} <= told


def test_topics_are_those_of_all_scenarios():
    stated = {}
    for names, kind in re.findall(r"^\| (`[\w/<>`, ]+`) \| (\w+/\w+) \|", NODES, re.MULTILINE):
        stated |= {name: kind for name in re.findall(r"`([\w/<>]+)`", names)}
    for name in scenarios.names():
        scenario = scenarios.get(name)
        for topic, kind in topics.recorded(scenario).items():
            name = re.sub("^contacts/.*", "contacts/<name>", topic)
            assert stated[name] == kind.replace("/msg/", "/")
        assert set(topics.odometry(scenario)) <= stated.keys()


def test_commands_on_topics_are_messages_that_the_tracker_takes():
    pytest.importorskip("rclpy", reason="needs ROS: install the extra 'ros' or a ROS distribution")
    from nh_control.ros.messages import goals

    commands = re.findall(
        r"^ros2 topic pub --once /(\w+) (\S+) '(.*?)'$", NODES, re.MULTILINE | re.DOTALL
    )
    payload = scenarios.get("quadrotor_payload")
    told = {name: kind for name, kind, _ in commands}
    assert told == topics.goals(payload) | topics.goals(scenarios.get("urdf"))
    texts = {name: message(kind, yaml.safe_load(text)) for name, kind, text in commands}
    body = goals.GoalBody("payload", "odom")
    assert goals.goal(texts["goal"], body, 0, height=1.0).tolist() == [1.0, 0.5, 1.5]
    arm = [joint.name for joint in scenarios.get("urdf").joints]
    assert goals.joint_trajectory(texts["joint_trajectory"], arm, 0)[0].duration == 3.0
    assert callable(goals.trajectory(texts["trajectory"], body, 0, payload.step_s))


def message(kind, values):
    """The ROS message of a type with these fields, as `ros2 topic pub` makes it."""
    package, *_, name = kind.split("/")
    made = getattr(importlib.import_module(f"{package}.msg"), name)()
    for field, value in values.items():
        inner = made.get_fields_and_field_types()[field]
        if isinstance(value, dict):
            value = message(inner, value)
        elif isinstance(value, list) and isinstance(value[0], dict):
            value = [message(re.fullmatch(r"sequence<(.*)>", inner)[1], item) for item in value]
        setattr(made, field, value)
    return made


TABLE = NODES.partition("| joints and bodies |")[2].partition("##")[0]
SHOWN = re.findall(r"^\| `(\w+)` \| (.*?) \|", TABLE, re.MULTILINE)


@pytest.mark.parametrize(("name", "cell"), [row for row in SHOWN if row[0] != "urdf"])
def test_what_is_shown_is_named(name, cell):
    """Joints and bodies of every scenario, except scenarios that refer to a list or a file."""
    contents = topics.contents(scenarios.get(name))
    shown = [text.split()[0] for topic in contents for text in contents[topic]]
    shown = shown[: len(shown) - len(contents["joint_commands"])]
    named = re.findall(r"`([\w ]+)`", cell)
    if name == "satellite":
        named[:2] = [f"wheel{i}_joint" for i in range(1, 5)]
    if name == "marionette":
        named, shown = named[:1], ["nh_control list marionette"]
    assert [word for word in named if word != "odom"] == shown


def test_all_scenarios_are_shown():
    assert {name for name, _ in SHOWN} == set(scenarios.names())
