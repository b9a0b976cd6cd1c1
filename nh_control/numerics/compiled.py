"""CasADi functions compiled to C once, cached by content, and called on shared buffers; CasADi's
virtual machine where there is no compiler. Matrices are stored row by row in both cases.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import logging
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.numerics.generated_c import by_rows, source

log = logging.getLogger(__name__)

FLAGS = ("-fPIC", "-shared", "-ffp-contract=off")
"""No -ffast-math and no contraction: the results do not depend on the processor's vector units."""
SMALL = 16_000
"""Number of instructions up to which -O2 is used: steps of small systems are a fifth faster than
with -O1, but large straight-line functions take minutes.
"""


def cache_directory() -> Path:
    """The cache: `$NH_CONTROL_CACHE`, `$XDG_CACHE_HOME/nh_control` or `~/.cache/nh_control`."""
    if chosen := os.environ.get("NH_CONTROL_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nh_control"


@cache
def is_private(folder: Path) -> bool:
    """Whether the cache `folder` is safe: it belongs to this user, and nobody else can write into
    it. A missing folder is made with mode 0700. The reason of a refusal is logged once.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        _cannot_use(folder, str(error))
        return False
    if status.st_uid != os.geteuid():
        _cannot_use(folder, f"it belongs to user {status.st_uid}, not to {os.geteuid()}")
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        _cannot_use(
            folder,
            f"others may write into it (mode {stat.S_IMODE(status.st_mode):o}), and what lies "
            f"there is loaded and run; delete it, or trust it and `chmod 700 {folder}`",
        )
    else:
        return True
    return False


_unusable: set[Path] = set()


def _cannot_use(folder: Path, problem: str) -> None:
    """Log that functions are not compiled, once for a folder."""
    if folder not in _unusable:
        _unusable.add(folder)
        log.warning(
            "cannot use the cache %s: %s; using CasADi's virtual machine, a step about thirty "
            "times slower ($NH_CONTROL_CACHE moves the cache)",
            folder,
            problem,
        )


@cache
def compiler() -> str | None:
    """Path of the C compiler: `$NH_CONTROL_CC` (empty: none), else `$CC`, else cc, gcc or clang;
    None is logged once.
    """
    wanted = os.environ.get("NH_CONTROL_CC", os.environ.get("CC"))
    candidates = ("cc", "gcc", "clang") if wanted is None else (wanted,)
    paths = (shutil.which(name) for name in candidates if name)
    path = next(filter(None, paths), None)
    if path is None:
        log.warning(
            "no C compiler (looked for %s): using CasADi's virtual machine, a step about thirty "
            "times slower",
            ", ".join(candidates) or "none",
        )
    return path


@cache
def _compiler_version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout


class Native:
    """The shared library made from CasADi `functions` and further C text; `library` is None if
    that is not possible.

    The library is looked up in the cache, if that is private, by the hash of its source, flags,
    compiler and processor type. Otherwise it is compiled there under a lock, so that two processes
    compile it once, and moved into place atomically. For each function f there is
    `call_f(in0, ..., out0, ...)` on dense doubles, matrices row by row. `flags` are further
    compiler flags.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[ca.Function],
        more_c: str = "",
        flags: tuple[str, ...] = (),
    ):
        self.library: ctypes.PyDLL | None = None
        self.path: Path | None = None
        path = compiler()
        if path is None:
            return
        folder = cache_directory()
        # functions that were made again, as for every solution of a problem, are found by their
        # expressions, because generating their C takes longer than writing these down
        made_of = [name, more_c, *(f.serialize() for f in functions)]
        made_by = [path, _compiler_version(path), *FLAGS, *flags, str(folder)]
        key = hashlib.sha256("\0".join([*made_of, *made_by]).encode()).digest()
        target = _targets.get(key)
        if target is not None and is_private(folder) and _intact(target):
            self.library, self.path = ctypes.PyDLL(str(target)), target
            return
        functions = [by_rows(f) for f in functions]
        level = "-O2" if sum(map(_instructions, functions)) <= SMALL else "-O1"
        command = (path, level, *FLAGS, *flags)
        self.library, self.path = _load(name, source(functions) + more_c, command)
        if self.path is not None:
            _targets[key] = self.path


_targets: dict[bytes, Path] = {}
"""Libraries of this process by the hash of their functions."""


def _instructions(f: ca.Function) -> int:
    """Instructions of a function and of the functions that it calls."""
    called = f.find_functions() if f.class_name() == "SXFunction" else ()
    return sum(each.n_instructions() for each in (f, *called))


