"""The systems, starts, steps and methods that experiments of papers run with are the printed ones,
or those that are told as chosen; and which registered method a paper's name stands for.
"""

import numpy as np
import pytest

from nh_control.papers import (
    PAPERS,
    celledoni2021_flow,
    celledoni2021_pairs,
    celledoni2021_payload,
    celledoni2021_payload_model,
    celledoni2021_pendulums,
    celledoni2021_top,
    johnson2014,
    johnson2014_marionette,
    kobilarov2010_motions,
    kobilarov2010_structure,
    mueller2013_beyond,
    mueller2013_figures,
    mueller2013_joints,
    mueller2013_runs,
)
from nh_control.papers import celledoni2016_chaotic as chaotic
from nh_control.papers import celledoni2016_disk as disk
from nh_control.papers import celledoni2016_gearbox as gearbox
from nh_control.papers import celledoni2016_sleigh as sleigh
from nh_control.papers import celledoni2021_chains as chains
from nh_control.papers.celledoni2021_payload_control import GeometricGains
from nh_control.systems import (
    ChaplyginSleighParameters,
    Formation,
    QuadrotorPayloadParameters,
    SnakeboardParameters,
)
from nh_control.systems.linkages import BASE, DENSITY, LINK, box_top, double_pendulum
from nh_control.systems.rigid_body import HeavyTopParameters, RigidBodyParameters

