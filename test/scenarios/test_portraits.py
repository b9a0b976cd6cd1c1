"""What the nonholonomic systems look like moves as they do: wheels stay above the ground and do
not slip along their axles, and there is a picture of every system.
"""

import casadi as ca
import numpy as np
import pytest

from nh_control.figures import portraits
from nh_control.figures.scene import visual_scene

AXLES = {
    "rolling disk": ("disk",),
    "Chaplygin sleigh": ("skate",),
    "snakeboard": ("rear_truck", "front_truck"),
    "differential drive": ("left_wheel", "right_wheel"),
    "car": ("rear_left", "rear_right", "front_left", "front_right"),
    "roller racer": ("rear_left", "rear_right", "front_left", "front_right"),
}
ROLLING = {
    "rolling disk": ("disk",),
    "differential drive": ("left_wheel", "right_wheel"),
    "rolling ball": ("ball",),
}


def moving(name, seed):
    """Poses, and velocities and angular velocities of frames under an admissible velocity v."""
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
    poses, rates = visual.poses(system.parameters, q), {}
    for frame, pose in poses.items():
        center = (ahead[frame].position - behind[frame].position) / (2 * step)
        turn = (ahead[frame].rotation - behind[frame].rotation) / (2 * step) @ pose.rotation.T
        rates[frame] = center, np.array([turn[2, 1], turn[0, 2], turn[1, 0]])
    return system, poses, rates, v


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", AXLES)
def test_wheels_do_not_move_along_their_axles(name, seed):
    """The front wheels of the car, too, each of which is turned by an angle of its own."""
    _, poses, rates, v = moving(name, seed)
    for frame in AXLES[name]:
        assert abs(rates[frame][0] @ poses[frame].rotation[:, 1]) <= 1e-8 * (1 + np.abs(v).max())


@pytest.mark.parametrize("name", ROLLING)
def test_what_rolls_is_at_rest_at_its_lowest_point(name):
    """As it is drawn: the rate of the point, carried by its rotation, vanishes."""
    system, poses, rates, _ = moving(name, 3)
    for frame in ROLLING[name]:
        center, spin = rates[frame]
        lowest = center + np.cross(spin, [0.0, 0.0, -system.parameters.r])
        assert np.abs(lowest).max() <= 1e-7 and np.abs(center).max() > 0.01


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
