"""Homogeneous spaces: a Lie group that acts on a manifold of points, in the form that Lie group
integrators need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import casadi as ca

from nh_control.geometry import quaternion
from nh_control.geometry.groups import Blocks, LieGroup, SE2Group, SE3Group, SO3Group
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Product, Rn, Space


class HomogeneousSpace(ABC):
    """A Lie group that acts on points stored in `nx` numbers named `names`; algebra elements are
    `dim` numbers. All functions take and return CasADi expressions.

    A motion has `x' = generator(x) f`. Signs are those of a left action [celledoni2021 2.1]: where
    the group multiplies from the right, f is a body velocity, `bracket` is minus the group's and
    `dtau_inverse` is the left-trivialized one, so that the formulas of the papers hold as printed.
    """

    names: tuple[str, ...]
    dim: int

    @property
    def nx(self) -> int:
        """Numbers that store a point."""
        return len(self.names)

    @property
    def blocks(self) -> Blocks:
        """Places of the stored numbers that belong together as one vector of one unit, like those
        of a direction or of a quaternion: errors are measured relative to its length.
        """
        return (tuple(range(self.nx)),)

    @abstractmethod
    def act(self, v: ca.SX, x: ca.SX) -> ca.SX:
        """`tau(v) . x` (nx) of an algebra element v (dim)."""

    @abstractmethod
    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """[u, v] (dim), with which the flows of two generators commute."""

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """u' (dim) of a motion `x = tau(u) . x0` with `x' = generator(x) v`.

        Unless a space knows better it is the series of exp, to all terms of BERNOULLI.
        """
        return self.dexp_inverse_series(u, v, len(BERNOULLI))

    def generator(self, x: ca.SX) -> ca.SX:
        """Derivative of `act(v, x)` at v = 0, (nx, dim)."""
        v = ca.SX.sym("v", self.dim)
        slope = ca.jacobian(self.act(v, x), v)
        return ca.simplify(ca.substitute(slope, v, ca.SX.zeros(self.dim)))

    def normalize(self, x: ca.SX) -> ca.SX:
        """x without what round-off has added to it: unit vectors have length one again."""
        return x

    def dexp_inverse_series(self, u: ca.SX, v: ca.SX, terms: int = 5) -> ca.SX:
        """`sum_k B_k / k! ad_u^k v`, k < terms, of dexp^{-1}_u(v) [celledoni2021 (8)]: enough for
        order `terms` where u is of order h.
        """
        total, power = v, v
        for k in range(1, terms):
            power = self.bracket(u, power)
            total += BERNOULLI[k] * power
        return total


BERNOULLI = (1, -1 / 2, 1 / 12, 0, -1 / 720, 0, 1 / 30240, 0, -1 / 1209600, 0, 1 / 47900160)
"""B_k / k!."""


class TranslationAction(HomogeneousSpace):
    """R^n that is added to."""

    def __init__(self, *names: str):
        self.names, self.dim = names, len(names)

    @property
    def blocks(self) -> Blocks:
        return tuple((i,) for i in range(self.nx))

    def act(self, v: ca.SX, x: ca.SX) -> ca.SX:
        return x + v

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return ca.SX(self.dim, 1)

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return v

    def generator(self, x: ca.SX) -> ca.SX:
        return ca.SX.eye(self.dim)


class GroupAction(HomogeneousSpace):
    """A left action of a `group` on points stored in numbers with `names`."""

    def __init__(self, group: LieGroup, names: Sequence[str]):
        self.group, self.names, self.dim = group, tuple(names), group.dim

    @abstractmethod
    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        """g . x (nx) of a group element g."""

    def act(self, v: ca.SX, x: ca.SX) -> ca.SX:
        return self.apply(self.group.tau(v), x)

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self.group.bracket(u, v)

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self.group.dtau_inverse(u, v)


class LeftMultiplication(GroupAction):
    """A group on itself, `g x`: f is the velocity in the frame at rest, x' x^{-1}."""

    def __init__(self, group: LieGroup, names: Sequence[str]):
        super().__init__(group, names)
        if len(self.names) != group.n:
            raise ValueError(
                f"{type(self).__name__}: {type(group).__name__} needs {group.n} names, "
                f"got {self.names}"
            )

    @property
    def blocks(self) -> Blocks:
        return self.group.blocks

    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        return self.group.multiply(g, x)

    def normalize(self, x: ca.SX) -> ca.SX:
        return self.group.normalize(x)


class RightMultiplication(LeftMultiplication):
    """A group on itself, `x g`: f is the body velocity, x^{-1} x'."""

    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        return self.group.multiply(x, g)

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self.group.bracket(v, u)

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self.group.dtau_inverse_left(u, v)


class SphereAction(GroupAction):
    """SO(3) on unit vectors q of R^3: `R q`, so `q' = f x q`."""

    def __init__(self, names: Sequence[str] = ("x", "y", "z"), coordinates: str = "exp"):
        super().__init__(SO3Group(coordinates), names)

    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        return quaternion.rotate(g, x)

    def normalize(self, x: ca.SX) -> ca.SX:
        return x / ca.sqrt(ca.sumsqr(x))


