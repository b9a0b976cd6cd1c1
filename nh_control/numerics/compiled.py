"""CasADi functions compiled to C in the background, cached by content, and called on shared
buffers; CasADi's virtual machine until they are compiled and where there is no compiler. Matrices
are stored row by row in both cases.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import inspect
import logging
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.numerics import generated_c, straight_line
from nh_control.numerics.background import background
from nh_control.numerics.expressions import require_expressions
from nh_control.numerics.generated_c import by_rows, source
from nh_control.numerics.virtual_machine import FunctionData, routine, virtual_function

log = logging.getLogger(__name__)

FLAGS = ("-fPIC", "-shared", "-ffp-contract=off", "-fno-semantic-interposition")
"""No -ffast-math and no contraction: the results do not depend on the processor's vector units.
Functions of a library call each other directly, not by its table of symbols.
"""
POLL_S = 0.02
"""Period of asking whether another process has compiled a library."""
SMALL = 16_000
"""Number of instructions up to which -O2 is used: steps of small systems are a fifth faster than
with -O1, but large straight-line functions take minutes.
"""

LARGE, INSTRUCTION_S = 100_000, 5e-5
"""Number of instructions above which -Og is used, as fast there and compiled in three quarters of
the time, and a warning tells how long that takes, and the time for one.
"""
LONG_COMPILATION = (
    "compiling %s, of %d instructions, takes about %.0f s of a processor; meanwhile CasADi's "
    "virtual machine evaluates it, %s. Next time it is in the cache. A tree of rigid bodies needs "
    "no compiler if it is declared as a nh_control.multibody.Multibody"
)


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


SLOWER = "1.4 to 8 times slower"
"""Steps without a compiler, measured by test/benchmark/without_compiler.py."""

_unusable: set[Path] = set()


def _cannot_use(folder: Path, problem: str) -> None:
    """Log that functions are not compiled, once for a folder."""
    if folder not in _unusable:
        _unusable.add(folder)
        log.warning(
            "cannot use the cache %s: %s; using CasADi's virtual machine, steps are %s "
            "($NH_CONTROL_CACHE moves the cache)",
            folder,
            problem,
            SLOWER,
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
            "no C compiler (looked for %s): using CasADi's virtual machine, steps are %s; install "
            "gcc or clang",
            ", ".join(candidates) or "none",
            SLOWER,
        )
    return path


@cache
def _compiler_version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout


class Native:
    """The shared library made from CasADi `functions` and further C text.

    It is looked up in the cache, if that is private, by the hash of its functions, flags, compiler
    and processor type. Otherwise it is compiled there in the background, under a lock, so that two
    processes compile it once, and moved into place atomically. `library` is None until then, and
    stays None where that is not possible. For each function f there is `call_f(in0, ..., out0,
    ...)` on dense doubles, matrices row by row, and `function_f`, see `generated_c.source`.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[ca.Function],
        more_c: str = "",
        flags: tuple[str, ...] = (),
    ):
        require_expressions(name, functions)
        self.library: ctypes.PyDLL | None = None
        self._compiling: Future[None] | None = None
        path, folder = compiler(), cache_directory()
        if path is None or not is_private(folder):
            return
        size = sum(map(_instructions, functions))
        level = "-O2" if size <= SMALL else "-O1" if size <= LARGE else "-Og"
        command = (path, level, *FLAGS, *flags)
        # C text follows from the functions, and takes much longer to generate than these words
        key = [more_c, *(f.serialize() for f in functions), *command, _compiler_version(path)]
        key += [platform.machine(), ca.CasadiMeta.version(), _generator()]
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
        self.path = folder / f"{name}-{digest}.so"
        if _intact(self.path):
            self._load()
            return
        if self.path.exists():
            log.warning("cached %s is damaged: compiling it again", self.path)
        if size > LARGE:
            log.warning(LONG_COMPILATION, self.path.stem, size, size * INSTRUCTION_S, SLOWER)
        make = partial(self._make, list(functions), more_c, command)
        self._compiling = background.submit(make)

    def when_ready(self, call: Callable[[ctypes.PyDLL], object]) -> None:
        """Call `call(library)` once the library is loaded: now, or later by another thread; never
        where it cannot be compiled.
        """
        if self.library is not None:
            call(self.library)
        elif self._compiling is not None:
            self._compiling.add_done_callback(
                lambda _: None if self.library is None else call(self.library)
            )

    def wait(self) -> ctypes.PyDLL | None:
        """The library, once it is compiled."""
        if self._compiling is not None:
            self._compiling.result()
        return self.library

    def _make(
        self, functions: Sequence[ca.Function], more_c: str, command: tuple[str, ...]
    ) -> None:
        try:
            text = source([by_rows(f) for f in functions]) + more_c
            _compile(text, command, self.path)
            self._load()
        except OSError as error:
            if not background.is_closed:
                _cannot_use(self.path.parent, str(error))
        except subprocess.CalledProcessError as error:
            if not background.is_closed:
                log.warning(
                    "%s failed on %s (%s): using CasADi's virtual machine",
                    *(command[0], self.path.stem, error.stderr.strip()[-500:]),
                )

    def _load(self) -> None:
        self.library = ctypes.PyDLL(str(self.path))


