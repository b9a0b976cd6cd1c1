"""What the midpoint variational integrator keeps over long runs on rotations and directions: the
manifold, momenta, energy. Single steps are in test/laws.
"""

from __future__ import annotations

from functools import cache

import lie_cases
import numpy as np
import pytest
from lie_motion import rotate

from nh_control.geometry.rotations import S2

pytestmark = pytest.mark.slow

LONG = 100_000


def start(name, h):
    """The paper's start for the paper's top, two hanging links (upright they move chaotically), a
    seeded state for the others.
    """
    dsys = lie_cases.discrete(name, h)
    if name == "fast_top":
        return dsys, np.concatenate(
            [[1.0, 0, 0, 0], lie_cases.inertia(lie_cases.FAST_TOP) * [0.0, 150.0, -4.61538]]
        )
    if name == "pendulum_2":
        return dsys, dsys.state(
            np.array([0.6, 0.0, -0.8, 0.0, 0.28, -0.96]), np.array([0.0, 1.0, 0.0, -0.5, 0.0, 0.0])
        )
    return dsys, lie_cases.random_point(dsys, np.random.default_rng([8, *name.encode()]))[0]


@cache
def long_run(name, h, shift=0.0):
    """States of 1e5 steps without inputs from a seeded state, its momenta larger by the factor 1 +
    shift, and their energies at every seventh.
    """
    dsys, x = start(name, h)
    x[dsys.system.space.nq :] *= 1 + shift
    states = dsys.simulate(x, np.zeros((LONG, dsys.nu))).states
    return dsys, states, np.array([dsys.energy(x) for x in states[::7]])


# --- the manifold --------------------------------------------------------------------------------


@pytest.mark.parametrize("name, h", [("rigid_body", 0.05), ("pendulum_1", 0.02)])
def test_a_million_steps_stay_on_the_manifold(name, h):
    """Norms within 1e-14 of one at every step, and momenta tangent to the sphere."""
    dsys, x = start(name, h)
    for _ in range(10):
        states = dsys.simulate(x, np.zeros((100_000, dsys.nu))).states
        for f, at, _, stored in lie_cases.parts(dsys.system.space):
            q, p = states[:, at], states[:, dsys.system.space.nq :][:, stored]
            assert np.abs(np.linalg.norm(q, axis=1) - 1).max() <= 1e-14
            if isinstance(f, S2):
                assert np.abs(np.sum(q * p, 1)).max() <= 1e-14 * np.abs(p).max()
        x = states[-1]


# --- momenta -------------------------------------------------------------------------------------


def drift(momentum):
    """Largest change of a momentum vector (or of a component of it) relative to its greatest
    length in the run; arrays (steps,) or (steps, k).
    """
    return np.abs(momentum - momentum[0]).max() / np.abs(momentum).max()


@pytest.mark.parametrize(
    "name, h, kept",
    [
        ("rigid_body", 0.05, [0, 1, 2]),
        ("heavy_top", 0.01, [2]),
        ("fast_top", 5e-4, [2]),
        ("pendulum_1", 0.02, [2]),
        ("pendulum_2", 0.01, [2]),
    ],
)
def test_momenta_in_space_are_kept(name, h, kept):
    """All of a free body, and those about the vertical under gravity, where the others turn."""
    dsys, states, _ = long_run(name, h)
    if dsys.system.space.nq == 4:
        momentum = rotate(states[:, :4], states[:, 4:])
    else:
        q, p = states.reshape(len(states), 2, -1, 3).transpose(1, 0, 2, 3)
        momentum = np.cross(q, p).sum(1)
    size = np.abs(momentum).max()
    assert np.abs(momentum - momentum[0])[:, kept].max() <= 1e-12 * size
    assert len(kept) == 3 or np.ptp(momentum[:, 0]) > 0.5 * size


def test_the_free_payload_keeps_all_its_momenta():
    """Afloat: the linear momentum, the angular momentum of payload and links about the origin, and
    each quadrotor's own, as space vectors.
    """
    dsys, states, _ = long_run("payload_afloat", 0.01)
    q, p = states[:, : dsys.system.space.nq], states[:, dsys.system.space.nq :]
    for i in range(2):
        assert drift(rotate(q[:, 3 + 4 * i : 7 + 4 * i], p[:, 3 + 3 * i : 6 + 3 * i])) <= 1e-12
    assert drift(p[:, :3]) <= 1e-12
    links = [
        np.cross(q[:, 11 + 3 * i : 14 + 3 * i], p[:, 9 + 3 * i : 12 + 3 * i]) for i in range(2)
    ]
    payload = np.cross(q[:, :3], p[:, :3])
    total = payload + sum(links)
    assert np.abs(total - total[0]).max() <= 1e-12 * np.linalg.norm(
        q[:, :3], axis=1
    ).max() * np.linalg.norm(p[0, :3])


# --- energy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, h",
    [
        ("rigid_body", 0.05),
        ("heavy_top", 0.01),
        ("fast_top", 5e-4),
        ("pendulum_1", 0.02),
        ("pendulum_2", 0.01),
        ("payload_afloat", 0.01),
    ],
)
def test_energy_is_bounded_without_drift(name, h):
    """Over 1e5 steps a line fitted to the error rises by less than a twentieth of its envelope in
    the first tenth; and the envelope of the last tenth, and that of the whole run, are that of the
    first tenth up to 10 and 20 %. The line is fitted to the mean error of five motions that start
    apart by round-off: the heavy top's is chaotic, and single ones rise or fall by up to a
    twelfth."""
    _, _, energy = long_run(name, h)
    error = energy - energy[0]
    tenth = len(error) // 10
    envelope = np.ptp(error[:tenth])
    assert 1e-9 * np.abs(energy).max() < envelope < 0.1 * np.abs(energy).max()
    assert np.ptp(error[-tenth:]) <= 1.1 * envelope
    assert np.ptp(error) <= 1.2 * envelope
    mean = np.mean(
        [
            error,
            *(
                np.subtract(e, e[0])
                for e in (long_run(name, h, k * 1e-13)[2] for k in range(1, 5))
            ),
        ],
        axis=0,
    )
    slope = np.polyfit(np.linspace(0, 1, len(mean)), mean, 1)[0]
    assert abs(slope) <= 0.05 * envelope
