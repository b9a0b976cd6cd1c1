"""The central path of a step with contacts, followed by its length from a large kappa to its own;
`native/contact_path.h` is its compiled twin.

    r(z, s) = 0,    s = log(kappa)

Two things stop methods that only lower kappa. First, friction couples the normal impulses, so
that the path may fold: kappa has to rise before it can fall further. Second, the impulses act at
the start of the step, but slips are taken at its middle and gaps at its end. With redundant
contacts, the contact problem of `contact_start` may therefore have no solution although the step
has one. Both are passed with kappa as a further unknown [allgower1990]: a step along the tangent
t, then Newton's method orthogonal to t,

    r_z dz + r_s ds = -r,    t . (dx / size, ds) = 0

x are the impulses among the unknowns z. Their sizes are the normal impulse and the bound of
friction; divided by them, no step multiplies an impulse by a large factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nh_control.discrete.contact_step import contact_start
from nh_control.discrete.method import ContactUnknowns
from nh_control.numerics.contact_problem import equilibrated, impulse_count

HIGHER = 1e8
"""Factor of the kappa at which the path starts."""
MOST_STEPS = 300
"""Steps along the path."""
FIRST, LONGEST, LEAST = 2.0, 4.0, 1e-5
"""Lengths of the first, the longest and the shortest step."""
SHORTER, LONGER = 0.3, 2.0
"""Factors of the length after a step that failed, and after one of at most EASY corrections."""
EASY, MOST_CORRECTIONS = 3, 8
"""Number of corrections up to which the next step is longer, and number at which a step has
failed.
"""
MOST_HALVINGS = 30
"""Largest number of halvings of a step, which must end inside all cones."""
CLOSE = 1e-3
"""Newton's corrections end when they are this small, relative to the sizes of the unknowns."""
SMALL = 1e-3
"""Least size of an impulse, relative to the largest."""
MOST_RETURN_STEPS = 30
"""Steps from a guess to the path."""

CallAt = Callable[[str, np.ndarray, float], Sequence[np.ndarray]]
"""`call(name, z, kappa)`: a function of the step's equations at unknowns z."""


def follow_path(call: CallAt, contacts: ContactUnknowns, kappa: float, z: np.ndarray) -> bool:
    """Follow the path to its end at `kappa` and put the unknowns z (nz) there, from which Newton's
    method on all equations converges. Returns whether this succeeded.
    """
    first, end, length = HIGHER * kappa, float(np.log(kappa)), FIRST
    z[:] = 0.0
    if not contact_start(lambda name, at: call(name, at, first), contacts, first, z):
        return False
    path = _Path(call, contacts, z, float(np.log(first)))
    begin = path.s
    for _ in range(MOST_STEPS):
        # above its begin the path has turned back, to where no solution of the step is
        if length < LEAST or path.s > begin or not path.update_tangent():
            return False
        # the step ends at s = log(kappa) if the tangent reaches it within the length
        falls = path.ahead[-1]
        reaches = falls < 0 and path.s + length * falls <= end
        corrections = path.advance((end - path.s) / falls if reaches else length, end)
        if path.s == end:
            z[:] = path.z
            return True
        if corrections == MOST_CORRECTIONS:
            length *= SHORTER
        elif corrections <= EASY:
            length = min(LONGEST, LONGER * length)
    return False


def return_to_path(
    call: CallAt, contacts: ContactUnknowns, kappa: float, inside: bool, z: np.ndarray
) -> bool:
    """Whether Newton's method has led from a guess z (nz) to the path at kappa, in place, by steps
    `inside` of all cones, or by whole ones.
    """
    path, part = _Path(call, contacts, z, float(np.log(kappa))), 1.0
    at_end = np.append(np.zeros(len(path.size)), 1.0)
    for _ in range(MOST_RETURN_STEPS):
        path.size = path.sizes()
        d = path.direction(path.z, path.s, at_end)
        if not np.isfinite(d).all():
            return False
        if inside:
            path.z, _, part = path.moved(path.z, path.s, d)
        else:
            path.z = path.z + path.scaled(d)
        if part == 1.0 and path.is_close(d, path.z):
            z[:] = path.z
            return True
    return False


