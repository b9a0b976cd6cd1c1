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
    itoh_abe,
    mean_value,
    midpoint,
    nonholonomic_gauss,
    nonholonomic_midpoint,
    nprk,
    rattle,
    rdp,
    shake,
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


def test_what_is_registered_of_every_integrator(snapshot):
    """Its order, whether it is explicit and symmetric, and what it preserves."""

    def told(one):
        kinds = [kind for kind in ("explicit", "symmetric") if getattr(one, kind)]
        return f"{one.name}: {', '.join([f'order {one.order}', *kinds, *one.preserves])}"

    assert "\n".join(map(told, INTEGRATORS.values())) == snapshot
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


CALLED = {
    "midpoint_left": lambda: midpoint(pendulum(), H, "left"),
    "nonholonomic_midpoint_left": lambda: nonholonomic_midpoint(snakeboard(), H, "left"),
    "rdp(sccsk, alpha=0.5, exact)": lambda: rdp(snakeboard(), H),
    "rdp(cay, alpha=0.3, truncated)": lambda: rdp(snakeboard(), H, "cay", 0.3, "truncated"),
    "gni": lambda: gni(snakeboard(), H),
    "gni(zero)": lambda: rattle(snakeboard(), H),
    "gni(paper)": lambda: shake(snakeboard(), H),
    "gni_midpoint(zero)": lambda: gni(snakeboard(), H, MIDPOINT, "zero"),
    "spark_3(D)": lambda: spark(snakeboard(), H, 3, "D"),
    "nprk_2": lambda: nprk(snakeboard(), H),
    "nprk_3(carried)": lambda: nprk(snakeboard(), H, 3, carried=True),
    "nonholonomic_gauss_2": lambda: nonholonomic_gauss(snakeboard(), H),
    "mean_value_6(elimination)": lambda: mean_value(snakeboard(), H, 6, "elimination"),
    "gonzalez_differences(householder)": lambda: gonzalez(snakeboard(), H, "householder", True),
    "gonzalez_f": lambda: gonzalez_f(snakeboard(), H),
    "itoh_abe_symmetrized(householder)": lambda: itoh_abe(snakeboard(), H, True, "householder"),
    "energy_collocation_6_8": lambda: energy_collocation(snakeboard(), H, 3, 8),
    "variational_gauss_4": lambda: variational_gauss(pendulum(), H),
    "heun": lambda: explicit_runge_kutta(snakeboard(), H, "heun"),
    "slgi_1": lambda: slgi(pendulum(), H, 1.0),
    "rkmk5": lambda: lie_group(pendulum(), H, TABLES["rkmk54"]),
    "midpoint_order4_3": lambda: composition(INTEGRATORS["midpoint"], 4, 3).make(pendulum(), H),
}
"""Methods by the name that files and messages have of them, with their options."""


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
    with pytest.raises(
        KeyError, match="no integrator 'euler', choose from: midpoint, nonholonomic"
    ):
        INTEGRATORS["euler"]
    one, registry = INTEGRATORS["midpoint"], Registry()
    registry.add(one, replace(one, name="other"))
    assert list(registry) == ["midpoint", "other"] and len(registry) == 2
    with pytest.raises(ValueError, match="an integrator 'other' already exists"):
        registry.add(replace(one, name="other"))


def test_fitting_integrators_are_those_that_refuse_nothing():
    fitting = INTEGRATORS.fitting(snakeboard())
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
