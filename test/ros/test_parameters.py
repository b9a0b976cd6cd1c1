"""Checks of parameter values; how nodes refuse them is tested on nodes."""

from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from rclpy.parameter import Parameter  # noqa: E402

from nh_control import scenarios  # noqa: E402
from nh_control.discrete.results import Conditioning, StepFailed  # noqa: E402
from nh_control.loop.reports import Report  # noqa: E402
from nh_control.mechanics.parameters import Declaration  # noqa: E402
from nh_control.ros.messages.diagnostics import Diagnostics  # noqa: E402
from nh_control.ros.messages.state_publisher import second_clock  # noqa: E402
from nh_control.ros.runtime.declared import (  # noqa: E402  # noqa: E402
    DISPLAY,
    PERTURBATION,
    PLANT,
    PLANT_PARAMETERS,
    RECORDER,
    SHADOW,
    TRACKER,
    VIEW,
)
from nh_control.ros.runtime.dynamic_parameters import Change, DynamicParameters  # noqa: E402
from nh_control.ros.runtime.inbox import answer  # noqa: E402
from nh_control.ros.runtime.parameters import Parameters, descriptor  # noqa: E402
from nh_control.ros.runtime.process import UsageError  # noqa: E402
from nh_control.ros.runtime.selected_model import find_scenario, frame_prefix  # noqa: E402
from nh_control.scenarios.joints import TurningPerturbation  # noqa: E402
from nh_control.systems.pendulum import PendulumParameters  # noqa: E402


@pytest.mark.parametrize(
    "spec",
    {
        spec.name: spec for specs in (PLANT, TRACKER, DISPLAY, VIEW, RECORDER) for spec in specs
    }.values(),
    ids=lambda s: s.name,
)
def test_every_parameter_has_a_valid_default_and_a_description(spec):
    assert spec.check(spec.value) == spec.value
    assert len(spec.description) > 10 and not spec.description.endswith(".")
    told = descriptor(spec)
    assert told.description == spec.sentence and told.read_only != spec.changeable


def test_an_integer_will_do_for_a_float():
    assert Declaration("h", 0.5, at_least=0.0).check(2) == 2.0
    assert isinstance(Declaration("h", 0.5).check(2), float)


@pytest.mark.parametrize(
    ("spec", "value", "text"),
    [
        (Declaration("h", 0.5), True, "a finite number"),
        (Declaration("h", 0.5), float("inf"), "a finite number"),
        (Declaration("h", 0.5, at_least=0.1), 0.0, "a finite number >= 0.1"),
        (Declaration("n", 1, at_least=1), 0, "an integer >= 1"),
        (Declaration("n", 1), 1.0, "an integer"),
        (Declaration("on", False), "yes", "true or false"),
        (Declaration("name", "a", choices=("a", "b")), "c", "one of a, b"),
        (Declaration("names", []), [1, 2], "a list of strings"),
        (Declaration("force", (0.0, 0.0, 0.0), count=3), [1.0, 2.0], "a list of 3 finite numbers"),
        (
            Declaration("force", (0.0, 0.0), count=2),
            [1.0, float("nan")],
            "a list of 2 finite numbers",
        ),
        (Declaration("force", (0.0, 0.0), count=2), 1.0, "a list of 2 finite numbers"),
        (Declaration("force", (0.0, 0.0), count=2), [True, False], "a list of 2 finite numbers"),
        (
            Declaration("friction", (0.1, 0.1), at_least=0.0, count=2),
            [0.2, -1.0],
            "a list of 2 finite numbers >= 0",
        ),
    ],
)
def test_other_values_are_refused(spec, value, text):
    with pytest.raises(ValueError, match=f"'{spec.name}' must be {text}, got"):
        spec.check(value)


