"""Attributes of the elements of a URDF as texts, numbers and poses, with errors that name them."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np
from transforms3d.euler import euler2mat

from nh_control.multibody.urdf_source import XACRO, UrdfError


def origin_of(element: Element, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Position (3) and rotation matrix (3, 3) of an element's origin."""
    origin = element.find("origin")
    origin = Element("origin") if origin is None else origin
    position, angles = (vector(origin, key, where, "0 0 0") for key in ("xyz", "rpy"))
    return position, euler2mat(*angles, axes="sxyz")


def required_child(element: Element, tag: str, where: str) -> Element:
    """The child of that tag; raises UrdfError without one."""
    child = element.find(tag)
    if child is None:
        raise UrdfError(f"{where}: expected an element <{tag}> in <{element.tag}>, got none")
    return child


def attribute(element: Element, key: str, where: str) -> str:
    """The text of an attribute; raises UrdfError without one."""
    value = element.get(key)
    if not value:
        raise UrdfError(f"{where}: expected an attribute {key!r} of <{element.tag}>, got none")
    return value


def number(
    element: Element, key: str, where: str, default: str | None = None, finite: bool = True
) -> float:
    """The number of an attribute, or the default without one; raises UrdfError for anything else,
    and if `finite` for an infinite one.
    """
    (value,) = _of_attribute(element, key, 1, where, default, finite)
    return value


def vector(element: Element, key: str, where: str, default: str | None = None) -> np.ndarray:
    """The three finite numbers of an attribute, or the default without one; raises UrdfError for
    anything else.
    """
    return np.array(_of_attribute(element, key, 3, where, default))


def _of_attribute(
    element: Element, key: str, n: int, where: str, default: str | None, finite: bool = True
) -> list[float]:
    text = attribute(element, key, where) if default is None else element.get(key, default)
    return numbers(text, n, f"{where}: <{element.tag} {key}>", finite)


def numbers(text: str, n: int, where: str, finite: bool = True) -> list[float]:
    """The n numbers of a text, separated by spaces, as other readers of URDFs take them; raises
    UrdfError for anything else, and if `finite` for infinite ones.
    """
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    wrong = np.isnan(values) | (finite & np.isinf(values))
    if len(values) != n or wrong.any() or "_" in text or not text.isascii():
        kind = "finite number" if finite else "number"
        what = f"a {kind}" if n == 1 else f"{n} {kind}s separated by spaces"
        remedy = "; run xacro on the file" if XACRO.search(text) else ""
        remedy = "; leave out the commas" if "," in text and not remedy else remedy
        raise UrdfError(f"{where} must be {what}, got {text!r}{remedy}")
    return values
