"""Wheel constraints as velocity and holonomic constraints of a system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from nh_control.mechanics.contacts import Grip
from nh_control.multibody.contact_laws import WithParameters
from nh_control.multibody.contact_shapes import Touch
from nh_control.multibody.wheels import Rolling

ON_GROUND = 1e-9
"""Gap (m), and its derivative with respect to the coordinates, below which the frames hold a wheel
on the ground.
"""


@dataclass(frozen=True)
class WheelRows:
    """The rows for all wheels of a model. They are `A(q) v = b(q)` for rolling, in the order of
    the wheels, and the gaps `h(q)` of the wheels that the tree does not hold on the ground.
    """

    with_parameters: WithParameters

    def rolling(self, q: ca.SX, parameters: Any = None) -> ca.SX:
        """A (rows, nw)."""
        v = ca.SX.sym("v", self.with_parameters(None).space.nw)
        # e . v_touch is linear in v
        slip = (row @ touch.velocity for _, touch, row in self._touches(q, v, parameters))
        return ca.jacobian(ca.vertcat(*slip), v)

    def drift(self, q: ca.SX, parameters: Any = None) -> ca.SX:
        """b (rows), the velocities of the ground."""
        return ca.densify(
            ca.vertcat(
                *(
                    row @ wheel.ground.velocity(touch.position)
                    for wheel, touch, row in self._touches(q, None, parameters)
                )
            )
        )

    def heights(self, q: ca.SX, parameters: Any = None) -> ca.SX:
        """h, the gaps of the wheels in `heights_of`."""
        touches = [touch for _, touch, _ in self._touches(q, None, parameters)]
        return ca.vertcat(ca.SX(0, 1), *(touches[i].gap for i in self.heights_of))

    def place(self, number: int) -> Callable[..., ca.SX]:
        """The place of the wheel with the given number (see `Grip`)."""

        def place_at(q: ca.SX, parameters: Any = None) -> ca.SX:
            _, touch, row = list(self._touches(q, None, parameters))[number]
            return ca.horzcat(touch.position, row.T)

        return place_at

    @cached_property
    def n_rolling(self) -> int:
        """Number of rows of A."""
        at = ca.SX(self.with_parameters(None).space.origin)
        return sum(row.shape[0] for _, _, row in self._touches(at, None))

    @cached_property
    def moves_ground(self) -> bool:
        """Whether the ground of a wheel moves."""
        return any(wheel.ground.moves for wheel in self.with_parameters(None).wheels)

    @cached_property
    def heights_of(self) -> tuple[int, ...]:
        """Numbers of the wheels that the tree does not hold on the ground. Raises ValueError for a
        wheel that the tree holds above or below the ground.
        """
        model = self.with_parameters(None)
        q = ca.SX.sym("q", model.space.nq)
        gaps = ca.vertcat(ca.SX(0, 1), *(touch.gap for _, touch, _ in self._touches(q, None)))
        values = ca.Function("gaps", [q], [gaps, ca.jacobian(gaps, q)])
        rng, moves = np.random.default_rng(0), np.zeros(len(model.wheels), dtype=bool)
        # a gap that depends on q has a nonzero slope at two random configurations near the origin
        for spread in (0.1, 0.3):
            at = model.space.retract(model.space.origin, spread * rng.normal(size=model.space.nv))
            gap, slope = (np.asarray(value) for value in values(at))
            moves |= np.abs(slope).max(axis=1, initial=0.0) > ON_GROUND
        for wheel, off in zip(model.wheels, np.where(moves, 0.0, gap[:, 0])):
            if not abs(off) <= ON_GROUND:
                raise ValueError(
                    f"{model.name}: the frames hold {wheel} {off:.3g} m above its ground at all "
                    "configurations; move its frame, or choose another radius or ground"
                )
        return tuple(int(i) for i in np.flatnonzero(moves))

    @property
    def grips(self) -> tuple[Grip, ...]:
        """The groups of rows that slip when their force reaches its bound."""
        grips, first = list[Grip](), 0
        at = ca.SX(self.with_parameters(None).space.origin)
        for i, (wheel, _, row) in enumerate(self._touches(at, None)):
            n = row.shape[0]
            if wheel.friction is not None and wheel.load is not None and n:
                rows = tuple(range(first, first + n))
                grips.append(Grip(rows, wheel.load, wheel.friction, self.place(i), wheel.name))
            first += n
        return tuple(grips)

    def _touches(
        self, q: ca.SX, v: ca.SX | None, parameters: Any = None
    ) -> Iterator[tuple[Rolling, Touch, ca.SX]]:
        """Each wheel with the place where it touches and its constrained directions. The velocity
        is zero if v is None.
        """
        model = self.with_parameters(parameters)
        k = model.kinematics(q, ca.SX(model.space.nw, 1) if v is None else v)
        for wheel in model.wheels:
            touch = wheel.touch(k)
            yield wheel, touch, wheel.directions(k, touch)
