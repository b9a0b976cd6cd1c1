"""`nh_control new` writes a short scenario that runs immediately and can be changed and
extended.
"""

from __future__ import annotations

import keyword
from argparse import Namespace
from importlib.resources import files
from pathlib import Path
from typing import Any

from nh_control.command.usage import UsageError

TEMPLATE = "my_robot"
"""The module that is copied. The new name replaces the name of this module."""


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser("new")
    parser.add_argument("name", metavar="NAME", help="name of the scenario; the file is NAME.py")
    parser.set_defaults(command=run)


def run(args: Namespace) -> int:
    """Write the scenario. Returns the exit code."""
    file = write(args.name, Path.cwd())
    print(
        f"wrote {file.name}; try:\n"
        f"  nh_control simulate {file.name}\n"
        f"  nh_control list {file.name}\n"
        f"  nh_control run {file.name}\n"
        f"  ros2 launch nh_control scenario.launch.py scenario:={file}"
    )
    return 0


def write(name: str, folder: Path) -> Path:
    """Write the scenario `name` to `name.py` in a folder. Raises UsageError for a name that is not
    a Python identifier, and for an existing file.
    """
    name = name.removesuffix(".py")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(
            f"the name {name!r} must be a Python identifier of letters, digits and _, such as "
            f"my_robot"
        )
    file = folder / f"{name}.py"
    text = files("nh_control.command").joinpath(f"{TEMPLATE}.py").read_text(encoding="utf-8")
    # my_robot, MY_ROBOT and MyRobot
    for style in (str.lower, str.upper, _camel):
        text = text.replace(style(TEMPLATE), style(name))
    try:
        # the mode "x" refuses an existing file without a race condition
        with open(file, "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise UsageError(f"{file} already exists; choose another name") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error}") from error
    return file


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