HALF = np.sqrt(0.5)
SETTINGS = {
    chaotic: {
        "METHODS": {
            "SI-DLA": "si_dla",
            "I-DLA": "nonholonomic_midpoint",
            "SPARK": "spark_2",
            "AVF": "mean_value",
            "Gonzalez": "gonzalez",
        },
        "VARIATIONAL": ("SI-DLA", "I-DLA", "SPARK"),
        "PRESERVING": ("AVF", "Gonzalez"),
        "STEP_S": 0.1,
        "ENERGY": 3.06,
        "ORDER_S": 10.0,
        "ORDER_STEPS": (250, 500, 1000, 2000, 4000),
        "SAMPLE_STEPS": 10_000,
        "STARTS": 200,
        "WALK_STEPS": 10_000,
        "LONG_WALK_STEPS": 1_000_000,
        "LINE": 1e-4,
    },
    disk: {"RATES": (3.0, 0.8), "STEP_S": 0.1, "STEPS": 100, "POINTS": 20},
    gearbox: {
        "METHODS": {"Gonzalez-R": "gonzalez_r", "Gonzalez-F": "gonzalez_f", "SI-DLA": "si_dla"},
        "STEP_S": 0.1,
        "DURATION_S": 50_000.0,
    },
    sleigh: {
        "SLEIGH": ChaplyginSleighParameters(m=1.0, I=8.0, a=1.0),
        "RATE": pytest.approx(1 / 9),
        "STEP_S": 0.5,
        "STEPS": 2000,
        "RHO_1": (-0.001, 0.001),
        "RHO_2": -0.6,
        "EQUILIBRIA": (-2.0, -0.6, -0.1, 0.1, 0.6, 2.0),
    },
    celledoni2021_flow: {
        "TIGHTEST": 1e-13,
        "METHODS": {
            "Lie-Euler": "lie_euler",
            "Lie-Euler-Heun": "lie_euler_heun",
            "RKMK3": "rkmk3",
            "RKMK4": "rkmk4",
            "RKMK4, two commutators": "rkmk4_two_commutators",
            "CF4": "cf43",
        },
        "ORDERS": {
            "Lie-Euler": 1,
            "Lie-Euler-Heun": 2,
            "RKMK3": 3,
            "RKMK4": 4,
            "RKMK4, two commutators": 4,
            "RKMK4, series": 4,
            "CF4": 4,
            "RKMK5": 5,
        },
    },
    chains: {
        "NUMBERS": (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20),
        "DURATION_S": 3.0,
        "TOLERANCE": 1e-6,
        "TOTAL_M": 5.0,
        "PEAK_S": 2.2,
        "SIZES": (25, 50, 100, 200),
        "ALLOWED_S": 0.2e-3,
    },
    celledoni2021_pairs: {
        "COMMUTATOR_FREE": {
            "CF3(2)": "cf32",
            "CF3(2), third stage": "cf32_third_stage",
            "CF4(3)": "cf43",
        },
        "TOLERANCES": (1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    },
    celledoni2021_payload: {"ORDER_STEPS": (250, 500, 1000, 2000, 4000)},
    celledoni2021_payload_model: {
        "PARAMETERS": QuadrotorPayloadParameters(
            0.4, 0.755, 0.0820, 0.0845, 0.1377, lengths=(0.6, 0.8), g=9.81
        ),
        "GAINS": GeometricGains(12.0, 5.0, 16.0, 5.0, 100.0, 3.0),
        "FORMATION": Formation(np.pi / 6, azimuth=-np.pi / 2),
        "DURATION_S": 5.0,
        "STEP_S": 0.01,
    },
    celledoni2021_pendulums: {
        "ORDER_S": 1.0,
        "KEPT_S": 5.0,
        "KEPT_STEP_S": 0.01,
        "ODE45": {"rtol": 1e-3, "atol": 1e-6},
    },
    celledoni2021_top: {
        "TOP": HeavyTopParameters(15.0, 2.0, 0.234375, 0.46875, 0.234375, 9.81, (0.0, 1.0, 0.0)),
        "FREE": RigidBodyParameters(),
        "LONG_STEP_S": 0.01,
        "LONG_STEPS": 6000,
        "SHOWN_STEP_S": 0.002,
        "SHOWN_S": 1.0,
        "ORDER_S": 0.1,
        "FREE_STEP_S": 0.2,
        "FREE_STEPS": 20_000,
    },
    johnson2014: {
        "STEP_S": 0.1,
        "STEPS": 100,
        "TOLERANCE": 1e-6,
        "PREPARED": 4,
        "FIRST_GAIN": (0.0613, 0.981),
    },
    johnson2014_marionette: {"TURN_RAD": 0.1, "COORDINATES": 22},
    kobilarov2010_motions: {
        "SLEIGH": ChaplyginSleighParameters(m=1.0, I=1.0, a=0.5),
        "SLEIGH_STEP_S": 0.2,
        "SLEIGH_STEPS": 60,
        "BOARD": SnakeboardParameters(m=1.0, l=0.7, I=0.1, J=0.15),
        "BOARD_S": 10.0,
        "BOARD_STEPS": 128,
    },
    kobilarov2010_structure: {
        "SLEIGH": ChaplyginSleighParameters(m=1.0, I=1.0, a=0.5),
        "ORDER_S": 1.0,
        "ORDER_STEPS": (10, 20, 40, 80),
        "STEP_S": 0.1,
    },
    mueller2013_runs: {"STEP_S": 1e-3, "METHOD": "rkmk4_index_one"},
    mueller2013_figures: {"PRINTED_ENERGY": 13.97e3, "SIDES": {"top": (0.1, 0.2, 0.4)}},
    mueller2013_beyond: {
        "COMPARED_S": 0.5,
        "REFERENCE_STEP_S": 1e-4,
        "MIXED": (("upper", "SE3"), ("lower", "SO3xR3")),
    },
    mueller2013_joints: {
        "SUBGROUPS": {
            "SE3": ("spherical", "revolute", "prismatic", "helical", "cylindrical", "planar"),
            "SO3xR3": ("prismatic", "planar"),
        },
        "PITCH": 0.05,
        "RATE": 10.0,
    },
}
ARRAYS = {
    (celledoni2021_payload_model, "START_Y"): [-2.0, 0.0, 0.0],
    (celledoni2021_payload_model, "LINKS"): [
        [-np.sin(np.radians(80)), 0, np.cos(np.radians(80))],
        [np.sin(np.radians(80)), 0, np.cos(np.radians(80))],
    ],
    (celledoni2021_pendulums, "IN_SPACE"): [
        [HALF, 0, HALF, 1, 2, -1],
        [0, HALF, HALF, 1, 1, -1],
        [HALF, 0, -HALF, 1, -1, 1],
    ],
    (celledoni2021_top, "RATE"): [0.0, 150.0, -4.61538],
    (johnson2014, "Q"): np.diag([1000.0, 1.0]),
    (johnson2014, "R"): [[50.0]],
    (johnson2014, "PERTURBED"): [1.0, 1.0],
    (kobilarov2010_motions, "SLEIGH_START"): [[0.0, 0.0, 0.0], [0.075, -1.523, 0.0375]],
    (kobilarov2010_structure, "SLEIGH_START"): [[0.0, 0.0, 0.0], [0.25, -1.5, 0.125]],
}


@pytest.mark.parametrize("module", SETTINGS, ids=lambda module: module.__name__.split(".")[-1])
def test_experiments_use_the_printed_or_assumed_settings(module):
    found = {name: getattr(module, name) for name in SETTINGS[module]}
    assert found == SETTINGS[module]


@pytest.mark.parametrize(
    ("module", "name"), ARRAYS, ids=lambda one: getattr(one, "__name__", one).split(".")[-1]
)
def test_starts_and_weights_are_the_printed_or_assumed_ones(module, name):
    np.testing.assert_allclose(np.array(getattr(module, name)), ARRAYS[module, name], rtol=1e-12)


def test_the_gearbox_has_its_fixed_start_and_two_pi_in_two_parts():
    """To 32 digits."""
    from decimal import Decimal, getcontext

    getcontext().prec = 40
    whole = Decimal("6.283185307179586476925286766559005768394")
    parts = Decimal(float(gearbox.TURN)) + Decimal(float(gearbox.TURN_REST))
    assert abs(parts - whole) < Decimal("1e-31")
    assert gearbox.START == (
        (0.18905338, -0.52274844, -0.41306354),
        (0.2833655, 0.70591289, 1.14416587),
    )


def test_examples_of_mueller_have_the_printed_or_assumed_start():
    """Rates of the bodies are in body axes; the pair's center of mass is at rest, and the loop's
    triangle swings about its base while the bars spin.
    """
    pi, example = np.pi, mueller2013_runs.example
    top, pendulum, pair, loop = map(example, ("top", "pendulum", "pair", "loop"))
    assert [case.duration for case in (top, pendulum, pair, loop)] == [3.0, 2.0, 3.0, 2.0]
    assert [dict(case.joints) for case in (top, pendulum, pair, loop)] == [
        {"box": 1},
        {"upper": 1, "lower": 2},
        {"second": 1},
        {"left": 1, "right": 2, "base": 3},
    ]
    np.testing.assert_allclose(top.v, [0, 20 * pi, 10 * pi])
    np.testing.assert_allclose(pendulum.v[:3], [10, 0, 0])
    np.testing.assert_allclose(pendulum.v[:3] + pendulum.v[3:], [10 * pi, 10 * pi, 20 * pi])
    np.testing.assert_allclose(pair.v[:3], [0, 0, -10])
    np.testing.assert_allclose(pair.v[:3] + pair.v[6:], [1, -1, 2 * pi])
    poses = loop.model.poses(loop.q)
    left = poses["left"].rotation @ loop.v[:3]
    relative = poses["right"].rotation.T @ left + loop.v[3:]
    np.testing.assert_allclose(
        left, [10, 0, 0] + 10 * pi * poses["left"].rotation[:, 0], atol=1e-12
    )
    np.testing.assert_allclose(
        poses["right"].rotation @ relative,
        [10, 0, 0] + 20 * pi * poses["right"].rotation[:, 0],
        atol=1e-12,
    )
    assert (DENSITY, LINK, BASE) == (2700.0, (0.2, 0.1, 0.05), 0.3)
    (box,) = box_top().bodies
    assert box.mass == pytest.approx(21.6) and tuple(box.center) == (0.5, 0.0, 0.0)
    np.testing.assert_allclose(box.inertia, 1.8 * np.diag([0.2, 0.17, 0.05]))
    assert [body.mass for body in double_pendulum().bodies] == pytest.approx([2.7, 2.7])


def test_links_of_mueller_hang_at_their_ends_and_close_their_loop():
    """Joints and centers of mass in the frames of the links; the triangle hangs below its base."""
    example, at = mueller2013_runs.example, [0.2, 0.0, 0.0]
    pendulum, pair, loop = (example(name) for name in ("pendulum", "pair", "loop"))
    np.testing.assert_allclose(pendulum.model.poses(pendulum.q)["lower"].position, at)
    assert [tuple(body.center) for body in pendulum.model.bodies] == [(0.1, 0.0, 0.0)] * 2
    poses = pair.model.poses(pair.q)
    apart = poses["second"].position - poses["first"].position
    np.testing.assert_allclose(apart, [0.1, 0.0, 0.0])
    assert [tuple(body.center) for body in pair.model.bodies] == [(0.0,) * 3, (0.1, 0.0, 0.0)]
    poses = loop.model.poses(loop.q)
    depth = np.sqrt(0.2**2 - 0.15**2)
    np.testing.assert_allclose(poses["right"].position, [0.15, 0.0, -depth])
    end = poses["right"].position + poses["right"].rotation @ at
    np.testing.assert_allclose(end, [0.3, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(loop.model.constraint_residuals(loop.q)["base"], 0, atol=1e-15)
    gravities = [
        tuple(example(name).model.gravity) for name in ("top", "pendulum", "pair", "loop")
    ]
    assert [gravity == (0.0, 0.0, 0.0) for gravity in gravities] == [True, False, True, False]
    assert gravities[1] == gravities[3] == (0.0, 0.0, -9.81)


def test_chains_start_as_printed_with_masses_and_lengths_of_one():
    problem = celledoni2021_pendulums.chain(2)
    np.testing.assert_allclose(problem.x0, np.tile([HALF, 0, HALF, 0, 1, 0], 2))
    np.testing.assert_array_equal(problem.numbers, [1, 1, 1, 1, 9.81])
    np.testing.assert_array_equal(
        celledoni2021_pendulums.chain(3, 0.4).numbers, [1, 1, 1, 0.4, 0.4, 0.4, 9.81]
    )
    wanted = celledoni2021_payload_model.reference_position(np.array([0.0, 2.5, 4.0]))
    np.testing.assert_allclose(wanted, [[-2.5, 0, 0.75], [0, 0, 7], [1.5, 0, 4.75]])


def test_every_figure_of_every_paper_is_here_in_the_paper_s_order():
    numbers = {key: " ".join(paper.numbers) for key, paper in PAPERS.items()}
    assert numbers == {
        "celledoni2016": "1 yaw cost 2 3 stability suslov 4",
        "celledoni2021": "rigid_body 1 2 3 heavy_top pairs 4 5 6 7 8 9 10 11 scaling 12 13 14 15 "
        "16 17 18",
        "johnson2014": "2 worked singularities 3 4 5 6 7 timings",
        "kobilarov2010": "1 2 3 4 cusps orders structure theorem_1 run_times oscillation maps",
        "mueller2013": numbers["mueller2013"],
    }
    figures = numbers["mueller2013"].split()
    assert figures[:15] == [str(k) for k in range(1, 16)]


def test_every_experiment_is_one_of_its_own():
    for paper in PAPERS.values():
        computed = [
            (getattr(e.compute, "func", e.compute), getattr(e.compute, "args", ()))
            for e in paper.experiments
        ]
        assert len(set(computed)) == len(computed)
        for experiment, (function, _) in zip(paper.experiments, computed):
            if function.__name__.startswith("figure_"):
                assert function.__name__ == experiment.file
