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


@pytest.mark.parametrize("name", ["top", "pendulum", "pair", "loop"])
def test_examples_of_mueller_have_the_printed_or_assumed_start(name, snapshot):
    """Rates are those of the joints, in body axes; the pair's center of mass is at rest."""
    case = mueller2013_runs.example(name)
    rounded = lambda values: np.round(np.asarray(values, float), 9) + 0.0
    poses = case.model.poses(case.q)
    told = {"duration": case.duration, "joints": dict(case.joints), "v": rounded(case.v)}
    told["gravity"] = rounded(case.model.gravity)
    for body in case.model.bodies:
        told[f"{body.frame}: position"] = rounded(poses[body.frame].position)
        told[f"{body.frame}: rotation"] = rounded(poses[body.frame].rotation)
        told[f"{body.frame}: mass"] = float(rounded(body.mass))
        told[f"{body.frame}: center"] = rounded(body.center)
        told[f"{body.frame}: inertia"] = rounded(body.inertia)
    assert "\n".join(f"{key} = {in_words(value)}" for key, value in told.items()) == snapshot


def test_the_loop_of_mueller_is_closed():
    loop = mueller2013_runs.example("loop")
    np.testing.assert_allclose(loop.model.constraint_residuals(loop.q)["base"], 0, atol=1e-15)


def test_chains_start_as_printed_with_masses_and_lengths_of_one():
    problem = celledoni2021_pendulums.chain(2)
    np.testing.assert_allclose(problem.x0, np.tile([HALF, 0, HALF, 0, 1, 0], 2))
    np.testing.assert_array_equal(problem.numbers, [1, 1, 1, 1, 9.81])
    np.testing.assert_array_equal(
        celledoni2021_pendulums.chain(3, 0.4).numbers, [1, 1, 1, 0.4, 0.4, 0.4, 9.81]
    )
    wanted = celledoni2021_payload_model.reference_position(np.array([0.0, 2.5, 4.0]))
    np.testing.assert_allclose(wanted, [[-2.5, 0, 0.75], [0, 0, 7], [1.5, 0, 4.75]])


def test_every_figure_of_every_paper_is_here_in_the_paper_s_order(snapshot):
    assert {key: " ".join(paper.numbers) for key, paper in PAPERS.items()} == snapshot
