"""The sets of native twins: default, slow and exhaustive tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

SLOW, EXHAUSTIVE = pytest.mark.slow, pytest.mark.exhaustive
CASES = [pytest.param(0, marks=SLOW), 1, 2, pytest.param(3, marks=EXHAUSTIVE), 4, 5, 6]

@pytest.mark.parametrize("n", CASES)
def test_cases(n, interpreted):
    pass

@pytest.mark.native_twins_cheap
@pytest.mark.parametrize("n", CASES)
def test_cheap(n, interpreted):
    pass

@SLOW
def test_long(module_interpreted):
    pass

def test_one_way():
    pass
"""
SETS = {
    "not slow and not exhaustive": {
        "test_cases[interpreted-1]",
        "test_cases[native-1]",
        *(f"test_cases[interpreted-{n}]" for n in (2, 4, 5, 6)),
        "test_cheap[native-1]",
        *(f"test_cheap[interpreted-{n}]" for n in (1, 2, 4, 5, 6)),
        "test_one_way",
    },
    "slow and not exhaustive": {
        "test_cases[interpreted-0]",
        *(f"test_cases[native-{n}]" for n in (2, 4, 5)),
        "test_cheap[interpreted-0]",
        *(f"test_cheap[native-{n}]" for n in (2, 4, 5, 6)),
        "test_long[interpreted]",
        "test_long[native]",
    },
    "exhaustive": {
        "test_cases[interpreted-3]",
        *(f"test_cases[native-{n}]" for n in (0, 3, 6)),
        "test_cheap[interpreted-3]",
        *(f"test_cheap[native-{n}]" for n in (0, 3)),
    },
}


@pytest.mark.parametrize("marks", SETS)
def test_the_first_twin_is_in_the_set_of_its_case_and_others_one_later(marks, tmp_path):
    (tmp_path / "test_both.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "test_both.py", "--collect-only", "-q", "-m", marks]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    told = subprocess.run(
        [*command, "-p", "conftest"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout + told.stderr
    found = {line.split("::")[1] for line in told.stdout.splitlines() if "::" in line}
    assert found == SETS[marks]
