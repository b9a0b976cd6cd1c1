"""The collision elements of a URDF as contacts with the ground."""

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
"""Asks for contacts of all links with collision elements."""
FRICTION = 0.8
"""Coulomb's coefficient of contacts of a URDF, about that of rubber and of shoes on a floor."""
Contacts: TypeAlias = str | Sequence[str | Contact]
"""`COLLISION`, or names of links, and contacts."""
Wheels: TypeAlias = Sequence[str] | Mapping[str, Rolling]
"""Names of links, or wheels by the names of their links."""


@dataclass(frozen=True)
class Surfaces:
    """The `ground`, and the friction and restitution on it."""

    ground: Ground = Plane()
    friction: float = FRICTION
    restitution: float = 0.0

    def contacts(self, links: Mapping[str, Element], asked: Contacts) -> list[Contact]:
        """Contacts of the links' collision elements that are asked for, named after the links,
        numbered where a link has several, and contacts as they are given.

        Raises UrdfError for an unknown link, one without collision elements, and for meshes.
        """
        if isinstance(asked, str):
            if asked != COLLISION:
                raise UrdfError(
                    f"contacts must be {COLLISION!r} or a list of names of links and of "
                    f"nh.Contact, got {asked!r}"
                )
            asked = [
                link for link, element in links.items() if element.find(COLLISION) is not None
            ]
        contacts = list[Contact]()
        for one in asked:
            contacts += [one] if isinstance(one, Contact) else self._of_link(links, one)
        return contacts

    def wheels(self, links: Mapping[str, Element], asked: Wheels) -> list[Rolling]:
        """The wheels on these links. Those of which only the link is named, and perhaps how they
        slip behind a colon, take radius, axis and place of its <collision>, a cylinder or a
        sphere. Raises UrdfError for an unknown link, and for one without such an element.
        """
        if isinstance(asked, str):
            raise UrdfError(
                f"wheels must be a list of links or a dict of nh.RollingWheel, got {asked!r}"
            )
        if isinstance(asked, Mapping):
            for link in asked:
                if link not in links:
                    raise UrdfError(
                        f"wheels: the link {link!r} is unknown, choose of {list(links)}"
                    )
            return [
                wheel if wheel.point.frame else replace(wheel, at=link)
                for link, wheel in asked.items()
            ]
        return [self._wheel_of(links, link) for link in asked]

    def _wheel_of(self, links: Mapping[str, Element], name: str) -> Rolling:
        link, _, slips = name.partition(":")
        contacts = list(self._of_link(links, link))
        shape = contacts[0].shape
        if len(contacts) > 1 or not isinstance(shape, (Cylinder, Sphere)):
            raise UrdfError(
                f"wheels: the <collision> of the link {link!r} must be one cylinder or sphere; "
                f"give wheels={{{link!r}: nh.RollingWheel(radius=...)}}"
            )
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
            raise UrdfError(f"contacts: the link {link!r} {problem}, choose of {_touching(links)}")
        for i, element in enumerate(elements, 1):
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
    """The shape of a collision element whose axes in the link are the columns of `rotation`."""
    where = f"link {link!r}: collision"
    geometry = required_child(element, "geometry", where)
    shape = next(iter(geometry), Element("nothing"))
    if shape.tag == "sphere":
        return Sphere(number(shape, "radius", where))
    if shape.tag == "box":
        return BoxCorners(tuple(vector(shape, "size", where)), rotation)
    if shape.tag in ("cylinder", "capsule"):
        radius, length = (number(shape, key, where) for key in ("radius", "length"))
        made = Cylinder if shape.tag == "cylinder" else Capsule
        return made(radius, length, axis=tuple(rotation[:, 2]))
    raise UrdfError(
        f"{where}: contacts of <{shape.tag}> are not known, those of <sphere>, <box>, <cylinder> "
        f"and <capsule> are; leave {link!r} out of contacts=[...], a list of the links that touch "
        f"the ground, or put nh.Contact(Point({link!r}, position), shape) there in its place"
    )
