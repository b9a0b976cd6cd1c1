"""Controllers of a user in runs of nodes, through the real command: the page about them, a node
of rclpy in runs and studies, and what is said where nobody answers.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys

import pytest
from command import MAIN, ROOT, environment, nh_control

PAGE = (ROOT / "doc" / "tutorials" / "controller.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
SHORT = ("--duration", "1", "--no-plots", "--output", "out", "--overwrite")
LOCKSTEP = ("--lockstep", "--speed-factor", "0", "--no-display")

WITHOUT_TARGETS = """
from hold import Hold
class Free(Hold):
    def __init__(self, model):
        self.model = model
"""


@pytest.fixture
def page(tmp_path):
    """The files of the page, in a folder."""
    (tmp_path / "hold.py").write_text(BLOCKS[0])
    (tmp_path / "hold_node.py").write_text(BLOCKS[2])
    return tmp_path


@pytest.fixture
def hold_node(page, free_domain):
    """The page's node; yields its domain."""
    variables = environment(
        ROS_DOMAIN_ID=str(free_domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST"
    )
    node = subprocess.Popen(
        [sys.executable, "hold_node.py"], cwd=page, env=variables, start_new_session=True
    )
    yield free_domain
    os.killpg(node.pid, signal.SIGKILL)
    node.wait()


@pytest.mark.slow
def test_a_controller_in_python_runs_as_nodes_as_in_one_process(page):
    given = ("cart_pole", "--controller", "hold.py:Hold", "--perturb-angle", "0.3", *SHORT)
    done = nh_control("run", *given, *LOCKSTEP, "--json", cwd=page)
    assert done.returncode == 0, done.stderr
    nodes = json.loads(done.stdout)
    assert nodes["controller"] == f"{page}/hold.py:Hold"
    assert nodes["ros"]["difference_to_simulation"] == 0.0 and nodes["steps"] == 100
    simulated = nh_control("simulate", *given, "--json", cwd=page)
    here = json.loads(simulated.stdout)
    assert nodes["error"]["final"] == pytest.approx(here["error"]["final"], rel=1e-6)


@pytest.mark.slow
def test_a_controller_that_fails_ends_the_nodes_with_the_line_of_its_file(page):
    (page / "fails.py").write_text("def push(k, x):\n    return 1 / (k - 20)\n")
    given = ("cart_pole", "--controller", "fails.py:push", *SHORT, *LOCKSTEP, "--json")
    done = nh_control("run", *given, cwd=page)
    assert done.returncode == 1 and json.loads(done.stdout)["steps"] == 20
    for text in ("failed at step 20", f"{page}/fails.py, line 2", "ZeroDivisionError"):
        assert text in done.stderr


@pytest.mark.slow
def test_a_node_answers_runs_and_studies_as_the_same_law_in_python(page, hold_node):
    domain = ("--domain", str(hold_node))
    given = ("run", "cart_pole", "--controller", "external", "--perturb-angle", "0.3", *domain)
    done = nh_control(*given, *SHORT, *LOCKSTEP, "--json", cwd=page)
    assert done.returncode == 0, done.stderr
    by_node = json.loads(done.stdout)
    assert by_node["steps"] == 100 and by_node["ros"]["fallback_steps"] == 0
    assert by_node["ros"]["difference_to_simulation"] is None
    (page / "free.py").write_text(WITHOUT_TARGETS)
    own = ("simulate", "cart_pole", "--controller", "free.py:Free", "--perturb-angle", "0.3")
    in_python = json.loads(nh_control(*own, *SHORT, "--json", cwd=page).stdout)
    assert by_node["error"]["final"] == pytest.approx(in_python["error"]["final"], rel=1e-9)
    study = ("study", "cart_pole", "--set", "duration=1", "--vary", "perturb.angle=0.1,0.2")
    study += ("--no-plots", "--json")
    external = ("--controller", "external", *domain, "--output", "e")
    done = nh_control(*study, *external, cwd=page, timeout_s=600)  # of two runs of nodes
    assert done.returncode == 0, done.stderr
    done = nh_control(*study, "--controller", "free.py:Free", "--output", "p", cwd=page)
    assert done.returncode == 0, done.stderr
    query = "SELECT final_error FROM runs ORDER BY run"
    runs = [sqlite3.connect(page / one / "runs.sqlite").execute(query).fetchall() for one in "ep"]
    assert len(runs[0]) == 2
    for (by_node,), (in_python,) in zip(*runs):
        assert by_node == pytest.approx(in_python, rel=1e-9)


@pytest.mark.slow
def test_who_did_not_answer_is_said(page, free_domain):
    given = ("--controller", "external", "--answer-timeout", "2", *SHORT, *LOCKSTEP)
    done = nh_control("run", "cart_pole", *given, "--domain", str(free_domain), cwd=page)
    assert done.returncode == 1 and "got no answer from the controller" in done.stderr
    expected = (
        f"Topic /joint_commands, DDS domain {free_domain}: no node publishes there. Expected "
        "sensor_msgs/msg/JointState with the stamp of the state, 0.000000000 s, name ['force']"
    )
    assert expected in done.stderr


@pytest.mark.slow
def test_a_domain_without_nodes_is_said(tmp_path, free_domain):
    at = ("--domain", str(free_domain), "--timeout", "2")
    done = nh_control("node", "list", *at, cwd=tmp_path)
    assert done.returncode == 1 and f"no nodes in the DDS domain {free_domain}: " in done.stderr


@pytest.mark.slow
def test_running_nodes_are_paused_and_shown_without_ros2(page, free_domain):
    given = ("run", "cart_pole", "--speed-factor", "0.1", "--no-plots", "--no-display")
    words = [sys.executable, "-c", MAIN, *given, "--domain", str(free_domain), "--output", "out"]
    running = subprocess.Popen(
        words, cwd=page, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        at = ("--domain", str(free_domain), "--timeout", "30")
        answered = nh_control("node", "echo", "joint_commands", "--count", "1", *at, cwd=page)
        assert json.loads(answered.stdout)["name"] == ["force"], answered.stderr
        shown = nh_control("node", "echo", "joint_states", "--count", "1", *at, cwd=page)
        assert json.loads(shown.stdout)["name"] == ["cart_joint", "pole_joint"], shown.stderr
        paused = nh_control("node", "pause", *at, cwd=page)
        assert paused.returncode == 0 and paused.stdout.startswith("paused at step")
        stepped = nh_control("node", "step", *at, cwd=page)
        number = int(paused.stdout.split()[-1]) + 1
        assert stepped.stdout == f"paused at step {number}\n"
        status = nh_control("node", "echo", "/diagnostics", "--count", "1", *at, cwd=page).stdout
        assert json.loads(status)["status"][0]["level"] in (0, 1, 2, 3)
        listed = nh_control("node", "list", *at, cwd=page).stdout
        nodes = listed.partition("topics:")[0].split()
        assert nodes[0] == "nodes:" and {"/plant", "/tracker"} <= {*nodes}
        assert "/plant/pause" in listed and "/joint_commands" in listed
        armed = nh_control("node", "arm", *at[:2], "--timeout", "2", cwd=page)
        assert armed.returncode == 1 and "no node offers /tracker/arm in the DDS" in armed.stderr
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(60)
