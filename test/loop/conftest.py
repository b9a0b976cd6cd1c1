"""Loops by a script, and a cart-pole with its tracker."""

import pytest


@pytest.fixture
def scripted(monkeypatch):
    """Return f(*faults, **options) -> a ScriptedLoop."""
    from scripted_loop import ScriptedLoop

    return lambda *faults, **options: ScriptedLoop(monkeypatch, *faults, **options)


@pytest.fixture(scope="session")
def cart():
    """The cart pole's model, and a tracker along its swing up."""
    from nh_control import scenarios

    scenario = scenarios.get("cart_pole")
    dsys = scenario.model()
    return dsys, scenario.tracker(dsys, scenario.reference(dsys))
