"""What the list of integrators says of each, what a method with options is called, and how a name
that is not there is refused.
"""

from dataclasses import replace

import numpy as np
import pytest

from nh_control.integrators import (
    INTEGRATORS,
    explicit_runge_kutta,
    gni,
    gonzalez,
    gonzalez_f,
    implicit_midpoint,
    itoh_abe,
    lie_mean_value,
    lie_midpoint,
    mean_value,
    midpoint,
    nonholonomic_gauss,
    nonholonomic_midpoint,
    nprk,
    rattle,
    rdp,
    shake,
    si_dla,
    slgi,
    spark,
)
from nh_control.integrators.composition import composition
from nh_control.integrators.energy_collocation import energy_collocation
from nh_control.integrators.geometric_nonholonomic import MIDPOINT
from nh_control.integrators.lie_group import lie_group
from nh_control.integrators.lie_tableaux import TABLES
from nh_control.integrators.registry import Registry
from nh_control.integrators.variational_gauss import variational_gauss
from nh_control.systems import chaplygin_sleigh, pendulum, snakeboard

H = 0.05
ORDERS = {
    1: "slgi_0 slgi_1 itoh_abe lie_euler",
    2: "midpoint nonholonomic_midpoint slgi_half rdp_exp rdp_cay rdp_sccsk gni rattle shake "
    "gni_implicit gni_midpoint si_dla spark_2 spark_2_d nprk_2 nonholonomic_gauss_1 mean_value "
    "gonzalez gonzalez_kinetic itoh_abe_symmetrized gonzalez_r gonzalez_r_differences gonzalez_f "
    "rk2 heun implicit_midpoint lie_euler_heun lie_midpoint lie_mean_value",
    3: "crouch_grossman_3 cf3 cf3_third_stage rkmk3",
    4: "variational_gauss_4 spark_3 spark_3_d nprk_3 nonholonomic_gauss_2 energy_collocation_4 "
    "midpoint_order4 nonholonomic_midpoint_order4 rk4 cf4 rkmk4 rkmk4_two_commutators "
    "rkmk4_index_one rkmk4_baumgarte rkmk4_projected",
    5: "rkmk5",
    6: "variational_gauss_6 spark_4 spark_4_d nprk_4 nonholonomic_gauss_3 energy_collocation_6 "
    "midpoint_order6 nonholonomic_midpoint_order6",
    8: "midpoint_order8 nonholonomic_midpoint_order8",
}
ONE_WAY = "slgi_0 slgi_1 itoh_abe nprk_2 nprk_3 nprk_4"
"""Implicit methods that are not symmetric; of the explicit ones GNI alone is."""
EXPLICIT = (
    "gni rattle shake rk2 heun rk4 lie_euler lie_euler_heun crouch_grossman_3 cf3 cf3_third_stage "
    "cf4 rkmk3 rkmk4 rkmk4_two_commutators rkmk5 rkmk4_index_one rkmk4_baumgarte rkmk4_projected"
)


def test_every_integrator_has_its_order_and_is_explicit_or_symmetric_as_it_is_known():
    known = {name: order for order, names in ORDERS.items() for name in names.split()}
    assert {name: one.order for name, one in INTEGRATORS.items()} == known
    explicit = set(EXPLICIT.split())
    assert {name for name, one in INTEGRATORS.items() if one.explicit} == explicit
    symmetric = (set(known) - explicit | {"gni", "rattle", "shake"}) - set(ONE_WAY.split())
    assert {name for name, one in INTEGRATORS.items() if one.symmetric} == symmetric
    assert all(name == one.name and one.source for name, one in INTEGRATORS.items())


@pytest.mark.parametrize("method", ["mean_value", "energy_collocation_4"])
def test_where_velocity_constraints_hold_is_where_a_method_says(method):
    """At the middle of a step, or at its points and so not there."""
    dsys = INTEGRATORS[method].make(chaplygin_sleigh(), 0.2)
    x = dsys.state([0.2, 0.0, 0.0], [0.9, 1.0, 0.9])
    off = np.abs(dsys.constraint_residual(x, dsys.step(x, [0.5, -0.3]))).max()
    kept = "velocity constraints at the middle" in INTEGRATORS[method].preserves
    assert off < 1e-15 if kept else off > 1e-7
    assert kept or "velocity constraints at the points" in INTEGRATORS[method].preserves


def test_compositions_keep_what_their_substeps_keep_but_for_the_middle():
    for base in ("midpoint", "nonholonomic_midpoint"):
        for order in (4, 6, 8):
            kept = INTEGRATORS[f"{base}_order{order}"].preserves
            own = INTEGRATORS[base].preserves
            assert set(own) - set(kept) == set(own) & {"velocity constraints at the middle"}
            assert set(kept) <= set(own) and "holonomic constraints" in kept


