"""The paper's figures of the marionette and their numbers."""

import json

import pytest


@pytest.mark.slow
def test_the_experiment_is_reproduced(tmp_path, capsys):
    from nh_control.cli import main
    from nh_control.papers import johnson2014_marionette

    figures = [text for n in "567" for text in ("--figure", n)]
    assert main(["paper", "johnson2014", *figures, "--output", str(tmp_path / "out")]) == 0
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert (
        files == {"figure_5.png", "figure_6.png", "figure_7.png", "numbers.json", "table.md"}
        and "numbers.json" in capsys.readouterr().out
    )
    assert "| NO |" not in (tmp_path / "out" / "table.md").read_text()
    numbers = json.loads((tmp_path / "out" / "numbers.json").read_text())["figure_6"]
    assert numbers["model"] == {"states": 80, "inputs": 18, "constraints": 6, "steps": 1001}
    assert numbers["reference"]["constraint"] <= 1e-10
    for start in (johnson2014_marionette.TEXT, johnson2014_marionette.CODE):
        closed, opened = numbers[start]["closed_loop"], numbers[start]["open_loop"]
        assert (
            closed["start"] == opened["start"]
            and max(closed["constraint"], opened["constraint"]) <= 1e-10
        )
        assert (
            closed["end"] < 0.05 * closed["start"]
            and opened["end"] > 10 * closed["end"]
            and closed["sum"] < opened["sum"] / 2
        )
