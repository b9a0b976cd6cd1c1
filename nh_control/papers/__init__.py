"""Experiments from the papers behind this package: figures, numbers as JSON, and tables of
published results, computed results and corrections.

A new paper needs a module that defines `PAPER`, and an entry in `PAPERS`.
"""

from nh_control.papers import (
    celledoni2016,
    celledoni2021,
    johnson2014,
    kobilarov2010,
    mueller2013,
)
from nh_control.papers.paper import Paper

PAPERS: dict[str, Paper] = {
    module.PAPER.key: module.PAPER
    for module in (celledoni2016, celledoni2021, johnson2014, kobilarov2010, mueller2013)
}
