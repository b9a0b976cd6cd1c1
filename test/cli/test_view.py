"""`nh_control view`, `film` and `plot`: runs in files as pages, films and figures."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from nh_control import cli, scenarios
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.output import RESULTS
from nh_control.runs.saved_results import Stored, stored
from nh_control.scenarios import PlantOptions, disturbance
from nh_control.view import film_formats
from nh_control.view.sources import arrow_lengths, load, of_result


@pytest.fixture(scope="module")
def result():
    """A short run with everything that a description has to say."""
    gust = disturbance.parse("shoulder:gust:0.1,start=0.1,duration=0.1")
    e = Experiment.make(
        scenarios.get("urdf"),
        options=PlantOptions(parameters={"mass_scale": 1.1}, disturbances=(gust,)),
        duration_s=0.4,
    )
    return Result(e, e.run(), e.run(feedback=False), 0.5)


@pytest.fixture
def folder(result, tmp_path):
    result.save(tmp_path / RESULTS)
    return tmp_path


def test_results_in_a_file_are_the_same_run(result, folder):
    again = stored(folder).result
    one, other = result.loop, again.loop
    np.testing.assert_array_equal(one.trajectory.states, other.trajectory.states)
    np.testing.assert_array_equal(one.energy, other.energy)
    np.testing.assert_array_equal(again.open_loop.errors, result.open_loop.errors)
    assert again.experiment.options == result.experiment.options
    assert again.experiment.perturbation == result.experiment.perturbation
    assert again.experiment.steps == result.experiment.steps
    assert again.experiment.plant_parameters.mass_scale == 1.1
    assert Stored.of(result).description == stored(folder / RESULTS).description


def test_an_animation_of_results_shows_the_run(result, folder):
    shown, made = load(folder), of_result(result)
    np.testing.assert_array_equal(shown.run.position, made.run.position)
    assert shown.times[-1] == pytest.approx(0.4) and shown.title == "double_pendulum, hold"
    assert [c.label for c in shown.curves] == [
        "error (rad)",
        "input (N m)",
        "energy (J)",
        "configuration (rad)",
    ]
    (interval,) = shown.intervals
    assert (interval.start, interval.label) == (0.1, "gust on shoulder")
    k = 7
    row = round(shown.times[k] / result.experiment.model.h)
    q = result.loop.trajectory.states[row, :2]
    visual = scenarios.get("urdf").visual_model()
    pose = visual.poses(result.experiment.plant_parameters, q)[visual.trail]
    np.testing.assert_allclose(shown.run.track(visual.trail)[k], pose.position, atol=1e-12)


def test_arrows_are_as_long_as_inputs_say():
    visual = scenarios.get("cart_pole").visual_model()
    force = np.array([0.0, 2.0, -1.0])
    np.testing.assert_allclose(arrow_lengths(visual, {"force": force}, 3)[:, 0], 0.05 * force)
    assert not arrow_lengths(visual, {}, 3).any() and arrow_lengths(visual, {}, 3).shape == (3, 1)


def test_view_writes_the_page_beside_the_run(folder, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert cli.main(["view", str(folder)]) == 0
    page = folder / "view.html"
    assert capsys.readouterr().out.strip() == str(page) and opened == [page.as_uri()]
    assert "double_pendulum, hold" in page.read_text()
    assert (
        cli.main(["view", str(folder / RESULTS), "--no-open", "--output", f"{folder}/a.html"]) == 0
    )
    assert (folder / "a.html").read_text() == page.read_text() and len(opened) == 1


def test_a_run_shows_itself_in_a_notebook(result):
    frame = result._repr_html_()
    assert frame.startswith("<iframe") and "double_pendulum, hold" in frame


def test_view_shows_two_runs(folder, capsys):
    assert cli.main(["view", str(folder), str(folder / RESULTS), "--no-open"]) == 0
    text = (folder / "view.html").read_text()
    assert (
        "double_pendulum, hold | other: double_pendulum, hold" in text
        and "energy, difference (J)" in text
    )
    assert cli.main(["view", str(folder), "nothing", "--no-open"]) == 2
    assert "nothing does not exist" in capsys.readouterr().err


def test_film_writes_a_film(folder, capsys):
    file = folder / "film.gif"
    size = ["--width", "64", "--height", "36", "--rate", "10", "--speed", "0.5"]
    assert cli.main(["film", str(folder), str(file), *size]) == 0
    with Image.open(file) as film:
        assert film.n_frames == 9 and film.size == (64, 36)
    assert cli.main(["film", str(folder), f"{folder}/film.avi"]) == 2
    assert ".avi" in capsys.readouterr().err


def test_a_film_that_cannot_be_written_is_one_line(folder, monkeypatch, capsys):
    def full(out, pictures, film):
        out.write(b"RIFF")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(film_formats.WRITERS, ".webp", full)
    before = set(folder.iterdir())
    assert cli.main(["film", str(folder), str(folder / "film.webp")]) == 1
    assert capsys.readouterr().err == (
        f"nh_control: error: cannot write {folder}/film.webp: [Errno 28] No space left on device\n"
    )
    assert set(folder.iterdir()) == before
    assert cli.main(["film", str(folder), str(folder / "no/film.webp")]) == 2
    assert f"the folder {folder}/no does not exist" in capsys.readouterr().err


@pytest.mark.slow
def test_plot_draws_the_figures_again(folder, sketched, capsys):
    assert cli.main(["plot", str(folder), "--format", "svg", "--output", f"{folder}/f"]) == 0
    drawn = {file.name for file in (folder / "f").iterdir()}
    names = ("path", "states", "inputs", "energy", "error", "constraints")
    assert drawn == {f"{name}.svg" for name in names}
    assert "path, states" in capsys.readouterr().out
    assert cli.main(["plot", str(folder), "--format", "jpg"]) == 2
    assert "--format: unknown jpg; choose from png, svg, pdf" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "nothing", "does not exist"),
        (lambda path: path, "contains no run"),
        (lambda path: broken(path / RESULTS), "cannot be read"),
        (lambda path: other(path / RESULTS), "has no inputs, reference_states, states, times"),
        (lambda path: unnamed(path / RESULTS), "add --scenario NAME"),
    ],
)
def test_what_is_no_run_is_refused(make, message, tmp_path, capsys):
    assert cli.main(["view", str(make(tmp_path)), "--no-open"]) == 2
    assert message in capsys.readouterr().err


def broken(file):
    file.write_bytes(b"PK no archive")
    return file


def other(file):
    np.savez(file, a=np.zeros(3))
    return file


def unnamed(file):
    numbers = np.zeros((2, 4))
    np.savez(file, times=np.arange(2), states=numbers, inputs=numbers, reference_states=numbers)
    return file


def test_results_without_a_description_need_a_scenario(result, tmp_path, capsys):
    arrays = {k: v for k, v in result.arrays.items() if k != "reference_energy"}
    np.savez(tmp_path / RESULTS, **arrays)
    found = stored(tmp_path, "urdf")
    assert np.isnan(found.arrays["reference_energy"]).all()
    assert cli.main(["view", str(tmp_path), "--no-open", "--scenario", "urdf"]) == 0
    assert cli.main(["plot", str(tmp_path), "--scenario", "urdf"]) == 2
    assert "repeat the run" in capsys.readouterr().err


def test_descriptions_are_json(result):
    told = json.loads(json.dumps(result.description))
    assert (told["scenario"], told["base"], told["plant"]["substeps"]) == ("urdf", "fixed", 1)
    faulty = replace(result, stopped="at step 3")
    assert faulty.description["stopped"] == "at step 3"
