"""Attributes of URDF elements as text, numbers and poses. Errors name the attribute."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np
from transforms3d.euler import euler2mat

from nh_control.multibody.urdf_source import XACRO, UrdfError


def origin_of(element: Element, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Position (3) and rotation matrix (3, 3) of an element's origin."""
    origin = element.find("origin")
    origin = Element("origin") if origin is None else origin
    position = vector(origin, "xyz", where, "0 0 0")
    roll, pitch, yaw = vector(origin, "rpy", where, "0 0 0")
    # rotations about the fixed axes x, y and z, in that order
    return position, euler2mat(roll, pitch, yaw, axes="sxyz")


def required_child(element: Element, tag: str, where: str) -> Element:
    """The child element with the given tag. Raises UrdfError if there is none."""
    child = element.find(tag)
    if child is None:
        raise UrdfError(f"{where}: expected an element <{tag}> in <{element.tag}>, got none")
    return child


def attribute(element: Element, key: str, where: str) -> str:
    """The text of an attribute. Raises UrdfError if the attribute is missing."""
    value = element.get(key)
    if not value:
        raise UrdfError(f"{where}: expected an attribute {key!r} of <{element.tag}>, got none")
    return value


def number(
    element: Element, key: str, where: str, default: str | None = None, finite: bool = True
) -> float:
    """The number in an attribute, or the default if the attribute is missing. Raises UrdfError for
    other text, and for an infinite number if `finite` is true.
    """
    (value,) = _of_attribute(element, key, 1, where, default, finite)
    return value


def vector(element: Element, key: str, where: str, default: str | None = None) -> np.ndarray:
    """The three finite numbers in an attribute, or the default if the attribute is missing. Raises
    UrdfError for other text.
    """
    return np.array(_of_attribute(element, key, 3, where, default))


def _of_attribute(
    element: Element, key: str, n: int, where: str, default: str | None, finite: bool = True
) -> list[float]:
    text = attribute(element, key, where) if default is None else element.get(key, default)
    return numbers(text, n, f"{where}: <{element.tag} {key}>", finite)


def numbers(text: str, n: int, where: str, finite: bool = True) -> list[float]:
    """The n numbers in a text, separated by spaces, with the same syntax as in other URDF readers.
    Raises UrdfError for other text, and for infinite numbers if `finite` is true.
    """
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    wrong = np.isnan(values) | (finite & np.isinf(values))
    # unlike other readers, Python's float also accepts "1_0" and non-ASCII digits
    if len(values) != n or wrong.any() or "_" in text or not text.isascii():
        kind = "finite number" if finite else "number"
        what = f"a {kind}" if n == 1 else f"{n} {kind}s separated by spaces"
        remedy = "; run xacro on the file" if XACRO.search(text) else ""
        remedy = "; leave out the commas" if "," in text and not remedy else remedy
        raise UrdfError(f"{where} must be {what}, got {text!r}{remedy}")
    return values
