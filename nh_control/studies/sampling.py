"""Sample points for a study. A point's number determines its values, regardless of the process
that computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from nh_control.studies.variation import Value, Variation

GRID, MONTE_CARLO, SOBOL, SALTELLI = "grid", "monte_carlo", "sobol", "saltelli"


def _latin_hypercube(points: int, dimensions: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc  # slow to import, and needed by few workers

    return qmc.LatinHypercube(dimensions, seed=np.random.default_rng(seed)).random(points)


def _sobol(points: int, dimensions: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc

    return qmc.Sobol(dimensions, seed=np.random.default_rng(seed)).random(points)


def _saltelli(points: int, dimensions: int, seed: int) -> np.ndarray:
    """Return the points in Saltelli's scheme for Sobol' indices, ((dimensions + 2) points,
    dimensions): `points` rows of a matrix A, the same number of rows of a matrix B, and then, for
    every dimension, the rows of A with this column taken from B.
    """
    # A and B must be independent, so they are drawn from one sequence with twice the dimensions.
    both = _sobol(points, 2 * dimensions, seed)
    A, B = both[:, :dimensions], both[:, dimensions:]
    mixed = [np.where(np.arange(dimensions) == j, B, A) for j in range(dimensions)]
    return np.vstack([A, B, *mixed])


PLANS: Mapping[str, Callable[[int, int, int], np.ndarray]] = {
    "latin_hypercube": _latin_hypercube,
    SOBOL: _sobol,
    SALTELLI: _saltelli,
}
"""Sampling methods that draw all points at once, as fractions in [0, 1)."""
SAMPLINGS = (GRID, MONTE_CARLO, *PLANS)


@lru_cache(maxsize=4)
def _plan(sampling: str, points: int, dimensions: int, seed: int) -> np.ndarray:
    return PLANS[sampling](points, dimensions, seed)


def is_crossed(sampling: str, variation: Variation) -> bool:
    """Return whether every point is run with all values of this variation. This is the case in a
    grid, and also for names in other sampling methods, which makes comparisons of names paired.
    Sobol' indices need drawn names.
    """
    return sampling == GRID or (sampling != SALTELLI and not variation.is_numeric)


def crossed(sampling: str, variations: Sequence[Variation]) -> int:
    """Return the number of combinations of the crossed variations."""
    return prod(len(v.levels) for v in variations if is_crossed(sampling, v))


def count(sampling: str, variations: Sequence[Variation], points: int) -> int:
    """Return the number of points. For a grid, it is the product of the numbers of levels. Drawn
    points are repeated for every combination of names.
    """
    if sampling == SALTELLI:
        return points * (len(variations) + 2)
    return crossed(sampling, variations) * (1 if sampling == GRID else points)


def point(
    sampling: str, variations: Sequence[Variation], points: int, seed: int, number: int
) -> tuple[Value, ...]:
    """Return the values of the variations at point `number`. The last crossed variation changes
    fastest, and all combinations of names at a drawn point are consecutive.
    """
    levels = [v.levels for v in variations if is_crossed(sampling, v)]
    drawn, combination = divmod(number, prod(map(len, levels)))
    # A point number counts combinations of names first and then drawn points.
    places = np.unravel_index(combination, tuple(map(len, levels))) if levels else ()
    chosen = iter(values[i] for values, i in zip(levels, places))
    fractions = iter(_fractions(sampling, points, len(variations) - len(levels), seed, drawn))
    return tuple(
        next(chosen) if is_crossed(sampling, v) else v.quantile(next(fractions))
        for v in variations
    )


def _fractions(
    sampling: str, points: int, dimensions: int, seed: int, number: int
) -> Sequence[float]:
    """Return the point with the given number, drawn from the unit cube."""
    if not dimensions:
        return ()
    if sampling == MONTE_CARLO:
        # Each point has its own generator, so that any process can draw any point.
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        return generator.random(dimensions).tolist()
    return _plan(sampling, points, dimensions, seed)[number].tolist()
