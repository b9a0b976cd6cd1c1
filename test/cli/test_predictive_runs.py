"""Runs of the predictive tracker by the command: their results, summaries, figures and
parameters.
"""

import json

import numpy as np

from nh_control.cli import main
from nh_control.runs.kept_constraints import kept_constraints
from nh_control.runs.saved_results import stored as stored_results
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
