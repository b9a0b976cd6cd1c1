"""Trees of frames: kinematics, energies, forces and constraints, each against an independent
computation.
"""

import casadi as ca
import numpy as np
import pytest
from transforms3d.axangles import axangle2mat
from transforms3d.euler import euler2mat
from transforms3d.quaternions import quat2mat

from nh_control import multibody as mb
from nh_control.geometry.rotations import SE3, SO3
from nh_control.integrators import midpoint

TILT = euler2mat(0.3, -0.8, 0.5)
TENSOR = TILT @ np.diag([0.3, 0.4, 0.2]) @ TILT.T
EVERY_JOINT = mb.Multibody(
    "every_joint",
    frames=[
        mb.floating("hull"),
        mb.revolute(
            "arm", "hull", axis=(1.0, -2.0, 0.5), position=(0.3, 0.1, -0.2), rotation=TILT
        ),
        mb.prismatic("slide", "arm", axis="-y", position=(0.0, 0.0, 0.4)),
        mb.fixed("tool", "slide", position=(0.1, 0.2, 0.3), rotation=TILT.T),
        mb.spherical("ball", "tool", position=(0.2, 0.0, 0.0)),
        mb.planar("puck", "hull", axis=(0.0, 1.0, 1.0), position=(0.0, 0.5, 0.0)),
        mb.revolute("finger", "arm", axis="x", mimic=mb.Mimic("slide", ratio=-0.7, offset=0.2)),
    ],
    bodies=[
        mb.Body("hull", 3.0, center=(0.1, 0.0, -0.2), inertia=TENSOR),
        mb.Body("slide", 0.5, inertia=(0.01, 0.02, 0.02)),
        mb.Body("tool", 0.4, center=(0.0, 0.1, 0.0), inertia=TENSOR / 10),
        mb.Body("ball", 0.7, center=(0.0, 0.0, 0.3), inertia=TENSOR / 5),
        mb.Body("puck", 1.1, inertia=TENSOR),
        mb.Body("finger", 0.2, center=(0.1, 0.1, 0.0)),
    ],
    elements=[
        mb.Spring("tool", mb.Point("puck", (0.1, 0.0, 0.0)), stiffness=20.0, rest_length=0.3),
        mb.Spring("hull", "world", stiffness=5.0),
        mb.JointSpring("arm", stiffness=2.0, rest=0.4),
        mb.JointDamper("slide", 0.6),
        mb.Damper("ball", mb.Point("world", (1.0, 2.0, 3.0)), damping=0.8),
    ],
    inputs=[
        mb.JointInput("arm", limit=4.0),
        mb.JointInput("slide", limit=(0.0, 3.0), name="pull"),
        mb.Wrench(
            "thruster",
            mb.Point("hull", (0.0, 0.3, 0.0)),
            components=("force_z", "torque_x"),
            limit=[-9.0, 9.0],
        ),
        mb.Wrench("wind", mb.Point("ball", (0.1, 0.2, 0.3)), axes="world"),
    ],
)


@pytest.fixture(scope="module")
def motion():
    """A random configuration and velocity, and the poses a small time s later."""
    rng, space = np.random.default_rng(4), EVERY_JOINT.space
    q = space.retract(space.origin, rng.uniform(-1, 1, space.nv))
    v = rng.normal(size=space.nw)
    return q, v, lambda s: EVERY_JOINT.poses(space.retract(q, s * v))


def numbers(expression) -> np.ndarray:
    return np.asarray(ca.DM(expression))


def at(q, v):
    return EVERY_JOINT.kinematics(ca.SX(q), ca.SX(v))


def rate(f):
    """f'(0) by central differences of sixth order."""
    t = 2e-3
    return sum(c * (f(k * t) - f(-k * t)) for k, c in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))) / t


def test_names_come_from_frames_and_coordinates():
    space, system = EVERY_JOINT.space, EVERY_JOINT.system
    assert space.names[:4] == ("hull_qw", "hull_qx", "hull_qy", "hull_qz")
    assert space.names[-2:] == ("arm", "slide")
    thruster = "thruster_force_z", "thruster_torque_x"
    assert system.inputs[:5] == ("arm_torque", "pull", *thruster, "wind_torque_x")
    assert system.input_units[:4] == ("N m", "N", "N", "N m")
    np.testing.assert_array_equal(system.input_bounds[:4], [[-4, 4], [0, 3], [-9, 9], [-9, 9]])
    q = EVERY_JOINT.configuration({"arm": 0.3, "hull_z": 2.0})
    assert q[space.names.index("arm")] == 0.3 and q[6] == 2.0 and q[0] == 1.0
    assert EVERY_JOINT.velocity({"slide_dot": 1.5})[-1] == 1.5
    assert system.model is EVERY_JOINT


