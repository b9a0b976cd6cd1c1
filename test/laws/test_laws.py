"""All laws (laws.py) for the systems that rooms register (law_cases.py) under every integrator
that takes them: by default a sample of each room, with the long studies all, and by hand a search
that shrinks what fails to the simplest system.
"""

from __future__ import annotations

import re
from dataclasses import replace
from zlib import crc32

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from law_cases import ROOMS, UrdfRobot, case_of
from laws import DERIVATIVES, LAWS, Case, Subject
from random_robots import Robot, robots
from random_systems import Draw, draws

import nh_control as nh
from nh_control.discrete.method import Method
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators import INTEGRATORS, Integrator

DERIVED = ("midpoint", "nonholonomic_midpoint", "gni_implicit", "spark_2", "cf4")
"""One method of every kind, whose derivatives are tested at once: those of others take long to
make."""
SAMPLE = {
    "trees": (0, 1),
    "loops": (1,),
    "wheels": (12,),
    "contacts": (0, 3),
    "robots": (1, 2),
}
SYSTEMS = ("midpoint", "nonholonomic_midpoint", "rdp_cay", "gni", "mean_value", "rk4")


def is_quick(room: str, method: str, number: int) -> bool:
    """Whether a case is tested by default: a sixth of the methods whose equations are small, and
    one of every kind, on a small random system; some systems of other rooms.
    """
    if room in SAMPLE:
        return number in SAMPLE[room]
    if room == "systems":
        return method in SYSTEMS and number == 0
    sixth = INTEGRATORS[method].order <= 4 and crc32(method.encode()) % 6 == 0
    return room in ("small", "tiny") and (method in DERIVED or sixth)


def obeys(room: str, entry: Integrator, number: int, laws=LAWS) -> list[Case]:
    """Require all laws that are about a case; returns the cases of each."""
    failures, cases = [], []
    for law in laws:
        if not law.of_method(entry):
            continue
        case = case_of(room, entry, number, law)
        if case is None:
            continue
        cases.append(case)
        try:
            law.holds(case)
        except (Exception, pytest.fail.Exception) as failure:
            failures.append((f"{law.name}: {case}", failure))
    if failures:
        texts = "\n".join(f"{name}: {type(e).__name__}: {e}" for name, e in failures)
        raise AssertionError(texts) from failures[0][1]
    return cases


def all_cases():
    for room in ROOMS.values():
        for method in room.methods:
            for number in range(min(room.each, room.size)):
                yield room.name, method, number


QUICK = [case for case in all_cases() if is_quick(*case)]
LONG = [(room.name, method) for room in ROOMS.values() for method in room.methods]


@pytest.mark.parametrize("room, method, number", QUICK)
def test_the_laws_hold(room, method, number):
    derivatives = DERIVATIVES if method in DERIVED and room != "systems" else ()
    assert obeys(room, INTEGRATORS[method], number, (*LAWS, *derivatives))


@pytest.mark.slow
@pytest.mark.parametrize("room, method", LONG)
def test_the_laws_hold_for_all(room, method):
    entry = INTEGRATORS[method]
    for number in range(min(ROOMS[room].each, sum(1 for _ in ROOMS[room].fitting(entry)))):
        derivatives = DERIVATIVES if entry.order <= 4 or number == 0 else ()
        obeys(room, entry, number, (*LAWS, *derivatives))


@pytest.mark.exhaustive
@settings(max_examples=100)
@given(draws(), st.data())
def test_all_random_systems_obey_all_laws(draw, data):
    """With failures shrunk to the simplest system that has them."""
    method = data.draw(st.sampled_from(list(INTEGRATORS.fitting(draw.system))))
    require_all(Case(draw, INTEGRATORS[method]))


@pytest.mark.exhaustive
@settings(max_examples=300)
@given(robots())
def test_all_random_robots_obey_all_laws(robot):
    subject = UrdfRobot(robot)
    try:
        subject.system  # noqa: B018  (made when asked for)
    except ValueError as refusal:
        assume("mass matrix is singular" not in str(refusal))
        raise
    require_all(Case(subject, INTEGRATORS["midpoint"]))
    irregular_texts_describe_the_same_robot(robot)


def require_all(case: Case) -> None:
    for law in (*LAWS, *DERIVATIVES):
        if law.applies(case):
            law.holds(case)


# --- robots --------------------------------------------------------------------------------------


def dynamics(subject: UrdfRobot, scalars: list[str], rates: list[str]):
    """Mass matrix and gravity in the order of these rates, with some joints turned."""
    space, model = subject.system.space, nh.multibody.Robot(subject.model)
    q, places = np.array(space.origin), [space.velocity_names.index(name) for name in rates]
    q[[space.names.index(name) for name in scalars]] = np.linspace(-1, 1, len(scalars))
    return model.mass_matrix(q)[np.ix_(places, places)], model.gravity(q)[places]


