"""A plant that flight controllers fly: arming, flight, and loss of the link."""

from dataclasses import replace

import numpy as np
import pytest
from simulated_controller import RateController

from nh_control import scenarios
from nh_control.autopilots import flown_plant
from nh_control.autopilots.autopilot import AutopilotFailed
from nh_control.autopilots.flown_plant import FAILSAFE_S, SETTLE_S, make_flown_plant
from nh_control.runs.local_run import LocalRun
from nh_control.scenarios import PlantOptions
from nh_control.scenarios.flight import AutopilotOptions

TEXT = "betaflight:noise=0"


@pytest.fixture
def plants(monkeypatch):
    """A function that makes the plant of a scenario with these flight controllers."""

    def make(controllers, name="quadrotor", text=TEXT, **options):
        monkeypatch.setattr(flown_plant, "make_autopilots", lambda *_: controllers)
        scenario = scenarios.get(name, autopilot=text)
        model, options = scenario.model(), PlantOptions(**options)
        reference = scenario.reference(model, "hover")
        dsys = scenario.plant(model, options)
        plant = make_flown_plant(scenario, model, dsys, reference.states[0], options, reference)
        return scenario, model, reference, plant

    return make


def test_a_flight_controller_hovers_under_our_outer_loop(plants):
    controller = RateController()
    scenario, model, reference, plant = plants([controller])
    x = model.retract(reference.states[0], np.r_[0.2, 0, 0.1, 0, 0, 0.3, np.zeros(6)])
    plant.place(x, 0)
    loop = LocalRun(plant, scenario.tracker(model, reference), 250).run()
    assert np.linalg.norm(loop.errors[0][:6]) > 0.3
    assert np.linalg.norm(loop.errors[-1][:6]) < 0.02
    assert loop.motors.shape == (250, 4) and loop.forces.shape == (250, 4)
    np.testing.assert_allclose(loop.forces[-1], [9.81, 0, 0, 0], atol=0.1)
    # the last sample is that of the last substep: even times, and a specific force of 1 g
    times = np.diff([sample.time for sample in controller.samples])
    np.testing.assert_allclose(times, 0.002, rtol=1e-6)
    np.testing.assert_allclose(controller.samples[-1].specific_force, [0, 0, 9.81], atol=0.1)


def test_a_craft_is_held_until_it_is_armed_and_its_motors_have_settled(plants):
    controller = RateController(refuses=3)
    _, _, reference, plant = plants([controller])
    armed = len(controller.samples)
    assert armed >= 4 * flown_plant.CHECKED_EVERY
    plant.advance(np.array([9.81, 0, 0, 0]))
    assert len(controller.samples) == armed + round(SETTLE_S / 0.002) + 5
    for sample in controller.samples[:-5]:
        np.testing.assert_allclose(sample.position, reference.states[0][:3])
        np.testing.assert_allclose(sample.specific_force, [0, 0, 9.81])
    # let go with the thrust that the first command asks for
    np.testing.assert_allclose(plant.velocity[2], 0, atol=1e-3)


def test_a_controller_that_is_not_armed_is_named_with_its_reason(plants, monkeypatch):
    monkeypatch.setattr(flown_plant, "ARM_S", 0.3)
    controller = RateController(refuses=1000)
    with pytest.raises(AutopilotFailed, match=r"not armed within 0.3 s .*craft: calibrating"):
        plants([controller])
    assert controller.closed


def test_motors_keep_their_commands_and_then_stop_without_answers(plants):
    """Declared: FAILSAFE_S with the last commands, then none; the run goes on, and says so."""
    controller = RateController()
    _, _, _, plant = plants([controller])
    hover = np.array([9.81, 0, 0, 0])
    plant.advance(hover)
    before = plant.motors.copy()
    controller._lost = lambda k: True
    for _ in range(round(FAILSAFE_S / 0.01) - 1):
        plant.advance(hover)
    np.testing.assert_array_equal(plant.motors, before)
    assert plant.forces[0] > 9.5
    for _ in range(20):
        plant.advance(hover)
    np.testing.assert_array_equal(plant.motors, 0)
    assert plant.forces[0] < 0.1 and plant.velocity[2] < -0.5
    values, warning = plant.report()
    assert values["craft: lost in a row"] == 145 and "145 samples without" in warning
    controller.link.ended = "the firmware has ended (exit code -9)"
    plant.advance(hover)
    assert "exit code -9" in plant.report()[1]


def test_one_answer_in_ten_lost_does_not_matter(plants):
    draw = np.random.default_rng(4).random(100000)
    controller = RateController(lost=lambda k: draw[k] < 0.1)
    scenario, model, reference, plant = plants([controller])
    loop = LocalRun(plant, scenario.tracker(model, reference), 150).run()
    assert controller.link.lost > 50
    assert np.abs(loop.errors[-1][:6]).max() < 0.02