@pytest.mark.parametrize("retraction", ["exp", "cay"])
def test_rotation_joints_take_a_retraction(retraction):
    made = {
        mb.spherical("a", retraction=retraction): SO3("a_", retraction),
        mb.floating("a", retraction=retraction): SE3("a_", retraction),
    }
    for frame, expected in made.items():
        x, way = expected.origin, np.linspace(0.4, 0.9, expected.nv)
        found = frame.joint.space("a").retract(x, way)
        np.testing.assert_array_equal(found, expected.retract(x, way))
    both = mb.floating("a", retraction=retraction, space="SO3xR3").joint.space("a")
    turned = both.retract(both.origin, np.linspace(0.4, 0.9, 6))[:4]
    so3 = SO3("a_", retraction)
    np.testing.assert_allclose(turned, so3.retract(so3.origin, np.linspace(0.4, 0.6, 3)))


def test_a_chain_of_fixed_frames_moves_with_its_moving_frame():
    turned = euler2mat(-0.4, 0.9, 0.2)
    frames = [
        mb.fixed("base", position=(0.5, -1.0, 2.0), rotation=turned),
        mb.revolute("arm", "base", axis="y", position=(0.1, 0.2, 0.3), rotation=TILT),
        mb.fixed("hand", "arm", position=(0.3, 0.1, -0.2), rotation=TILT),
        mb.fixed("tool", "hand", position=(1.0, -2.0, 0.5), rotation=turned),
    ]
    body = mb.Body("tool", 2.0, center=(0.4, 0.0, -0.1), inertia=(0.3, 0.4, 0.2))
    model = mb.Multibody("fixed", frames, [body])
    anchors, poses = model.tree.anchors, model.poses([0.7])
    assert {name: anchor for name, (anchor, *_) in anchors.items()} == {
        "world": "world", "base": "world", "arm": "arm", "hand": "arm", "tool": "arm"
    }  # fmt: skip
    for name, (anchor, at, rotation) in anchors.items():
        carrier = poses[anchor]
        np.testing.assert_allclose(
            poses[name].position, carrier.position + carrier.rotation @ at, atol=1e-14
        )
        np.testing.assert_allclose(poses[name].rotation, carrier.rotation @ rotation, atol=1e-14)
    ((mass,),) = model.mass_matrix([0.7])  # by hand, about the arm's axis
    center = poses["tool"].position + poses["tool"].rotation @ body.center
    axis = poses["arm"].rotation[:, 1]
    lever = np.cross(axis, center - poses["arm"].position)
    spin = poses["tool"].rotation.T @ axis
    assert mass == pytest.approx(2.0 * lever @ lever + spin @ np.diag([0.3, 0.4, 0.2]) @ spin)


def test_poses_compose_along_the_tree():
    q = EVERY_JOINT.configuration({"hull_x": 1.0, "slide": 0.5, "puck_theta": 0.0, "puck_x": 0.7})
    poses = EVERY_JOINT.poses(q)
    arm = np.array([1.3, 0.1, -0.2])
    np.testing.assert_allclose(poses["arm"].position, arm, atol=1e-15)
    np.testing.assert_allclose(poses["slide"].position, arm + TILT @ [0.0, -0.5, 0.4], atol=1e-15)
    np.testing.assert_allclose(poses["tool"].rotation, np.eye(3), atol=1e-15)
    turned = TILT @ euler2mat(-0.7 * 0.5 + 0.2, 0, 0)
    np.testing.assert_allclose(poses["finger"].rotation, turned, atol=1e-15)
    above = EVERY_JOINT.point(q, mb.Point("tool", (0.0, 0.0, 1.0)))
    np.testing.assert_allclose(above, poses["tool"].position + [0, 0, 1], atol=1e-15)
    assert abs((poses["puck"].position - [1.0, 0.5, 0.0]) @ [0.0, 1.0, 1.0]) <= 1e-15


