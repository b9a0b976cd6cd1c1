"""Bodies that touch the ground."""

from dataclasses import replace

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.multibody import Body, JointInput, Point, floating, planar, revolute

G = 9.81
HALF = 0.1
"""Half the edge of a box, and the radius of a ball (m)."""


def point(slope, friction, h=0.01, smoothing=1e-12):
    """A point of 1 kg on a plane that falls by the angle `slope`; q = (along, above)."""

    def lagrangian(q, v):
        height = ca.cos(slope) * q[1] - ca.sin(slope) * q[0]
        return ca.sumsqr(v) / 2 - G * height

    floor = nh.UnilateralConstraint(
        "floor", gap=lambda q: q[1], point=lambda q: q[0], friction=friction
    )
    system = nh.System(
        "point", nh.Rn("x", "z"), lagrangian, contacts=(floor,), smoothing=smoothing
    )
    return nh.midpoint(system, h)


def ball(slope=0.0, friction=0.2, h=0.01, smoothing=1e-12, **contact):
    """A solid ball of 1 kg on a slope, in the plane; q = (along, above, angle)."""

    def lagrangian(q, v):
        kinetic = (v[0] ** 2 + v[1] ** 2 + 0.4 * HALF**2 * v[2] ** 2) / 2
        return kinetic - G * (ca.cos(slope) * q[1] - ca.sin(slope) * q[0])

    floor = nh.UnilateralConstraint(
        "floor",
        gap=lambda q: q[1] - HALF,
        slip=lambda q: ca.horzcat(1, 0, -HALF),
        friction=friction,
        **contact,
    )
    space = nh.Rn("x", "z", "angle")
    system = nh.System("ball", space, lagrangian, contacts=(floor,), smoothing=smoothing)
    return nh.midpoint(system, h)


def body(shape, friction=0.5, h=0.01, smoothing=1e-8, inertia=(0.4 * HALF**2,) * 3, **options):
    """A free body of 1 kg with a shape, on SO(3) x R^3."""
    contact = {key: options.pop(key) for key in ("restitution", "ground") if key in options}
    model = nh.Multibody(
        "body",
        [floating("body", space="SO3xR3")],
        [Body("body", 1.0, inertia=inertia)],
        contacts=[nh.Contact("body", shape, friction=friction, **contact)],
        smoothing=smoothing,
        **options,
    )
    return nh.midpoint(model, h)


def box(**options):
    """A cube of 1 kg with its corners as contacts."""
    size = (2 * HALF,) * 3
    return body(nh.BoxCorners(size), inertia=(2 * HALF**2 / 3,) * 3, **options)


def chain(links):
    """Links of 0.2 m and 0.5 kg, with balls at joints and ends, that turn about axes in turns."""
    frames = [floating("link_1", space="SO3xR3")]
    for i in range(2, links + 1):
        axis = "xy"[i % 2]
        frames.append(revolute(f"link_{i}", f"link_{i - 1}", axis=axis, position=(0, 0, 0.2)))
    bodies = [Body(f.name, 0.5, (0, 0, 0.1), (0.002, 0.002, 0.0004)) for f in frames]
    ends = [Point(frame.name) for frame in frames] + [Point(frames[-1].name, (0, 0, 0.2))]
    balls = enumerate(ends, 1)
    contacts = [nh.Contact(at, nh.Sphere(0.03), 0.5, name=f"ball_{i}") for i, at in balls]
    return nh.Multibody("chain", frames, bodies, contacts=contacts)


def thrown(dsys, rng):
    """A state above the ground of a body that turns and flies at random."""
    q = np.array([1.0, 0, 0, 0, 0, 0, 0.3 + rng.random()])
    q = dsys.system.space.retract(q, np.append(rng.normal(size=3), np.zeros(3)))
    return dsys.state(q, np.append(5 * rng.normal(size=3), 2 * rng.normal(size=3)))


def heights_of_corners(states):
    """Heights (N, 8) of a box's corners above the ground."""
    from scipy.spatial.transform import Rotation

    corners = HALF * np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, 8)
    rows = Rotation.from_quat(states[:, [1, 2, 3, 0]]).as_matrix()[:, 2]
    return states[:, [6]] + rows @ corners


def gripped_snakeboard(load, friction=0.8, smoothing=1e-12, h=0.02):
    """A snakeboard whose two wheel pairs slip beyond friction times load (N)."""
    system = nh.systems.snakeboard()
    grips = tuple(nh.Grip((row,), load, friction) for row in range(2))
    return nh.midpoint(replace(system, grips=grips, smoothing=smoothing), h)


LEG = 0.213
"""Length of thigh and calf (m), and the radius of the feet is a tenth of it."""


def walker(h=0.005, smoothing=1e-6):
    """A robot with a trunk in the plane of x and z, two legs of thigh and calf and round feet, of
    the size of a Unitree Go2, and its configuration with the feet under the hips.
    """
    rotation = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]  # the plane is vertical
    frames, bodies, contacts = [planar("trunk", rotation=rotation)], [], []
    bodies.append(Body("trunk", 9.6, (0.02, 0, 0), (0.107, 0.107, 0.098)))
    for leg, x in (("front", 0.193), ("rear", -0.193)):
        thigh, calf = f"{leg}_thigh", f"{leg}_calf"
        frames += [revolute(thigh, "trunk", "z", (x, 0, 0))]
        frames += [revolute(calf, thigh, "z", (0, -LEG, 0))]
        bodies += [Body(thigh, 2.3, (0, -0.03, 0), (6e-3, 2e-3, 6e-3))]
        bodies += [Body(calf, 0.48, (0, -0.12, 0), (3e-3, 1e-4, 3e-3))]
        foot = nh.Sphere(LEG / 10)
        contacts.append(nh.Contact(Point(calf, (0, -LEG, 0)), foot, 0.8, name=leg))
    joints = [frame.name for frame in frames[1:]]
    model = nh.Multibody(
        "walker",
        frames,
        bodies,
        inputs=[JointInput(name) for name in joints],
        contacts=contacts,
        smoothing=smoothing,
    )
    q = model.configuration({name: 1.6 if "calf" in name else -0.8 for name in joints})
    q[2] = 2 * LEG * np.cos(0.8) + LEG / 10
    return nh.midpoint(model, h), q
