"""What cannot be a multibody model, and what the error says."""

import numpy as np
import pytest

from nh_control.multibody import (
    Body,
    Coincident,
    Distance,
    JointConstraint,
    JointDamper,
    JointInput,
    Limits,
    Mimic,
    Multibody,
    Point,
    Spring,
    Wrench,
    fixed,
    floating,
    prismatic,
    revolute,
)

HAND = fixed("hand", "upper", position=(0, 0, -1.0))
UPPER = revolute("upper", axis="y")


def arm(**changes):
    """A pendulum with a hand, with changes."""
    return Multibody("arm", **{"frames": [UPPER, HAND], "bodies": [Body("hand", 1.0)], **changes})


SLEEVE = JointConstraint("sleeve", "cylindrical", "world", "hand")
WRONG = [
    (dict(frames=[revolute("a"), revolute("a")]), "two frames", "'a'"),
    (dict(frames=[revolute("world")]), "'world'"),
    (
        dict(frames=[revolute("a", "b"), revolute("b", "a")]),
        "'a'",
        "unknown parent 'b'",
        "follows",
    ),
    (dict(frames=[revolute("a"), revolute("b", coordinate="a")]), "'b'", "'a'", "Mimic"),
    (dict(frames=[revolute("a", mimic=Mimic("c"))]), "'a'", "'c'"),
    (dict(bodies=[Body("foot", 1.0)]), "'foot'", "hand"),
    (dict(elements=[JointDamper("hand", 1.0)]), "'hand'", "upper"),
    (dict(elements=[Spring("hand", "foot", 1.0)]), "'foot'"),
    (dict(inputs=[JointInput("hand")]), "'hand'", "upper"),
    (dict(inputs=[JointInput("upper")], prescribed=["upper"]), "'upper'", "prescribed"),
    (dict(inputs=[JointInput("upper")] * 2), "input names", "upper_torque"),
    (dict(constraints=[SLEEVE], inputs=[JointInput("sleeve")]), "'sleeve'", "upper"),
    (dict(inputs=[Wrench("w", "foot")]), "'foot'"),
    (dict(constraints=[Coincident("c", "hand", "foot")]), "'foot'"),
    (dict(constraints=[Distance("c", "hand", "world", "l")]), "'l'", "upper"),
    (dict(constraints=[Distance("c", "hand", "world", 1.0)] * 2), "constraint names"),
    (dict(frames=[floating("hand")], prescribed=["hand_x"]), "'hand_x'", "several coordinates"),
    (dict(prescribed=["upper", "upper"]), "'upper'", "twice"),
    (dict(prescribed=["uper"]), "'uper'", "neither"),
    (dict(gravity=(0, -9.8)), "gravity"),
    (dict(frames=[fixed("hand")]), "no coordinates"),
]


@pytest.mark.parametrize("changes, words", [(changes, words) for changes, *words in WRONG])
def test_wrong_models_are_refused(changes, words):
    with pytest.raises(ValueError) as error:
        arm(**changes)
    assert all(word in str(error.value) for word in ["arm", *words]), error.value


PARTS = [
    (lambda: Body("hand", 0.0), "'hand'", "mass", "0.0"),
    (lambda: Body("hand", np.nan), "mass", "nan"),
    (lambda: Body("hand", 1.0, inertia=(1.0, 1.0, 0.0)), "positive definite", "point mass"),
    (lambda: Body("hand", 1.0, inertia=(1.0, 1.0, 2.1)), "triangle inequality", "2.1"),
    (lambda: Body("hand", 1.0, inertia=(1.0, 1.0, 2.0 + 1e-5)), "triangle inequality"),
    (lambda: Body("hand", 1.0, inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "symmetric"),
    (lambda: Body("hand", 1.0, center=(0, 1)), "center"),
    (lambda: Point("hand", (0, 1)), "'hand'", "position"),
    (lambda: Spring("a", "b", np.inf), "stiffness", "finite"),
    (lambda: revolute("a", axis="w"), "'a'", "axis", "'w'"),
    (lambda: revolute("a", axis=(0, 0, 0)), "'a'", "axis"),
    (lambda: fixed("a", position=(1, 2)), "'a'", "position"),
    (lambda: fixed("a", rotation=-np.eye(3)), "'a'", "rotation"),
    (lambda: Distance("d", "a", "b", 0.0), "'d'", "length"),
    (lambda: Coincident("d", "a", "b", along="xx"), "'d'", "along"),
    (lambda: Wrench("w", "a", axes="frame"), "'w'", "axes"),
    (lambda: Wrench("w", "a", components=("force",)), "'w'", "'force'", "force_x"),
    (lambda: Limits(1.0, 0.0), "expected lower <= upper and velocity >= 0"),
    (lambda: Limits(velocity=-1.0), "expected lower <= upper and velocity >= 0"),
    (lambda: arm().pose(np.zeros(1), "foot"), "'foot'", "hand"),
    (lambda: arm().pose(np.zeros(2), "hand"), "(1,)", "(2,)"),
    (lambda: arm().configuration({"lower": 1.0}), "'lower'", "upper"),
]


@pytest.mark.parametrize("make, words", [(make, words) for make, *words in PARTS])
def test_wrong_parts_are_refused(make, words):
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words), error.value


SLIDES = [prismatic("s1"), prismatic("s2", "s1"), prismatic("s3", "s2")]
AGAIN = [UPPER, revolute("again", "upper", axis="y"), fixed("hand", "again", position=(0, 0, -1))]
SPIN = [UPPER, revolute("spin", "upper"), fixed("hand", "spin", position=(0, 0, -1))]


@pytest.mark.parametrize(
    "frames, message",
    [
        ([UPPER, HAND, revolute("tip", "hand")], "['tip_dot'] of the frame 'tip' move no mass"),
        (SPIN, "['spin_dot'] of the frame 'spin' move no mass"),
        # only those that move no mass together, not those that move most of it
        (AGAIN, "['upper_dot', 'again_dot'] of the frames 'upper', 'again' together move no mass"),
        (SLIDES + AGAIN, "singular: the velocities ['upper_dot', 'again_dot'] of the frames"),
    ],
)
def test_coordinates_without_mass_are_named(frames, message):
    bodies = [
        Body(frame.name, 1.0) for frame in frames if frame.name in ("hand", "s1", "s2", "s3")
    ]
    with pytest.raises(ValueError) as error:
        _ = arm(frames=frames, bodies=bodies).system
    assert str(error.value).startswith("arm: ") and message in str(error.value)


def test_a_frame_that_does_not_move_leaves_its_name_to_a_coordinate():
    frames = [fixed("upper"), revolute("hand", "upper", axis="y", coordinate="upper")]
    model = arm(frames=frames, bodies=[Body("hand", 1.0, center=(0, 0, -1))])
    assert model.space.names == ("upper",) and model.system.nrho == 1
