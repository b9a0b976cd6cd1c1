"""The experiments of the papers this package is built on: figures out, their numbers as JSON, and
a table of what each paper says, what comes out, and what was corrected.

A paper joins by a module with a `PAPER` and its place in `PAPERS`.
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