@pytest.mark.parametrize(
    ("specs", "name", "value"),
    [
        (PLANT, "command_timeout_steps", 0),
        (PLANT, "plant.substeps", 0),
        (PLANT, "step_count", 0),
        (PLANT, "step_s", -1e-3),
        (PLANT, "speed_factor", -1.0),
        (PLANT, "duration_s", -1.0),
        (DISPLAY, "rate_hz", 0.0),
        *((TRACKER, f"hardware.{name}", 0.0) for name in ("noise", "acceleration")),
        *((TRACKER, f"hardware.{name}", -1e-3) for name in ("actuation_s", "max_age_s")),
        (TRACKER, "disarm.silence_s", -1e-3),
        *((TRACKER, f"disarm.{name}", -1.001) for name in ("error", "saturation_s")),
    ],
)
def test_numbers_that_mean_nothing_are_refused(specs, name, value):
    (spec,) = (spec for spec in specs if spec.name == name)
    with pytest.raises(ValueError, match=f"'{name}' must be"):
        spec.check(value)


def test_what_was_prepared_for_a_refused_change_is_not_done_with_the_next():
    done, callbacks = [], []

    def refuse(values):
        raise ValueError(f"no {values['second']}")

    changes = (
        Change(("first",), lambda values: lambda: done.append(values["first"])),
        Change(("second",), refuse),
    )
    DynamicParameters(
        SimpleNamespace(
            add_on_set_parameters_callback=callbacks.append,
            add_post_set_parameters_callback=callbacks.append,
        ),
        SimpleNamespace(post=lambda request: request()),
        SimpleNamespace(
            checked=lambda given: SimpleNamespace(successful=True),
            read=lambda name, value: value,
        ),
        changes,
    )
    prepare, carry_out = callbacks
    refused = prepare([Parameter("first", value=1), Parameter("second", value=2)])
    assert not refused.successful and refused.reason == "no 2"
    assert prepare([Parameter("first", value=3)]).successful
    carry_out([])
    assert done == [3]


def test_lists_of_numbers_may_come_as_integers_or_arrays():
    from array import array

    for given in ([1, 2], (1.0, 2.0), array("d", [1.0, 2.0]), array("q", [1, 2])):
        value = Declaration("force", (0.0, 0.0), count=2).check(given)
        assert value == (1.0, 2.0) and all(type(item) is float for item in value)


def test_several_numbers_may_have_a_least_value():
    """As a tuple among a scenario's parameters that is declared with `at_least`."""
    spec = Declaration("friction", (0.1, 0.1), at_least=0.0, count=2)
    assert spec.check([0, 2]) == (0.0, 2.0) == spec.check((0.0, 2.0))
    told = descriptor(spec)  # ROS knows no ranges of lists
    assert not told.integer_range and not told.floating_point_range


def test_empty_lists_are_lists_of_strings():
    import rclpy
    from bench import alone

    with alone() as context:
        options = {"context": context, "automatically_declare_parameters_from_overrides": True}
        overrides = [
            Parameter("topics", value=["/odom:nav_msgs/msg/Odometry"]),
            Parameter("speed_factor", value=3),
        ]
        node = rclpy.create_node("recorder", parameter_overrides=overrides, **options)
        assert Parameters(node, RECORDER)["topics"] == ["/odom:nav_msgs/msg/Odometry"]
        node = rclpy.create_node(
            "plant", parameter_overrides=[Parameter("speed_factor", value=3)], **options
        )
        parameters = Parameters(node, PLANT)
        assert parameters["wait_for"] == [] and parameters["speed_factor"] == 3.0
        assert node.get_parameter("wait_for").type_ is Parameter.Type.STRING_ARRAY
        payload = scenarios.get("quadrotor_payload")
        given = parameters.declare_fields(PLANT_PARAMETERS, payload.parameters)
        assert given == asdict(payload.parameters)
        assert parameters["plant.parameters.lengths"] == (0.6, 0.8)
        lengths = node.get_parameter("plant.parameters.lengths")
        assert lengths.type_ is Parameter.Type.DOUBLE_ARRAY
        assert parameters.declare_fields(PERTURBATION, payload.no_perturbation) == asdict(
            payload.no_perturbation
        )
        assert node.get_parameter("perturb.seed").type_ is Parameter.Type.INTEGER
        code = Parameter("scenario", value="/tmp/somebody_elses.py:ROBOT")
        (answer,) = node.set_parameters([code])
        assert not answer.successful and parameters["scenario"] == "snakeboard"
        described = node.describe_parameter("perturb.tilt")
        assert described.read_only and " in rad" in described.description


