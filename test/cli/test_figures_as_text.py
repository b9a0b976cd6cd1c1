"""What figures show of runs and comparisons, compared with stored texts."""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from figure_text import text
from test_figure_data import SWING, TOWING, ran, run_of

import nh_control as nh
from nh_control import scenarios
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.figures import comparison, stick_figures
from nh_control.figures.gallery import figures
from nh_control.scenarios import (
    Displacement,
    MonitoredOutput,
    PlanarBody,
    PlantOptions,
    Scenario,
    disturbance,
)
from nh_control.scenarios.visual_model import Cable, Pose, Shape, VisualModel
from nh_control.studies.comparison import Comparison, Drift, WorkPoint
from nh_control.studies.motion import InitialValueProblem
from nh_control.systems import pendulum, snakeboard

FAILED = StepFailed("arm", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))


def rest(steps):
    return {"rest": lambda model: model.simulate(np.zeros(model.nx), np.zeros((steps, model.nu)))}


@cache
def swinging():
    """0.4 rad off its reference, with its input at the limit for some time."""
    found = run_of(SWING, perturbation=Displacement(0.4))
    assert 0 < found.loop.saturated.sum() < len(found.loop.saturated)
    return found


def changed(run, scenario=None, feedback=None, **loop):
    """The run of another scenario, or with another loop."""
    run = replace(run, loop=replace(run.loop, **loop)) if loop else run
    return run if scenario is None else replace(
        run, experiment=replace(run.experiment, scenario=scenario)
    )  # fmt: skip


def gusty():
    texts = ("theta:gust:0.5,start=0.1,duration=0.2", "theta:gust:1,start=0.4,duration=9")
    pushes = tuple(map(disturbance.parse, texts))
    return run_of(SWING, options=PlantOptions(disturbances=pushes))


def heavier():
    """The reference is one of the model, the run of the plant; it was stopped."""
    run = swinging()
    plant = run.experiment.plant.with_parameters(m=2.0)
    return replace(run, experiment=replace(run.experiment, plant=plant), stopped="Ctrl-C")


def watched():
    monitor = MonitoredOutput(
        "angle", ("a", "b"), "rad", lambda p, q, v, u, w: np.array([q[0], v[0]]), -0.5, "too low"
    )
    return changed(swinging(), replace(SWING, monitor=monitor))


def driving():
    """At rest, with residuals of constraints that grow."""
    run = run_of(replace(scenarios.get("differential_drive"), references=rest(50)))
    rows = np.arange(1, len(run.loop.constraint) + 1)[:, None]
    return changed(
        run, constraint=1e-6 * rows * np.linspace(-1, 0.5, run.loop.constraint.shape[1])
    )


