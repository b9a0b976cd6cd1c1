"""Homogeneous spaces, on which a Lie group acts transitively, for Lie group integrators
[celledoni2021 2].
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
    """The action of a Lie group on points. Points are stored as `nx` numbers with the names
    `names`, and elements of the algebra as `dim` numbers. All functions take and return CasADi
    expressions.

    A motion satisfies `x' = generator(x) f` with f in the algebra. Signs are those of a left
    action [celledoni2021 2.1]. For right multiplication, f is the body velocity, `bracket` is the
    negative bracket of the group, and `dtau_inverse` is left-trivialized. Thus, the formulas in
    the papers are valid as printed.
    """

    names: tuple[str, ...]
    dim: int

    @property
    def nx(self) -> int:
        """The number of stored numbers per point."""
        return len(self.names)

    @property
    def blocks(self) -> Blocks:
        """The indices of stored numbers that form a vector with a common unit, such as a direction
        or a quaternion. Step size control measures errors relative to the vector's length.
        """
        return (tuple(range(self.nx)),)

    @abstractmethod
    def act(self, v: ca.SX, x: ca.SX) -> ca.SX:
        """`tau(v) . x` (nx) for an algebra element v (dim)."""

    @abstractmethod
    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """The bracket [u, v] (dim) in the algebra of the generators."""

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        """The rate u' (dim) for a motion `x = tau(u) . x0` with `x' = generator(x) v`. The default
        is the series for `dexp^{-1}` with all coefficients in BERNOULLI.
        """
        return self.dexp_inverse_series(u, v, len(BERNOULLI))

    def generator(self, x: ca.SX) -> ca.SX:
        """The derivative (nx, dim) of `act(v, x)` with respect to v at v = 0."""
        v = ca.SX.sym("v", self.dim)
        jacobian = ca.jacobian(self.act(v, x), v)
        return ca.simplify(ca.substitute(jacobian, v, ca.SX.zeros(self.dim)))

    def normalize(self, x: ca.SX) -> ca.SX:
        """x projected onto the manifold to remove round-off: unit vectors get length 1."""
        return x

    def dexp_inverse_series(self, u: ca.SX, v: ca.SX, terms: int = 5) -> ca.SX:
        """The series `dexp^{-1}_u(v) = sum_{k < terms} B_k / k! ad_u^k v` [celledoni2021 (8)]. For
        u of order h, the error is of order `h^terms`.
        """
        total, power = v, v
        for k in range(1, terms):
            # ad_u^k v = [u, ad_u^(k-1) v]
            power = self.bracket(u, power)
            total += BERNOULLI[k] * power
        return total


BERNOULLI = (1, -1 / 2, 1 / 12, 0, -1 / 720, 0, 1 / 30240, 0, -1 / 1209600, 0, 1 / 47900160)
"""The coefficients B_k / k! of `z / (e^z - 1)`, with the Bernoulli numbers B_k."""


class TranslationAction(HomogeneousSpace):
    """The action of R^n on itself by addition, `x + v`."""

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
    """The left action of a `group` on points that are stored as numbers with the names `names`."""

    def __init__(self, group: LieGroup, names: Sequence[str]):
        self.group, self.names, self.dim = group, tuple(names), group.dim

    @abstractmethod
    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        """`g . x` (nx) for a group element g."""

    def act(self, v: ca.SX, x: ca.SX) -> ca.SX:
        return self.apply(self.group.tau(v), x)

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self.group.bracket(u, v)

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self.group.dtau_inverse(u, v)


class LeftMultiplication(GroupAction):
    """The action of a group on itself by `g x`, where f is the spatial velocity `x' x^{-1}`."""

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
    """The action of a group on itself by `x g`, where f is the body velocity `x^{-1} x'`."""

    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        return self.group.multiply(x, g)

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        # fields of right multiplication have the opposite bracket
        return self.group.bracket(v, u)

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return self.group.dtau_inverse_left(u, v)


class SphereAction(GroupAction):
    """The action of SO(3) on unit vectors q in R^3 by `R q`, where `q' = f x q`."""

    def __init__(self, names: Sequence[str] = ("x", "y", "z"), coordinates: str = "exp"):
        super().__init__(SO3Group(coordinates), names)

    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        return quaternion.rotate(g, x)

    def normalize(self, x: ca.SX) -> ca.SX:
        return x / ca.sqrt(ca.sumsqr(x))


