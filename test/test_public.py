"""The public interface: everyday names, version, type hints."""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib import metadata
from pathlib import Path

import pytest

import nh_control as nh

PACKAGE = Path(nh.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


def test_importing_the_package_imports_no_numerics():
    """Nor anything else of the package: whatever a name needs comes with its first use."""
    program = "import sys, nh_control; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "nh_control" in loaded
    assert not {"casadi", "numpy", "scipy", "importlib.metadata"} & set(loaded)
    assert not [name for name in loaded if name.startswith("nh_control.")]


def test_every_name_resolves():
    assert None not in [getattr(nh, name) for name in nh.__all__]
    assert set(nh.__all__) <= {*dir(nh)}


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="nh_control.*no attribute 'midpont'"):
        nh.midpont  # noqa: B018


def test_type_checkers_see_the_same_names_from_the_same_modules():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    told = {
        alias.asname: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    names = {name: f"nh_control.{home}" for name, home in nh._HOMES.items()}
    assert told == names | dict.fromkeys(nh._SUBPACKAGES, "nh_control")


def test_a_subpackage_is_an_attribute_without_an_import():
    program = "import nh_control as nh; print(*(getattr(nh, s).__name__ for s in nh._SUBPACKAGES))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [f"nh_control.{name}" for name in nh._SUBPACKAGES]


def test_the_help_contains_all_names():
    words = set(re.findall(r"[\w.]+\w", nh.__doc__))
    assert set(nh._HOMES) <= words
    assert {f"nh.{name}" for name in nh._SUBPACKAGES} <= words


def test_the_version_is_that_of_the_manifest():
    """setup.py reads it there, and so it reaches the installed package."""
    manifest = ElementTree.parse(PACKAGE.parent / "package.xml")
    assert nh.__version__ == metadata.version("nh_control") == manifest.findtext("version")


# --- type hints ----------------------------------------------------------------------------------


def without_hints(path: Path) -> list[str]:
    """Return the public functions, methods and constructors of a file with an argument or a result
    without a hint, and properties made of a lambda, which cannot have hints.
    """
    found = []

    def look(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
                look(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.FunctionDef):
                public = child.name == "__init__" or not child.name.startswith("_")
                if public and not complete(child, method=isinstance(node, ast.ClassDef)):
                    found.append(f"{prefix}{child.name}")
            elif isinstance(child, ast.Assign) and is_property(child.value):
                found.append(prefix + ast.unparse(child.targets[0]))

    look(ast.parse(path.read_text()), "")
    return found


def is_property(value: ast.AST) -> bool:
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "property"


def complete(function: ast.FunctionDef, method: bool) -> bool:
    a = function.args
    bound = method and not any(
        getattr(d, "id", "") == "staticmethod" for d in function.decorator_list
    )
    arguments = [*a.posonlyargs, *a.args][bound:] + a.kwonlyargs
    arguments += [extra for extra in (a.vararg, a.kwarg) if extra is not None]
    returns = function.returns is not None or function.name == "__init__"
    return returns and all(argument.annotation is not None for argument in arguments)


def test_everything_public_has_hints():
    missing = {str(path.relative_to(PACKAGE)): without_hints(path) for path in FILES}
    assert {path: names for path, names in missing.items() if names} == {}


def test_a_missing_hint_is_found(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "def whole(x: int) -> int: ...\ndef half(x) -> int: ...\ndef other(x: int): ...\n"
        "def _own(x): ...\nclass A:\n  def __init__(self, x): ...\n  def m(self, *, k): ...\n"
        "  @staticmethod\n  def s(x) -> int: ...\n  p = property(lambda self: 1)\n"
    )
    assert without_hints(file) == ["half", "other", "A.__init__", "A.m", "A.s", "A.p"]


def test_the_repr_of_everyday_values_fits_in_one_line():
    import casadi as ca
    import numpy as np

    from nh_control import scenarios
    from nh_control.control.optimize import Optimum

    ball = nh.System("ball", nh.Product(nh.Rn("x"), nh.S2("n")), lambda q, v: ca.sumsqr(v) / 2)
    run = nh.Trajectory(0.1, np.zeros((1001, 5)), np.zeros((1000, 2)), name="rest")
    assert repr(ball) == "System('ball', Product(x, nx, ny, nz), inputs ())"
    assert repr(run) == "Trajectory('rest', 1000 steps of 0.1 s, 5 states, 2 inputs)"
    optimum = Optimum(run, 1.5, True, "small", ())
    for value in (ball.space, optimum, scenarios.get("snakeboard")):
        assert len(repr(value)) < 160 and "\n" not in repr(value)


def test_the_name_of_a_system_and_of_its_file_means_the_system():
    """Also after another file has imported the file itself."""
    code = "import nh_control.systems.car, nh_control.systems.rotors as rotors; "
    code += "from nh_control.systems import car; print(callable(car), callable(rotors))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True", "False"]


def test_every_system_of_a_file_is_a_name_of_the_package():
    """Also those whose declarations for type checkers are wrapped."""
    for file in (PACKAGE / "systems").glob("*.py"):
        text = file.read_text()
        if f"\ndef {file.stem}(" in text and file.stem in nh.systems.__all__:
            parameters = re.findall(rf"^def {file.stem}\(\s*parameters: (\w+)", text, re.M)
            assert {*parameters} <= {*nh.systems.__all__}
    assert callable(nh.systems.chaplygin_sleigh_contact)
