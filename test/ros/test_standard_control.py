"""The standard services and action of a plant, and the bodies that they show and set."""

import importlib
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from bench import benches
from bob import BOB, from_bodies, to_bodies
from geometry_msgs.msg import Pose, Twist
from std_msgs.msg import Header
from test_plant_node import STANDARD, Running, finished

from nh_control import scenarios
from nh_control.loop.simulation_loop import Mode, Options
from nh_control.ros.messages import conversions
from nh_control.ros.messages.entities import Entities


def kind(name: str, constants: dict[str, int] | None = None, **defaults):
    """A class with constants and fields; a default is a value, or a type to make it of."""

    def __init__(self, **given):
        for field, default in defaults.items():
            made = default() if isinstance(default, type) else default
            setattr(self, field, given.pop(field, made))
        assert not given, given

    return type(name, (), {"__init__": __init__, **(constants or {})})


def service(name: str, request: type | None = None, response: type | None = None):
    return type(name, (), {"Request": request or kind("Request"), "Response": response})


def numbered(names: str, first: int = 0) -> dict[str, int]:
    return {name: first + i for i, name in enumerate(names.split())}


Result = kind(
    "Result",
    numbered(
        "RESULT_FEATURE_UNSUPPORTED RESULT_OK RESULT_NOT_FOUND RESULT_INCORRECT_STATE "
        "RESULT_OPERATION_FAILED"
    ),
    result=0,
    error_message="",
)
SimulationState = kind(
    "SimulationState", numbered("STATE_STOPPED STATE_PLAYING STATE_PAUSED STATE_QUITTING"), state=0
)
FEATURES = {
    **numbered("ENTITY_STATE_GETTING ENTITY_STATE_SETTING ENTITY_INFO_GETTING", 10),
    **numbered("SIMULATION_RESET SIMULATION_RESET_TIME SIMULATION_RESET_STATE", 20),
    **numbered("SIMULATION_STATE_GETTING SIMULATION_STATE_SETTING SIMULATION_STATE_PAUSE", 24),
    **numbered("STEP_SIMULATION_SINGLE STEP_SIMULATION_MULTIPLE STEP_SIMULATION_ACTION", 31),
}
SimulatorFeatures = kind("SimulatorFeatures", FEATURES, features=list, custom_info="")
EntityCategory = kind("EntityCategory", {"CATEGORY_ROBOT": 1}, category=0)
EntityInfo = kind("EntityInfo", category=EntityCategory, description="")
EntityState = kind("EntityState", header=Header, pose=Pose, twist=Twist)
EntityFilters = kind(
    "EntityFilters",
    filter="",
    categories=list,
    tags=kind("TagsFilter", tags=list),
    bounds=kind("Bounds", type=0),
)
SCOPES = {"SCOPE_DEFAULT": 0, "SCOPE_TIME": 1, "SCOPE_STATE": 2, "SCOPE_ALL": 255}
TRANSITIONS = numbered("ALREADY_IN_TARGET_STATE STATE_TRANSITION_ERROR INCORRECT_TRANSITION", 101)
ONLY_RESULT = kind("Response", result=Result)
FILTERED = kind("Request", filters=EntityFilters)
NAMED = kind("Request", entity="")

MESSAGES = (Result, SimulationState, SimulatorFeatures, EntityCategory, EntityInfo)
SERVICES = (
    service("GetSimulatorFeatures", None, kind("Response", features=SimulatorFeatures)),
    service("GetSimulationState", None, kind("Response", state=SimulationState, result=Result)),
    service(
        "SetSimulationState",
        kind("Request", state=SimulationState),
        kind("Response", TRANSITIONS, result=Result),
    ),
    service("ResetSimulation", kind("Request", SCOPES, scope=0), ONLY_RESULT),
    service("StepSimulation", kind("Request", steps=1), ONLY_RESULT),
    service("GetEntities", FILTERED, kind("Response", result=Result, entities=list)),
    service(
        "GetEntitiesStates", FILTERED, kind("Response", result=Result, entities=list, states=list)
    ),
    service("GetEntityInfo", NAMED, kind("Response", result=Result, info=EntityInfo)),
    service("GetEntityState", NAMED, kind("Response", result=Result, state=EntityState)),
    service(
        "SetEntityState",
        kind("Request", entity="", state=EntityState, set_pose=False, set_twist=False),
        kind("Response", {"INVALID_POSE": 101}, result=Result),
    ),
)
SimulateSteps = type(
    "SimulateSteps",
    (),
    {
        "Goal": kind("Goal", steps=0),
        "Result": kind("Result", result=Result),
        "Feedback": kind("Feedback", completed_steps=0, remaining_steps=0),
    },
)