def _load(
    name: str, source: str, command: tuple[str, ...]
) -> tuple[ctypes.PyDLL | None, Path | None]:
    key = "\0".join([source, *command, _compiler_version(command[0]), platform.machine()])
    folder = cache_directory()
    target = folder / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.so"
    if not is_private(folder):
        return None, None
    try:
        if not _intact(target):
            if target.exists():
                log.warning("cached %s is damaged: compiling it again", target)
            _compile(source, command, target)
        return ctypes.PyDLL(str(target)), target
    except OSError as error:
        _cannot_use(folder, str(error))
    except subprocess.CalledProcessError as error:
        log.warning(
            "%s failed on %s (%s): using CasADi's virtual machine",
            command[0],
            target.stem,
            error.stderr.strip()[-500:],
        )
    return None, None


def _compile(source: str, command: tuple[str, ...], target: Path) -> None:
    with open(target.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _intact(target):
            return
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            c_file, so_file = Path(scratch) / "functions.c", Path(scratch) / "functions.so"
            c_file.write_text(source)
            subprocess.run(
                [*command, "-o", str(so_file), str(c_file), "-lm"],
                capture_output=True,
                text=True,
                check=True,
            )
            library = so_file.read_bytes()
            so_file.write_bytes(library + hashlib.sha256(library).digest())
            os.replace(so_file, target)


def _intact(target: Path) -> bool:
    """Whether the file ends with the hash of the text before it: loading a library that was cut
    off would kill the process.
    """
    try:
        content = target.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


class _Evaluator(threading.local):
    """One thread's arrays for a function and `run()`, which evaluates it on them: natively, or in
    CasADi's virtual machine.
    """

    def __init__(self, f: ca.Function, native: Callable[..., object] | None):
        self.inputs: list[np.ndarray] = [np.zeros(f.size1_in(k)) for k in range(f.n_in())]
        self.outputs: list[np.ndarray] = [np.zeros(f.size_out(k)) for k in range(f.n_out())]
        if native is not None:
            self.run = partial(
                native,
                *(ctypes.c_void_p(array.ctypes.data) for array in (*self.inputs, *self.outputs)),
            )
            return
        self._buffer: Any  # CasADi's type hints ask for a size, which a memoryview already has
        self._buffer, self.run = by_rows(f, dense=True).buffer()
        for k, array in enumerate(self.inputs):
            self._buffer.set_arg(k, array.data)
        for k, array in enumerate(self.outputs):
            self._buffer.set_res(k, array.data)


class Functions:
    """CasADi functions of column vectors, called by name as
    `f(name, *vectors) -> tuple of new (rows, columns) arrays`.

    Vectors have shape (n,). Wrong argument shapes raise ValueError. With `compiled=False`, or
    without a compiler, CasADi's virtual machine evaluates the functions.
    """

    def __init__(self, name: str, functions: Sequence[ca.Function], compiled: bool = True):
        self._name, self._compiler = name, compiler() if compiled else ""
        self._functions = {f.name(): f for f in functions}
        self._native = Native(name, functions).library if compiled else None
        self._calls = {f.name(): self._bind(f) for f in functions}

    def __call__(self, name: str, *args: ArrayLike) -> tuple[np.ndarray, ...]:
        return self._calls[name](*args)

    def direct(self, name: str) -> _Evaluator:
        """A function with its own arrays `inputs` and `outputs` and `run()`, without checks, for
        fast loops of one thread.
        """
        return self._evaluator(self._functions[name])

    def size_in(self, name: str, k: int) -> int:
        """Numbers that the function takes as its argument k."""
        return int(self._functions[name].size1_in(k))

    def address(self, name: str) -> int | None:
        """Address of `call_name(in0, ..., out0, ...)` for native code, None without it. A function
        that was made without a compiler is compiled now.
        """
        if self._compiler is None and (path := compiler()):
            self._compiler = path
            self._native = Native(self._name, list(self._functions.values())).library
        if self._native is None:
            return None
        return ctypes.cast(self._native[f"call_{name}"], ctypes.c_void_p).value

    def _evaluator(self, f: ca.Function) -> _Evaluator:
        return _Evaluator(f, None if self._native is None else self._native[f"call_{f.name()}"])

    def _bind(self, f: ca.Function) -> Callable[..., tuple[np.ndarray, ...]]:
        evaluator = self._evaluator(f)

        def call(*args: ArrayLike) -> tuple[np.ndarray, ...]:
            inputs = evaluator.inputs
            if len(args) != len(inputs):
                raise ValueError(f"{f.name()}: expected {len(inputs)} arguments, got {len(args)}")
            for k, (array, value) in enumerate(zip(inputs, args)):
                given = np.asarray(value)
                if given.shape != array.shape and (given.shape or array.shape != (1,)):
                    raise ValueError(
                        f"{f.name()}: argument {f.name_in(k)!r} must have shape {array.shape}, "
                        f"got {given.shape}"
                    )
                array[...] = given
            evaluator.run()
            return tuple([a.copy() for a in evaluator.outputs])

        return call