class TangentSphereAction(GroupAction):
    """SE(3) on pairs (q, w) of a unit vector and a vector normal to it, TS^2 and T*S^2:
    `(A, a) . (q, w) = (A q, A w + a x A q)` [celledoni2021 5.1].

    `q' = u x q,  w' = u x w + v x q` for f = (u, v).
    """

    def __init__(
        self,
        names: Sequence[str] = ("x", "y", "z", "w_x", "w_y", "w_z"),
        coordinates: str = "exp",
    ):
        super().__init__(SE3Group(coordinates), names)

    @property
    def blocks(self) -> Blocks:
        return (0, 1, 2), (3, 4, 5)

    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        q, w = (quaternion.rotate(g[:4], part) for part in (x[:3], x[3:]))
        return ca.vertcat(q, w + ca.cross(g[4:], q))

    def normalize(self, x: ca.SX) -> ca.SX:
        q = x[:3] / ca.sqrt(ca.sumsqr(x[:3]))
        return ca.vertcat(q, x[3:] - ca.dot(q, x[3:]) * q)


class CoadjointAction(GroupAction):
    """A group on the dual of its algebra, `Ad*_{g^{-1}} mu`, so `mu' = -ad*_f mu`: steps stay on
    the coadjoint orbit [celledoni2021 3.3].
    """

    @property
    def blocks(self) -> Blocks:
        return self.group.algebra_blocks

    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        return self.group.coadjoint(g, x)


