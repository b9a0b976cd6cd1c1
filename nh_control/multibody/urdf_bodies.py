"""The inertial elements of a URDF as bodies."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from xml.etree.ElementTree import Element as XmlElement

import numpy as np

from nh_control.multibody.bodies import Body
from nh_control.multibody.frames import WORLD
from nh_control.multibody.urdf_elements import number, origin_of, required_child
from nh_control.multibody.urdf_source import UrdfError

log = logging.getLogger(__name__)

INERTIA = (("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz"))


def bodies_of(link: str, element: XmlElement, strict: bool) -> Iterator[Body]:
    """The body of a link; a link without mass has none."""
    inertial = element.find("inertial")
    if inertial is None or link == WORLD:
        return
    where, tensor = f"link {link!r}", inertial.find("inertia")
    if inertial.find("mass") is None and tensor is None:
        log.warning("%s: <inertial> without <mass> and <inertia>: the link has no mass", where)
        return
    mass = number(required_child(inertial, "mass", where), "value", where)
    inertia = np.zeros((3, 3))
    if tensor is None:
        log.warning("%s: <inertial> without <inertia>: %g kg are a point mass", where, mass)
    else:
        inertia[:] = [[number(tensor, key, where) for key in row] for row in INERTIA]
    if mass == 0 and not inertia.any():
        return
    center, rotation = origin_of(inertial, where)
    body = partial(
        Body, link, mass, center, rotation @ inertia @ rotation.T if inertia.any() else None
    )
    try:
        yield body()
    except ValueError as error:
        if strict or mass <= 0:
            raise UrdfError(
                f"{error}; correct the file, or accept the tensor with strict=False"
            ) from error
        log.warning("%s", error)
        yield body(accept_any_inertia=True)
