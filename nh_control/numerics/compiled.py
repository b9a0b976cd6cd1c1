"""CasADi functions that are translated to C, compiled in the background, cached by content, and
called on shared buffers. Until they are compiled, or if there is no compiler, CasADi's virtual
machine evaluates them. Matrices are stored row by row in both cases.
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

from nh_control.numerics import generated_c, instructions, lane_code, straight_line
from nh_control.numerics.background import background
from nh_control.numerics.cache_folder import SLOWER, cache_directory, cannot_use, is_private
from nh_control.numerics.expressions import require_expressions
from nh_control.numerics.generated_c import by_rows
from nh_control.numerics.virtual_machine import FunctionData, routine, virtual_function

log = logging.getLogger(__name__)

FLAGS = ("-fPIC", "-shared", "-ffp-contract=off", "-fno-semantic-interposition")
"""Without -ffast-math and contraction, results do not depend on the processor's vector units.
Functions in a library call each other directly, not through the symbol table.
"""
POLL_S = 0.02
"""Period (s) at which a process checks whether another one has compiled a library."""
SMALL = 16_000
"""Maximum number of instructions for which -O2 is used. -O2 makes steps of small systems a fifth
faster than -O1, but takes minutes to compile large straight-line functions.
"""

LARGE, INSTRUCTION_S = 100_000, 5e-5
"""Number of instructions above which -Og is used, and the compile time (s) per instruction, from
which a warning estimates the total time. For such functions, code compiled with -Og is as fast as
with -O1 and compiles in three quarters of the time.
"""
LONG_COMPILATION = (
    "compiling %s, of %d instructions, takes about %.0f s of processor time; meanwhile CasADi's "
    "virtual machine evaluates it, %s. Next time it is in the cache. A tree of rigid bodies needs "
    "no compiler if it is declared as a nh_control.multibody.Multibody"
)


@cache
def compiler() -> str | None:
    """The path of the C compiler: `$NH_CONTROL_CC` (if empty, no compiler is used), else `$CC`,
    else cc, gcc or clang. If there is none, the result is None, and this is logged once.
    """
    chosen = os.environ.get("NH_CONTROL_CC", os.environ.get("CC"))
    candidates = ("cc", "gcc", "clang") if chosen is None else (chosen,)
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
    """The shared library that contains CasADi `functions` and additional C text.

    If the cache is private, the library is looked up there by the hash of its functions, flags,
    compiler and processor type. If it is not found, it is compiled in the background and stored
    atomically. A lock ensures that two processes compile it only once. `library` is None until the
    library is loaded, and remains None if this is not possible. Each function f has a routine
    `call_f(in0, ..., out0, ...)` on dense doubles, with matrices stored row by row, and a
    `function_f` (see `generated_c.source`). A different `generate` writes different C text.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[ca.Function],
        more_c: str = "",
        flags: tuple[str, ...] = (),
        generate: Callable[[Sequence[ca.Function]], str] = generated_c.source_by_rows,
    ):
        require_expressions(name, functions)
        self.library: ctypes.PyDLL | None = None
        self._compiling: Future[None] | None = None
        path, folder = compiler(), cache_directory()
        if path is None or not is_private(folder):
            return
        # larger functions are compiled with less optimization
        size = sum(map(_instructions, functions))
        level = "-O2" if size <= SMALL else "-O1" if size <= LARGE else "-Og"
        command = (path, level, *FLAGS, *flags)
        # hash the functions instead of their C text, which takes much longer to generate
        key = [more_c, *(f.serialize() for f in functions), *command, _compiler_version(path)]
        key += [platform.machine(), ca.CasadiMeta.version(), _generator(), generate.__name__]
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
        self.path = folder / f"{name}-{digest}.so"
        if _intact(self.path):
            self._load()
            return
        if self.path.exists():
            log.warning("cached %s is damaged: compiling it again", self.path)
        if size > LARGE:
            log.warning(LONG_COMPILATION, self.path.stem, size, size * INSTRUCTION_S, SLOWER)
        make = partial(self._make, lambda: generate(functions) + more_c, command)
        self._compiling = background.submit(make)

    def when_ready(self, call: Callable[[ctypes.PyDLL], object]) -> None:
        """Call `call(library)` once the library is loaded. This happens immediately, later in
        another thread, or never if the library cannot be compiled.
        """
        if self.library is not None:
            call(self.library)
        elif self._compiling is not None:
            self._compiling.add_done_callback(
                lambda _: None if self.library is None else call(self.library)
            )

    def wait(self) -> ctypes.PyDLL | None:
        """Wait until the library is compiled, and return it, or None if that failed."""
        if self._compiling is not None:
            self._compiling.result()
        return self.library

    def _make(self, text: Callable[[], str], command: tuple[str, ...]) -> None:
        try:
            _compile(text(), command, self.path)
            self._load()
        except OSError as error:
            if not background.is_closed:
                cannot_use(self.path.parent, str(error))
        except subprocess.CalledProcessError as error:
            if not background.is_closed:
                log.warning(
                    "%s failed on %s (%s): using CasADi's virtual machine",
                    command[0],
                    self.path.stem,
                    error.stderr.strip()[-500:],
                )

    def _load(self) -> None:
        self.library = ctypes.PyDLL(str(self.path))