def test_joints_of_two_frames_are_placed_as_a_whole():
    """Both axes turn with the placement, and meet or coincide there."""
    at, body = (0.3, -0.2, 0.1), [mb.Body("end", 1.0, inertia=np.eye(3))]
    first, second = 0.7, -0.4
    cardan = mb.Multibody("cardan", [*mb.universal("end", position=at, rotation=TILT)], body)
    poses = cardan.poses(np.array([first, second]))
    turn = TILT @ axangle2mat([1, 0, 0], first) @ axangle2mat([0, 1, 0], second)
    np.testing.assert_allclose(poses["end"].rotation, turn, atol=1e-15)
    np.testing.assert_allclose(poses["end"].position, at, atol=1e-15)
    piston = mb.Multibody("piston", [*mb.cylindrical("end", position=at, rotation=TILT)], body)
    poses = piston.poses(np.array([first, second]))
    turn = TILT @ axangle2mat([0, 0, 1], second)
    np.testing.assert_allclose(poses["end"].rotation, turn, atol=1e-15)
    np.testing.assert_allclose(poses["end"].position, at + first * TILT[:, 2], atol=1e-15)


def test_velocities_are_the_rates_of_poses(motion):
    q, v, poses = motion
    k = at(q, v)
    for name in EVERY_JOINT.tree.frames:
        turn = rate(lambda s, n=name: poses(s)[n].rotation) @ poses(0)[name].rotation.T
        omega, velocity = numbers(k.angular_velocity(name))[:, 0], numbers(k.velocity(name))[:, 0]
        np.testing.assert_allclose(np.cross(np.eye(3), omega), turn, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            velocity, rate(lambda s, n=name: poses(s)[n].position), rtol=0, atol=1e-9
        )


def test_the_lagrangian_is_that_of_newtons_particles(motion):
    """Each body as six particles, without an inertia tensor or an angular velocity."""
    q, v, _ = motion
    kinetic = potential = 0.0

    def at_time(s):
        return EVERY_JOINT.space.retract(q, s * v)

    for body in EVERY_JOINT.bodies:
        moments, axes = np.linalg.eigh(np.array(body.inertia))
        arms = np.sqrt(3 * np.maximum(moments.sum() / 2 - moments, 0) / body.mass)
        for arm in np.concatenate([np.diag(arms), -np.diag(arms)]):
            place = mb.Point(body.frame, np.array(body.center) + axes @ arm)
            velocity = rate(lambda s, p=place: EVERY_JOINT.point(at_time(s), p))
            kinetic += body.mass / 6 * velocity @ velocity / 2
            potential += body.mass / 6 * 9.81 * EVERY_JOINT.point(q, place)[2]
    tool, puck = (EVERY_JOINT.point(q, at) for at in ("tool", mb.Point("puck", (0.1, 0, 0))))
    springs = 10.0 * (np.linalg.norm(tool - puck) - 0.3) ** 2
    springs += 2.5 * np.sum(EVERY_JOINT.point(q, "hull") ** 2)
    springs += (q[EVERY_JOINT.space.names.index("arm")] - 0.4) ** 2
    lagrangian = float(ca.DM(EVERY_JOINT.system.lagrangian(ca.SX(q), ca.SX(v))))
    assert lagrangian == pytest.approx(kinetic - potential - springs, rel=1e-9)


def test_forces_do_the_work_of_their_inputs_and_dampers(motion):
    q, v, poses = motion
    u = np.random.default_rng(5).normal(size=EVERY_JOINT.system.nu)
    power = v @ numbers(EVERY_JOINT.system.force(ca.SX(q), ca.SX(v), ca.SX(u)))[:, 0]
    k = at(q, v)
    hull, ball = (
        numbers(k.velocity(mb.Point(*p)))[:, 0]
        for p in (("hull", (0.0, 0.3, 0.0)), ("ball", (0.1, 0.2, 0.3)))
    )
    turn = {name: numbers(k.angular_velocity(name))[:, 0] for name in ("hull", "ball")}
    body = poses(0)["hull"].rotation
    expected = u[0] * v[-2] + u[1] * v[-1] + u[4:7] @ turn["ball"] + u[7:10] @ ball
    expected += u[2] * (body.T @ hull)[2] + u[3] * (body.T @ turn["hull"])[0]
    stretching = rate(lambda s: np.linalg.norm(poses(s)["ball"].position - [1.0, 2.0, 3.0]))
    assert power == pytest.approx(expected - 0.6 * v[-1] ** 2 - 0.8 * stretching**2, rel=1e-9)


