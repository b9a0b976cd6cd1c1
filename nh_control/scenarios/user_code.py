"""Loading a user's code, with errors that name the file and line."""

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
    """An error in a user's code. The message contains the file, the line number and the text of
    the line.
    """


def load_file(path: Path) -> ModuleType:
    """Run a Python file and return it as a module with a unique name. The file can import other
    files in its folder.

    Raises UserCodeError for an error in the file, and FileNotFoundError if the file does not
    exist.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    name = f"nh_control_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    linecache.checkcache(str(path))
    sys.modules[name] = module  # dataclasses look up their module there
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
    """Import the module with the given name. Raises UserCodeError if it is missing or contains an
    error.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise UserCodeError(
                f"no module {name!r} on Python's path; name a file with its suffix, "
                f"path/to/file.py:NAME"
            ) from error
        raise _error(error, _entered(error)) from error
    except (Exception, SystemExit) as error:
        raise _error(error, _entered(error)) from error


@contextmanager
def located(file: str) -> Iterator[None]:
    """Convert errors in a file, or in functions that it calls, to UserCodeError with the line in
    the file.

    Other errors are not changed. If `file` is "", no errors are changed. SystemExit counts as an
    error.
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
    """The file that was being imported when the error was raised."""
    if isinstance(error, SyntaxError):
        return error.filename or ""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    loaders = (__file__, importlib.__file__)
    return next((f for f in files if f not in loaders and not f.startswith("<frozen")), "")


def _line(error: BaseException, file: str) -> int:
    """The last line number of the file in the traceback, or 0 if there is none."""
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
