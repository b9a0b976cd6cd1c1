"""A model's contacts as unilateral constraints on its system."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import casadi as ca

from nh_control.mechanics.contacts import Coefficient, UnilateralConstraint
from nh_control.multibody.contact_shapes import Touch
from nh_control.multibody.parts import MultibodyParts

WithParameters: TypeAlias = Callable[[Any], MultibodyParts]
"""Returns the model with values or symbols for its parameters, or the model itself for None."""


def unilateral_constraints(with_parameters: WithParameters) -> tuple[UnilateralConstraint, ...]:
    """One constraint for each place where a contact of the model may touch. The constraint has the
    contact's name, followed by a number if the contact has several places.
    """
    return tuple(_constraints(with_parameters))


class _Touches:
    """All places of the contact number `contact`. Those of the last configuration are kept,
    because each place is evaluated separately.
    """

    def __init__(self, with_parameters: WithParameters, contact: int):
        self.with_parameters, self.contact = with_parameters, contact
        self._last: tuple[Any, Any, list[Touch]] = None, None, []

    def at(self, q: ca.SX, v: ca.SX, values: Any) -> list[Touch]:
        """The places at q with the velocity v."""
        model = self.with_parameters(values)
        return model.contacts[self.contact].touches(model.kinematics(q, v))

    def at_rest(self, q: ca.SX, values: Any) -> list[Touch]:
        """The places at q with zero velocity."""
        last_q, last_values, touches = self._last
        if last_q is not q or last_values is not values:
            touches = self.at(q, ca.SX(self.with_parameters(None).space.nw, 1), values)
            self._last = q, values, touches
        return touches


@dataclass(frozen=True)
class _Place:
    """The place number `touch` among the `touches` of a contact."""

    touches: _Touches
    touch: int

    def gap(self, q: ca.SX, values: Any = None) -> ca.SX:
        """Distance from the ground (m)."""
        return self._at_rest(q, values).gap

    def point(self, q: ca.SX, values: Any = None) -> ca.SX:
        """Coordinates (2, m) of the material point along a plane."""
        touch = self._at_rest(q, values)
        return touch.tangents @ touch.position

    def slip(self, q: ca.SX, values: Any = None) -> ca.SX:
        """Rows (2, nw) that map v to the velocity, along the ground, of the touching material."""
        # the tangential velocity is linear in v, so its Jacobian is the rows
        v = ca.SX.sym("v", self.touches.with_parameters(None).space.nw)
        touch = self.touches.at(q, v, values)[self.touch]
        return ca.jacobian(touch.tangents @ touch.velocity, v)

    def place(self, q: ca.SX, values: Any = None) -> ca.SX:
        """Position, normal and tangents (3, 4) of the place in the world."""
        touch = self._at_rest(q, values)
        return ca.horzcat(touch.position, touch.normal, touch.tangents.T)

    def coefficient(self, field: str) -> Coefficient:
        """The coefficient of friction or restitution. It is a number, or a function of the
        parameters if it is one of them.
        """
        with_parameters, number = self.touches.with_parameters, self.touches.contact
        model = with_parameters(None)
        contact = model.contacts[number]
        if f"{contact.constant}_{field}" not in model.parameters:
            return float(getattr(contact, field))
        return lambda values: getattr(with_parameters(values).contacts[number], field)

    def _at_rest(self, q: ca.SX, values: Any) -> Touch:
        return self.touches.at_rest(q, values)[self.touch]


def _constraints(with_parameters: WithParameters) -> Iterable[UnilateralConstraint]:
    model = with_parameters(None)
    k = model.kinematics(ca.SX.sym("q", model.space.nq), ca.SX(model.space.nw, 1))
    for i, contact in enumerate(model.contacts):
        touches, shared = contact.touches(k), _Touches(with_parameters, i)
        for j, touch in enumerate(touches):
            place = _Place(shared, j)
            friction = place.coefficient("friction")
            rubs = callable(friction) or friction > 0
            yield UnilateralConstraint(
                contact.name if len(touches) == 1 else f"{contact.name}_{j + 1}",
                gap=place.gap,
                # the slip of a fixed material point integrates to the point's displacement, but
                # the slip of a rolling shape does not
                point=place.point if rubs and touch.is_material else None,
                slip=place.slip if rubs and not touch.is_material else None,
                friction=friction,
                restitution=place.coefficient("restitution"),
                surface_velocity=contact.sliding if rubs else (),
                bounce_speed=contact.bounce_speed,
                place=place.place,
                slips_at_start=contact.is_between_bodies,
            )