def modules() -> dict[str, ModuleType]:
    made = {}
    parts = {
        "msg": (*MESSAGES, EntityState, EntityFilters),
        "srv": SERVICES,
        "action": (SimulateSteps,),
    }
    for part, kinds in {"": (), **parts}.items():
        name = f"simulation_interfaces.{part}".rstrip(".")
        made[name] = ModuleType(name)
        for one in kinds:
            setattr(made[name], one.__name__, one)
    return made


def installed() -> bool:
    import importlib.util

    return "simulation_interfaces" in sys.modules or bool(
        importlib.util.find_spec("simulation_interfaces")
    )


STOPPED, PLAYING, PAUSED, QUITTING = range(4)


class Standard(Running):
    """A paused snakeboard without a tracker, which takes steps without commands."""

    def __init__(self, make):
        super().__init__(make, scenario="snakeboard", reference="forward", lockstep=False)
        self.plant = self.loop.plant

    def call(self, name, **request):
        response = self.node.call(name, **request)
        return finished(self, response) if hasattr(response, "send") else response

    def result(self, name, **request):
        result = self.call(name, **request).result
        return result.result, result.error_message

    def to(self, state):
        """Code and message of a change of the simulation's state."""
        wanted = self.node.served["set_simulation_state"][0].Request().state
        wanted.state = state
        return self.result("set_simulation_state", state=wanted)

    @property
    def state(self):
        return self.call("get_simulation_state").state.state

    @property
    def shown(self):
        return self.call("get_entity_state", entity="base_link").state

    def set(self, state, **what):
        return self.result("set_entity_state", entity="base_link", state=state, **what)


class Actions:
    """The server of an action, whose goals a test gives."""

    is_ended = False

    def __call__(self, node, kind, name, execute, cancel_callback, **options):
        self.execute, self.cancel = execute, cancel_callback
        return self

    def destroy(self):
        self.is_ended = True


class Goal:
    """A goal of the action, as a server gives it."""

    def __init__(self, steps):
        self.request = type("Request", (), {"steps": steps})
        self.told, self.ended, self.is_cancel_requested = [], "", False

    def publish_feedback(self, feedback):
        self.told.append((feedback.completed_steps, feedback.remaining_steps))

    def __getattr__(self, name):
        if name not in ("succeed", "abort", "canceled"):
            raise AttributeError(name)
        return lambda: setattr(self, "ended", name)


@pytest.fixture
def actions():
    return Actions()


@pytest.fixture
def board(monkeypatch, actions):
    stands_in = not installed()
    if stands_in:
        for name, module in modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.delitem(sys.modules, STANDARD, raising=False)
    monkeypatch.setattr(importlib.import_module(STANDARD), "ActionServer", actions)
    with benches() as make:
        yield Standard(make)
    if stands_in:  # other tests import it anew, without the stand-ins
        sys.modules.pop(STANDARD, None)


def test_states(board):
    assert board.state == PLAYING and board.to(PLAYING)[0] == 101
    assert board.to(PAUSED) == (1, "") and board.state == PAUSED
    assert board.to(STOPPED) == (1, "") and board.state == STOPPED
    assert board.to(STOPPED)[0] == 101
    assert board.to(PAUSED) == (1, "") and board.loop.reason == "by request"
    assert board.to(5)[0] == 0
    board.loop.mode = Mode.FAILED
    assert board.state == PAUSED
    assert board.to(PLAYING) == (102, "cannot resume: the plant is failed; reset it first")
    assert board.to(QUITTING) == (1, "") and board.ended.requests == [(None, 0)]
    assert len(set(board.call("get_simulator_features").features.features)) == 12