def test_dampers_act_without_inputs_and_without_either_there_is_no_force():
    arm, bob = [mb.revolute("arm", axis="y")], [mb.Body("arm", 2.0, (0.0, 0.0, -1.0))]
    damped = mb.Multibody("damped", arm, bob, elements=[mb.JointDamper("arm", 0.5)]).system
    force = numbers(damped.force(ca.SX([0.3]), ca.SX([2.0]), ca.SX(0, 1)))
    assert force[0, 0] == pytest.approx(-1.0)
    assert mb.Multibody("free", arm, bob).system.force is None


@pytest.mark.parametrize("center", [(0.0, 0.0, 0.0), (0.3, -0.2, 0.5)])
def test_a_free_body_has_the_kinetic_energy_of_its_center_of_mass(center):
    """`m |p' + R (omega x c)|^2 / 2` and that of its turning, p' in the axes of the world."""
    hull = mb.Body("hull", 2.0, center, (0.3, 0.4, 0.5))
    model = mb.Multibody("free", [mb.floating("hull", space="SO3xR3")], [hull])
    q, omega, rate = np.r_[0.5, 0.1, -0.7, 0.5, 1.0, 2.0, 3.0], [0.3, -1.0, 0.7], [0.5, 0.2, -0.4]
    moved = rate + quat2mat(q[:4]) @ np.cross(omega, center)
    energy = 2.0 / 2 * moved @ moved + np.dot([0.3, 0.4, 0.5], np.square(omega)) / 2
    v = np.r_[omega, rate]
    assert v @ model.mass_matrix(q) @ v / 2 == pytest.approx(energy, rel=1e-14)


def test_bodies_on_frames_fixed_to_each_other_move_as_one():
    frames = [mb.revolute("bar", axis="y"), mb.fixed("end", "bar", position=(0, 0, -2.0))]
    bodies = [mb.Body("bar", 1.0, center=(0, 0, 1.0)), mb.Body("end", 3.0)]
    dumbbell = mb.Multibody("dumbbell", frames, bodies)
    (mass,) = dumbbell.spatial_inertias
    assert mass.mass == 4.0
    np.testing.assert_allclose(mass.center, [0, 0, -1.25], atol=1e-15)
    np.testing.assert_allclose(mass.inertia, np.diag([6.75, 6.75, 0]), atol=1e-14)
    np.testing.assert_allclose(dumbbell.mass_matrix(np.zeros(1)), [[13.0]], atol=1e-14)


def test_bodies_fixed_to_the_world_move_no_mass():
    frames = [mb.fixed("base", position=(0, 0, 1.0)), mb.revolute("bar", "base", axis="y")]
    own = mb.Body("bar", 1.0, center=(0, 0, 1.0))
    for ground in ("base", "world"):
        model = mb.Multibody("post", frames, [mb.Body(ground, 50.0, inertia=(1, 1, 1)), own])
        assert [part.frame for part in model.spatial_inertias] == ["bar"]
        np.testing.assert_allclose(model.mass_matrix([0.3]), [[1.0]], atol=1e-15)


def test_an_inertia_as_parameters_is_its_tensor_row_by_row():
    tensor = np.array([[0.5, 0.01, 0.02], [0.01, 0.6, 0.03], [0.02, 0.03, 0.7]])
    model = mb.Multibody(
        "m", [mb.spherical("a")], [mb.Body("a", 1.0, inertia=tensor)], parameters=("a_inertia",)
    )
    assert model.constants.value("a_inertia") == (0.5, 0.6, 0.7, 0.01, 0.02, 0.03)
    other = model.constants.model_with({"a_inertia": (0.8, 0.9, 1.0, 0.04, 0.05, 0.06)})
    expected = [[0.8, 0.04, 0.05], [0.04, 0.9, 0.06], [0.05, 0.06, 1.0]]
    np.testing.assert_array_equal(other.bodies[0].inertia, expected)


