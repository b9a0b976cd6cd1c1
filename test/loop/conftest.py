"""Loops by a script."""

import pytest


@pytest.fixture
def scripted(monkeypatch):
    """Return f(*faults, **options) -> a ScriptedLoop."""
    from scripted_loop import ScriptedLoop

    return lambda *faults, **options: ScriptedLoop(monkeypatch, *faults, **options)
