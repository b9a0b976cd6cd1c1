"""The index of the versions of the documentation."""

import re
import runpy
from pathlib import Path

import pytest

PUBLISH = runpy.run_path(str(Path(__file__).parents[1] / "doc" / "publish.py"))


def add_versions(site, *names):
    for name in names:
        (site / name).mkdir()
        (site / name / "index.html").write_text(name)
    PUBLISH["write_index"](site)


def listed(site):
    return re.findall(r'<li><a href="(.*?)/index.html">', (site / "index.html").read_text())


def test_the_index_lists_the_newest_release_first_and_other_names_last(tmp_path):
    add_versions(tmp_path, "0.2.0", "dev", "0.10.0", "0.9.1")
    assert listed(tmp_path) == ["0.10.0", "0.9.1", "0.2.0", "dev"]
    assert (tmp_path / "latest" / "index.html").read_text() == "0.10.0"


def test_a_new_release_becomes_the_latest_and_an_old_one_does_not(tmp_path):
    add_versions(tmp_path, "0.2.0")
    for name, latest in (("0.3.0", "0.3.0"), ("0.2.1", "0.3.0")):
        add_versions(tmp_path, name)
        assert (tmp_path / "latest" / "index.html").read_text() == latest
    assert listed(tmp_path) == ["0.3.0", "0.2.1", "0.2.0"]


def test_without_a_release_there_is_no_latest(tmp_path):
    add_versions(tmp_path, "dev")
    assert listed(tmp_path) == ["dev"]
    assert "latest" not in (tmp_path / "index.html").read_text()
    assert not (tmp_path / "latest").exists()
    add_versions(tmp_path, "0.2.0")
    assert "latest/index.html" in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    ("name", "number"), [("1.2.3", (1, 2, 3)), ("dev", ()), ("1.2rc1", ()), ("latest", ())]
)
def test_releases_are_names_of_numbers(name, number):
    assert PUBLISH["release_number"](name) == number
