"""Frames of visual models, declared with joints and bodies: forward kinematics, and refusals."""

import numpy as np
import pytest
from refusals import said
from transforms3d.axangles import axangle2mat
from transforms3d.euler import euler2mat
from transforms3d.quaternions import mat2quat

from nh_control import multibody
from nh_control.multibody import Body, Mimic, Multibody
from nh_control.scenarios.declared_frames import (
    CONTINUOUS,
    FIXED,
    FLOATING,
    PLANAR,
    PRISMATIC,
    Frame,
    FrameTree,
    fixed,
    floating,
    prismatic,
    remainder,
    revolute,
)
from nh_control.scenarios.urdf_visual import frame_tree
from nh_control.scenarios.visual_model import Pose

TURN = euler2mat(0.3, -0.5, 0.8)


def test_frames_are_where_their_joints_put_them():
    """By hand: a slide along its tilted axis, a hinge on it with a ratio, and a body on that."""
    attitude = ("qw", "qx", "qy", "qz")
    pose = ("x", "y", "z", *attitude)
    tree = FrameTree(
        (*attitude, "x", "y", "z", "slide", "angle"),
        (
            prismatic("slide", "odom", "slide", (0.0, 3.0, 4.0), (1.0, 0.0, 0.0)),
            revolute("hinge", "slide", "angle", "-y", (0.0, 0.0, 2.0), TURN, 2.0),
            fixed("tip", "hinge", (0.0, 0.0, -1.0)),
            floating("body", "odom", pose),
            floating("turned", "tip", attitude),
            floating("point", "odom", ("y", "x"), lambda c: Pose.at((*c, 0.0))),
        ),
    )
    quaternion = mat2quat(TURN.T)
    poses = tree(None, [*quaternion, 4.0, 5.0, 6.0, 0.5, 0.3])
    np.testing.assert_allclose(poses["slide"].position, [1.0, 0.3, 0.4], atol=1e-15)
    hinge = TURN @ axangle2mat([0.0, 1.0, 0.0], -0.6)
    np.testing.assert_allclose(poses["hinge"].rotation, hinge, atol=1e-15)
    np.testing.assert_allclose(poses["hinge"].position, [1.0, 0.3, 2.4], atol=1e-15)
    tip = poses["hinge"].position - hinge[:, 2]
    np.testing.assert_allclose(poses["tip"].position, tip, atol=1e-15)
    np.testing.assert_allclose(poses["body"].position, [4.0, 5.0, 6.0])
    np.testing.assert_allclose(poses["body"].rotation, TURN.T, atol=1e-15)
    np.testing.assert_allclose(poses["turned"].rotation, hinge @ TURN.T, atol=1e-15)
    np.testing.assert_allclose(poses["turned"].position, tip, atol=1e-15)
    np.testing.assert_array_equal(poses["point"].position, [5.0, 4.0, 0.0])


def every_joint():
    """A tree with every joint of `Multibody`, and a joint that follows another one."""
    kinds = {"position": (0.1, -0.2, 0.3), "rotation": TURN}
    frames = [
        multibody.floating("base", **kinds),
        multibody.revolute("arm", "base", (0.0, 0.6, 0.8), **kinds),
        multibody.prismatic("slide", "arm", "-y", **kinds),
        multibody.helical("screw", "slide", "x", **kinds, pitch=0.2),
        multibody.spherical("ball", "screw", **kinds),
        multibody.planar("plate", "ball", "z", **kinds),
        multibody.planar("wall", "plate", "x", **kinds),
        multibody.fixed("end", "wall", **kinds),
        multibody.revolute("finger", "end", "z", mimic=Mimic("arm", -0.5, 0.7), **kinds),
        multibody.floating("free", space="SO3xR3", **kinds),
    ]
    bodies = [Body("base", 2.0), Body("base", 1.0, (0.3, 0.0, 0.0), (0.1, 0.2, 0.2))]
    return Multibody("every", frames, bodies)


def test_the_frames_of_a_tree_of_bodies_are_its_own():
    model = every_joint()
    tree, rng = frame_tree(model), np.random.default_rng(0)
    q = model.space.retract(model.space.origin, rng.uniform(-1, 1, model.space.nv))
    poses = tree(None, q)
    for frame in model.frames:
        wanted = model.pose(q, frame.name)
        np.testing.assert_allclose(poses[frame.name].position, wanted.position, atol=1e-12)
        np.testing.assert_allclose(poses[frame.name].rotation, wanted.rotation, atol=1e-12)
    kinds = {frame.name: frame.kind for frame in tree.frames}
    assert kinds == {
        **dict.fromkeys(("base", "screw", "ball", "wall", "free"), FLOATING),
        **{"arm": CONTINUOUS, "finger": CONTINUOUS, "slide": PRISMATIC},
        **{"plate": PLANAR, "end": FIXED},
    }
    (base,) = tree.bodies  # the two bodies on a frame are one
    assert base.mass == 3.0 and base.center == pytest.approx((0.1, 0.0, 0.0))
    assert np.diag(base.inertia) == pytest.approx([0.1, 0.26, 0.26])


def test_a_remainder_and_its_parts_are_the_whole():
    whole = Body("hull", 5.0, (0.1, 0.0, 0.0), (2.0, 2.5, 3.0))
    part, pose = Body("wheel", 0.5, (0.0, 0.1, 0.0), (0.1, 0.2, 0.1)), Pose.at((1.0, 0, 0), TURN)
    rest = remainder(whole, [(part, pose)])
    total = rest.inertia_in("hull", np.zeros(3), np.eye(3)) + part.inertia_in(
        "hull", pose.position, pose.rotation
    )
    assert total.mass == pytest.approx(5.0) and total.center == pytest.approx(whole.center)
    np.testing.assert_allclose(total.inertia, whole.inertia, atol=1e-14)
    assert remainder(whole, [(part, Pose.at((3.0, 0, 0)))]) is None
    assert remainder(whole, [(Body("wheel", 6.0), Pose.at((0, 0, 0)))]) is None


WRONG = [
    lambda: Frame("arm", "odom", "ball"),
    lambda: Frame("arm", "odom", PLANAR, ("x",)),
    lambda: Frame("arm", "odom", FLOATING, ("x",)),
    lambda: Frame("arm", "odom", CONTINUOUS, ("a",), motion=Pose.at),
    lambda: revolute("arm", "odom", "a", (0.0, 0.0, 0.0)),
    lambda: FrameTree((), [fixed("arm", "odom"), fixed("arm", "odom")]),
    lambda: FrameTree((), [fixed("arm", "odom"), fixed("hand", "wrist")]),
    lambda: FrameTree(("a", "b"), [revolute("arm", "odom", "c")]),
    lambda: FrameTree((), [fixed("arm", "odom")], [Body("leg", 1.0)]),
]


def test_declarations_that_make_no_tree_are_refused(snapshot):
    assert said(WRONG) == snapshot