@pytest.mark.parametrize("name", ["quadrotor_payload", "urdf"])
def test_a_file_of_parameters_is_taken_by_a_node(name, bench):
    import yaml

    from nh_control.ros.runtime.parameter_file import parameter_file

    def flat(values, prefix=""):
        for key, value in values.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{key}.")
            else:
                yield prefix + key, value

    scenario = scenarios.get(name)
    stated = yaml.safe_load(parameter_file(scenario))["/**"]["ros__parameters"]
    parameters = Parameters(bench("plant", **dict(flat(stated))), PLANT)
    assert parameters["scenario"] == name and parameters["disturb"] == []
    assert parameters.declare_changed(PLANT_PARAMETERS, scenario.parameters) == {}
    assert parameters["fallback"] == scenario.nodes.get("fallback", "zero")


def test_defaults_that_no_file_states():
    defaults = {spec.name: spec.value for spec in (*PLANT, *RECORDER)}
    assert (defaults["wait_for"], defaults["topics"]) == ([], [])
    assert (defaults["output"], defaults["source"]) == ("recording", "simulation")


def test_nodes_have_what_they_share_and_a_shadow_what_it_needs_of_the_tracker():
    names = {spec.name for spec in SHADOW}
    assert names == {
        "scenario", "urdf", "base", "accept_any_inertia", "autostart", "integrator", "step_s",
        "frame_prefix", "source",
        "hardware.estimator", "hardware.noise", "hardware.acceleration", "hardware.actuation_s",
    }  # fmt: skip
    for specs, changes in ((PLANT, True), (TRACKER, True), (DISPLAY, False)):
        (reference,) = (spec for spec in specs if spec.name == "reference")
        assert reference.changeable is changes


def test_what_may_change_while_a_plant_runs():
    assert {spec.name for spec in PLANT if spec.changeable} == {
        "reference", "speed_factor", "disturb", "fault", "fallback", "step_count", "state_file",
    }  # fmt: skip
    assert {spec.name for spec in TRACKER if spec.changeable} == {"reference"}


def test_a_descriptor_tells_range_choices_and_what_is_fixed():
    told = descriptor(Declaration("h", 0.5, description="Step.", at_least=0.25, changeable=True))
    (numbers,) = told.floating_point_range
    assert (told.name, numbers.from_value, numbers.step) == ("h", 0.25, 0.0)
    assert numbers.to_value >= 1e6 and told.dynamic_typing
    assert told.additional_constraints == "" and not told.integer_range
    told = descriptor(Declaration("n", 3, description="Count.", at_least=1))
    (numbers,) = told.integer_range
    assert (numbers.from_value, numbers.to_value, numbers.step) == (1, 2**31 - 1, 1)
    assert told.additional_constraints == "fixed at start: start the node anew to change it"
    assert not told.dynamic_typing and not told.floating_point_range
    choices = {"choices": ("", "a"), "changeable": True}
    assert descriptor(Declaration("c", "a", **choices)).additional_constraints == "one of: '', a"
    both = descriptor(Declaration("c", "a", choices=("a", "b"))).additional_constraints
    assert both.startswith("one of: a, b; fixed at start")
    unbounded = descriptor(Declaration("x", 1.0, changeable=True))
    assert not unbounded.floating_point_range and unbounded.dynamic_typing


def test_a_least_value_may_be_had():
    assert Declaration("h", 0.5, at_least=0.1).check(0.1) == 0.1
    assert Declaration("n", 5, at_least=1).check(1) == 1
    assert Declaration("c", "a", choices=("a", "b")).check("b") == "b"


class Owner:
    """A node of a component that changes while it runs, without a node."""

    def __init__(self, *changes, known=None):
        self.callbacks, self.removed, self.logged, self.posted = [], [], [], []
        node = SimpleNamespace(
            add_on_set_parameters_callback=self.callbacks.append,
            add_post_set_parameters_callback=self.callbacks.append,
            remove_on_set_parameters_callback=self.removed.append,
            remove_post_set_parameters_callback=self.removed.append,
            get_logger=lambda: SimpleNamespace(info=self.logged.append),
        )
        self.checked = SimpleNamespace(successful=True, reason="")

        class Known(dict):
            """Parameters with values."""

            read = staticmethod(lambda name, value: value)

        values = Known(known or {})
        values.checked = lambda given: self.checked
        self.live = DynamicParameters(
            node, SimpleNamespace(post=self.posted.append), values, changes
        )

    def set(self, **values):
        """Set parameters at once; returns why not, or "" ."""
        prepare, carry_out = self.callbacks
        answer = prepare([Parameter(name, value=value) for name, value in values.items()])
        if answer.successful:
            carry_out([])
        return answer.reason


