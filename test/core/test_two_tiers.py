"""What compiled functions and those of the virtual machine compute has the same bits."""

import numpy as np
import pytest
from cases import FITTING, SYSTEMS, random_point
from tiers import needs_compiler, with_compiler

from nh_control.discrete.results import StepFailed
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.integrators.composition import composition
from nh_control.systems import pendulum, wet_snakeboard

pytestmark = needs_compiler()
DEFAULT = {("pendulum", "midpoint"), ("sleigh", "nonholonomic_midpoint"), ("disk", "itoh_abe")}
CASES = [
    pytest.param(system, method, marks=() if (system, method) in DEFAULT else pytest.mark.slow)
    for system, methods in FITTING.items()
    for method in methods
]


def numbers(dsys, x, u):
    """All that a system computes at a point, as bytes; the reason of a step that fails."""
    rng = np.random.default_rng(1)
    try:
        states = dsys.simulate(x, np.tile(u, (3, 1))).states
    except StepFailed as failure:
        return failure.reason
    at = dsys.linearize(x, u)
    hessian = dsys.hessian(x, u, rng.normal(size=dsys.ndx))
    arrays = states, dsys.energy(states), dsys.velocity(states[-1]), at.A, at.B, hessian
    return [np.asarray(array).tobytes() for array in arrays]


def both(make, seed=0):
    """The numbers of a system that is made with and without a compiler."""
    virtual = make()
    x, u = random_point(virtual, np.random.default_rng(seed))
    with with_compiler():
        compiled = make().prepare(hessian=True)
    assert compiled.substep_engine.is_compiled and not virtual.substep_engine.is_compiled
    return numbers(compiled, x, u), numbers(virtual, x, u)


@pytest.mark.parametrize("system, method", CASES)
def test_every_method_has_the_same_bits_in_both_tiers(system, method):
    compiled_numbers, virtual = both(lambda: INTEGRATORS[method](SYSTEMS[system](), 0.01))
    assert compiled_numbers == virtual


def test_compositions_have_the_same_bits_in_both_tiers():
    triple_jump = composition(INTEGRATORS["midpoint"], 4, 3)
    compiled_numbers, virtual = both(lambda: triple_jump.make(pendulum(), 0.1))
    assert compiled_numbers == virtual


@pytest.mark.slow
def test_steps_in_contact_have_the_same_bits_in_both_tiers():
    compiled_numbers, virtual = both(lambda: midpoint(wet_snakeboard(), 0.01))
    assert compiled_numbers == virtual