def irregular_texts_describe_the_same_robot(robot: Robot) -> None:
    plain, own = UrdfRobot(robot.plain), UrdfRobot(robot)
    rename = lambda name: re.sub(
        r"(joint|link)_(\d+)", lambda m: robot.name(m[1], int(m[2])), name
    )
    rates = plain.system.space.velocity_names
    scalars = [name for name in plain.system.space.names if f"{name}_dot" in rates]
    want = dynamics(plain, scalars, rates)
    got = dynamics(own, list(map(rename, scalars)), list(map(rename, rates)))
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * np.abs(b).max(initial=1.0))
    masses = sum(body.mass for body in own.model.bodies)
    assert masses == pytest.approx(sum(robot.masses.values()), rel=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_irregular_texts_describe_the_same_robot(seed):
    irregular_texts_describe_the_same_robot(Robot.random(np.random.default_rng(100 + seed), 5))


UNREAD = {"infinite limits", "line breaks in numbers"}


@pytest.mark.parametrize("seed", range(3))
def test_random_robots_have_the_dynamics_of_pinocchio(seed, tmp_path):
    pytest.importorskip("pinocchio", reason="needs the package pin, see the extra urdf-test")
    from pinocchio_reference import Reference

    robot = Robot.random(np.random.default_rng(200 + seed), 5)
    # urdfdom reads no "inf" and only spaces between numbers, Pinocchio no axis of a planar joint
    kinds = tuple(kind.replace("planar", "floating") for kind in robot.kinds)
    robot = replace(robot, kinds=kinds, quirks=robot.quirks - UNREAD)
    subject, path = UrdfRobot(robot), tmp_path / "robot.urdf"
    path.write_text(robot.text(), encoding="utf-8")
    reference = Reference(path, robot.base, subject.model)
    q, v = subject.phase(np.random.default_rng(seed))
    mass, gravity, _ = reference.terms(q, v)
    model = nh.multibody.Robot(subject.model)
    for found, expected in ((model.mass_matrix(q), mass), (model.gravity(q), gravity)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


# --- what a new method and a new system get by being registered ----------------------------------


def own_method(system, h):
    """A symplectic Euler method of Rn and a mass matrix that is constant."""

    def residual(s):
        slope, momentum = s.gradients(s.q, s.z)
        return momentum - s.rho - s.h * slope

    def readout(s):
        return s.q + s.h * s.z, s.gradients(s.q, s.z)[1]

    return DiscreteSystem(system, h, Method("own", system.space.nv, residual, readout))


class WrongSign(DiscreteSystem):
    """Derivatives by the last input have the wrong sign."""

    def linearize(self, *arguments, **options):
        lin = super().linearize(*arguments, **options)
        lin.B[:, -1:] *= -1
        return lin


def with_class(kind: type, make):
    def made(system, h):
        dsys = make(system, h)
        dsys.__class__ = kind
        return dsys

    return made


def flat(system) -> str:
    is_flat = type(system.space) is nh.Rn and not (
        system.inputs
        or system.prescribed
        or system.n_velocity_constraints
        or system.n_holonomic_constraints
    )
    return "" if is_flat else "is not flat"


OWN = Integrator("own", own_method, 1, False, False, ("symplectic form", "momenta"), refuses=flat)


def test_a_new_method_is_under_all_laws_by_its_entry():
    laws = (*LAWS, *DERIVATIVES)
    assert len(obeys("random", OWN, 0, laws)) >= 9


def test_a_new_system_is_under_all_laws_by_its_name():
    class Own(Subject):
        system = nh.System("own", nh.Rn("x"), lambda q, v: v[0] ** 2 / 2 + ca.cos(q[0]))

        def phase(self, rng):
            return rng.uniform(-1, 1, 1), rng.uniform(-1, 1, 1)

    for method in ("midpoint", "mean_value", "rk4"):
        require_all(Case(Own(), INTEGRATORS[method]))


MIDPOINT, RK4 = INTEGRATORS["midpoint"], INTEGRATORS["rk4"]
WRONG = {
    "a_method_has_its_order": replace(MIDPOINT, order=4),
    "a_symmetric_step_is_reversible": replace(RK4, symmetric=True),
    "the_energy_is_kept": replace(MIDPOINT, preserves=("energy",)),
    "the_symplectic_form_is_kept": replace(RK4, preserves=("symplectic form",)),
    "the_linearization_is_the_derivative_of_the_step": replace(
        MIDPOINT, make=with_class(WrongSign, MIDPOINT.make)
    ),
}


@pytest.mark.parametrize("law", WRONG)
def test_a_method_that_breaks_a_law_is_caught(law):
    (one,) = (one for one in (*LAWS, *DERIVATIVES) if one.name == law)
    draw = Draw(("R2",), inputs=1)
    one.holds(Case(draw, INTEGRATORS["mean_value" if "energy" in law else "midpoint"]))
    with pytest.raises(AssertionError):
        one.holds(Case(draw, WRONG[law]))
