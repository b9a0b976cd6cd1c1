"""The rooms of the package and their allowed imports, and names of the field in its files, which
are all parsed once here.
"""

import ast
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from test_package import NO_KEY, NOT_ON_PYPI, SETUP, dependencies, distribution, requirement_names

import nh_control

PACKAGE = Path(nh_control.__file__).parent
ROOMS = (
    "__main__.py",
    "cli.py",
    "command",
    "papers",
    "benchmarks",
    "ros",
    "view",
    "figures",
    "studies",
    "runs",
    "gym",
    "autopilots",
    "loop",
    "scenarios",
    "interop",
    "control",
    "systems",
    "integrators",
    "multibody",
    "discrete",
    "mechanics",
    "geometry",
    "numerics",
)
"""From the top down: a room imports from those after it only."""
ROS_ROOMS = (
    "client.py",
    "controllers.py",
    "bringup.py",
    "viewers.py",
    "rviz.py",
    "arguments.py",
    "nodes",
    "messages",
    "runtime",
)
"""The same inside ros/."""
FILES = sorted(PACKAGE.rglob("*.py"))
VAGUE = {"own", "given", "made", "one", "kept", "wanted", "held", "found"}
"""Words that name nothing: a reader has to find out what is given, made or kept."""


def imported_names(node):
    """The full names of imports: packages, modules, and names from them."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def bound_names(node):
    """Names that a module binds: variables, attributes, parameters, functions and classes."""
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
        yield node.id if isinstance(node, ast.Name) else node.attr
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name


def packed_arguments(node):
    """Calls f(*(a, b)), whose arguments could be passed by name."""
    if isinstance(node, ast.Call) and any(
        isinstance(part, ast.Starred) and isinstance(part.value, (ast.Tuple, ast.List))
        for part in node.args
    ):
        yield ast.unparse(node)


CHECKS = imported_names, bound_names, packed_arguments


@cache
def contents(path: Path) -> dict:
    """What the checks find in a file, without its tree, which the garbage collector would search:
    {check: {text: its last line}}.
    """
    found = {check: {} for check in CHECKS}
    for node in ast.walk(ast.parse(path.read_text())):
        for check, texts in found.items():
            texts.update(dict.fromkeys(check(node), getattr(node, "lineno", 0)))
    return found


def imported(path: Path) -> set[str]:
    return set(contents(path)[imported_names])


def in_circles(files: dict[str, Path]) -> set[str]:
    """The modules in circles of imports, for type hints, too, and between two circles: those that
    are left when modules that import none of the others, or that none of them imports, are taken
    away again and again.
    """
    imports = {name: imported(path) & (files.keys() - {name}) for name, path in files.items()}
    while True:
        used = set().union(*imports.values())
        ends = {n for n, others in imports.items() if n not in used or not others & imports.keys()}
        if not ends:
            return set(imports)
        imports = {name: others for name, others in imports.items() if name not in ends}


def knows_ros(name: str) -> bool:
    top = name.split(".")[0]
    packages = {"rclpy", "builtin_interfaces", "rcl_interfaces", "std_srvs", "tf2_ros"}
    return top in packages | {"launch", "launch_ros"} or top.endswith("_msgs")


def rank(rooms: tuple[str, ...], part: str) -> int | None:
    return next((i for i, room in enumerate(rooms) if room.removesuffix(".py") == part), None)


def climbs(path: Path, prefix: str, rooms: tuple[str, ...]) -> list[str]:
    """Return a file's imports, below `prefix`, from rooms above its own."""
    own = path.relative_to(PACKAGE).with_suffix("").parts[prefix.count(".")]
    found = []
    for name in imported(path):
        parts = name.removeprefix(prefix + ".").split(".") if name.startswith(prefix + ".") else ()
        target = rank(rooms, parts[0]) if parts else None
        if target is not None and target < rank(rooms, own):
            found.append(name)
    return found


def test_tests_choose_the_compiler_in_one_place():
    tests = Path(__file__).parent
    setting = re.compile(r"""["']compiler["'],|compiled\.compiler\s*=[^=]""")
    found = {
        path.relative_to(tests).as_posix()
        for path in tests.rglob("*.py")
        if setting.search(path.read_text()) and "benchmark" not in path.parts
    }
    assert found == {"tiers.py", "core/test_compiled.py"}  # it tests the choice


