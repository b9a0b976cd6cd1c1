"""Contacts with the ground from the collision elements of a URDF."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from xml.etree.ElementTree import Element

import numpy as np

from nh_control.multibody.contact_grounds import Ground, Plane
from nh_control.multibody.contact_shapes import BoxCorners, Capsule, Cylinder, Shape, Sphere
from nh_control.multibody.contacts import Contact
from nh_control.multibody.kinematics import Point
from nh_control.multibody.urdf_elements import number, origin_of, required_child, vector
from nh_control.multibody.urdf_source import UrdfError
from nh_control.multibody.wheels import Rolling, RollingWheel

COLLISION = "collision"
"""Requests contacts for all links with collision elements."""
FRICTION = 0.8
"""Coulomb friction coefficient of a URDF's contacts, as for rubber or shoes on a floor."""
Contacts: TypeAlias = str | Sequence[str | Contact]
"""`COLLISION`, or a list of link names and contacts."""
Wheels: TypeAlias = Sequence[str] | Mapping[str, Rolling]
"""Link names, or a map from link names to wheels."""


@dataclass(frozen=True)
class Surfaces:
    """The `ground` with its friction and restitution."""

    ground: Ground = Plane()
    friction: float = FRICTION
    restitution: float = 0.0

    def contacts(self, links: Mapping[str, Element], requested: Contacts) -> list[Contact]:
        """The requested contacts. Contacts from collision elements are named after their links,
        with numbers if a link has several. `Contact` objects are returned unchanged.

        Raises UrdfError for an unknown link, for a link without collision elements, and for
        meshes.
        """
        if isinstance(requested, str):
            if requested != COLLISION:
                raise UrdfError(
                    f"contacts must be {COLLISION!r} or a list of names of links and of "
                    f"nh.Contact, got {requested!r}"
                )
            requested = [
                link for link, element in links.items() if element.find(COLLISION) is not None
            ]
        contacts = list[Contact]()
        for entry in requested:
            contacts += [entry] if isinstance(entry, Contact) else self._of_link(links, entry)
        return contacts

    def wheels(self, links: Mapping[str, Element], requested: Wheels) -> list[Rolling]:
        """The requested wheels. A link name may be followed by a colon and the directions of slip.
        The link's <collision> element, a cylinder or a sphere, determines the radius, axis and
        position of the wheel. Raises UrdfError for an unknown link, and for a link without such an
        element.
        """
        if isinstance(requested, str):
            raise UrdfError(
                f"wheels must be a list of links or a dict of nh.RollingWheel, got {requested!r}"
            )
        # explicit wheels may omit their center, which is then the link's origin
        if isinstance(requested, Mapping):
            for link in requested:
                if link not in links:
                    raise UrdfError(
                        f"wheels: the link {link!r} is unknown, choose from {list(links)}"
                    )
            return [
                wheel if wheel.point.frame else replace(wheel, at=link)
                for link, wheel in requested.items()
            ]
        return [self._wheel_of(links, link) for link in requested]

    def _wheel_of(self, links: Mapping[str, Element], name: str) -> Rolling:
        link, _, slips = name.partition(":")
        contacts = list(self._of_link(links, link))
        shape = contacts[0].shape
        if len(contacts) > 1 or not isinstance(shape, (Cylinder, Sphere)):
            raise UrdfError(
                f"wheels: the <collision> of the link {link!r} must be one cylinder or sphere; "
                f"pass wheels={{{link!r}: nh.RollingWheel(radius=...)}}"
            )
        # the rim of a cylinder rolls like a disc with the same radius
        wheel = (
            RollingWheel(at=contacts[0].point, shape=shape)
            if isinstance(shape, Sphere)
            else RollingWheel(at=contacts[0].point, radius=shape.radius, axis=shape.axis)
        )
        return replace(wheel, ground=self.ground, slips=slips or "never")

    def _of_link(self, links: Mapping[str, Element], link: str) -> Iterator[Contact]:
        elements = links[link].findall(COLLISION) if link in links else []
        if not elements:
            problem = "has no <collision>" if link in links else "is unknown"
            raise UrdfError(
                f"contacts: the link {link!r} {problem}, choose from {_touching(links)}"
            )
        for i, element in enumerate(elements, 1):
            # contact names must be unique
            name = link if len(elements) == 1 else f"{link}_{i}"
            position, rotation = origin_of(element, f"link {link!r}: collision")
            try:
                shape = _shape(element, link, rotation)
            except UrdfError:
                raise
            except ValueError as error:
                raise UrdfError(f"link {link!r}: collision: {error}") from error
            yield Contact(
                Point(link, tuple(position)),
                shape,
                self.friction,
                self.restitution,
                self.ground,
                name,
            )


def _touching(links: Mapping[str, Element]) -> list[str]:
    """The links that have collision elements."""
    return [name for name, element in links.items() if element.find(COLLISION) is not None]


def _shape(element: Element, link: str, rotation: np.ndarray) -> Shape:
    """The shape of a collision element. The columns of `rotation` are the element's axes in the
    link.
    """
    where = f"link {link!r}: collision"
    geometry = required_child(element, "geometry", where)
    shape = next(iter(geometry), Element("nothing"))
    if shape.tag == "sphere":
        return Sphere(number(shape, "radius", where))
    if shape.tag == "box":
        return BoxCorners(tuple(vector(shape, "size", where)), rotation)
    if shape.tag in ("cylinder", "capsule"):
        # URDF cylinders are along z of the collision element, the third column of `rotation`
        radius, length = (number(shape, key, where) for key in ("radius", "length"))
        shape_class = Cylinder if shape.tag == "cylinder" else Capsule
        return shape_class(radius, length, axis=tuple(rotation[:, 2]))
    raise UrdfError(
        f"{where}: contacts of <{shape.tag}> are not supported, only those of <sphere>, <box>, "
        f"<cylinder> and <capsule>; remove {link!r} from contacts=[...], the list of the links "
        f"that touch the ground, or replace it by nh.Contact(Point({link!r}, position), shape)"
    )