@cache
def towed():
    """A tug whose rope is twice as long as the model's, with other saturated steps per input."""
    options = PlantOptions(parameters={"length": 1.0})
    run = ran(TOWING, options=options, perturbation=Displacement(0.2, 0.1))
    return changed(run, saturated=np.arange(40)[:, None] // 10 == np.arange(4))


def rolled():
    """A point on a sphere, whose configuration has one number more than its tangent vectors."""
    ball = nh.System("ball", nh.S2("link"), lambda q, v: ca.sumsqr(v) / 2, inputs=("push",),
                     force=lambda q, v, u: ca.vertcat(u, 0, 0))  # fmt: skip
    start = np.array([0.0, 0.0, 1.0]), np.array([0.3, 0.2, 0.0])
    roll = {"roll": lambda m: m.simulate(m.state(*start), np.zeros((10, 1)))}
    run = ran(own("ball", ball, roll, 4), perturbation=Displacement(0.1, 0.5))
    errors = run.loop.errors.copy()
    errors[3] = 1e-30  # errors are drawn over nine decades
    return changed(run, errors=errors)


def own(name, system, references, size, **options):
    weights = (np.eye(size), np.eye(1), np.eye(size))
    return Scenario(name=name, title=name, parameters=None, make_system=lambda parameters: system,
                    integrators={"midpoint": nh.midpoint}, references=references,
                    weights=weights, step_s=0.05, **options)  # fmt: skip


def sledding():
    """A planar body without a visual model: x points along the heading, y to the left."""
    sled = nh.System("sled", nh.SE2(), lambda q, v: ca.sumsqr(v) / 2, inputs=("push",),
                     force=lambda q, v, u: ca.vertcat(0, u, 0))  # fmt: skip
    start = [0.3, 1.0, 2.0], [1.0, 0.5, 0.1]
    slide = {"slide": lambda m: m.simulate(m.state(*start), np.zeros((10, 1)))}
    return ran(own("sled", sled, slide, 6, body=PlanarBody("base_link", "odom")))


def shunting():
    """A board moves forth along its heading and back, with a rope and an outline; no feedback."""
    states = np.zeros((51, 8))
    states[:, 2], states[:, 3] = np.pi / 2, 3.0
    states[:, 4] = np.r_[np.linspace(0, 1, 26), np.linspace(1, 0.9, 25)]

    def poses(p, q):
        body = Pose.planar(*q[2:])
        return {"body": body, "end": body.rotated(0.0, (-0.5, 0.0, 0.0))}

    def visual(p):
        box = Shape("box", (0.3, 0.2, 0.1), (0.0, 1.0, 0.0), "body", opacity=0.5)
        more = Shape("box", (0.1, 0.1, 0.1), (0.0, 0.0, 1.0), "end")
        ropes = (Cable("body", "end"),)
        return VisualModel("odom", poses, (box, more), "body", ropes, outline=("body", "end"))

    board = replace(scenarios.get("snakeboard"), visual=visual, references=rest(50))
    run = ran(replace(board, perturb=lambda m, x, p: x))
    trajectory = replace(run.loop.trajectory, states=states)
    return replace(changed(run, trajectory=trajectory), feedback=False)


def turning(steps=None):
    satellite = scenarios.get("satellite")
    tilted = replace(satellite.perturbation, attitude=0.5)
    return run_of(satellite, duration_s=0.5 if steps is None else steps * satellite.step_s,
                  perturbation=tilted)  # fmt: skip


RUNS = {
    "a pendulum": (swinging, ("path", "states", "inputs", "energy", "error")),
    "a pendulum in gusts": (gusty, ("inputs", "energy", "error")),
    "a heavier plant, stopped": (heavier, ("energy",)),
    "without feedback": (
        lambda: replace(swinging(), loop=swinging().open_loop, feedback=False), ("error",)
    ),
    "a failed open loop": (
        lambda: replace(swinging(), open_loop=replace(swinging().open_loop, failure=FAILED)),
        ("error",),
    ),
    "after the end of the reference": (
        lambda: run_of(replace(SWING, references=rest(20)), duration_s=0.6,
                       perturbation=Displacement(0.1)), ("error",),
    ),
    "a monitored output": (watched, ("angle",)),
    "residuals of constraints": (driving, ("energy",)),
    "bodies in space": (towed, ("path", "states", "inputs", "energy", "error")),
    "sticks": (lambda: changed(towed(), replace(TOWING, to_bodies=None)), ("path",)),
    "on a sphere": (rolled, ("error",)),
    "a sled": (sledding, ("path",)),
    "forth and back": (shunting, ("path",)),
    "a satellite": (turning, ("path", "states")),
    "five steps of a satellite": (lambda: turning(5), ("path",)),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_figures_show_the_numbers_of_a_run(name, snapshot):
    make, chosen = RUNS[name]
    run = make()
    drawn = figures(run.experiment.scenario)
    assert {figure: text(drawn[figure](run)) for figure in chosen} == snapshot


def compared(system):
    """A comparison with invented numbers."""
    q, v = np.full(system.space.nq, 0.5), np.zeros(system.space.nv)
    motion = InitialValueProblem(system, q, v, 2.0, np.zeros(system.nu))
    work = {
        name: tuple(WorkPoint(10**k, scale * 10.0**k, 10.0 ** (-2 * k)) for k in (1, 2, 3))
        for name, scale in (("midpoint", 1e-6), ("DOP853", 2e-6))
    }
    drift = Drift(np.arange(3.0), np.array([0.0, -1e-6, 1e-5]), np.array([2e-9, 0.0, 1e-8]))
    return Comparison(motion, 2e-9, 0.01, work, {"midpoint": drift}, {})


def rope():
    return nh.System("rope", nh.Rn("x", "y"), lambda q, v: ca.sumsqr(v) / 2,
                     holonomic_constraint=lambda q: ca.sumsqr(q) - 1)  # fmt: skip


@pytest.mark.parametrize("system", [pendulum, snakeboard, rope])
def test_figures_show_the_numbers_of_a_comparison(system, snapshot):
    found = compared(system())
    assert [text(comparison.work_precision(found)), text(comparison.energy(found))] == snapshot


def test_stick_figures_are_side_by_side_with_their_references(snapshot):
    """The last one has none."""
    rod = Shape("box", (0.2, 0.2, 1.0), (1.0, 0.0, 0.0), "rod")
    at = {x: {"rod": Pose(np.array([x, 0.0, 0.0]), np.eye(3))} for x in (0.0, 1.0)}
    visual = VisualModel("odom", lambda p, q: at[0.0], (rod,), trail="rod")
    shots = [("t = 0.0 s", at[0.0], at[1.0]), ("t = 1.0 s", at[1.0], None)]
    assert text(stick_figures.draw(visual, shots)) == snapshot