def test_resets(board):
    plant = board.plant
    at_start = lambda: np.array_equal(plant.state, plant.initial)
    board.to(PAUSED)
    assert board.result("step_simulation", steps=4) == (1, "") and plant.step == 4
    moved = plant.state
    assert board.result("reset_simulation", scope=2) == (1, "") and plant.step == 5 and at_start()
    board.result("step_simulation", steps=4)
    assert board.result("reset_simulation", scope=1) == (1, "")
    assert plant.step == 0 and np.array_equal(plant.state, moved)
    board.result("step_simulation", steps=2)
    assert board.result("reset_simulation", scope=4)[0] == 0 and plant.step == 2
    assert board.result("reset_simulation") == (1, "") and plant.step == 0 and at_start()


def test_steps_need_a_pause_and_say_how_many_were_made(board):
    code, text = board.result("step_simulation", steps=2)
    assert code == 4 and "pause it first" in text
    board.to(PAUSED)
    assert board.result("step_simulation", steps=0)[0] == 4
    board.loop.options = Options(False, True, 5)
    told = "5 of 9 steps taken, the plant is finished: 5 steps done"
    assert board.result("step_simulation", steps=9) == (4, told)


def test_the_action_tells_of_its_steps_and_of_its_end(board, actions):
    done, refused = Goal(5), Goal(5)
    assert finished(board, actions.execute(refused)).result.result == 4
    assert refused.ended == "abort" and not refused.told
    board.to(PAUSED)
    assert finished(board, actions.execute(done)).result.result == 1
    assert done.ended == "succeed" and len(done.told) > 1 and done.told[-1] == (5, 0)
    assert all(sum(pair) == 5 for pair in done.told)
    canceled = Goal(10**8)
    board.loop.options = Options(False, True, 10**9)
    running = actions.execute(canceled)
    running.send(None)
    actions.cancel(canceled)
    canceled.is_cancel_requested = True
    result = finished(board, running).result
    assert "of 100000000 steps taken, the plant is paused" in result.error_message
    assert canceled.ended == "canceled" and board.loop.mode is Mode.PAUSED
    board.made.close()
    assert actions.is_ended


def test_a_body_is_shown_and_set(board):
    board.to(PAUSED)
    assert board.call("get_entities").entities == ["base_link"]
    info = board.call("get_entity_info", entity="base_link").info
    assert "base_link of Snakeboard" in info.description
    none = (2, "no entity 'wheel'; entities: base_link")
    assert board.result("get_entity_state", entity="wheel") == none
    shown = board.shown
    assert shown.header.frame_id == "odom"
    shown.pose.position.x += 0.5
    assert board.set(shown, set_pose=True)[0] == 1
    (after,) = board.call("get_entities_states").states
    assert after.pose.position.x == pytest.approx(shown.pose.position.x, abs=1e-12)
    assert after.header.stamp.nanosec == 10**7 and board.plant.step == 1
    shown.pose.position.z = 0.5
    code, text = board.set(shown, set_pose=True)
    assert code == 101 and "moves in the plane" in text and board.plant.step == 1


def test_pose_and_twist_are_set_only_if_asked_for(board):
    board.to(PAUSED)
    given = board.shown
    given.pose.position.y += 0.5
    given.twist.linear.x *= 1.5
    place, speed = given.pose.position.y, given.twist.linear.x
    assert speed > 1.0  # ahead, where its wheels let it go
    at = lambda: (board.shown.pose.position.y, board.shown.twist.linear.x)
    assert board.set(given, set_pose=True) == (1, "")
    assert at() == pytest.approx((place, speed / 1.5))
    given.pose.position.y += 0.5
    assert board.set(given, set_twist=True) == (1, "")
    assert at() == pytest.approx((place, speed))
    before = board.plant.state
    assert board.set(given) == (1, "") and board.plant.state == pytest.approx(before, abs=1e-12)