def test_changes_that_are_set_at_once_are_done_together_in_the_working_thread():
    done = []
    first, second = (
        Change((name, "both"), lambda values, name=name: lambda: done.append((name, values)))
        for name in ("first", "second")
    )
    owner = Owner(first, second, known={"first": 1, "second": 2, "both": 3})
    assert owner.set(first=7, second=8) == "" and done == []
    (together,) = owner.posted
    together()
    assert done == [("first", {"first": 7, "both": 3}), ("second", {"second": 8, "both": 3})]
    owner.set(second=9)
    owner.posted[1]()
    assert done[2:] == [("second", {"second": 9, "both": 3})]
    owner.set(other=1)
    owner.posted[2]()
    assert len(done) == 3
    owner.live.close()
    assert owner.removed == owner.callbacks


def test_what_is_no_value_is_not_even_prepared():
    prepared = []
    owner = Owner(Change(("first",), prepared.append), known={"first": 1})
    owner.checked = SimpleNamespace(successful=False, reason="not a number")
    assert owner.set(first=2) == "not a number" and prepared == owner.posted == []


UNLUCKY = StepFailed("model", 0.01, "no luck", 1.0, 1.0, 25, Conditioning(1e9, 1.0, 1.0))


@pytest.mark.parametrize(
    "error",
    [ValueError("no luck"), np.linalg.LinAlgError("no luck"), UNLUCKY],
    ids=lambda e: type(e).__name__,
)
def test_changes_that_cannot_be_are_refused_with_the_reason(error):
    def refuse(values):
        raise error

    owner = Owner(Change(("first",), refuse), known={"first": 1})
    assert "no luck" in owner.set(first=2) and owner.posted == []


def test_a_change_that_takes_its_time_is_told(monkeypatch):
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("nh_control.ros.runtime.dynamic_parameters.time", clock)

    def prepare(values):
        now[0] += values["first"]
        return lambda: None

    owner = Owner(Change(("first",), prepare), known={"first": 1})
    owner.set(first=0.05)
    assert owner.logged == []
    owner.set(first=1.5)
    assert owner.logged == ["first: prepared in 1.50 s"]


@pytest.fixture
def bench():
    """Makes nodes with parameters."""
    from bench import benches

    with benches() as make:
        yield make


def test_unknown_parameters_are_refused_with_what_is_close(bench):
    with pytest.raises(
        UsageError, match=r"unknown parameter 'lockstpe' .did you mean 'lockstep'."
    ):
        Parameters(bench("plant", lockstpe=True), PLANT)
    Parameters(bench("plant", rate_hz=3.0, use_sim_time=False), PLANT)  # of the display, of ROS
    Parameters(bench("plant", **{"qos_overrides./clock.publisher.depth": 5}), PLANT)
    parameters = Parameters(bench("plant", **{"perturb.angel": 0.1}), PLANT)
    with pytest.raises(UsageError, match=r"'perturb.angel' .did you mean 'perturb.angle'."):
        parameters.declare_fields(PERTURBATION, TurningPerturbation())


def test_what_is_configured_again_keeps_what_it_was_given(bench):
    """What may change, as it is now; what is fixed, as it was at the start."""
    node = bench("plant", lockstep=True, speed_factor=2.0)
    Parameters(node, PLANT)
    assert node.set_parameters([Parameter("speed_factor", value=3.0)])[0].successful
    again = Parameters(node, PLANT)
    assert again["lockstep"] is True and again["speed_factor"] == 3.0
    assert node.describe_parameter("lockstep").read_only


def test_numbers_of_numpy_are_numbers(bench):
    node, numbers = bench("plant", **{"plant.parameters.m": 2.5}), PendulumParameters(l=np.sqrt(4))
    made = Parameters(node, PLANT).declare_fields(PLANT_PARAMETERS, numbers)
    assert (made["m"], made["l"]) == (2.5, 2.0) and type(made["l"]) is float


