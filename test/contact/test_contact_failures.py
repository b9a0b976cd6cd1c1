"""Failures of steps with contacts name the contact, the step and the remedy."""

from dataclasses import replace

import numpy as np
import pytest
from bodies import body

import nh_control as nh

FLAT = [np.sqrt(0.5), np.sqrt(0.5), 0, 0, 0, 0, 0.02]
COIN = (0.0025, 0.005, 0.0025)


def coin():
    return body(nh.Disc(0.1, axis="y"), inertia=COIN)


def test_a_disc_that_lies_flat_is_named_with_the_remedy():
    dsys = coin()
    with pytest.raises(nh.StepFailed, match="contact 'body' has no gap.*put an Ellipsoid") as one:
        dsys.step(dsys.state(FLAT, np.zeros(6)))
    assert one.value.contact == "body" and one.value.step is None


def test_a_disc_that_falls_onto_its_side_is_named_with_the_step():
    dsys = coin()
    leaning = [np.cos(0.78), np.sin(0.78), 0, 0, 0, 0, 0.02]
    found = r"at step \d+ .*contact 'body', .* has the gap .* m and opens at -.* m/s.*reduce h"
    with pytest.raises(nh.StepFailed, match=found) as one:
        dsys.simulate(dsys.state(leaning, np.zeros(6)), steps=100)
    later = one.value.at_step(3)
    assert one.value.contact == later.contact == "body" and later.step == 3


def test_of_several_contacts_the_one_at_fault_is_named():
    model = coin().system.model
    ball = nh.Contact("body", nh.Sphere(0.005), name="ball")
    dsys = nh.midpoint(replace(model, contacts=(ball, *model.contacts)), 0.01)
    with pytest.raises(nh.StepFailed) as one:
        dsys.step(dsys.state(FLAT, np.zeros(6)))
    assert one.value.contact == "body"
