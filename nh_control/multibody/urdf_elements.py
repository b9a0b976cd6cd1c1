"""Attributes of the elements of a URDF as texts, numbers and poses, with errors that name them."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np
from transforms3d.euler import euler2mat

from nh_control.multibody.urdf_source import UrdfError


def origin_of(element: Element, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Position (3) and rotation matrix (3, 3) of an element's origin."""
    origin = element.find("origin")
    return vector(origin, "xyz", where, "0 0 0"), euler2mat(
        *vector(origin, "rpy", where, "0 0 0"), axes="sxyz"
    )


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


def number(element: Element, key: str, where: str, default: str = "") -> float:
    """The number of an attribute; raises UrdfError for anything else."""
    (value,) = _floats(element.get(key) or default, 1, f"{where}: <{element.tag} {key}>")
    return value


def vector(element: Element | None, key: str, where: str, default: str) -> np.ndarray:
    """The three numbers of an attribute; raises UrdfError for anything else."""
    text = default if element is None else element.get(key) or default
    return np.array(_floats(text, 3, f"{where}: {key}"))


def _floats(text: str, n: int, where: str) -> list[float]:
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    if len(values) != n or np.isnan(values).any():
        raise UrdfError(f"{where} must be {n} number{'s' * (n > 1)}, got {text!r}")
    return values
