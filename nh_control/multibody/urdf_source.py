"""The text of a URDF: from text, a file, `package://`, or a xacro file."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

PACKAGE = "package://"


class UrdfError(ValueError):
    """A URDF that cannot be made into a model; the message names the element, what was expected
    and what was got.
    """


def robot_element(source: str | Path) -> Element:
    """The robot element of a URDF that is given as text, as a path, or as
    `package://PACKAGE/path`. A file with xacro elements is expanded by the package `xacro`.

    Raises UrdfError for what is no URDF, for a package that is not found, and for xacro elements
    without the package; OSError for a file that cannot be read.
    """
    text = str(source)
    if text.lstrip().startswith("<"):
        robot = _parsed(text)
        if _has_xacro(robot):
            raise UrdfError(
                "the text has xacro elements: give the path of the file, or run xacro on it first"
            )
        return robot
    path = located(text) if text.startswith(PACKAGE) else Path(source)
    robot = _parsed(path.read_text(encoding="utf-8"))
    return _parsed(_expanded(path)) if _has_xacro(robot) else robot


def located(uri: str) -> Path:
    """The file of `package://PACKAGE/path`: in `share/PACKAGE` of AMENT_PREFIX_PATH, in a folder
    PACKAGE of ROS_PACKAGE_PATH, or in the Python package of that name; raises UrdfError.
    """
    package, _, inner = uri.removeprefix(PACKAGE).partition("/")
    prefixes = [
        *(Path(p) / "share" for p in _folders("AMENT_PREFIX_PATH")),
        *map(Path, _folders("ROS_PACKAGE_PATH")),
    ]
    spec = find_spec(package) if package.isidentifier() else None
    roots = [prefix / package for prefix in prefixes]
    roots += map(Path, (spec.submodule_search_locations or ()) if spec else ())
    for root in roots:
        if (root / inner).is_file():
            return root / inner
    raise UrdfError(
        f"{uri}: no such file in share/{package} of AMENT_PREFIX_PATH, in ROS_PACKAGE_PATH or in "
        f"a Python package {package}; source the package's workspace, or give the file's path"
    )


def _folders(variable: str) -> list[str]:
    return [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def _has_xacro(robot: Element) -> bool:
    return any(element.tag.startswith("xacro:") for element in robot.iter())


def _expanded(path: Path) -> str:
    """The URDF that xacro makes of a file, with the defaults of its arguments."""
    try:
        import xacro
    except ImportError as missing:
        raise UrdfError(
            f"{path} has xacro elements, which need the package xacro: pip install xacro, or run "
            f"xacro on it first and load its output"
        ) from missing
    try:
        return xacro.process_file(str(path)).toxml()
    except Exception as error:  # xacro has exceptions of many kinds, for what the file says
        raise UrdfError(f"{path}: xacro: {error}") from error


def _parsed(text: str) -> Element:
    """The robot element. Namespace prefixes need not be declared, because many URDFs with
    extensions do not declare them.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = (
        builder.start,
        builder.end,
        builder.data,
    )
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise UrdfError(f"the URDF is not well-formed XML: {error}") from error
    robot = builder.close()
    if robot.tag != "robot":
        raise UrdfError(f"a URDF has the root element <robot>, got <{robot.tag}>")
    return robot
