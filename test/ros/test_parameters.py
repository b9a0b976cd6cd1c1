"""Checks of parameter values; how nodes refuse them is tested on nodes."""

from array import array
from dataclasses import asdict

import numpy as np
import pytest
from bench import Desk, benches
from rclpy.parameter import Parameter
from refusals import refusal

from nh_control import scenarios
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.loop.reports import Report
from nh_control.mechanics.parameters import Declaration
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.runtime.declared import (
    DISPLAY,
    PERTURBATION,
    PLANT,
    PLANT_PARAMETERS,
    RECORDER,
    TRACKER,
    VIEW,
)
from nh_control.ros.runtime.dynamic_parameters import Change, DynamicParameters
from nh_control.ros.runtime.parameters import Parameters, descriptor
from nh_control.ros.runtime.selected_model import frame_prefix
from nh_control.scenarios.joints import TurningPerturbation
from nh_control.systems.pendulum import PendulumParameters


@pytest.fixture(scope="module")
def bench():
    with benches() as make:
        yield make


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


PAIR = Declaration("friction", (0.1, 0.1), at_least=0.0, count=2)
CHOICE = Declaration("name", "a", choices=("a", "b"))


@pytest.mark.parametrize(
    ("spec", "given", "value"),
    [
        (Declaration("h", 0.5, at_least=0.0), 2, 2.0),
        (Declaration("h", 0.5), 2, 2.0),
        (Declaration("h", 0.5, at_least=0.1), 0.1, 0.1),
        (Declaration("n", 5, at_least=1), 1, 1),
        (CHOICE, "b", "b"),
        (PAIR, [0, 2], (0.0, 2.0)),
        (PAIR, (0.0, 2.0), (0.0, 2.0)),
        (PAIR, array("d", [1.0, 2.0]), (1.0, 2.0)),
        (PAIR, array("q", [1, 2]), (1.0, 2.0)),
    ],
)
def test_integers_will_do_for_floats_and_least_values_may_be_had(spec, given, value):
    found = spec.check(given)
    assert found == value and type(found) is type(value)
    assert not isinstance(found, tuple) or all(type(item) is float for item in found)


FORCE = Declaration("force", (0.0, 0.0), count=2)
REFUSED = (
    (Declaration("h", 0.5), True),
    (Declaration("h", 0.5), float("inf")),
    (Declaration("h", 0.5, at_least=0.1), 0.0),
    (Declaration("n", 1, at_least=1), 0),
    (Declaration("n", 1), 1.0),
    (Declaration("on", False), "yes"),
    (CHOICE, "c"),
    (Declaration("names", []), [1, 2]),
    *((FORCE, value) for value in ([1.0, 2.0, 3.0], [1.0, float("nan")], 1.0, [True, False])),
    (PAIR, [0.2, -1.0]),
)


def test_other_values_are_refused(snapshot):
    assert [refusal(lambda: spec.check(value)) for spec, value in REFUSED] == snapshot


def test_lists_keep_their_types_and_fields_of_scenarios_become_parameters(bench):
    recorder = bench("recorder", topics=["/odom:nav_msgs/msg/Odometry"], speed_factor=3)
    assert Parameters(recorder, RECORDER)["topics"] == ["/odom:nav_msgs/msg/Odometry"]
    node, payload = bench("plant", speed_factor=3), scenarios.get("quadrotor_payload")
    parameters = Parameters(node, PLANT)
    assert parameters["wait_for"] == [] and parameters["speed_factor"] == 3.0
    given = parameters.declare_fields(PLANT_PARAMETERS, payload.parameters)
    assert given == asdict(payload.parameters)
    assert parameters["plant.parameters.lengths"] == (0.6, 0.8)
    errors = parameters.declare_fields(PERTURBATION, payload.no_perturbation)
    assert errors == asdict(payload.no_perturbation)
    kinds = {"wait_for": "STRING", "plant.parameters.lengths": "DOUBLE"}
    for name, kind in kinds.items():
        assert node.get_parameter(name).type_ is Parameter.Type[f"{kind}_ARRAY"]
    assert node.get_parameter("perturb.seed").type_ is Parameter.Type.INTEGER
    described = node.describe_parameter("perturb.tilt")
    assert described.read_only and " in rad" in described.description
    numpy = Parameters(bench("plant", **{"plant.parameters.m": 2.5}), PLANT)
    made = numpy.declare_fields(PLANT_PARAMETERS, PendulumParameters(l=np.sqrt(4)))
    assert (made["m"], made["l"]) == (2.5, 2.0) and type(made["l"]) is float