def wait_for_compiler() -> None:
    """Wait until all functions in this process are compiled."""
    background.wait()


@cache
def _generator() -> str:
    """The source of the modules that generate C text, which is part of the cache key."""
    writers = (generated_c, instructions, lane_code, straight_line)
    sources = map(inspect.getsource, writers)
    return "".join((*sources, lane_code.vectors()))


def _instructions(f: ca.Function) -> int:
    """Number of instructions in a function and the functions that it calls."""
    called = f.find_functions() if f.is_a("SXFunction") else ()
    return sum(each.n_instructions() for each in (f, *called))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A context in which this process holds the lock `path`. Raises OSError if the process exits
    while waiting for the lock.
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
            fcntl.flock(lock, fcntl.LOCK_UN)  # because forked processes also have the file open


@contextmanager
def _scratch_folder(parent: Path) -> Iterator[Path]:
    """A temporary folder. When the process exits, the folder is removed after the compiler is
    killed, whereas a TemporaryDirectory may be removed while the compiler is still writing.
    """
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _compile(source: str, command: tuple[str, ...], target: Path) -> None:
    with locked(target.with_suffix(".lock")):
        if _intact(target):
            return
        with _scratch_folder(target.parent) as scratch:
            c_file, so_file = scratch / "functions.c", scratch / "functions.so"
            c_file.write_text(source)
            background.run([*command, "-o", str(so_file), str(c_file), "-lm"])
            # append the hash of the library (see `_intact`)
            library = so_file.read_bytes()
            so_file.write_bytes(library + hashlib.sha256(library).digest())
            os.replace(so_file, target)


def _intact(target: Path) -> bool:
    """Whether the file ends with the hash of the preceding content. Loading a truncated library
    would crash the process.
    """
    try:
        content = target.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


class _Evaluator(threading.local):
    """Each thread's arrays for a function, and `run()`, which evaluates the function on these
    arrays natively or in CasADi's virtual machine.
    """

    def __init__(
        self,
        f: ca.Function,
        native: Callable[..., object] | None,
        dense: Callable[[], ca.Function],
    ):
        self.inputs: list[np.ndarray] = [np.zeros(f.size1_in(k)) for k in range(f.n_in())]
        # the buffers are fixed: a call copies only numbers
        self.outputs: list[np.ndarray] = [np.zeros(f.size_out(k)) for k in range(f.n_out())]
        if native is not None:
            self.run = partial(
                native,
                *(ctypes.c_void_p(array.ctypes.data) for array in (*self.inputs, *self.outputs)),
            )
            return
        self._buffer: Any  # CasADi's type hints require a size, which a memoryview has
        self._buffer, self.run = dense().buffer()
        for k, array in enumerate(self.inputs):
            self._buffer.set_arg(k, array.data)
        for k, array in enumerate(self.outputs):
            self._buffer.set_res(k, array.data)


class Functions:
    """CasADi functions of column vectors, which are called by name as
    `f(name, *vectors) -> tuple of new (rows, columns) arrays`.

    Vectors have shape (n,). Wrong argument shapes raise ValueError. CasADi's virtual machine
    evaluates the functions until compiled code is ready, which then takes over between two calls.
    With `compiled=False`, or without a compiler, the virtual machine remains in use. `more_c` is C
    text that is compiled with the functions.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[ca.Function],
        more_c: str = "",
        compiled: bool = True,
    ):
        require_expressions(name, functions)
        self._functions = {f.name(): f for f in functions}
        # bound calls, which are dropped when compiled code takes over
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
        """A function with separate arrays `inputs` and `outputs` and a method `run()`, without
        checks, for fast loops in one thread. Waits until the function is compiled.
        """
        if self._native is not None:
            self._native.wait()
        return self._evaluator(self._functions[name])

    def size_in(self, name: str, k: int) -> int:
        """Number of entries of the function's argument k."""
        return int(self._functions[name].size1_in(k))

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code evaluates the functions."""
        return self._library is not None

    def __getitem__(self, name: str) -> Any:
        """A routine from `more_c`; raises KeyError until it is compiled."""
        if self._library is None:
            raise KeyError(f"{name} is not compiled")
        return self._library[name]

    def when_ready(self, call: Callable[[ctypes.PyDLL], object]) -> None:
        """Call `call(library)` once the functions are compiled (see `Native.when_ready`)."""
        if self._native is not None:
            self._native.when_ready(call)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(self._functions)

    def function(self, name: str) -> FunctionData:
        """The function for native code in one thread. The virtual machine evaluates the function
        until it is compiled.
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
        """The function in the form that the virtual machine evaluates."""
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
                argument = np.asarray(value)
                if argument.shape != array.shape and (argument.shape or array.shape != (1,)):
                    raise ValueError(
                        f"{f.name()}: argument {f.name_in(k)!r} must have shape {array.shape}, "
                        f"got {argument.shape}"
                    )
                array[...] = argument
            evaluator.run()
            return tuple([a.copy() for a in evaluator.outputs])

        return call
