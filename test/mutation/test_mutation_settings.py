"""The settings of the study of faults in C fit the files that there are."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
ENTRIES = tomllib.loads((HERE / "study.toml").read_text())["study"]["native"]
FILES = [path.as_posix() for path in (ROOT / "nh_control").glob("**/native/*.[ch]")]


def patterns(entry):
    folder, _, names = entry["files"].rpartition("/")
    return [f"*/nh_control/{folder}/{name}" for name in names.split("|")]


def test_every_file_in_c_has_tests_that_exist():
    known = [pattern for entry in ENTRIES for pattern in patterns(entry)]
    assert len(FILES) > 50
    assert [file for file in FILES if not any(fnmatch(file, one) for one in known)] == []
    assert [one for one in known if not any(fnmatch(file, one) for file in FILES)] == []
    tests = {test.split()[0] for entry in ENTRIES for test in entry["tests"]}
    assert [test for test in sorted(tests) if not (ROOT / "test" / test).exists()] == []