class _Path:
    """A point (z, s) on the path and the path's unit tangent there: `tangent` (nz + 1), and
    `ahead`, its components in (x / size, s).
    """

    def __init__(self, call: CallAt, contacts: ContactUnknowns, z: np.ndarray, s: float):
        self.call, self.contacts, self.z, self.s = call, contacts, z.copy(), s
        first, n = contacts.first, impulse_count(contacts.blocks)
        self.x, self.y = slice(first, first + n), slice(first)
        slips = range(first + n, len(z))
        self.products = [first + b.normal for b in contacts.blocks if b.normal >= 0] + [*slips]
        self.size, self.tangent = np.ones(n), np.zeros(len(z) + 1)
        self.ahead = np.append(np.zeros(n), -1.0)

    def update_tangent(self) -> bool:
        """Compute the tangent at this point, in the direction of the last one: r_z dz + r_s ds =
        0. Returns whether it exists.
        """
        self.size = self.sizes()
        matrix, _ = self._bordered(self.z, self.s, self.ahead)
        t = equilibrated(matrix, np.append(np.zeros(len(self.z)), 1.0))
        ahead = np.append(t[self.x], t[-1])
        length = np.linalg.norm(ahead)
        if not np.isfinite(t).all():
            return False
        self.tangent, self.ahead = t / length, ahead / length
        return True

    def advance(self, length: float, end: float) -> int:
        """Step along the tangent by this length, then correct by Newton's method: orthogonal to
        the tangent, or at constant s if the step reaches `end`. Returns the number of corrections,
        MOST_CORRECTIONS if the step failed.
        """
        z, s, part = self.moved(self.z, self.s, length * self.tangent)
        row = self.ahead
        if part == 1.0 and abs(s - end) <= LEAST * abs(length):
            s, row = end, np.append(np.zeros(len(self.size)), 1.0)
        for corrections in range(MOST_CORRECTIONS):
            d = self.direction(z, s, row)
            if not np.isfinite(d).all():
                break
            z, s, part = self.moved(z, s, d)
            if part == 1.0 and self.is_close(d, z):
                self.z, self.s = z, end if row is not self.ahead else s
                return corrections
        return MOST_CORRECTIONS

    def direction(self, z: np.ndarray, s: float, row: np.ndarray) -> np.ndarray:
        """Newton's correction (dy, dx / size, dpsi, ds) at z, s, orthogonal to the row."""
        matrix, r = self._bordered(z, s, row)
        return equilibrated(matrix, np.append(-r, 0.0))

    def is_close(self, d: np.ndarray, z: np.ndarray) -> bool:
        """Whether a correction d is small beside the sizes of the unknowns z."""
        y, far = np.abs(z[self.y]).max(initial=0.0), max(np.abs(d[self.x]).max(), abs(d[-1]))
        return bool(far <= CLOSE and np.abs(d[self.y]).max(initial=0.0) <= CLOSE * y)

    def _bordered(self, z: np.ndarray, s: float, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The matrix (nz + 1, nz + 1) of the equations for (dy, dx / size, dpsi, ds), whose last
        row is `row`, and r (nz).
        """
        kappa, n = float(np.exp(s)), len(z)
        (r,), (r_z,) = self.call("residual", z, kappa), self.call("jacobian", z, kappa)
        matrix = np.zeros((n + 1, n + 1))
        matrix[:n, :n] = r_z
        matrix[:n, self.x] *= self.size
        matrix[self.products, n] = -kappa
        matrix[n, self.x], matrix[n, n] = row[:-1], row[-1]
        return matrix, r[:, 0]

    def moved(self, z: np.ndarray, s: float, d: np.ndarray) -> tuple[np.ndarray, float, float]:
        """The point after a step d, which is halved until it ends inside all cones, and the part
        of d that was taken, 0 for none.
        """
        dz, part = self.scaled(d), 1.0
        for _ in range(MOST_HALVINGS):
            if self._is_inside(z + part * dz):
                return z + part * dz, s + part * d[-1], part
            part /= 2
        return z, s, 0.0

    def scaled(self, d: np.ndarray) -> np.ndarray:
        """The change (nz) of the unknowns of a step d of (dy, dx / size, dpsi, ds)."""
        dz = d[:-1].copy()
        dz[self.x] *= self.size
        return dz

    def _is_inside(self, z: np.ndarray) -> bool:
        """Whether both vectors of every pair are inside their cones."""
        return all(_is_in_cone(u) and _is_in_cone(v) for _, u, v in self._pairs(z))

    def sizes(self) -> np.ndarray:
        """Sizes (n) of the impulses at this point."""
        size = np.empty(len(self.size))
        for rows, u, _ in self._pairs(self.z):
            size[rows] = u[0]
        return np.maximum(size, SMALL * size.max(initial=0.0))

    def _pairs(self, z: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """The pairs of all contacts, see `numerics.contact_problem`, and the rows of each."""
        w, _, coefficients = self.call("contacts", z, float(np.exp(self.s)))
        x, psi, (mu, bound) = z[self.x], z[self.x.stop :], coefficients.reshape(2, -1)
        for i, (n, t, k, j) in enumerate(self.contacts.blocks):
            if n >= 0:
                yield slice(n, n + 1), x[n : n + 1], w[n : n + 1, 0]
            if k:
                beta = mu[i] * x[n] if n >= 0 else bound[i]
                rows = slice(t, t + k)
                yield rows, np.append(beta, x[rows]), np.append(psi[j], w[rows, 0])


def _is_in_cone(u: np.ndarray) -> bool:
    return bool(u[0] > np.linalg.norm(u[1:]))
