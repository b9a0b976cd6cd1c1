"""The settings of the mutation study fit the files that there are."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
STUDY = tomllib.loads((HERE / "study.toml").read_text())["study"]
FILES = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "nh_control").rglob("*.*")
    if path.suffix in (".py", ".c", ".h")
]


def patterns(entry):
    """Of the files of an entry, as `notice.tests_of` reads them."""
    folder, _, names = entry["files"].rpartition("/")
    return [f"nh_control/{folder}/{name}" for name in names.split("|")]


def test_every_file_of_the_sample_has_tests():
    known = [pattern for entry in STUDY["tests"]["map"] for pattern in patterns(entry)]
    drawn = [
        file
        for file in FILES
        if "/native/" in file or any(file.startswith(f"{room}/") for room in STUDY["sample"])
    ]
    assert len(drawn) > 200
    assert [file for file in drawn if not any(fnmatch(file, one) for one in known)] == []


def test_all_files_that_are_named_exist():
    tests = {test.split()[0] for entry in STUDY["tests"]["map"] for test in entry["tests"]}
    assert [test for test in sorted(tests) if not (ROOT / "test" / test).exists()] == []
    named = [*STUDY["without"], *(p for entry in STUDY["tests"]["map"] for p in patterns(entry))]
    assert [one for one in named if not any(fnmatch(file, one) for file in FILES)] == []