@pytest.mark.parametrize(
    ("given", "code", "found"),
    [
        ({"filter": "link$"}, 1, ["base_link"]),  # anywhere in the name
        ({"filter": "^x"}, 1, []),
        ({"filter": "("}, 4, []),
        ({"categories": [1]}, 0, []),
        ({"bounds": 1}, 0, []),
    ],
)
def test_filters_are_by_name_alone(board, given, code, found):
    category = board.call("get_entity_info", entity="base_link").info.category
    assert category.category == type(category).CATEGORY_ROBOT
    for service in ("get_entities", "get_entities_states"):
        filters = board.node.served[service][0].Request().filters
        for field, value in given.items():
            if field == "bounds":
                filters.bounds.type = value
            else:
                setattr(filters, field, [category] if field == "categories" else value)
        answer = board.call(service, filters=filters)
        assert answer.result.result == code and list(answer.entities) == found
        assert service == "get_entities" or len(answer.states) == len(found)


# Bodies one by one -------------------------------------------------------------------------------

STARTS = {"snakeboard": "", "quadrotor_payload": "hover", "satellite": ""}
LONG = pytest.param("quadrotor_payload", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["snakeboard", "satellite", LONG])
def bodies(request):
    """Entities of a scenario, its model and a state in motion."""
    scenario = scenarios.get(request.param)
    dsys = scenario.model()
    at_rest = scenario.reference(dsys, STARTS[request.param]).states[-1]
    space = dsys.system.space
    v = 0.3 * np.cos(np.arange(space.nw))
    turned = space.retract(dsys.configuration(at_rest), 0.2 * np.ones(space.nv))
    state = dsys.state(turned, v)
    entities = Entities(scenario, dsys, scenario.parameters, "robot/")
    assert entities.names
    return entities, dsys, state


def made(name, prefix=""):
    scenario = scenarios.get(name)
    dsys = scenario.model()
    return Entities(scenario, dsys, scenario.parameters, prefix), dsys


@pytest.fixture(scope="module")
def planar():
    entities, dsys = made("snakeboard")
    return entities, dsys, dsys.measured_state([0.0, 0.0, 0.3, 1.0, 2.0], np.zeros(5))


def shown(entities, x):
    """Position, orientation, linear and angular velocity of all bodies."""
    rows = {}
    for name in entities.names:
        pose, twist = Pose(), Twist()
        assert entities.show(name, x, pose, twist).startswith("robot/")
        p, o, v, w = pose.position, pose.orientation, twist.linear, twist.angular
        rows[name] = np.array([p.x, p.y, p.z, o.w, o.x, o.y, o.z, v.x, v.y, v.z, w.x, w.y, w.z])
    return rows


def test_what_is_shown_and_set_again_changes_nothing(bodies):
    entities, dsys, x = bodies
    for name in entities.names:
        pose, twist = Pose(), Twist()
        frame = entities.show(name, x, pose, twist)
        assert np.abs(entities.state_with(name, x, frame, pose, twist) - x).max() < 1e-9
        assert np.abs(entities.state_with(name, x, "", None, None) - x).max() < 1e-9


def test_twists_are_velocities_in_the_parent_s_axes(bodies):
    entities, dsys, x = bodies
    ahead = dsys.step(x, dsys.idle(x))
    before, after = shown(entities, x), shown(entities, ahead)
    for name in entities.names:
        v = 0.5 * (before[name][7:10] + after[name][7:10])
        rate = (after[name][:3] - before[name][:3]) / dsys.h
        assert np.abs(rate - v).max() < 2e-2 * max(1.0, np.abs(v).max())


