"""Points of a study: the number of a point determines its values, in every process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from nh_control.studies.variation import Value, Variation

GRID, MONTE_CARLO, SOBOL, SALTELLI = "grid", "monte_carlo", "sobol", "saltelli"


def _latin_hypercube(points: int, dimensions: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc  # slow to import, and few workers need it

    return qmc.LatinHypercube(dimensions, seed=np.random.default_rng(seed)).random(points)


def _sobol(points: int, dimensions: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc

    return qmc.Sobol(dimensions, seed=np.random.default_rng(seed)).random(points)


def _saltelli(points: int, dimensions: int, seed: int) -> np.ndarray:
    """Return the points of Saltelli's scheme for Sobol' indices, ((dimensions + 2) points,
    dimensions): `points` rows of a matrix A, as many rows of B, then for every dimension the rows
    of A with this column taken from B.
    """
    both = _sobol(points, 2 * dimensions, seed)
    A, B = both[:, :dimensions], both[:, dimensions:]
    mixed = [np.where(np.arange(dimensions) == j, B, A) for j in range(dimensions)]
    return np.vstack([A, B, *mixed])


PLANS: Mapping[str, Callable[[int, int, int], np.ndarray]] = {
    "latin_hypercube": _latin_hypercube,
    SOBOL: _sobol,
    SALTELLI: _saltelli,
}
"""Samplings that draw all points together, as fractions in [0, 1)."""
SAMPLINGS = (GRID, MONTE_CARLO, *PLANS)


@lru_cache(maxsize=4)
def _plan(sampling: str, points: int, dimensions: int, seed: int) -> np.ndarray:
    return PLANS[sampling](points, dimensions, seed)


def count(sampling: str, variations: Sequence[Variation], points: int) -> int:
    """Return the number of points; a grid has the product of its numbers of levels."""
    if sampling == GRID:
        return prod(len(v.levels) for v in variations)
    return points * (len(variations) + 2) if sampling == SALTELLI else points


def point(
    sampling: str, variations: Sequence[Variation], points: int, seed: int, number: int
) -> tuple[Value, ...]:
    """Return the values of the variations at point `number`; the last variation of a grid changes
    fastest.
    """
    if sampling == GRID:
        places = np.unravel_index(number, tuple(len(v.levels) for v in variations))
        return tuple(v.levels[i] for v, i in zip(variations, places))
    if sampling == MONTE_CARLO:
        own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        fractions = own.random(len(variations))
    else:
        fractions = _plan(sampling, points, len(variations), seed)[number]
    return tuple(v.quantile(f) for v, f in zip(variations, fractions))
