"""Fingerprints of functions: functions with equal fingerprints compute the same expressions."""

from __future__ import annotations

import dis
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from itertools import chain
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from nh_control.control.costs import QuadraticExpressions
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.space import Space
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.multibody.model import Multibody

LIBRARIES = frozenset({"builtins", "casadi", "collections", "functools", "itertools", "math"})
LIBRARIES |= {"nh_control", "numpy", "operator", "scipy"}
"""Packages whose functions, classes and modules do not change."""
CONSTANT = DiscreteSystem, LagrangianSystem, Multibody, Space, ca.Function
"""Classes of immutable objects."""
NUMBERS = frozenset({bool, int, float, complex, str, bytes, type(None), range, slice})
DYNAMIC = frozenset({"__import__", "eval", "exec", "getattr", "globals", "locals", "open", "vars"})
"""Functions through which code accesses objects that it does not name."""
READING = frozenset({"fromfile", "genfromtxt", "load", "loadtxt", "memmap", "random"})
"""Functions and modules of libraries whose results may differ between calls."""


class Unknown(Exception):
    """A function uses an object whose content cannot be compared."""


class Identity:
    """An object that is equal only to itself."""

    def __init__(self, of: object):
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


class Pattern:
    """A sparsity pattern, equal to those with the same entries."""

    def __init__(self, of: ca.Sparsity):
        self.of = ca.Sparsity(of)  # a copy, because patterns can be changed in place
        self._hash = hash((of.shape, of.nnz()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and bool(self.of == other.of)

    def __hash__(self) -> int:
        return self._hash


Seen: TypeAlias = "dict[int, tuple[int, object]]"
"""Functions and containers by identity, with their numbers in the order of the first visit."""


def fingerprint(value: Any, seen: Seen | None = None) -> Hashable:
    """The content of a value, in a form that can be compared.

    The fingerprint of a function consists of its code and the values that it uses. That of a
    number or an array is its content, and that of a system or a space is its identity. A value
    that has already been `seen` is represented by its number, so functions may call themselves.
    Raises Unknown for other objects.
    """
    kind = type(value)
    if kind in NUMBERS:
        return kind, repr(value)  # distinguishes 0.0 from -0.0, and nan equals nan
    if kind is CodeType:
        return kind, value
    if kind is ca.Sparsity:
        return Pattern(value)
    seen = {} if seen is None else seen
    parts = PARTS.get(kind)
    if parts is None:
        if isinstance(value, np.generic):
            return kind, repr(value)
        if kind is np.ndarray and not value.dtype.hasobject:
            return kind, value.dtype.str, value.shape, value.tobytes()
        if kind is ca.DM:
            return kind, value.serialize()
        if kind is ca.SX and value.is_constant():
            return kind, ca.DM(value).serialize()
        if isinstance(value, CONSTANT) or _is_of_library(value):
            return Identity(value)
        if not (is_dataclass(value) and kind.__module__.startswith("nh_control.")):
            raise Unknown(f"{kind.__name__} {value!r:.80}")
        parts = _fields
    if id(value) in seen:
        return "seen", seen[id(value)][0]
    # no other value has the identity of a value that is alive
    seen[id(value)] = len(seen), value
    return kind, tuple([fingerprint(part, seen) for part in parts(value)])


def _fields(value: Any) -> Iterable[Any]:
    """The values of the fields of a data class."""
    return [getattr(value, f.name) for f in fields(value)]


def _is_of_library(value: Any) -> bool:
    """Whether a value is a module, a class or a built-in function from one of the LIBRARIES."""
    if isinstance(value, ModuleType):
        home = value.__name__
    elif isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType):
        return False  # the method of an object
    elif isinstance(value, np.ufunc):
        return getattr(np, value.__name__, None) is value
    elif isinstance(value, (type, BuiltinFunctionType)):
        home = value.__module__ or ""
    else:
        return False
    return home.partition(".")[0].lstrip("_") in LIBRARIES


def _of_function(f: FunctionType) -> Iterable[Any]:
    """The code of a function and the values that it uses. Globals from LIBRARIES do not change."""
    code, used = f.__code__, dict[str, Any]()
    if str(f.__globals__.get("__name__")).partition(".")[0] not in LIBRARIES:
        names = _names(code)
        used = {name: f.__globals__[name] for name in names if name in f.__globals__}
    elif code.co_name in READING:
        raise Unknown(f"{f.__qualname__}, which reads a file or random numbers")
    try:
        cells = [cell.cell_contents for cell in f.__closure__ or ()]
    except ValueError:
        raise Unknown(f"{f.__qualname__}, which has a variable without a value") from None
    # None stands for what is empty
    defaults = f.__defaults__, f.__kwdefaults__
    return code, cells or None, *defaults, used or None, f.__dict__ or None


PARTS: Mapping[type, Callable[[Any], Iterable[Any]]] = {
    tuple: lambda value: value,
    list: lambda value: value,
    dict: lambda value: chain.from_iterable(value.items()),
    FunctionType: _of_function,
    MethodType: lambda value: (value.__func__, value.__self__),
    partial: lambda value: (value.func, value.args, value.keywords),
}
"""The values that determine a container or a function, by its type."""


@lru_cache(maxsize=512)
def _names(code: CodeType) -> tuple[str, ...]:
    """The global names in a code object and in the functions that it defines. Raises Unknown if
    the code may access other objects.
    """
    names = dict[str, None]()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[step.argval] = None
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and step.argval in READING:
            raise Unknown(f"{step.argval}, which reads a file or random numbers")
        elif step.opname == "IMPORT_NAME" and step.argval.partition(".")[0] not in LIBRARIES:
            raise Unknown(f"module {step.argval}")
    if reaching := DYNAMIC & names.keys():
        raise Unknown(f"{sorted(reaching)}")
    for part in code.co_consts:
        if isinstance(part, CodeType):
            names |= dict.fromkeys(_names(part))
    return tuple(names)


@lru_cache(maxsize=64)
def _unchanging(expressions: Callable[..., ca.SX]) -> Hashable:
    """The fingerprint of a method whose object never changes."""
    return fingerprint(expressions)


def of_expressions(expressions: Callable[..., ca.SX], sizes: Mapping[str, int]) -> Hashable:
    """The identity of a function of column vectors with the given sizes: its fingerprint or, if
    the fingerprint is unknown, the text of its expression.
    """
    try:
        if isinstance(getattr(expressions, "__self__", None), QuadraticExpressions):
            return _unchanging(expressions)
        return fingerprint(expressions)
    except Unknown:
        symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
        return ca.Function("f", symbols, [ca.SX(expressions(*symbols))]).serialize()
