"""`nh_control benchmark`: its table, its file, and wrong names."""

import json

from nh_control.benchmarks import BENCHMARKS, report
from nh_control.cli import main


def test_two_lines_for_each_benchmark(monkeypatch, capsys):
    """The others would take long."""
    short = ("slider_crank_forces", "rattleback")
    monkeypatch.setattr("nh_control.benchmarks.BENCHMARKS", {n: BENCHMARKS[n] for n in short})
    assert main(["benchmark"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == [*short]
    assert " of 16 digits" in lines[0] and "q_2'' (of 8): 0.16991074" in lines[1]


def test_all_numbers_of_one_are_printed_and_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COLUMNS", "140")
    file = tmp_path / "numbers.json"
    assert main(["benchmark", "slider_crank_forces", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    one = BENCHMARKS["slider_crank_forces"]
    assert one.title in out and one.source in out
    written = json.loads(file.read_text())[one.name]
    assert list(written["values"]) == list(one.published)
    for name, value in written["values"].items():
        row = next(line for line in out.splitlines() if line.split("  ")[0] == name)
        assert value["published"] in row and f"{value['digits']} of {value['of']}" in row
        assert abs(value["computed"] / float(value["published"]) - 1) < 1e-9


def test_a_printed_number_and_ours_have_the_same_number_of_digits():
    values = BENCHMARKS["slider_crank_forces"].run()
    for _, published, computed, _ in report.values(values):
        assert len(published) == len(computed)


def test_json_to_the_terminal_is_all_that_is_printed(capsys):
    assert main(["benchmark", "slider_crank_forces", "--json", "-"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"slider_crank_forces"}


def test_unknown_names_are_refused_with_the_known_ones(capsys):
    assert main(["benchmark", "pendulum"]) == 2
    assert "'pendulum', choose from: bicycle, bicycle_turn" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(tmp_path, capsys):
    where = str(tmp_path / "none" / "numbers.json")
    assert main(["benchmark", "slider_crank_forces", "--json", where]) == 1
    assert "cannot write" in capsys.readouterr().err
