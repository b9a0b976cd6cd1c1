"""`nh_control paper`: the list, one figure, wrong names, and the table."""

import json

import pytest

from nh_control.cli import main
from nh_control.papers import PAPERS, report
from nh_control.papers.paper import Statement


def test_papers_are_listed(capsys):
    assert main(["paper"]) == 0
    out = capsys.readouterr().out
    for paper in PAPERS.values():
        assert paper.key in out
        assert len(set(paper.numbers)) == len(paper.numbers)


def test_one_figure_is_written(tmp_path, capsys, interpreted):
    out = tmp_path / "out"
    assert main(["paper", "celledoni2016", "--figure", "stability", "--output", str(out)]) == 0
    assert {f.name for f in out.iterdir()} == {"stability.png", "numbers.json", "table.md"}
    assert (out / "stability.png").stat().st_size > 10_000
    assert set(json.loads((out / "numbers.json").read_text())) == {"stability"}
    assert "Prop. 4.1" in (out / "table.md").read_text()
    assert "Prop. 4.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nobody1999"], "no paper 'nobody1999', choose of: celledoni2016"),
        (["kobilarov2010", "--figure", "9"], "no figure '9' here, choose of: 2, 3, 4"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(arguments, words, capsys):
    assert main(["paper", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_results_are_not_overwritten_unasked(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("")
    assert main(["paper", "kobilarov2010", "--figure", "3", "--output", str(tmp_path)]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_the_table_says_what_does_not_agree():
    text = report.table([Statement("Fig. 1", "a | b", "c", False, "d")])
    assert text.splitlines()[2] == "| Fig. 1 | a \\| b | c | NO | d |"