def test_files_of_tests_have_different_names():
    """pytest imports them by name, whatever folder they are in."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert len(names) > 200 and [name for name, count in names.items() if count > 1] == []


def test_every_file_is_in_a_room():
    parts = {path.relative_to(PACKAGE).parts[0] for path in FILES} - {"__init__.py"}
    assert parts == set(ROOMS)
    inner = {
        path.relative_to(PACKAGE / "ros").parts[0] for path in (PACKAGE / "ros").rglob("*.py")
    }
    assert inner - {"__init__.py"} == set(ROS_ROOMS)


def test_imports_point_down():
    """The two `__init__.py` that hand out names are above all rooms."""
    inner = [path for path in FILES if path != PACKAGE / "__init__.py"]
    ros = [path for path in inner if path.is_relative_to(PACKAGE / "ros")]
    ros.remove(PACKAGE / "ros" / "__init__.py")
    assert len(inner) > len(ros) > 50
    climbing = {path: climbs(path, "nh_control", ROOMS) for path in inner}
    climbing |= {path: climbing[path] + climbs(path, "nh_control.ros", ROS_ROOMS) for path in ros}
    assert {path: found for path, found in climbing.items() if found} == {}


def test_an_import_from_a_higher_room_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    file = tmp_path / "geometry" / "spaces.py"
    file.parent.mkdir()
    file.write_text("from nh_control.runs import topics\nfrom nh_control.numerics import newton\n")
    assert set(climbs(file, "nh_control", ROOMS)) == {"nh_control.runs", "nh_control.runs.topics"}


def modules(paths: list[Path], root: Path) -> dict[str, Path]:
    """Files by the names of their modules; packages, which only hand out names, are left out."""
    named = {path: path.relative_to(root.parent).with_suffix("").parts for path in paths}
    return {".".join(parts): path for path, parts in named.items() if parts[-1] != "__init__"}


def test_no_file_imports_another_in_a_circle():
    """Not for type hints either: these imports stand in the files, too."""
    assert in_circles(modules(FILES, PACKAGE)) == set()


def test_a_circle_is_found(tmp_path):
    root = tmp_path / "nh_control"
    root.mkdir()
    hint = "if TYPE_CHECKING:\n    from nh_control.engine import Engine\n"
    engine = "from nh_control import model, newton\n"
    texts = {"model": hint, "engine": engine, "newton": "", "cli": "import nh_control.model\n"}
    for name, text in texts.items():
        (root / f"{name}.py").write_text(text)
    found = in_circles(modules(sorted(root.glob("*.py")), root))
    assert found == {"nh_control.model", "nh_control.engine"}


def test_only_ros_imports_ros_and_its_loop_does_not():
    importing = [path for path in FILES if any(map(knows_ros, imported(path)))]
    places = {path.relative_to(PACKAGE).parts[:2] for path in importing}
    assert places == {("ros", room) for room in ROS_ROOMS if room != "rviz.py"}  # writes a file


def test_every_import_is_a_declared_dependency():
    extras = ("plot", "film", "gym", "pandas", "xacro", "mesh", "ros", "study", "dask", "view")
    extras += ("torch", "jax", "latex", "px4")
    installed = sum((SETUP["extras_require"][e] for e in extras), SETUP["install_requires"])
    packages = {name.split(".")[0] for path in FILES for name in imported(path)}
    packages -= {*sys.stdlib_module_names, "nh_control"}
    wanted = {name: distribution(name) for name in packages}
    on_pypi = {wanted[name][0] for name in packages - NOT_ON_PYPI}
    assert len(packages) > 20 and not on_pypi - requirement_names(installed)
    assert not {wanted[name][1] for name in packages - NO_KEY} - dependencies(
        "depend", "exec_depend"
    )


def test_names_say_what_they_name():
    assert not {
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in FILES
        for name, line in contents(path)[bound_names].items()
        if name.strip("_") in VAGUE
    }


def test_arguments_are_not_packed_to_be_unpacked():
    assert not {path: found for path in FILES if (found := contents(path)[packed_arguments])}


@pytest.mark.parametrize(
    ("check", "text", "expected"),
    [
        (bound_names, "def f(given): self.kept = 1", ["f", "given", "kept"]),
        (packed_arguments, "f(*(a, b)); g(*rows)", ["f(*(a, b))"]),
        (imported_names, "import a.b\nfrom c import d", ["a.b", "c", "c.d"]),
    ],
)
def test_the_checks_find_what_they_look_for(check, text, expected, tmp_path):
    (file := tmp_path / "module.py").write_text(text)
    assert list(contents(file)[check]) == expected
