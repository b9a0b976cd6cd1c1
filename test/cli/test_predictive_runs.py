"""Runs of the predictive tracker by the command: their results, summaries, figures and
parameters.
"""

import json

import numpy as np
import yaml

from nh_control import scenarios
from nh_control.cli import main
from nh_control.runs import launcher, run_folder
from nh_control.runs.experiment import Experiment
from nh_control.runs.kept_constraints import kept_constraints
from nh_control.runs.saved_results import stored as stored_results
from nh_control.runs.settings import RunSettings
from nh_control.scenarios import MpcOptions

OPTIONS = ["--duration", "0.3", "--controller", "mpc", "--mpc-horizon", "0.4", "--mpc-late", "0.2"]


def test_a_run_is_summarized_with_its_margins_and_read_again(tmp_path, capsys):
    """Its folder makes the same tracker again, and the figure shows what is forbidden."""
    folder = tmp_path / "run"
    code = main(["simulate", "cart_pole", *OPTIONS, "--output", str(folder)])
    text = capsys.readouterr().out
    assert code == 0 and "MPC over 0.4 s, 3 iterations, 20% of its plans late" in text
    assert "least margin" in text and (folder / "constraints.png").stat().st_size > 5000
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["mpc"]["horizon_s"] == 0.4 and summary["constraints"]["track"]["unit"] == "m"
    result = stored_results(folder).result
    assert result.experiment.mpc == MpcOptions(horizon_s=0.4, late=0.2)
    again = result.experiment.run()
    np.testing.assert_array_equal(again.trajectory.states, result.loop.trajectory.states)
    track = kept_constraints(result)["track"]
    x = result.loop.trajectory.states[:-1, 0]
    np.testing.assert_allclose(track.margins, 1 - np.abs(x))
    np.testing.assert_array_equal(track.values[:, 0], x)
    assert [b.tolist() for b in track.bounds] == [[-1.0], [1.0]]


def test_nodes_get_the_options_and_a_stored_run_has_them(tmp_path):
    mpc = MpcOptions(0.4, 2, ("track",), 0.1, 5)
    scenario = scenarios.get("cart_pole")
    experiment = Experiment.make(scenario, mpc=mpc)
    given = launcher.parameters(experiment, RunSettings(record=False), tmp_path)
    assert given["controller"] == "mpc" and given["mpc"]["constraints"] == ["track"]
    (tmp_path / "parameters.yaml").write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}))
    assert run_folder.load(tmp_path).experiment.mpc == mpc
    plain = launcher.parameters(Experiment.make(scenario), RunSettings(record=False), tmp_path)
    assert plain["controller"] == "lqr"


def test_its_options_without_it_and_unknown_constraints_are_refused(tmp_path, capsys):
    for options, reason in (
        (["--mpc-iterations", "2"], "add --controller mpc"),
        (["--controller", "mpc", "--mpc-constraint", "roof"], "unknown constraint 'roof'"),
        (["--controller", "mpc", "--mpc-late", "2"], "share in [0, 1]"),
    ):
        assert main(["simulate", "cart_pole", *options, "--output", str(tmp_path / "no")]) != 0
        assert reason in capsys.readouterr().err
