"""The text of a URDF from a string, a file, a `package://` URI or a xacro file."""

from __future__ import annotations

import codecs
import os
import re
from importlib.util import find_spec
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

PACKAGE = "package://"
MARK = "\ufeff"
"""The byte order mark, decoded."""
BLANK = f"{MARK} \t\r\n"
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}
"""Maps the first bytes of a file to its encoding."""
DECLARATION = re.compile(r"\A((?:\s|<!--.*?-->)*)<\?xml\s[^>]*\?>", re.DOTALL)
"""An XML declaration that follows blank lines and comments."""
XACRO = re.compile(r"\$[({]")
"""The beginning of an expression that xacro replaces."""
DECLARED = re.compile(rb"<\?xml\s[^>]*\bencoding\s*=\s*[\"']([\w.:-]+)[\"']")


class UrdfError(ValueError):
    """A URDF that cannot be converted to a model. The message names the element and states what
    was expected and what was found.
    """


def robot_element(source: str | Path) -> Element:
    """The robot element of a URDF, given as text, as a path, or as `package://PACKAGE/path`. The
    package `xacro` expands a file with xacro elements.

    Raises UrdfError for a text that is not a URDF, for a package that does not exist, and for
    xacro elements if the package xacro is missing. Raises OSError for a file that cannot be read.
    """
    return _parsed(urdf_text(source), source)


def urdf_text(source: str | Path) -> str:
    """The text of the URDF that `robot_element` reads. Raises the same errors."""
    path = urdf_path(source)
    text = _declared_first(str(source) if path is None else _decoded(path))
    if not any(element.tag.startswith("xacro:") for element in _parsed(text, source).iter()):
        return text
    if path is None:
        raise UrdfError(
            "the text has xacro elements: give the path of the file, or run xacro on it first"
        )
    return _declared_first(_expanded(path))


def urdf_path(source: str | Path) -> Path | None:
    """The file of a URDF, or None if the source is text."""
    text = str(source)
    if not text.strip(BLANK):
        raise UrdfError(f"expected the path of a URDF, or its text, got {text!r}")
    if text.lstrip(BLANK).startswith("<"):
        return None
    return located(text) if text.startswith(PACKAGE) else Path(source)


def described(source: str | Path) -> str:
    """The name of a URDF in messages, which is its file or "the text of the URDF"."""
    return str(urdf_path(source) or "the text of the URDF")


def located(uri: str) -> Path:
    """The file that `package://PACKAGE/path` refers to. It may be in `share/PACKAGE` on
    AMENT_PREFIX_PATH, in a folder PACKAGE on ROS_PACKAGE_PATH, or in the Python package with the
    same name. Raises UrdfError if there is no such file.
    """
    package, _, inner = uri.removeprefix(PACKAGE).partition("/")
    prefixes = [
        *(Path(prefix) / "share" for prefix in _folders("AMENT_PREFIX_PATH")),
        *map(Path, _folders("ROS_PACKAGE_PATH")),
    ]
    spec = find_spec(package) if package.isidentifier() else None
    # ROS first, then an installed Python package
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


def _decoded(path: Path) -> str:
    """The text of a file. The byte order mark determines the encoding. Without a mark, the XML
    declaration determines it. The default is UTF-8.
    """
    data = path.read_bytes()
    encoding = next((name for mark, name in MARKS.items() if data.startswith(mark)), "")
    if not encoding:
        declared = DECLARED.search(data)
        encoding = declared[1].decode("ascii") if declared else "utf-8"
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise UrdfError(
            f"{path}: {error}; save the file as UTF-8, or declare the encoding that it has: "
            '<?xml version="1.0" encoding="..."?>'
        ) from error


def _declared_first(text: str) -> str:
    """The text without the byte order mark and trailing zeros. In many files, blank lines or
    comments precede the XML declaration. The declaration is moved to the beginning, without its
    encoding.
    """
    return DECLARATION.sub(r'<?xml version="1.0"?>\1', text.lstrip(MARK).rstrip("\0"), count=1)


def _expanded(path: Path) -> str:
    """The URDF that xacro creates from a file, with the default values of the file's arguments."""
    try:
        import xacro
    except ImportError as missing:
        raise UrdfError(
            f"{path} has xacro elements, which need the package xacro: pip install xacro, or run "
            f"xacro on it first and load its output"
        ) from missing
    try:
        return xacro.process_file(str(path)).toxml()
    except Exception as error:  # xacro raises many types of exceptions for faulty files
        raise UrdfError(f"{path}: xacro: {error}") from error


def _parsed(text: str, source: str | Path) -> Element:
    """The robot element. Namespace prefixes need no declaration, because many URDFs with
    extensions omit it.
    """
    # unlike ElementTree's parser, expat without namespace processing accepts undeclared prefixes
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = (
        builder.start,
        builder.end,
        builder.data,
    )
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise UrdfError(f"{described(source)} is not well-formed XML: {error}") from error
    robot = builder.close()
    if robot.tag != "robot":
        raise UrdfError(
            f"{described(source)}: a URDF has the root element <robot>, got <{robot.tag}>"
        )
    return robot
