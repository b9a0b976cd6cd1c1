"""Checks of parameter values; how nodes refuse them is tested on nodes."""

from dataclasses import asdict
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from nh_control import scenarios  # noqa: E402
from nh_control.ros.runtime.parameters import (  # noqa: E402
    DISPLAY,
    PERTURBATION,
    PLANT,
    PLANT_PARAMETERS,
    RECORDER,
    TRACKER,
    Spec,
)
from nh_control.ros.runtime.process import UsageError  # noqa: E402


@pytest.mark.parametrize(
    "spec",
    {spec.name: spec for specs in (PLANT, TRACKER, DISPLAY, RECORDER) for spec in specs}.values(),
    ids=lambda s: s.name,
)
def test_every_parameter_has_a_valid_default_and_a_description(spec):
    assert spec.check(spec.default) == spec.default
    assert len(spec.description) > 10 and spec.description.endswith(".")
    descriptor = spec.descriptor()
    assert descriptor.description == spec.description and descriptor.read_only == spec.read_only


def test_an_integer_will_do_for_a_float():
    assert Spec("h", 0.5, "", minimum=0.0).check(2) == 2.0
    assert isinstance(Spec("h", 0.5, "").check(2), float)


@pytest.mark.parametrize(
    ("spec", "value", "text"),
    [
        (Spec("h", 0.5, ""), True, "a finite number"),
        (Spec("h", 0.5, ""), float("inf"), "a finite number"),
        (Spec("h", 0.5, "", minimum=0.1), 0.0, "a finite number >= 0.1"),
        (Spec("n", 1, "", minimum=1), 0, "an integer >= 1"),
        (Spec("n", 1, ""), 1.0, "an integer"),
        (Spec("on", False, ""), "yes", "true or false"),
        (Spec("name", "a", "", choices=("a", "b")), "c", "one of a, b"),
        (Spec("names", [], ""), [1, 2], "a list of strings"),
        (Spec("force", (0.0, 0.0, 0.0), ""), [1.0, 2.0], "a list of 3 finite numbers"),
        (Spec("force", (0.0, 0.0), ""), [1.0, float("nan")], "a list of 2 finite numbers"),
        (Spec("force", (0.0, 0.0), ""), 1.0, "a list of 2 finite numbers"),
        (Spec("force", (0.0, 0.0), ""), [True, False], "a list of 2 finite numbers"),
        (
            Spec("friction", (0.1, 0.1), "", minimum=0.0),
            [0.2, -1.0],
            "a list of 2 finite numbers >= 0",
        ),
    ],
)
def test_other_values_are_refused(spec, value, text):
    with pytest.raises(UsageError, match=f"'{spec.name}' must be {text}, got"):
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
        *((TRACKER, f"disarm.{name}", -1e-3) for name in ("silence_s", "error", "saturation_s")),
    ],
)
def test_numbers_that_mean_nothing_are_refused(specs, name, value):
    (spec,) = (spec for spec in specs if spec.name == name)
    with pytest.raises(UsageError, match=f"'{name}' must be"):
        spec.check(value)


def test_what_was_prepared_for_a_refused_change_is_not_done_with_the_next():
    from rclpy.parameter import Parameter

    from nh_control.ros.runtime.live import Change, LiveParameters

    done, callbacks = [], []

    def refuse(values):
        raise ValueError(f"no {values['second']}")

    changes = (
        Change(("first",), lambda values: lambda: done.append(values["first"])),
        Change(("second",), refuse),
    )
    LiveParameters(
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
        value = Spec("force", (0.0, 0.0), "").check(given)
        assert value == (1.0, 2.0) and all(type(item) is float for item in value)


def test_several_numbers_may_have_a_least_value():
    """As a tuple among a scenario's parameters that is declared with `at_least`."""
    spec = Spec("friction", (0.1, 0.1), "", minimum=0.0)
    assert spec.check([0, 2]) == (0.0, 2.0) == spec.check((0.0, 2.0))
    descriptor = spec.descriptor()  # ROS knows no ranges of lists
    assert not descriptor.integer_range and not descriptor.floating_point_range


def test_empty_lists_are_lists_of_strings():
    import rclpy
    from rclpy.context import Context
    from rclpy.parameter import Parameter

    from nh_control.ros.runtime.parameters import Parameters

    context = Context()
    rclpy.init(context=context, domain_id=101)
    try:
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
        assert parameters.declare_fields(PERTURBATION, payload.calm) == asdict(payload.calm)
        assert node.get_parameter("perturb.seed").type_ is Parameter.Type.INTEGER
        code = Parameter("scenario", value="/tmp/somebody_elses.py:ROBOT")
        (answer,) = node.set_parameters([code])
        assert not answer.successful and parameters["scenario"] == "snakeboard"
        described = node.describe_parameter("perturb.tilt")
        assert described.read_only and "[rad]" in described.description
    finally:
        context.shutdown()
