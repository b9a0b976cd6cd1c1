"""A study's runs in one page: those that are asked for, or the worst ones first."""

import json

import numpy as np
import pytest

from nh_control import cli
from nh_control.studies import Store, make_study, read, run_indices
from nh_control.view import page, study_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study of three short runs of a pendulum."""
    made = tmp_path_factory.mktemp("study")
    file = made / "study.yaml"
    file.write_text(
        "scenario: pendulum_swing_up\nset: {duration: 0.2}\n"
        "vary: {perturb.angle: [0.1, 0.3, 0.2]}\n"
    )
    study = make_study(read(file))
    with Store(made, study) as store:
        store.add(run_indices(study, range(3)))
    return made


def test_the_worst_runs_come_first_and_are_what_they_were(folder):
    with Store(folder, make_study(read(folder / "study.yaml"))) as store:
        errors = store.columns()["final_error"]
    found = study_runs.load(folder)
    numbers = [int(name.split(",")[0].removeprefix("run ")) for name in found]
    assert numbers == list(np.argsort(-errors))
    assert next(iter(found)).endswith("perturb.angle = 0.3")
    for k, shown in zip(numbers, found.values()):
        (total,) = (c.values[-1, 0] for c in shown.curves if c.title == "error")
        assert total == pytest.approx(errors[k], rel=1e-9)


def test_runs_can_be_chosen(folder):
    assert [name.split(",")[0] for name in study_runs.load(folder, [2, 0])] == ["run 2", "run 0"]
    with pytest.raises(ValueError, match=r"has the runs 0 to 2, not \[7\]"):
        study_runs.load(folder, [1, 7])


def test_the_page_has_all_of_them_by_name(folder):
    runs = study_runs.load(folder, [0, 2])
    text = page.page_of_runs(runs)
    assert text.count('class="run"') == 1 and text.count("<option>") == 2
    assert all(f"<option>{name}</option>" in text for name in runs)
    other = text.partition('class="run">')[2].partition("</script>")[0]
    data = page.payload(list(runs.values())[1])
    assert json.loads(other)["run"] == data["run"]


def test_the_command_writes_it(folder, tmp_path, capsys):
    file = tmp_path / "runs.html"
    given = ["view", str(folder), "--no-open", "--output", str(file)]
    assert cli.main([*given, "--runs", "1,2"]) == 0
    assert "run 1, perturb.angle" in file.read_text()
    assert cli.main([*given, "--runs", "one"]) == 2
    assert "expected numbers with commas" in capsys.readouterr().err
    assert cli.main([*given, "--runs", "9"]) == 2
    assert cli.main(["view", str(folder), str(folder), "--no-open"]) == 2
