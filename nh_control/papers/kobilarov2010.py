"""[kobilarov2010]: simulating nonholonomic dynamics."""

from nh_control.papers.paper import Paper

PAPER = Paper("kobilarov2010", "Kobilarov, Martín de Diego, Ferraro: Simulating nonholonomic dynamics", ())
