"""The systems, starts, steps and methods that experiments of papers run with are the printed ones,
or those that are told as chosen; and which registered method a paper's name stands for.
"""

import ast
import importlib
import inspect

import numpy as np
import pytest

from nh_control.mechanics.parameters import Parameters
from nh_control.papers import (
    PAPERS,
    celledoni2021_payload_model,
    celledoni2021_pendulums,
    mueller2013_runs,
)
from nh_control.papers import celledoni2016_gearbox as gearbox
from nh_control.papers.celledoni2021_payload_control import GeometricGains
from nh_control.systems import Formation
from nh_control.systems.linkages import BASE, DENSITY, LINK, box_top, double_pendulum

HALF = np.sqrt(0.5)
SETTINGS = (
    *("celledoni2016_chaotic", "celledoni2016_disk", "celledoni2016_gearbox"),
    *("celledoni2016_sleigh", "celledoni2021_chains", "celledoni2021_flow", "celledoni2021_pairs"),
    *("celledoni2021_payload", "celledoni2021_payload_model", "celledoni2021_pendulums"),
    *("celledoni2021_top", "johnson2014", "johnson2014_marionette", "kobilarov2010_motions"),
    *("kobilarov2010_structure", "mueller2013_beyond", "mueller2013_figures"),
    *("mueller2013_joints", "mueller2013_runs"),
)


def in_words(value):
    """Numbers, names of methods and parameters; None for anything else."""
    if isinstance(value, np.ndarray):
        return in_words(value.tolist())
    if isinstance(value, dict):
        found = {name: in_words(one) for name, one in value.items()}
        return None if None in found.values() else f"{found}".replace("'", "")
    if isinstance(value, tuple | list):
        found = [in_words(one) for one in value]
        return None if None in found else f"({', '.join(found)})"
    if isinstance(value, float):
        return f"{value:.12g}"
    settings = int, str, Parameters, Formation, GeometricGains
    return str(value) if isinstance(value, settings) else None


def names_given(module):
    """Constants that a module defines itself."""
    for line in ast.parse(inspect.getsource(module)).body:
        for target in line.targets if isinstance(line, ast.Assign) else ():
            names = (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
            yield from (name for name in names if name.isupper())


@pytest.mark.parametrize("module", SETTINGS)
def test_experiments_use_the_printed_or_assumed_settings(module, snapshot):
    """But for texts and looks."""
    module = importlib.import_module(f"nh_control.papers.{module}")
    values = {name: getattr(module, name) for name in names_given(module)}
    told = {name: in_words(v) for name, v in values.items() if not isinstance(v, str)}
    looks = "linewidth", "motion of", "Spherical", "paper"
    told = {n: t for n, t in told.items() if t and not any(look in t for look in looks)}
    assert "\n".join(f"{name} = {value}" for name, value in told.items()) == snapshot


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