def test_a_body_in_space_is_turned_and_spun_in_its_parent_s_axes():
    entities, dsys = made("satellite")
    space = dsys.system.space
    x = dsys.state(space.origin, 0.1 * np.ones(space.nw))
    (name, *_), pose, twist = entities.names, Pose(), Twist()
    entities.show(name, x, pose, twist)
    turn = np.array([0.8, 0.0, 0.0, 0.6])
    pose.orientation.w, pose.orientation.z = 0.8, 0.6
    twist.angular.x, twist.angular.y, twist.angular.z = 0.3, -0.2, 0.1
    for given in ((pose, twist), (pose, None), (None, twist)):
        moved = entities.state_with(name, x, "", *given)
        now, other = Pose(), Twist()
        entities.show(name, moved, now, other)
        o, w = now.orientation, other.angular
        there = turn if given[0] else np.array([1.0, 0.0, 0.0, 0.0])
        assert np.array([o.w, o.x, o.y, o.z]) == pytest.approx(there, abs=1e-12)
        if given[1]:
            assert [w.x, w.y, w.z] == pytest.approx([0.3, -0.2, 0.1], abs=1e-12)
        else:  # the body spins about its own axes as before
            assert dsys.velocity(moved) == pytest.approx(dsys.velocity(x), abs=1e-12)


@pytest.fixture
def twins():
    """A pendulum's bob and its twin, by which its state is known; its model."""

    def both(p, q, v):
        (bob,) = to_bodies(p, q, v)
        return [bob, replace(bob, frame="twin")]

    scenario = replace(BOB, to_bodies=both, from_bodies=lambda bodies: from_bodies(bodies[1:]))
    dsys = scenario.model()
    return Entities(scenario, dsys, scenario.parameters, "robot/"), dsys


def test_of_several_bodies_the_one_that_is_named_is_moved(twins):
    entities, dsys = twins
    assert entities.names == ["bob", "twin"]
    x, pose, twist = dsys.state([0.3], [0.2]), Pose(), Twist()
    entities.show("twin", dsys.state([0.5], [0.7]), pose, twist)
    moved = entities.state_with("twin", x, "robot/odom", pose, twist)
    assert [*dsys.configuration(moved), *dsys.velocity(moved)] == pytest.approx([0.5, 0.7])
    assert entities.state_with("bob", x, "robot/odom", pose, twist) == pytest.approx(x)
    with pytest.raises(ValueError, match="twin in the frame 'odom'; expected 'robot/odom'"):
        entities.state_with("twin", x, "odom", pose, twist)


@pytest.mark.parametrize(
    ("frame", "change", "error"),
    [
        ("map", lambda p, t: None, "base_link in the frame 'map'; expected 'odom'"),
        ("", lambda p, t: setattr(p.orientation, "w", 2.0), "not a unit quaternion"),
        ("", lambda p, t: conversions.set_wxyz(p.orientation, (0, 1, 0, 0)), "in the plane"),
        ("", lambda p, t: conversions.set_wxyz(p.orientation, (0, 0, 1, 0)), "in the plane"),
        ("", lambda p, t: setattr(p.orientation, "y", 1e-4), "moves in the plane"),
        ("", lambda p, t: setattr(p.position, "z", 0.1), "moves in the plane"),
        ("", lambda p, t: setattr(p.position, "z", -1e-4), "moves in the plane"),
        ("", lambda p, t: setattr(p.position, "x", np.nan), "not finite"),
        ("", lambda p, t: setattr(t.linear, "x", np.inf), "not finite"),
    ],
)
def test_poses_and_twists_that_cannot_be_are_refused(planar, frame, change, error):
    (entities, _, x), pose, twist = planar, Pose(), Twist()
    pose.orientation.w = 1.0
    change(pose, twist)
    with pytest.raises(ValueError, match=error):
        entities.state_with("base_link", x, frame, pose, twist)


def test_a_twist_out_of_the_plane_is_not_shown_after_a_planar_body_is_moved(planar):
    (entities, _, x), twist = planar, Twist()
    (name,) = entities.names
    twist.linear.z, twist.angular.x = 3.0, 2.0
    np.testing.assert_allclose(entities.state_with(name, x, "", None, twist), x, atol=1e-15)
    entities.show(name, x, Pose(), twist)
    assert twist == Twist()
