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
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

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
        if path is not None:
            functions = [_by_rows(f) for f in functions]
            level = "-O2" if sum(map(_instructions, functions)) <= SMALL else "-O1"
            self.library, self.path = _load(
                name, _source(functions) + more_c, (path, level, *FLAGS, *flags)
            )


def _instructions(f: ca.Function) -> int:
    """Instructions of a function and of the functions that it calls."""
    called = f.find_functions() if f.class_name() == "SXFunction" else ()
    return sum(each.n_instructions() for each in (f, *called))


def _source(functions: Sequence[ca.Function]) -> str:
    wrappers = (_wrapper(f, f"int call_{f.name()}") for f in functions)
    return _generated(functions, "functions") + "".join(wrappers)


def static_source(functions: Mapping[str, ca.Function], prefix: str) -> str:
    """C text of functions by name that other C text includes: `static int call_NAME(in0, ...,
    out0, ...)` of each, as `Native` has them; all other names begin with the `prefix`.
    """
    named = {name: _by_rows(f, name=f"{prefix}_{name}") for name, f in functions.items()}
    wrappers = (_wrapper(f, f"static int call_{name}") for name, f in named.items())
    return _generated(list(named.values()), prefix) + "".join(wrappers)


def _generated(functions: Sequence[ca.Function], prefix: str) -> str:
    generator = ca.CodeGenerator(f"{prefix}.c", {"casadi_int": "long long int"})
    for f in functions:
        generator.add(f)
    return generator.dump()


def _wrapper(f: ca.Function, heading: str) -> str:
    """C text of a function that calls f on plain pointers and copies its sparse outputs into dense
    ones. With dense outputs, f itself would assign every zero, and compiling it would take long.
    """
    parameters = [f"const double *i{k}" for k in range(f.n_in())] + [
        f"double *o{k}" for k in range(f.n_out())
    ]
    before, after, results = "", "", []
    for k in range(f.n_out()):
        rows, columns = f.size_out(k)
        nnz = f.nnz_out(k)
        if nnz == rows * columns:
            results.append(f"o{k}")
            continue
        places = ", ".join(map(str, f.sparsity_out(k).find())) or "0"
        before += f"    static const int at{k}[] = {{{places}}};\n    {_doubles(f's{k}', nnz)}"
        after += (
            f"    for (int i = 0; i < {rows * columns}; ++i) o{k}[i] = 0.0;\n"
            f"    for (int i = 0; i < {nnz}; ++i) o{k}[at{k}[i]] = s{k}[i];\n"
        )
        results.append(f"s{k}")
    arguments = ", ".join(f"i{k}" for k in range(f.n_in())) or "0"
    return (
        f"\n{heading}({', '.join(parameters)})\n{{\n{before}"
        f"    const double *arg[{f.sz_arg() + 1}] = {{{arguments}}};\n"
        f"    double *res[{f.sz_res() + 1}] = {{{', '.join(results) or '0'}}};\n"
        f"    casadi_int iw[{f.sz_iw() + 1}];\n    {_doubles('w', f.sz_w())}"
        f"    const int failed = {f.name()}(arg, res, iw, w, 0);\n{after}    return failed;\n}}\n"
    )


def _doubles(name: str, n: int) -> str:
    """C declaration of an array of n doubles: static if it is large, else on the stack."""
    return f"{'static _Thread_local ' if n > 10_000 else ''}double {name}[{n + 1}];\n"


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
        self._buffer, self.run = _by_rows(f, dense=True).buffer()
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


def _by_rows(f: ca.Function, dense: bool = False, name: str = "") -> ca.Function:
    """The function with its outputs transposed, which CasADi then stores row by row, and its
    common subexpressions shared; under another name if one is given.
    """
    kind: Any = ca.SX if f.is_a("SXFunction") else ca.MX
    inputs = [kind.sym(f.name_in(k), *f.size_in(k)) for k in range(f.n_in())]
    outputs = [ca.densify(o.T) if dense else o.T for o in f.call(inputs)]
    return ca.Function(
        name or f.name(), inputs, outputs, f.name_in(), f.name_out(), {"cse": kind is ca.SX}
    )
