"""Bodies from the inertial elements of a URDF."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from xml.etree.ElementTree import Element as XmlElement

import numpy as np

from nh_control.multibody.bodies import Body, inertia_problem
from nh_control.multibody.frames import WORLD
from nh_control.multibody.model import Multibody
from nh_control.multibody.urdf_elements import number, origin_of, required_child
from nh_control.multibody.urdf_source import UrdfError

log = logging.getLogger(__name__)

INERTIA = (("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz"))


ROD = -1e-6
"""Minimum accepted principal inertia, relative to the largest one. It is 0 for a thin rod, minus a
margin for rounded data.
"""
POINT_M = 1e-6
"""Radius of gyration (m) below which an inertia counts as zero up to round-off."""
ACCEPT = "accept_any_inertia=True (--accept-any-inertia, accept_any_inertia:=true)"
"""How to accept impossible inertias in Python, in the command and in nodes."""


def bodies_of(link: str, element: XmlElement) -> Iterator[Body]:
    """The body of a link. Its inertia is not checked. A link without mass and inertia has no body.
    Raises UrdfError for a negative mass.
    """
    inertial = element.find("inertial")
    if inertial is None or link == WORLD:
        return
    where, tensor = f"link {link!r}", inertial.find("inertia")
    if inertial.find("mass") is None and tensor is None:
        log.warning("%s: <inertial> without <mass> and <inertia>: the link has no mass", where)
        return
    mass = number(required_child(inertial, "mass", where), "value", where)
    if mass < 0:
        raise UrdfError(f"{where}: mass must be positive, got {mass:g}; correct its <mass>")
    inertia = np.zeros((3, 3))
    if tensor is None:
        log.warning("%s: <inertial> without <inertia>: %g kg are a point mass", where, mass)
    else:
        inertia[:] = [[number(tensor, key, where) for key in row] for row in INERTIA]
    if mass == 0 and not inertia.any():
        return
    center, rotation = origin_of(inertial, where)
    # the tensor is in the axes of <inertial>, so it is R J R^T in the link's axes
    yield Body(link, mass, center, rotation @ inertia @ rotation.T, accept_any_inertia=True)


def check_inertias(model: Multibody, links: Collection[str], accept_any: bool) -> None:
    """Log a warning for each of the `links` whose inertia is impossible. Unless `accept_any` is
    true, raises UrdfError if the total inertia of links that are fixed to each other is
    impossible, or if such links have an inertia but no mass. Links that do not move may have any
    inertia.
    """
    welded: dict[str, list[str]] = {}
    for body in model.bodies:
        if body.frame in links:
            welded.setdefault(model.tree.anchors[body.frame].frame, []).append(body.frame)
            if problem := _problem(np.array(body.inertia), body.mass):
                log.warning("link %r: %s", body.frame, problem)
    for part in model.spatial_inertias:
        names = welded.get(part.frame, [])
        if not names or not (problem := _problem(part.inertia, part.mass)):
            continue
        problem = f"link{'s' * (len(names) > 1)} {' and '.join(map(repr, names))}: {problem}"
        if not accept_any:
            raise UrdfError(f"{problem}; correct the file, or accept it with {ACCEPT}")


def _problem(inertia: np.ndarray, mass: float) -> str:
    # |J| <= m r^2 with the radius of gyration r = POINT_M
    if np.abs(inertia).max() <= mass * POINT_M**2:
        return ""
    if mass == 0:
        return "mass must be positive if there is an inertia, got 0"
    problem = inertia_problem(inertia, ROD)
    return f"inertia {problem}" if problem else ""