class TangentSphereAction(GroupAction):
    """The action of SE(3) on TS^2 or T*S^2, whose elements are pairs (q, w) of a unit vector and a
    vector normal to it: `(A, a) . (q, w) = (A q, A w + a x A q)`. For f = (u, v), `q' = u x q` and
    `w' = u x w + v x q` [celledoni2021 5.1].
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
        # |q| = 1 and q . w = 0
        q = x[:3] / ca.sqrt(ca.sumsqr(x[:3]))
        return ca.vertcat(q, x[3:] - ca.dot(q, x[3:]) * q)


class CoadjointAction(GroupAction):
    """The coadjoint action `Ad*_{g^{-1}} mu` of a group on the dual of its algebra, where
    `mu' = -ad*_f mu`. Steps remain on the coadjoint orbit [celledoni2021 3.3].
    """

    @property
    def blocks(self) -> Blocks:
        return self.group.algebra_blocks

    def apply(self, g: ca.SX, x: ca.SX) -> ca.SX:
        return self.group.coadjoint(g, x)


class ProductAction(HomogeneousSpace):
    """The product of actions. `places` contains the indices of the numbers in x on which each
    factor acts, by default consecutive ones. The algebra is the product of the factors' algebras
    in the same order.
    """

    def __init__(self, *factors: HomogeneousSpace, places: Sequence[Sequence[int]] | None = None):
        self.factors, self.dim = factors, sum(f.dim for f in factors)
        if places is None:
            ends = [sum(f.nx for f in factors[: i + 1]) for i in range(len(factors))]
            places = [range(end - f.nx, end) for f, end in zip(factors, ends)]
        self.places = tuple(list(indices) for indices in places)
        n = sum(f.nx for f in factors)
        sizes = [len(indices) for indices in self.places]
        used = {i for indices in self.places for i in indices}
        if sizes != [f.nx for f in factors] or used != {*range(n)}:
            raise ValueError(
                f"ProductAction: places must contain each index 0 ... {n - 1} once, "
                f"{[f.nx for f in factors]} indices for the factors, got {self.places}"
            )
        named = {
            i: name
            for f, indices in zip(factors, self.places)
            for i, name in zip(indices, f.names)
        }
        self.names = tuple(named[i] for i in range(n))

    def _parts(self, *vectors: ca.SX) -> Iterator[tuple[HomogeneousSpace, list[ca.SX]]]:
        """Every factor, with its parts of the algebra elements."""
        first = 0
        for f in self.factors:
            yield f, [v[first : first + f.dim] for v in vectors]
            first += f.dim

    @property
    def blocks(self) -> Blocks:
        parts = ((indices, b) for f, indices in zip(self.factors, self.places) for b in f.blocks)
        return tuple(tuple(indices[i] for i in b) for indices, b in parts)

    def act(self, v: ca.SX, x: ca.SX) -> ca.SX:
        x1 = ca.SX(self.nx, 1)
        for (f, (part,)), indices in zip(self._parts(v), self.places):
            x1[indices] = f.act(part, x[indices])
        return x1

    def bracket(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return ca.vertcat(*(f.bracket(u_f, v_f) for f, (u_f, v_f) in self._parts(u, v)))

    def dtau_inverse(self, u: ca.SX, v: ca.SX) -> ca.SX:
        return ca.vertcat(*(f.dtau_inverse(u_f, v_f) for f, (u_f, v_f) in self._parts(u, v)))

    def generator(self, x: ca.SX) -> ca.SX:
        blocks, column = ca.SX(self.nx, self.dim), 0
        for f, indices in zip(self.factors, self.places):
            blocks[indices, column : column + f.dim] = f.generator(x[indices])
            column += f.dim
        return blocks

    def normalize(self, x: ca.SX) -> ca.SX:
        x1 = ca.SX(self.nx, 1)
        for f, indices in zip(self.factors, self.places):
            x1[indices] = f.normalize(x[indices])
        return x1


def phase_action(
    space: Space,
    momentum_names: Sequence[str] = (),
    coordinates: str = "exp",
    dropped: Sequence[int] = (),
) -> ProductAction:
    """The action on states (q, p) of a configuration space, where p is stored like velocities but
    without the components at the indices `dropped`. Groups act on poses by right multiplication
    and on momenta in the body frame by addition; SE(3) acts on T*S^2.
    """
    # two actions per factor, on its pose and on its momentum; on a sphere, one action on both
    independent = [i for i in range(space.nw) if i not in dropped]
    names = tuple(momentum_names) or tuple(f"p_{space.velocity_names[i]}" for i in independent)
    # index of momentum i in the state
    stored = {i: space.nq + k for k, i in enumerate(independent)}
    named = dict(zip(stored.values(), names, strict=True))
    actions: list[tuple[HomogeneousSpace, list[int]]] = []
    for factor, q, w in simple_factors(space):
        indices = [stored[i] for i in w if i in stored]
        momenta = [named[i] for i in indices]
        if isinstance(factor, S2):
            on_both = TangentSphereAction((*factor.names, *momenta), coordinates)
            actions.append((on_both, [*q, *indices]))
        else:
            actions.append((pose_action(factor, coordinates), list(q)))
            actions.append((TranslationAction(*momenta), indices))
    return ProductAction(*(a for a, _ in actions), places=[indices for _, indices in actions])


def pose_action(space: Space, coordinates: str = "exp") -> HomogeneousSpace:
    """The action of a group on the configurations of a space that is not a product. Elements of
    the algebra are the space's stored velocities; on a sphere, they are angular velocities. Raises
    ValueError for an unknown kind of space.
    """
    if isinstance(space, Rn):
        return TranslationAction(*space.names)
    if isinstance(space, S2):
        return SphereAction(space.names, coordinates)
    for kind, group in ((SO3, SO3Group), (SE2, SE2Group), (SE3, SE3Group)):
        if isinstance(space, kind):
            return RightMultiplication(group(coordinates), space.names)
    raise ValueError(f"no group action is known for a {type(space).__name__}")


def simple_factors(space: Space) -> Iterator[tuple[Space, range, range]]:
    """The factors of a space, none of which are products, each with the indices of its numbers in
    a configuration and in a velocity.
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
