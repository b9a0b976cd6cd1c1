"""The C files: each compiles by itself without a warning, and has the layout that Python has.

`python test/core/test_native_files.py` writes the headers that follow from Python.
"""

import re
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from tiers import c_compiler, needs_compiler

import nh_control
from nh_control.control.optimal import layout
from nh_control.discrete.engine import step_shapes
from nh_control.discrete.native_text import definitions
from nh_control.multibody import kernel_layout, tree_engine
from nh_control.numerics import adaptive, amalgamation

ROOMS = ("numerics", "multibody", "control/optimal", "interop")
FOLDERS = [Path(nh_control.__file__).parent / room / "native" for room in ROOMS]
FILES = sorted(file for folder in FOLDERS for file in folder.glob("*.[ch]"))
STRICT = "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-fsyntax-only", "-xc"
NEEDS_COMPILER = needs_compiler()
HEADERS = {
    FOLDERS[0] / "definitions.h": definitions(step_shapes(0, 0, 0, 0, 0, 0)),
    FOLDERS[0] / "adaptive_definitions.h": adaptive.definitions(),
    FOLDERS[1] / "definitions.h": definitions(tree_engine.ARRAYS),
    FOLDERS[1] / "tree_layout.h": kernel_layout.header(),
    FOLDERS[2] / "layout.h": layout.header(),
    FOLDERS[2] / "sizes.h": layout.sizes_header(),
}


def name_of(file):
    return f"{file.parent.parent.name}/{file.name}"


def check(file, *flags):
    """The compiler on one file: its status and messages."""
    command = [c_compiler(), *STRICT, f"-I{FOLDERS[0]}", *flags, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@NEEDS_COMPILER
@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_every_file_compiles_by_itself(file):
    result = check(file)
    assert result.returncode == 0, result.stderr


@NEEDS_COMPILER
def test_a_warning_fails(tmp_path):
    file = tmp_path / "unused.c"
    file.write_text("static int unused(int n) { return 0; }\n")
    assert check(file).returncode != 0


def calls_between(texts):
    """The files whose functions each file calls, of texts by name."""
    code = {name: re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL) for name, text in texts.items()}
    definition = re.compile(r"^(?!static)\w[\w \*]*?\b(\w+)\([^;{]*\)\s*\{", re.MULTILINE)
    home = {function: name for name, text in code.items() for function in definition.findall(text)}
    called = {name: set(re.findall(r"\b(\w+)\(", text)) for name, text in code.items()}
    return {name: {home[f] for f in own & set(home)} - {name} for name, own in called.items()}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_files_do_not_call_each_other_in_a_circle(folder):
    calls = calls_between({file.name: file.read_text() for file in folder.glob("*.c")})
    assert any(calls.values())
    list(TopologicalSorter(calls).static_order())


def test_a_circle_of_calls_is_found():
    calls = calls_between(
        {"a.c": "int f(void)\n{\n g();\n}\n", "b.c": "int g(void)\n{\n f();\n}\n"}
    )
    assert calls == {"a.c": {"b.c"}, "b.c": {"a.c"}}


@pytest.mark.parametrize("file", HEADERS, ids=name_of)
def test_headers_are_what_python_writes(file):
    assert file.read_text() == HEADERS[file]


@NEEDS_COMPILER
@pytest.mark.parametrize("struct", kernel_layout.STRUCTS, ids=lambda struct: struct.name)
def test_a_struct_with_another_layout_does_not_compile(struct, tmp_path):
    """Its first two fields exchanged in C alone."""
    text = kernel_layout.header()
    first, second = (f"    {field.kind} {field.name};" for field in struct.fields[:2])
    at = text.index(f"struct {struct.name} {{")
    body = text[at:].replace(first, "@", 1).replace(second, first, 1).replace("@", second, 1)
    file = tmp_path / "tree_layout.h"
    file.write_text(text[:at] + body)
    result = check(file, f"-I{FOLDERS[1]}")
    assert f'"{struct.fields[0].name}"' in result.stderr


@pytest.mark.parametrize("values", [{}, {"parameter": 0, "speed": 1.0}])
def test_a_record_names_every_field(values):
    with pytest.raises(TypeError, match="parameter_derivative.*quantity"):
        kernel_layout.PARAMETER_DERIVATIVE.record(**values)


def test_a_file_is_in_an_amalgamation_once(tmp_path):
    (tmp_path / "a.h").write_text("int a;\n")
    (tmp_path / "b.c").write_text('#include "a.h"\n#include "given.h"\nint b;\n')
    (tmp_path / "c.c").write_text('#include "a.h"\nint c;\n')
    text = amalgamation.amalgamation(["b.c", "c.c"], {"given.h": "int g;\n"}, [tmp_path])
    lines = [line for line in text.splitlines() if line and not line.startswith("#line")]
    assert lines == ["int a;", "int g;", "int b;", "int c;"]
    assert '#line 3 "b.c"\nint b;' in text
    with pytest.raises(FileNotFoundError, match=r"missing\.h"):
        amalgamation.amalgamation(["missing.h"], {}, [tmp_path])


if __name__ == "__main__":
    for path, content in HEADERS.items():
        path.write_text(content)
