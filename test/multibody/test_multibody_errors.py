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


def arm(**changes):
    """A pendulum with a hand, with changes."""
    fields = dict(
        frames=[revolute("upper", axis="y"), fixed("hand", "upper", position=(0, 0, -1.0))],
        bodies=[Body("hand", 1.0)],
    )
    return Multibody("arm", **{**fields, **changes})


WRONG = {
    "two frames of one name": (dict(frames=[revolute("a"), revolute("a")]), ["two frames", "'a'"]),
    "a frame named world": (dict(frames=[revolute("world")]), ["'world'"]),
    "an unknown parent": (
        dict(frames=[revolute("a", "b"), revolute("b", "a")]),
        ["'a'", "unknown parent 'b'", "follows its parent"],
    ),
    "a coordinate taken twice": (
        dict(frames=[revolute("a"), revolute("b", coordinate="a")]),
        ["'b'", "'a'", "Mimic"],
    ),
    "a mimic of nothing": (dict(frames=[revolute("a", mimic=Mimic("c"))]), ["'a'", "'c'"]),
    "a body on an unknown frame": (dict(bodies=[Body("foot", 1.0)]), ["'foot'", "hand"]),
    "a damper on an unknown coordinate": (
        dict(elements=[JointDamper("hand", 1.0)]),
        ["'hand'", "upper"],
    ),
    "an input on an unknown coordinate": (dict(inputs=[JointInput("hand")]), ["'hand'", "upper"]),
    "an input on a prescribed coordinate": (
        dict(inputs=[JointInput("upper")], prescribed=["upper"]),
        ["'upper'", "prescribed"],
    ),
    "two inputs of one name": (
        dict(inputs=[JointInput("upper"), JointInput("upper")]),
        ["input names", "upper_torque"],
    ),
    "an input on a joint that moves in two ways": (
        dict(
            constraints=[JointConstraint("sleeve", "cylindrical", "world", "hand")],
            inputs=[JointInput("sleeve")],
        ),
        ["'sleeve'", "upper"],
    ),
    "a wrench on an unknown frame": (dict(inputs=[Wrench("w", "foot")]), ["'foot'"]),
    "a spring to an unknown frame": (dict(elements=[Spring("hand", "foot", 1.0)]), ["'foot'"]),
    "a constraint on an unknown frame": (
        dict(constraints=[Coincident("c", "hand", "foot")]),
        ["'foot'"],
    ),
    "a string of unknown length": (
        dict(constraints=[Distance("c", "hand", "world", "l")]),
        ["'l'", "upper"],
    ),
    "two constraints of one name": (
        dict(constraints=[Distance("c", "hand", "world", 1.0)] * 2),
        ["constraint names"],
    ),
    "a prescribed pose": (
        dict(frames=[floating("hand")], prescribed=["hand_x"]),
        ["'hand_x'", "several coordinates"],
    ),
    "a coordinate prescribed twice": (dict(prescribed=["upper", "upper"]), ["'upper'", "twice"]),
    "a prescribed coordinate that is nothing": (dict(prescribed=["uper"]), ["'uper'", "neither"]),
    "gravity of the wrong size": (dict(gravity=(0, -9.8)), ["gravity"]),
    "no coordinates": (dict(frames=[fixed("hand")]), ["no coordinates"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_models_are_refused(case):
    changes, words = WRONG[case]
    with pytest.raises(ValueError) as error:
        arm(**changes)
    assert all(word in str(error.value) for word in ["arm", *words]), error.value


ELBOW = [revolute("upper", axis="y"), fixed("hand", "upper", position=(0, 0, -1.0))]


@pytest.mark.parametrize(
    "frames, message",
    [
        (
            [*ELBOW, revolute("tip", "hand")],
            r"arm: the velocities \['tip_dot'\] of the frame 'tip' move no mass",
        ),
        (
            [
                revolute("upper", axis="y"),
                revolute("spin", "upper"),
                fixed("hand", "spin", position=(0, 0, -1.0)),
            ],
            r"arm: the velocities \['spin_dot'\] of the frame 'spin' move no mass",
        ),
        (
            [
                revolute("upper", axis="y"),
                revolute("again", "upper", axis="y"),
                fixed("hand", "again", position=(0, 0, -1.0)),
            ],
            r"singular: the velocities \['upper_dot', 'again_dot'\]",
        ),
    ],
)
def test_coordinates_without_mass_are_named(frames, message):
    with pytest.raises(ValueError, match=message):
        _ = arm(frames=frames).system
    assert arm().system.nrho == 1


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Body("hand", 0.0), ["'hand'", "mass", "0.0"]),
        (lambda: Body("hand", np.nan), ["mass", "nan"]),
        (lambda: Body("hand", 1.0, inertia=(1.0, 1.0, 0.0)), ["positive definite", "point mass"]),
        (lambda: Body("hand", 1.0, inertia=(1.0, 1.0, 2.1)), ["triangle inequality", "2.1"]),
        (lambda: Body("hand", 1.0, inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), ["symmetric"]),
        (lambda: Body("hand", 1.0, center=(0, 1)), ["center"]),
        (lambda: Point("hand", (0, 1)), ["'hand'", "position"]),
        (lambda: Spring("a", "b", np.inf), ["stiffness", "finite"]),
        (lambda: revolute("a", axis="w"), ["'a'", "axis", "'w'"]),
        (lambda: revolute("a", axis=(0, 0, 0)), ["'a'", "axis"]),
        (lambda: fixed("a", position=(1, 2)), ["'a'", "position"]),
        (lambda: fixed("a", rotation=-np.eye(3)), ["'a'", "rotation"]),
        (lambda: Distance("d", "a", "b", 0.0), ["'d'", "length"]),
        (lambda: Coincident("d", "a", "b", along="xx"), ["'d'", "along"]),
        (lambda: Wrench("w", "a", axes="frame"), ["'w'", "axes"]),
        (lambda: Wrench("w", "a", components=("force",)), ["'w'", "'force'", "force_x"]),
        (lambda: arm().pose(np.zeros(1), "foot"), ["'foot'", "hand"]),
        (lambda: arm().pose(np.zeros(2), "hand"), ["(1,)", "(2,)"]),
        (lambda: arm().configuration({"lower": 1.0}), ["'lower'", "upper"]),
    ],
)
def test_wrong_parts_are_refused(make, words):
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words), error.value


def test_only_the_velocities_that_move_no_mass_together_are_named():
    """Not those that move most of it, here of three slides on each other."""
    slides = [prismatic("s1"), prismatic("s2", "s1"), prismatic("s3", "s2")]
    frames = [
        *slides,
        revolute("upper", axis="y"),
        revolute("again", "upper", axis="y"),
        fixed("hand", "again", position=(0, 0, -1.0)),
    ]
    bodies = [Body(frame.name, 1.0) for frame in (*slides, frames[-1])]
    message = (
        r"singular: the velocities \['upper_dot', 'again_dot'\] of the frames 'upper', 'again' "
        "together move no mass"
    )
    with pytest.raises(ValueError, match=message):
        _ = arm(frames=frames, bodies=bodies).system


def test_a_frame_that_does_not_move_leaves_its_name_to_a_coordinate():
    frames = [fixed("upper"), revolute("hand", "upper", axis="y", coordinate="upper")]
    assert arm(frames=frames, bodies=[Body("hand", 1.0, center=(0, 0, -1))]).space.names == (
        "upper",
    )
