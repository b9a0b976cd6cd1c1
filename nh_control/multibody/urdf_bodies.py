"""The inertial elements of a URDF as bodies."""

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
"""Least principal inertia that is accepted, relative to the largest: 0 as of a thin rod, with
rounded data.
"""
POINT_M = 1e-6
"""Radius of gyration below which an inertia counts as the round-off of none."""
ACCEPT = "accept_any_inertia=True (--accept-any-inertia, accept_any_inertia:=true)"
"""How inertias that no body has are accepted, in Python, of the command and of nodes."""


def bodies_of(link: str, element: XmlElement) -> Iterator[Body]:
    """The body of a link, with any inertia; a link without mass and inertia has none. Raises
    UrdfError for a mass below zero.
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
    yield Body(link, mass, center, rotation @ inertia @ rotation.T, accept_any_inertia=True)


def check_inertias(model: Multibody, links: Collection[str], accept_any: bool) -> None:
    """Warnings of the `links` whose inertia no body has. Raises UrdfError if links that are welded
    to each other have such an inertia together, or an inertia but no mass, unless any is accepted.
    Links that do not move may have any.
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
    if np.abs(inertia).max() <= mass * POINT_M**2:
        return ""
    if mass == 0:
        return "mass must be positive where there is an inertia, got 0"
    problem = inertia_problem(inertia, ROD)
    return f"inertia {problem}" if problem else ""
