"""What cannot be a multibody model, and what the error says."""

import numpy as np
import pytest
from refusals import said

from nh_control import multibody as mb

HAND = mb.fixed("hand", "upper", position=(0, 0, -1.0))
UPPER = mb.revolute("upper", axis="y")


def arm(**changes):
    """A pendulum with a hand, with changes."""
    return mb.Multibody(
        "arm", **{"frames": [UPPER, HAND], "bodies": [mb.Body("hand", 1.0)], **changes}
    )


SLEEVE = mb.JointConstraint("sleeve", "cylindrical", "world", "hand")
WRONG = [
    dict(frames=[mb.revolute("a"), mb.revolute("a")]),
    dict(frames=[mb.revolute("world")]),
    dict(frames=[mb.revolute("a", "b"), mb.revolute("b", "a")]),
    dict(frames=[mb.revolute("a"), mb.revolute("b", coordinate="a")]),
    dict(frames=[mb.revolute("a", mimic=mb.Mimic("c"))]),
    dict(bodies=[mb.Body("foot", 1.0)]),
    dict(elements=[mb.JointDamper("hand", 1.0)]),
    dict(elements=[mb.Spring("hand", "foot", 1.0)]),
    dict(inputs=[mb.JointInput("hand")]),
    dict(inputs=[mb.JointInput("upper")], prescribed=["upper"]),
    dict(inputs=[mb.JointInput("upper")] * 2),
    dict(constraints=[SLEEVE], inputs=[mb.JointInput("sleeve")]),
    dict(inputs=[mb.Wrench("w", "foot")]),
    dict(constraints=[mb.Coincident("c", "hand", "foot")]),
    dict(constraints=[mb.Distance("c", "hand", "world", "l")]),
    dict(constraints=[mb.Distance("c", "hand", "world", 1.0)] * 2),
    dict(frames=[mb.floating("hand")], prescribed=["hand_x"]),
    dict(prescribed=["upper", "upper"]),
    dict(prescribed=["uper"]),
    dict(gravity=(0, -9.8)),
    dict(frames=[mb.fixed("hand")]),
]


def test_wrong_models_are_refused(snapshot):
    assert said(WRONG, lambda changes: arm(**changes)) == snapshot


PARTS = [
    lambda: mb.Body("hand", 0.0),
    lambda: mb.Body("hand", np.nan),
    lambda: mb.Body("hand", 1.0, inertia=(1.0, 1.0, 0.0)),
    lambda: mb.Body("hand", 1.0, inertia=(1.0, 1.0, 2.1)),
    lambda: mb.Body("hand", 1.0, inertia=(1.0, 1.0, 2.0 + 1e-5)),
    lambda: mb.Body("hand", 1.0, inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]),
    lambda: mb.Body("hand", 1.0, center=(0, 1)),
    lambda: mb.Point("hand", (0, 1)),
    lambda: mb.Spring("a", "b", np.inf),
    lambda: mb.revolute("a", axis="w"),
    lambda: mb.revolute("a", axis=(0, 0, 0)),
    lambda: mb.fixed("a", position=(1, 2)),
    lambda: mb.fixed("a", rotation=-np.eye(3)),
    lambda: mb.Distance("d", "a", "b", 0.0),
    lambda: mb.Coincident("d", "a", "b", along="xx"),
    lambda: mb.Wrench("w", "a", axes="frame"),
    lambda: mb.Wrench("w", "a", components=("force",)),
    lambda: mb.CoordinateLimits(1.0, 0.0),
    lambda: mb.CoordinateLimits(velocity=-1.0),
    lambda: arm().pose(np.zeros(1), "foot"),
    lambda: arm().pose(np.zeros(2), "hand"),
    lambda: arm().configuration({"lower": 1.0}),
]


def test_wrong_parts_are_refused(snapshot):
    assert said(PARTS) == snapshot


SLIDES = [mb.prismatic("s1"), mb.prismatic("s2", "s1"), mb.prismatic("s3", "s2")]
AGAIN = [
    UPPER,
    mb.revolute("again", "upper", axis="y"),
    mb.fixed("hand", "again", position=(0, 0, -1)),
]
SPIN = [UPPER, mb.revolute("spin", "upper"), mb.fixed("hand", "spin", position=(0, 0, -1))]


@pytest.mark.parametrize(
    "frames, message",
    [
        ([UPPER, HAND, mb.revolute("tip", "hand")], "['tip_dot'] of the frame 'tip' move no mass"),
        (SPIN, "['spin_dot'] of the frame 'spin' move no mass"),
        # only those that move no mass together, not those that move most of it
        (AGAIN, "['upper_dot', 'again_dot'] of the frames 'upper', 'again' together move no mass"),
        (SLIDES + AGAIN, "singular: the velocities ['upper_dot', 'again_dot'] of the frames"),
    ],
)
def test_coordinates_without_mass_are_named(frames, message):
    bodies = [
        mb.Body(frame.name, 1.0) for frame in frames if frame.name in ("hand", "s1", "s2", "s3")
    ]
    with pytest.raises(ValueError) as error:
        _ = arm(frames=frames, bodies=bodies).system
    assert str(error.value).startswith("arm: ") and message in str(error.value)


def test_a_frame_that_does_not_move_leaves_its_name_to_a_coordinate():
    frames = [mb.fixed("upper"), mb.revolute("hand", "upper", axis="y", coordinate="upper")]
    model = arm(frames=frames, bodies=[mb.Body("hand", 1.0, center=(0, 0, -1))])
    assert model.space.names == ("upper",) and model.system.nrho == 1