def test_a_scenario_that_cannot_be_read_is_a_wrong_use(tmp_path):
    for given in (
        {"scenario": "urdf", "urdf": str(tmp_path / "none.urdf")},
        {"scenario": f"{tmp_path}/none.py:ROBOT"},
        {"scenario": "unicycle"},
    ):
        with pytest.raises(UsageError):
            find_scenario({"urdf": "", "base": "fixed", "accept_any_inertia": False} | given)


def test_fields_become_parameters_with_their_bounds_and_those_that_differ_are_told(bench):
    given = {"plant.parameters.l": 2, "plant.parameters.m": 1.0, "perturb.seed": 4}
    node = bench("plant", **given)
    parameters = Parameters(node, PLANT)
    assert parameters.declare_changed(PLANT_PARAMETERS, PendulumParameters()) == {"l": 2.0}
    errors = parameters.declare_fields(PERTURBATION, TurningPerturbation(), read_only=False)
    assert errors == {"angle": 0.0, "momentum": 0.0, "seed": 4}
    described = node.describe_parameter("plant.parameters.l")
    assert described.description == "Length in m." and described.read_only
    described = node.describe_parameter("perturb.seed")
    assert described.integer_range[0].from_value == -1 and not described.read_only
    assert not node.describe_parameter("perturb.angle").floating_point_range
    (answer,) = node.set_parameters([Parameter("perturb.seed", value=-2)])
    assert not answer.successful
    (answer,) = node.set_parameters([Parameter("speed_factor", value=-1.0)])
    assert not answer.successful and parameters["speed_factor"] == 1.0
    (answer,) = node.set_parameters([Parameter("fallback", value="never")])
    assert not answer.successful and "one of hold, zero, damp, tracker, stop" in answer.reason
    (answer,) = node.set_parameters([Parameter("fault", value=["", "delay=1"])])
    assert answer.successful and parameters["fault"] == ["delay=1"]


@pytest.mark.parametrize(
    ("namespace", "given", "prefix", "full"),
    [
        ("", "auto", "", "plant"),
        ("/a/b", "auto", "a/b/", "a/b/plant"),
        ("/a", "", "", "a/plant"),
        ("/a", "x_", "x_", "a/plant"),
    ],
)
def test_a_namespace_names_the_robot_and_its_frames(bench, namespace, given, prefix, full):
    node = bench("plant", namespace, frame_prefix=given)
    assert frame_prefix(node, Parameters(node, PLANT)) == prefix
    from bench import Desk

    Diagnostics(node, Desk(), "drawing", "", lambda: Report("ok", "", {})).publish()
    assert node.sent("/diagnostics")[-1].status[0].name == f"{full}: drawing"


def test_other_sources_of_the_same_time_are_named(bench):
    node = bench("plant", "/a")
    info = lambda space: SimpleNamespace(node_namespace=space, node_name="plant")  # noqa: E731
    node.seen_publishers = {"/a/clock": [info("/a")], "/clock": [info("/c"), info("/")]}
    assert second_clock(node, "clock") == second_clock(node, "") == []
    (text,) = second_clock(node, "/clock")
    assert text.startswith("/clock comes from /c/plant, /plant as well")
    node.seen_publishers["/a/clock"].append(info("/a"))  # two of the same name
    assert "comes from /a/plant as well" in second_clock(node, "clock")[0]


class Refused(Exception):
    """One that a service expects."""


@pytest.mark.parametrize(
    ("raised", "success", "message"),
    [
        (None, True, "running"),
        (Refused("not now"), False, "not now"),
        (TimeoutError(), False, "the plant did not answer in time"),
        (TimeoutError("the plant is not active"), False, "the plant is not active"),
    ],
)
def test_services_answer_what_came_of_the_request(raised, success, message):
    def call(request):
        if raised is not None:
            raise raised
        request()

    done = []
    inbox = SimpleNamespace(name="plant", call=call)
    response = SimpleNamespace(success=None, message="")
    request = lambda: done.append(True)  # noqa: E731
    assert answer(inbox, response, request, lambda: "running", (Refused,)) is response
    assert (response.success, response.message) == (success, message)
    assert done == ([True] if success else [])
