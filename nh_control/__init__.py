"""Structure-preserving simulation and control of mechanical systems: integrators, exact
linearizations, LQR, ROS 2 nodes.

`import nh_control as nh` provides the everyday names:

{themes}

and the subpackages, which contain everything else: {subpackages}. Names and subpackages are
imported when they are first used, so the import of nh_control takes almost no time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def _home(line: str) -> tuple[str, str]:
    """Return the name that a line `from nh_control.MODULE import ATTRIBUTE as NAME` declares, and
    its home, which is `MODULE` or, if the names differ, `MODULE:ATTRIBUTE`.
    """
    _, module, _, attribute, _, name, *_ = line.rstrip(",").split()
    home = module.removeprefix(f"{__name__}.")
    return name, home if name == attribute else f"{home}:{attribute}"


def _homes_of(file: str) -> dict[str, str]:
    """Return the homes of all names that a file declares for type checkers in lines of this
    form. Long lines may be wrapped in parentheses.
    """
    with open(file, encoding="utf-8") as source:
        lines = source.read().replace("import (\n", "import ").splitlines()
    return dict(
        _home(line)
        for line in lines
        if line.lstrip().startswith(f"from {__name__}") and " as " in line
    )


def _listed() -> tuple[dict[str, dict[str, str]], tuple[str, ...]]:
    """Return the homes of everyday names by theme, and the subpackages, from `__init__.pyi`."""
    themes: dict[str, dict[str, str]] = {}
    # the stub is the only list of public names: type checkers and editors read it as well
    with open(f"{__file__}i", encoding="utf-8") as stub:
        for line in stub:
            if line.startswith("# "):
                theme = line[2:].strip()
            elif line.startswith(f"from {__name__}"):
                name, home = _home(line)
                themes.setdefault(theme, {})[name] = home
    return themes, tuple(themes.pop("subpackages"))


_THEMES, _SUBPACKAGES = _listed()
_HOMES = {name: home for names in _THEMES.values() for name, home in names.items()}
"""Everyday names, with the modules that define them."""
__all__ = [*_HOMES, *_SUBPACKAGES, "__version__"]
__doc__ = (__doc__ or "").format(
    themes="\n".join(f"- {theme}: {', '.join(names)}" for theme, names in _THEMES.items()),
    subpackages=", ".join(f"nh.{name}" for name in _SUBPACKAGES),
)


def _on_demand(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package that imports each name when it is first
    used, from its home `MODULE` or `MODULE:ATTRIBUTE` in nh_control.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        value = getattr(import_module(f"{__name__}.{module}"), attribute or name)
        # stored as an attribute, the name is not looked up here again
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*homes, *vars(sys.modules[package])})

    return get, names


_of_home, __dir__ = _on_demand(
    __name__, {**_HOMES, **dict.fromkeys((*_SUBPACKAGES, "__version__"), "")}
)


def __getattr__(name: str) -> Any:
    value: Any
    if name == "__version__":
        from importlib import metadata

        value = metadata.version(__name__)
    elif name in _SUBPACKAGES:
        value = import_module(f"{__name__}.{name}")
    else:
        return _of_home(name)
    globals()[name] = value
    return value