def wait_for_compiler() -> None:
    """Wait until all functions of this process are compiled."""
    background.wait()


@cache
def _generator() -> str:
    """The code that generates C text."""
    return "".join(map(inspect.getsource, (generated_c, straight_line)))


def _instructions(f: ca.Function) -> int:
    """Instructions of a function and of the functions that it calls."""
    called = f.find_functions() if f.is_a("SXFunction") else ()
    return sum(each.n_instructions() for each in (f, *called))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """A context in which no other process has the lock `path`. Raises OSError if this process ends
    meanwhile.
    """
    with open(path, "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if background.is_closed:
                    raise
                time.sleep(POLL_S)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # forked processes have the file open, too


@contextmanager
def _scratch_folder(parent: Path) -> Iterator[Path]:
    """A folder for the time of a context. At the end of the process it is removed after the
    compiler was killed; a TemporaryDirectory may be removed while the compiler still writes.
    """
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _compile(source: str, command: tuple[str, ...], target: Path) -> None:
    with _locked(target.with_suffix(".lock")):
        if _intact(target):
            return
        with _scratch_folder(target.parent) as scratch:
            c_file, so_file = scratch / "functions.c", scratch / "functions.so"
            c_file.write_text(source)
            background.run([*command, "-o", str(so_file), str(c_file), "-lm"])
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

    def __init__(
        self,
        f: ca.Function,
        native: Callable[..., object] | None,
        dense: Callable[[], ca.Function],
    ):
        self.inputs: list[np.ndarray] = [np.zeros(f.size1_in(k)) for k in range(f.n_in())]
        self.outputs: list[np.ndarray] = [np.zeros(f.size_out(k)) for k in range(f.n_out())]
        if native is not None:
            self.run = partial(
                native,
                *(ctypes.c_void_p(array.ctypes.data) for array in (*self.inputs, *self.outputs)),
            )
            return
        self._buffer: Any  # CasADi's type hints ask for a size, which a memoryview already has
        self._buffer, self.run = dense().buffer()
        for k, array in enumerate(self.inputs):
            self._buffer.set_arg(k, array.data)
        for k, array in enumerate(self.outputs):
            self._buffer.set_res(k, array.data)


class Functions:
    """CasADi functions of column vectors, called by name as
    `f(name, *vectors) -> tuple of new (rows, columns) arrays`.

    Vectors have shape (n,). Wrong argument shapes raise ValueError. CasADi's virtual machine
    evaluates the functions, and compiled code takes over between two calls when it is ready. With
    `compiled=False`, or without a compiler, the virtual machine remains. `more_c` is C text that
    is compiled with the functions.
    """

    def __init__(
        self, name: str, functions: Sequence[ca.Function], more_c: str = "", compiled: bool = True
    ):
        require_expressions(name, functions)
        self._functions = {f.name(): f for f in functions}
        self._calls = dict[str, Callable[..., tuple[np.ndarray, ...]]]()
        self._dense = dict[str, ca.Function]()
        self._native = Native(name, functions, more_c) if compiled else None
        self.when_ready(lambda _: self._calls.clear())

    def __call__(self, name: str, *args: ArrayLike) -> tuple[np.ndarray, ...]:
        call = self._calls.get(name)
        if call is None:
            call = self._calls[name] = self._bind(self._functions[name])
        return call(*args)

    def direct(self, name: str) -> _Evaluator:
        """A function with its own arrays `inputs` and `outputs` and `run()`, without checks, for
        fast loops of one thread; waits until it is compiled.
        """
        if self._native is not None:
            self._native.wait()
        return self._evaluator(self._functions[name])

    def size_in(self, name: str, k: int) -> int:
        """Numbers that the function takes as its argument k."""
        return int(self._functions[name].size1_in(k))

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code evaluates the functions."""
        return self._library is not None

    def __getitem__(self, name: str) -> Any:
        """A routine of `more_c`, when it is compiled."""
        if self._library is None:
            raise KeyError(f"{name} is not compiled")
        return self._library[name]

    def when_ready(self, call: Callable[[ctypes.PyDLL], object]) -> None:
        """Call `call(library)` once the functions are compiled, see `Native.when_ready`."""
        if self._native is not None:
            self._native.when_ready(call)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(self._functions)

    def function(self, name: str) -> FunctionData:
        """The function for native code of one thread, in the virtual machine until it is
        compiled.
        """
        if self._library is not None:
            return FunctionData(routine(self._library, f"function_{name}"))
        data = virtual_function(self._in_rows(name))
        self.when_ready(lambda library: data.use_compiled(routine(library, f"function_{name}")))
        return data

    @property
    def _library(self) -> ctypes.PyDLL | None:
        return None if self._native is None else self._native.library

    def _in_rows(self, name: str) -> ca.Function:
        """The function as the virtual machine evaluates it."""
        if name not in self._dense:
            self._dense[name] = by_rows(self._functions[name], dense=True)
        return self._dense[name]

    def _evaluator(self, f: ca.Function) -> _Evaluator:
        native = None if self._library is None else self._library[f"call_{f.name()}"]
        return _Evaluator(f, native, partial(self._in_rows, f.name()))

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
