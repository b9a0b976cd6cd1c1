"""Loading a user's code, with errors that name its file and line."""

from __future__ import annotations

import hashlib
import importlib
import linecache
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


class UserCodeError(ValueError):
    """An error in code of a user; the message has file, line and text of the line."""


def load_file(path: Path) -> ModuleType:
    """The module in a Python file, run again under a unique name; it can import files beside it.

    Raises UserCodeError for an error in it, FileNotFoundError if there is no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    name = f"nh_control_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    linecache.checkcache(str(path))
    sys.modules[name] = module  # dataclasses look their module up there
    sys.path.insert(0, str(path.parent))
    try:
        with located(str(path)):
            exec(compile(path.read_bytes(), str(path), "exec"), vars(module))  # no stale bytecode
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module


def load_module(name: str) -> ModuleType:
    """The module of that name; raises UserCodeError for an error in it, or if there is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise UserCodeError(
                f"no module {name!r} on Python's path; a file is named with its ending, "
                f"path/to/file.py:NAME"
            ) from error
        raise _error(error, _entered(error)) from error
    except (Exception, SystemExit) as error:
        raise _error(error, _entered(error)) from error


@contextmanager
def located(file: str) -> Iterator[None]:
    """Raise errors from a file, or from functions that it calls, as UserCodeError with its line.

    Other errors pass, and all errors if `file` is "". SystemExit counts as an error.
    """
    try:
        yield
    except UserCodeError:
        raise
    except (Exception, SystemExit) as error:
        if not file or not _line(error, file):
            raise
        raise _error(error, file) from error


def _entered(error: BaseException) -> str:
    """The file of the module that was imported when the error arose."""
    if isinstance(error, SyntaxError):
        return error.filename or ""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    own = (__file__, importlib.__file__)
    return next((f for f in files if f not in own and not f.startswith("<frozen")), "")


def _line(error: BaseException, file: str) -> int:
    """The last line of the file that led to the error, 0 if none did."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 1 for f in reversed(frames) if f.filename == file), 0)


def _error(error: BaseException, file: str) -> UserCodeError:
    line = _line(error, file)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return UserCodeError(
        f"{file}, line {line}:\n    {linecache.getline(file, line).strip()}\n{what}"
    )