CALLED = {
    "midpoint": lambda: midpoint(pendulum(), H),
    "midpoint_left": lambda: midpoint(pendulum(), H, "left"),
    "nonholonomic_midpoint": lambda: nonholonomic_midpoint(snakeboard(), H),
    "nonholonomic_midpoint_left": lambda: nonholonomic_midpoint(snakeboard(), H, "left"),
    "rdp(sccsk, alpha=0.5, exact)": lambda: rdp(snakeboard(), H),
    "rdp(cay, alpha=0.3, truncated)": lambda: rdp(snakeboard(), H, "cay", 0.3, "truncated"),
    "gni": lambda: gni(snakeboard(), H),
    "gni(zero)": lambda: rattle(snakeboard(), H),
    "gni(paper)": lambda: shake(snakeboard(), H),
    "gni_midpoint(zero)": lambda: gni(snakeboard(), H, MIDPOINT, "zero"),
    "si_dla": lambda: si_dla(snakeboard(), H),
    "spark_2": lambda: spark(snakeboard(), H),
    "spark_3(D)": lambda: spark(snakeboard(), H, 3, "D"),
    "nprk_2": lambda: nprk(snakeboard(), H),
    "nprk_3(carried)": lambda: nprk(snakeboard(), H, 3, carried=True),
    "nonholonomic_gauss_2": lambda: nonholonomic_gauss(snakeboard(), H),
    "mean_value": lambda: mean_value(snakeboard(), H),
    "mean_value_6(elimination)": lambda: mean_value(snakeboard(), H, 6, "elimination"),
    "gonzalez": lambda: gonzalez(snakeboard(), H),
    "gonzalez_differences(householder)": lambda: gonzalez(snakeboard(), H, "householder", True),
    "gonzalez_kinetic(elimination)": lambda: gonzalez(
        snakeboard(), H, "elimination", norm="kinetic"
    ),
    "gonzalez_f": lambda: gonzalez_f(snakeboard(), H),
    "itoh_abe": lambda: itoh_abe(snakeboard(), H),
    "itoh_abe_symmetrized(householder)": lambda: itoh_abe(snakeboard(), H, True, "householder"),
    "energy_collocation_4": lambda: energy_collocation(snakeboard(), H),
    "energy_collocation_6_8": lambda: energy_collocation(snakeboard(), H, 3, 8),
    "variational_gauss_4": lambda: variational_gauss(pendulum(), H),
    "rk4": lambda: explicit_runge_kutta(snakeboard(), H),
    "heun": lambda: explicit_runge_kutta(snakeboard(), H, "heun"),
    "implicit_midpoint": lambda: implicit_midpoint(snakeboard(), H),
    "slgi_half": lambda: slgi(pendulum(), H),
    "slgi_1": lambda: slgi(pendulum(), H, 1.0),
    "lie_midpoint": lambda: lie_midpoint(pendulum(), H),
    "lie_mean_value": lambda: lie_mean_value(pendulum(), H),
    "rkmk5": lambda: lie_group(pendulum(), H, TABLES["rkmk54"]),
    "cf3_third_stage": lambda: lie_group(pendulum(), H, TABLES["cf32_third_stage"]),
    "midpoint_order4": lambda: composition(INTEGRATORS["midpoint"], 4).make(pendulum(), H),
    "midpoint_order4_3": lambda: composition(INTEGRATORS["midpoint"], 4, 3).make(pendulum(), H),
}
"""Methods by the name that files and messages have of them; those without options are the default
ones.
"""


@pytest.mark.parametrize("name", CALLED)
def test_a_method_says_which_options_it_has(name):
    dsys = CALLED[name]()
    assert dsys.method.name == name
    assert name not in INTEGRATORS or (dsys.method.nz == 0) == INTEGRATORS[name].explicit
    assert dsys.name == f"{dsys.system.name} by {name}, h = 0.05 s"


@pytest.mark.parametrize(
    "method, memory",
    [
        ("gni", ("sigma_1", "sigma_2")),
        ("nprk_3(carried)", ("lam_1", "lam_2")),
        ("gonzalez_f", ("sigma_1", "sigma_2")),
        ("nprk_2", ()),
    ],
)
def test_states_end_with_what_a_method_remembers(method, memory):
    dsys = CALLED[method]()
    names = snakeboard().mechanics.state_space.names
    assert dsys.method.memory == memory and dsys.state_names == (*names, *memory)
    assert dsys.nx == len(names) + len(memory) == dsys.ndx


def test_unknown_names_and_names_that_are_taken_are_refused():
    with pytest.raises(KeyError, match="no integrator 'euler', choose of: midpoint, nonholonomic"):
        INTEGRATORS["euler"]
    one, registry = INTEGRATORS["midpoint"], Registry()
    registry.add(one, replace(one, name="other"))
    assert list(registry) == ["midpoint", "other"] and len(registry) == 2
    with pytest.raises(ValueError, match="there is an integrator 'other' already"):
        registry.add(replace(one, name="other"))


def test_fitting_integrators_are_those_that_refuse_nothing():
    for system in (pendulum(), snakeboard()):
        fitting = INTEGRATORS.fitting(system)
        assert list(fitting) == [n for n in INTEGRATORS if not INTEGRATORS[n].refuses(system)]
    assert "midpoint" not in fitting and "nonholonomic_midpoint" in fitting
    for name in ("midpoint", "midpoint_order4"):
        assert INTEGRATORS[name].refuses(snakeboard()) == "has velocity constraints"


def test_only_the_exponential_has_flows_that_can_be_composed():
    """Coordinates of another kind cost commutator-free methods and those with brackets their
    order; the others take them.
    """
    with_any = {"rkmk3", "rkmk4", "rkmk54"}
    for name, table in TABLES.items():
        for coordinates in ("cay", "second"):
            if name in with_any:
                assert lie_group(pendulum(), H, table, coordinates).method.nz == 0
                continue
            with pytest.raises(ValueError, match=f"needs the exponential, .*got .*{coordinates}"):
                lie_group(pendulum(), H, table, coordinates)