def test_a_weak_rotor_and_noise_are_options():
    text = "betaflight:rotor2=0.8,noise=0.5,seed=3"
    options = AutopilotOptions.parse(text)
    assert str(options) == text and str(AutopilotOptions.parse("px4:isolated=1")) == "px4"
    assert str(AutopilotOptions.parse("betaflight:isolated=0")) == "betaflight:isolated=0"
    assert (options.rotors, options.noise, options.seed) == ({2: 0.8}, 0.5, 3)
    frame = options.airframe(scenarios.get("quadrotor").flight.airframe)
    assert frame.effectiveness == (1.0, 0.8, 1.0, 1.0)


def test_waypoints_are_the_reference_s_from_where_the_craft_was(plants):
    """Its own position control gets positions, velocities and the heading at every step; commands
    of the tracker count for nothing, and are not recorded.
    """
    controller = RateController()
    _, model, reference, plant = plants([controller], text="px4:noise=0,setpoints=position")
    held = [setpoint for setpoint in controller.setpoints if setpoint.is_held]
    assert len(held) == len(controller.setpoints) > 0
    np.testing.assert_allclose(held[-1].waypoint.position, 0, atol=1e-12)
    plant.advance(np.array([9.81, 1.0, 0.0, 0.0]))
    last = controller.setpoints[-1]
    assert not last.is_held and last.collective == 0 and not last.rates.any()
    assert not plant.inputs.any()

    start = model.retract(reference.states[0], np.r_[0.5, 0, 0.2, np.zeros(9)])
    crafts = scenarios.get("quadrotor").flight.crafts(model.system)
    [[first], *_] = flown_plant.waypoints_of(reference, model, crafts, start)
    offset = model.configuration(reference.states[0])[:3] - model.configuration(start)[:3]
    np.testing.assert_allclose(first.position, offset)
    assert np.linalg.norm(offset) > 0.5


def test_waypoints_have_the_velocities_and_headings_of_the_reference():
    scenario = scenarios.get("quadrotor", autopilot="px4:setpoints=position")
    model = scenario.model()
    reference = scenario.reference(model, "figure_eight")
    crafts = scenario.flight.crafts(model.system)
    waypoints = flown_plant.waypoints_of(reference, model, crafts, reference.states[0])
    positions = np.array([one.position for (one,) in waypoints])
    velocities = np.array([one.velocity for (one,) in waypoints])
    speeds = np.diff(positions, axis=0) / model.h
    middle = (velocities[1:] + velocities[:-1]) / 2
    np.testing.assert_allclose(speeds, middle, atol=0.02)
    assert np.abs(speeds).max() > 0.5
    turned = model.retract(reference.states[0], np.r_[0, 0, 0, 0, 0, 0.3, np.zeros(6)])
    path = replace(reference, states=turned[None], inputs=reference.inputs[:0])
    [[first]] = flown_plant.waypoints_of(path, model, crafts, turned)
    assert first.yaw - waypoints[0][0].yaw == pytest.approx(0.3)


def test_betaflight_has_no_position_control():
    with pytest.raises(ValueError, match=r"betaflight has no position control.*px4 or ardupilot"):
        AutopilotOptions.parse("betaflight:setpoints=position")


@pytest.mark.parametrize(
    "text",
    [
        "cleanflight",
        "px4:setpoints=velocity",
        "px4:speed=3",
        "px4:port=x",
        "betaflight:rotor0=0.5",
        "px4:noise",
        "betaflight:isolated=2",
    ],
)
def test_unknown_options_are_refused(text):
    with pytest.raises(ValueError, match="expected betaflight, px4, ardupilot with options"):
        AutopilotOptions.parse(text)


def test_firmware_processes_in_the_open_would_share_their_ports():
    flight = scenarios.get("quadrotor_payload").flight
    options = AutopilotOptions.parse("betaflight:isolated=0")
    with pytest.raises(AutopilotFailed, match="2 firmware processes use the same ports"):
        flown_plant.make_autopilots(options, flight, [None, None])


def test_scenarios_without_craft_are_refused():
    with pytest.raises(ValueError, match="cart_pole declares no flight"):
        scenarios.get("cart_pole", autopilot="betaflight")
    with pytest.raises(ValueError, match="rotor5 of an airframe with 4 rotors"):
        scenarios.get("quadrotor", autopilot="betaflight:rotor5=0.5")


def test_a_controller_that_disarms_in_flight_is_named_with_its_reason(plants):
    controller = RateController()
    _, _, _, plant = plants([controller])
    hover = np.array([9.81, 0, 0, 0])
    for _ in range(10):
        plant.advance(hover)
    assert plant.report()[1] == ""
    controller.send = lambda *_: controller.link.sends()
    controller.motors, controller._refuses = np.zeros(4), 1
    plant.advance(hover)
    assert "craft: disarmed after 0.10 s: calibrating" in plant.report()[1]
    assert "disarmed after 0.10 s" in plant.link