def test_a_loop_closed_by_a_ball_joint_moves_as_the_crank_that_it_is():
    """Slider-crank: the piston's place follows from the crank's angle."""
    frames = [
        mb.revolute("crank", axis="y"),
        mb.revolute("rod", "crank", "y", position=(0.3, 0, 0)),
        mb.prismatic("piston", axis="x"),
    ]
    bodies = [
        mb.Body("crank", 1.0, center=(0.15, 0, 0), inertia=(0.01,) * 3),
        mb.Body("rod", 0.5, center=(0.4, 0, 0), inertia=(0.02,) * 3),
        mb.Body("piston", 0.7),
    ]
    wrist = mb.Coincident("wrist", mb.Point("rod", (0.8, 0, 0)), "piston", along="xz")
    parts = {"inputs": [mb.JointInput("crank")], "constraints": [wrist]}
    crank = mb.Multibody("slider_crank", frames, bodies, **parts)

    def piston(angle):
        return 0.3 * np.cos(angle) + np.sqrt(0.64 - 0.09 * np.sin(angle) ** 2)

    q = [0.7, -0.7 - np.arcsin(0.3 * np.sin(0.7) / 0.8), piston(0.7)]
    np.testing.assert_allclose(crank.constraint_residuals(q)["wrist"], 0, atol=1e-15)
    vi = midpoint(crank.system, 0.005)
    angles, _, pistons = vi.simulate(vi.state(q, np.zeros(3)), [[0.5]] * 400).states[:, :3].T
    assert np.ptp(angles) > 1.0
    np.testing.assert_allclose(pistons, piston(angles), rtol=0, atol=1e-12)


def test_a_string_reeled_in_pulls_its_load_up_and_a_bead_stays_on_its_plane():
    frames = [
        mb.prismatic("x", axis="x"),
        mb.prismatic("y", "x", axis="y"),
        mb.prismatic("load", "y", axis="z"),
        mb.fixed("ramp", position=(0, 0, 1.0), rotation=euler2mat(0.4, 0.0, 0.0)),
        mb.prismatic("bead_x", axis="x"),
        mb.prismatic("bead_y", "bead_x", axis="y"),
        mb.prismatic("bead_z", "bead_y", axis="z"),
    ]
    string = mb.Distance("string", "load", mb.Point("world", (0, 0, 3.0)), "length")
    crane = mb.Multibody(
        "crane",
        frames,
        [mb.Body("load", 2.0), mb.Body("bead_z", 1.0)],
        constraints=[string, mb.PointOnPlane("slope", "bead_z", "ramp")],
        prescribed=["length"],
    )
    assert crane.space.names[-1] == "length" and crane.system.prescribed == ("length",)
    q = crane.configuration(
        {"x": 0.3, "load": 3.0 - np.sqrt(1.5**2 - 0.09), "length": 1.5, "bead_z": 1.0}
    )
    vi = midpoint(crane.system, 0.01)
    x, lengths = vi.state(q, np.zeros(7)), 1.5 - 0.3 * np.linspace(0.01, 1, 100)
    run = vi.simulate(x, lengths[:, None])
    for state in run.states[5::5]:
        residuals = crane.constraint_residuals(state[:7])
        assert abs(residuals["string"]) <= 1e-12 and abs(residuals["slope"]) <= 1e-12
    bead = crane.point(run.states[-1][:7], "bead_z")
    slid = 9.81 * np.sin(0.4) * 1.0**2 / 2
    np.testing.assert_allclose(
        bead, [0, -slid * np.cos(0.4), 1.0 - slid * np.sin(0.4)], rtol=0, atol=1e-11
    )
    assert run.states[-1][crane.space.names.index("load")] > 1.7


def test_a_mass_on_the_axis_of_its_joint_at_the_origin_is_no_massless_joint():
    """At the origin the weight hangs below the first joint."""
    frames = [mb.revolute("turn", axis="z"), mb.revolute("swing", "turn", axis="x")]
    model = mb.Multibody("conical", frames, [mb.Body("swing", 1.0, center=(0.0, 0.0, -1.0))])
    assert model.mass_matrix([0.0, 0.0])[0, 0] == 0.0
    dsys = midpoint(model.system, 0.01)
    assert np.isfinite(dsys.step(dsys.state([0.0, 0.5], [2.0, 0.0]))).all()