class ProductAction(HomogeneousSpace):
    """Product of actions, each on its own numbers of x: `places` are those of every factor, one
    factor after the other by default. The algebra is that of the factors in their order.
    """

    def __init__(self, *factors: HomogeneousSpace, places: Sequence[Sequence[int]] | None = None):
        self.factors, self.dim = factors, sum(f.dim for f in factors)
        if places is None:
            ends = [sum(f.nx for f in factors[: i + 1]) for i in range(len(factors))]
            places = [range(end - f.nx, end) for f, end in zip(factors, ends)]
        self.places = tuple(list(at) for at in places)
        n = sum(f.nx for f in factors)
        sizes = [len(at) for at in self.places]
        if sizes != [f.nx for f in factors] or {i for at in self.places for i in at} != {
            *range(n)
        }:
            raise ValueError(
                f"ProductAction: the places must be the numbers 0 ... {n - 1}, "
                f"{[f.nx for f in factors]} for each factor, got {self.places}"
            )
        named = {i: name for f, at in zip(factors, self.places) for i, name in zip(at, f.names)}
        self.names = tuple(named[i] for i in range(n))

    def _parts(self, *vectors: ca.SX) -> Iterator[tuple[HomogeneousSpace, list[ca.SX]]]:
        """Every factor with its part of algebra elements."""
        at = 0
        for f in self.factors:
            yield f, [v[at : at + f.dim] for v in vectors]
            at += f.dim

    @property
    def blocks(self) -> Blocks:
        parts = ((at, b) for f, at in zip(self.factors, self.places) for b in f.blocks)
        return tuple(tuple(at[i] for i in b) for at, b in parts)

    def act(self, v: ca.SX, x: ca.SX) -> ca.SX:
        x1 = ca.SX(self.nx, 1)
        for (f, (part,)), at in zip(self._parts(v), self.places):
            x1[at] = f.act(part, x[at])
        return x1

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return ca.vertcat(*(f.bracket(*parts) for f, parts in self._parts(u, v)))

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return ca.vertcat(*(f.dtau_inverse(*parts) for f, parts in self._parts(u, v)))

    def generator(self, x: ca.SX) -> ca.SX:
        blocks, column = ca.SX(self.nx, self.dim), 0
        for f, at in zip(self.factors, self.places):
            blocks[at, column : column + f.dim] = f.generator(x[at])
            column += f.dim
        return blocks

    def normalize(self, x: ca.SX) -> ca.SX:
        x1 = ca.SX(self.nx, 1)
        for f, at in zip(self.factors, self.places):
            x1[at] = f.normalize(x[at])
        return x1


def phase_action(
    space: Space,
    momentum_names: Sequence[str] = (),
    coordinates: str = "exp",
    dropped: Sequence[int] = (),
) -> ProductAction:
    """The action on states (q, p) of a configuration space, p stored like velocities, less those
    in the places `dropped`: groups multiply poses from the right and add to momenta in the body
    frame, SE(3) acts on T*S^2.

    The factors are, one factor of the space after the other: (pose, momentum) each by its own
    group, or both by one on a sphere.
    """
    kept = [i for i in range(space.nw) if i not in dropped]
    names = tuple(momentum_names) or tuple(f"p_{space.velocity_names[i]}" for i in kept)
    stored = {i: space.nq + k for k, i in enumerate(kept)}
    named = dict(zip(stored.values(), names, strict=True))
    actions: list[tuple[HomogeneousSpace, list[int]]] = []
    for factor, q, w in simple_factors(space):
        at = [stored[i] for i in w if i in stored]
        momenta = [named[i] for i in at]
        if isinstance(factor, S2):
            both = TangentSphereAction((*factor.names, *momenta), coordinates)
            actions.append((both, [*q, *at]))
        else:
            actions.append((pose_action(factor, coordinates), list(q)))
            actions.append((TranslationAction(*momenta), at))
    return ProductAction(*(a for a, _ in actions), places=[at for _, at in actions])


def pose_action(space: Space, coordinates: str = "exp") -> HomogeneousSpace:
    """The action of a simple space's group on its configurations, with the velocities that the
    space stores for algebra elements (on a sphere angular velocities). Raises ValueError for a
    space that is not known here.
    """
    if isinstance(space, Rn):
        return TranslationAction(*space.names)
    if isinstance(space, S2):
        return SphereAction(space.names, coordinates)
    for kind, group in ((SO3, SO3Group), (SE2, SE2Group), (SE3, SE3Group)):
        if isinstance(space, kind):
            return RightMultiplication(group(coordinates), space.names)
    raise ValueError(f"no group is known to act on a {type(space).__name__}")


def simple_factors(space: Space) -> Iterator[tuple[Space, range, range]]:
    """Every factor of a space that is no product, with the places of its numbers among those of
    configurations and of velocities.
    """
    q = w = 0
    for factor in _flattened(space):
        yield factor, range(q, q + factor.nq), range(w, w + factor.nw)
        q, w = q + factor.nq, w + factor.nw


def _flattened(space: Space) -> Iterator[Space]:
    if isinstance(space, Product):
        for factor in space.factors:
            yield from _flattened(factor)
    else:
        yield space