def test_a_descriptor_tells_range_choices_and_what_is_fixed():
    told = descriptor(Declaration("h", 0.5, description="Step.", at_least=0.25, changeable=True))
    (numbers,) = told.floating_point_range
    assert (told.name, numbers.from_value, numbers.step) == ("h", 0.25, 0.0)
    assert numbers.to_value >= 1e6 and told.dynamic_typing
    assert told.additional_constraints == "" and not told.integer_range
    told = descriptor(Declaration("n", 3, description="Count.", at_least=1))
    (numbers,) = told.integer_range
    assert (numbers.from_value, numbers.to_value, numbers.step) == (1, 2**31 - 1, 1)
    assert told.additional_constraints == "fixed at start: restart the node to change it"
    assert not told.dynamic_typing and not told.floating_point_range
    choices = {"choices": ("", "a"), "changeable": True}
    assert descriptor(Declaration("c", "a", **choices)).additional_constraints == "one of: '', a"
    both = descriptor(Declaration("c", "a", choices=("a", "b"))).additional_constraints
    assert both.startswith("one of: a, b; fixed at start")
    for spec in (Declaration("x", 1.0, changeable=True), PAIR):  # ROS knows no ranges of lists
        unbounded = descriptor(spec)
        assert not unbounded.floating_point_range and not unbounded.integer_range
        assert unbounded.dynamic_typing is (spec.name == "x")


@pytest.fixture
def changing(bench):
    """Return f(*changes) -> set(**values), which returns why not, and what was posted."""

    def make(*changes):
        node, desk, posted = bench("plant"), Desk(), []
        desk.post = posted.append
        live = DynamicParameters(node, desk, Parameters(node, PLANT), changes)

        def set_(**values):
            given = [Parameter(name, value=value) for name, value in values.items()]
            return node.set_parameters_atomically(given).reason

        set_.close, set_.logged = live.close, node.logged
        return set_, posted

    return make


def noting(done, *names):
    """A change of these parameters that notes its values when it is done."""
    return Change(names, lambda values: lambda: done.append(values))


def test_changes_that_are_set_at_once_are_done_together_in_the_working_thread(changing):
    done = []
    set_, posted = changing(
        noting(done, "speed_factor", "fallback"), noting(done, "step_count", "fallback")
    )
    assert set_(speed_factor=7.0, step_count=8) == "" and done == []
    (together,) = posted
    together()
    first, second = done
    assert first == {"speed_factor": 7.0, "fallback": "zero"}
    assert second == {"step_count": 8, "fallback": "zero"}
    set_(step_count=9)
    posted[1]()
    assert done[2:] == [{"step_count": 9, "fallback": "zero"}]
    set_(state_file="other")
    assert [request() for request in posted[2:]] in ([], [None]) and len(done) == 3
    set_.close()
    before = len(posted)
    assert set_(step_count=10) == "" and len(posted) == before


def test_what_is_refused_is_neither_prepared_nor_done_with_the_next(changing):
    def refuse(values):
        raise ValueError(f"no {values['step_count']}")

    done = []
    speed = noting(done, "speed_factor", "fallback")
    set_, posted = changing(speed, Change(("step_count",), refuse))
    assert "out of range" in set_(speed_factor=-1.0) and posted == []
    assert "one of hold, zero" in set_(fallback="never") and posted == []
    assert set_(speed_factor=1.0, step_count=2) == "no 2" and posted == []
    assert set_(speed_factor=3.0) == ""
    posted[0]()
    assert done == [{"speed_factor": 3.0, "fallback": "zero"}]


UNLUCKY = StepFailed("model", 0.01, "no luck", 1.0, 1.0, 25, Conditioning(1e9, 1.0, 1.0))


@pytest.mark.parametrize(
    "error", [np.linalg.LinAlgError("no luck"), UNLUCKY], ids=lambda e: type(e).__name__
)
def test_changes_that_cannot_be_are_refused_with_the_reason(changing, error):
    def refuse(values):
        raise error

    set_, posted = changing(Change(("speed_factor",), refuse))
    assert "no luck" in set_(speed_factor=2.0) and posted == []


def test_parameters_of_other_nodes_and_of_ros_are_allowed(bench):
    given = {"rate_hz": 3.0, "use_sim_time": False, "qos_overrides./clock.publisher.depth": 5}
    Parameters(bench("plant", **given), PLANT)


def test_what_is_configured_again_keeps_what_it_was_given(bench):
    """What may change, as it is now; what is fixed, as it was at the start."""
    node = bench("plant", lockstep=True, speed_factor=2.0)
    Parameters(node, PLANT)
    assert node.set_parameters([Parameter("speed_factor", value=3.0)])[0].successful
    again = Parameters(node, PLANT)
    assert again["lockstep"] is True and again["speed_factor"] == 3.0
    assert node.describe_parameter("lockstep").read_only


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
    for name, value, reason in (
        ("perturb.seed", -2, "out of range"),
        ("speed_factor", -1.0, "out of range"),
        ("fallback", "never", "one of hold, zero, damp, tracker, wait"),
        ("scenario", "/tmp/somebody_elses.py:ROBOT", "read-only"),
    ):
        (answer,) = node.set_parameters([Parameter(name, value=value)])
        assert not answer.successful and reason in answer.reason
    assert (parameters["speed_factor"], parameters["scenario"]) == (1.0, "snakeboard")
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
    Diagnostics(node, Desk(), "drawing", "", lambda: Report("ok", "", {})).publish()
    assert node.sent("/diagnostics")[-1].status[0].name == f"{full}: drawing"
