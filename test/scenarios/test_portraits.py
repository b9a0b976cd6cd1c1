"""What the nonholonomic systems look like moves as they do: wheels stay above the ground and do
not slip along their axles, and there is a picture of every system.
"""

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from matplotlib.figure import Figure

from nh_control.figures import portraits
from nh_control.figures.scene import Scene, visual_scene
from nh_control.scenarios.visual_model import Pose

AXLES = {
    "rolling disk": ("disk",),
    "Chaplygin sleigh": ("skate",),
    "snakeboard": ("rear_truck", "front_truck"),
    "differential drive": ("left_wheel", "right_wheel"),
    "car": ("rear_left", "rear_right", "front_left", "front_right"),
    "roller racer": ("rear_left", "rear_right", "front_left", "front_right"),
}
ROLLING = {"rolling disk": {"disk": "phi"}} | {
    "differential drive": {"left_wheel": "left", "right_wheel": "right"},
}


def moving(name, seed):
    """Poses at a configuration, and their rates of change along an admissible velocity v."""
    portrait, rng = portraits.PORTRAITS[name], np.random.default_rng(seed)
    system = portrait.make()
    space, visual = system.space, portrait.visual(system.parameters)
    q_ = ca.SX.sym("q", space.nq)
    basis = ca.Function("basis", [q_], [system.numeric.mechanics.admissible_basis(q_)])
    q = space.retract(space.origin, rng.uniform(-0.8, 0.8, space.nv))
    v = np.asarray(basis(q)) @ rng.uniform(-1, 1, system.nrho)
    step = 1e-6
    ahead, behind = (
        visual.poses(system.parameters, space.retract(q, s * v)) for s in (step, -step)
    )
    rates = {
        frame: (ahead[frame].position - behind[frame].position) / (2 * step) for frame in ahead
    }
    return system, visual.poses(system.parameters, q), rates, v


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", AXLES)
def test_wheels_do_not_move_along_their_axles(name, seed):
    """The front wheels of the car, too, each of which is turned by an angle of its own."""
    _, poses, rates, v = moving(name, seed)
    for frame in AXLES[name]:
        assert abs(rates[frame] @ poses[frame].rotation[:, 1]) <= 1e-8 * (1 + np.abs(v).max())


@pytest.mark.parametrize("name", ROLLING)
def test_wheels_roll_as_far_as_they_turn(name):
    system, poses, rates, v = moving(name, 3)
    theta = system.space.velocity_names.index("omega")
    for frame, angle in ROLLING[name].items():
        axle = poses[frame].rotation[:, 1]
        forward = np.array([axle[1], -axle[0], 0.0])
        spin = v[system.space.names.index(angle)]
        assert rates[frame] @ forward == pytest.approx(system.parameters.r * spin, abs=1e-7)
    assert v[theta] != 0


def test_the_ball_turns_about_its_contact():
    """The rate of the lowest point of the ball, carried by its rotation, vanishes."""
    system, poses, rates, v = moving("rolling ball", 0)
    inertial = poses["ball"].rotation @ v[:3]
    lowest = rates["ball"] + np.cross(inertial, [0.0, 0.0, -system.parameters.r])
    assert np.abs(lowest).max() <= 1e-8 and np.abs(rates["ball"]).max() > 0.01


@pytest.mark.parametrize("name", portraits.PORTRAITS)
def test_portraits(name):
    """All that is drawn is finite and, of what runs on the ground, above it; the system moves."""
    portrait = portraits.PORTRAITS[name]
    system, configurations = portrait.configurations()
    visual = portrait.visual(system.parameters)
    scenes = [
        visual_scene(visual, system.parameters, q) for q in configurations[:: portrait.steps // 4]
    ]
    points = np.vstack([scene.points for scene in scenes])
    assert np.isfinite(points).all() and np.ptp(configurations, axis=0).max() > 0.5
    if name in AXLES or name == "rolling ball":
        assert points[:, 2].min() >= -1e-9


def test_inputs_of_a_portrait_are_those_in_the_middle_of_its_steps():
    asked = []
    racer = replace(
        portraits.PORTRAITS["roller racer"], steps=4, inputs=lambda t: asked.append(t) or [0.5]
    )
    system, configurations = racer.configurations()
    np.testing.assert_allclose(asked, racer.h * np.array([0.5, 1.5, 2.5, 3.5]))
    still = replace(racer, inputs=None).configurations()[1]
    assert configurations.shape == (5, system.space.nq)
    assert np.abs(configurations[-1] - still[-1]).max() > 1e-6


def test_all_portraits_stand_on_one_sheet(monkeypatch):
    """Here of short motions."""
    short = {name: replace(one, steps=10) for name, one in portraits.PORTRAITS.items()}
    monkeypatch.setattr(portraits, "PORTRAITS", short)
    figure = portraits.sheet()
    assert isinstance(figure, Figure) and figure.get_size_inches().tolist() == [13.0, 5.0]
    assert [axes.get_title() for axes in figure.axes] == list(portraits.PORTRAITS)
    assert all(axes.collections and axes.lines for axes in figure.axes)


def test_every_portrait_has_its_place_and_its_name(monkeypatch):
    drawn = []
    monkeypatch.setattr(portraits, "draw", lambda axes, portrait: drawn.append((axes, portrait)))
    portraits.sheet(columns=4)
    assert [portrait for _, portrait in drawn] == list(portraits.PORTRAITS.values())
    assert [axes.get_title() for axes, _ in drawn] == list(portraits.PORTRAITS)
    places = [axes.get_subplotspec() for axes, _ in drawn]
    assert [(at.rowspan.start, at.colspan.start) for at in places] == [
        divmod(k, 4) for k in range(len(drawn))
    ]


def test_a_portrait_is_of_six_times_from_the_first_to_the_last_over_the_trail(monkeypatch):
    """Earlier ones darker, and all of them within the axes."""
    looked, colors = [], []
    rows = np.arange(11.0)[:, None]
    system = SimpleNamespace(parameters="its own")
    pose = lambda p, q: {"foot": Pose(np.array([q[0], 2 * q[0], 1.0]), np.eye(3))}  # noqa: E731
    visual = SimpleNamespace(trail="foot", poses=pose)

    def seen(visual, parameters, q):
        looked.append((parameters, q[0]))
        return Scene(outlines=[np.array([[q[0], -1.0, 0.0], [q[0], 1.0, 3.0]])])

    monkeypatch.setattr(portraits, "visual_scene", seen)
    monkeypatch.setattr(portraits, "draw_scene", lambda axes, shapes, color: colors.append(color))
    portrait = SimpleNamespace(configurations=lambda: (system, rows), visual=lambda p: visual)
    axes = Figure().add_subplot(projection="3d")
    portraits.draw(axes, portrait)
    assert looked == [("its own", q) for q in (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)]
    assert len(set(colors)) == 6 and np.all(np.diff([color[1] for color in colors]) > 0)
    trail = np.transpose(axes.lines[0].get_data_3d())
    np.testing.assert_array_equal(trail, np.column_stack([rows, 2 * rows, np.ones(11)]))
    assert (axes.get_xlim(), axes.get_ylim(), axes.get_zlim()) == ((0, 10), (-1, 20), (0, 3))
