"""What pages contain; what modules draw is checked by Node.js where it is there."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from motions import animation, pendulum
from transforms3d.axangles import axangle2mat
from transforms3d.quaternions import quat2mat

import nh_control as nh
from nh_control import cli
from nh_control.studies import Store, make_study, read, run_indices
from nh_control.view import page, study_runs
from nh_control.view import page as pages
from nh_control.view.camera import first_view
from nh_control.view.live_page import LIVE
from nh_control.view.two_runs import together

NAMES = nh.scenarios.built_in()
LARGEST = {"quadrotor_payload": 500_000}
NODE = shutil.which("node")


@pytest.fixture(scope="module")
def made():
    """Animations of scenarios with their configurations, by name."""
    kept = {}

    def make(name, frames=101):
        if (name, frames) not in kept:
            kept[name, frames] = animation(name, frames)
        return kept[name, frames]

    return make


def drawn(visual, parameters, q):
    """Placements (n, 4, 4) of unit solids that the visual model's shapes are, at q (nq)."""
    poses, found = visual.poses(parameters, q), []
    for shape in visual.shapes:
        pose, matrix = poses[shape.frame], np.eye(4)
        turn = pose.rotation @ axangle2mat([1, 0, 0], shape.roll)
        matrix[:3, :3] = turn * shape.extents
        matrix[:3, 3] = pose.position + pose.rotation @ shape.offset
        found.append(matrix)
    return np.array(found)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_a_page_are_the_visual_model_s(made, name):
    shown, q = made(name)
    data = pages.payload(shown)
    run = pages.unpacked(data["run"]).reshape(len(q), -1, 7).astype(float)
    scenario, size = nh.scenarios.get(name), first_view(shown).size
    for k in (0, 33, len(q) - 1):
        poses = shown.visual.poses(scenario.parameters, q[k])
        for frame, numbers in zip(data["frames"], run[k]):
            apart = np.abs(numbers[:3] - poses[frame].position).max()
            turned = np.abs(quat2mat(numbers[3:]) - poses[frame].rotation).max()
            assert max(apart, size * turned) < 1e-6 * size


@pytest.mark.parametrize(
    "name",
    [n if n == "quadrotor_payload" else pytest.param(n, marks=pytest.mark.slow) for n in NAMES],
)
def test_twenty_seconds_are_a_small_page(made, name):
    assert len(pages.page(made(name, 1001)[0])) < LARGEST.get(name, 2_000_000)


def test_a_page_asks_for_nothing_from_elsewhere(made):
    text = pages.page(made("cart_pole")[0])
    assert "<title>cart_pole &lt;swings&gt;</title>" in text and "<swings>" not in text
    text = re.sub(r'(?s)<script type="application/json".*?</script>', "", text)
    assert not re.search(r"https?:|//\w+\.\w|@import|url\(|\bimport\b\s*[\"'{(*]", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon)\b", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'") and "http" not in policy and "*" not in policy
    sources = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert sources == ["data:,"]


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
def test_the_script_is_javascript(tmp_path):
    file = tmp_path / "page.mjs"
    file.write_text(pages.script((*pages.MODULES, LIVE)))
    done = subprocess.run([NODE, "--check", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


DRAW = """
const data = JSON.parse(INPUT), pictures = [];
for (const name of ["times", "run", "reference", "loads", "arrowLengths"]) {
  if (data[name] === null) continue;
  const bytes = Uint8Array.from(atob(data[name]), (c) => c.charCodeAt(0));
  const zip = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(zip).arrayBuffer()), n = planes.length / 4;
  const out = new Uint8Array(4 * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < 4; j++) out[4 * i + j] = planes[j * n + i];
  data[name] = new Float32Array(out.buffer);
}
const mesh = Object.fromEntries(Object.keys(data.meshes).map((kind) => [kind, kind]));
const renderer = { mesh, canvas: { clientWidth: 900, clientHeight: 600 },
  draw: (camera, view, solid, ghost) => pictures.push({ camera, solid, ghost }) };
const scene = new Scene(renderer, data);
for (const k of ROWS) scene.draw(data.times[k]);
console.log(JSON.stringify(pictures));
"""


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
@pytest.mark.parametrize("name", NAMES)
def test_solids_that_are_drawn_are_the_visual_model_s(made, name, tmp_path):
    """The scene's module gives these matrices to the renderer."""
    shown, q = made(name)
    rows, size = (0, 40, len(q) - 1), first_view(shown).size
    parts = [
        re.sub(r"^(import .*\n|export )", "", (pages.PAGE / f"{m}.js").read_text(), flags=re.M)
        for m in ("vectors", "scene")
    ]
    file = tmp_path / "draw.mjs"
    text = json.dumps(json.dumps(pages.payload(shown)))
    file.write_text(
        "\n".join(parts) + DRAW.replace("INPUT", text).replace("ROWS", str(list(rows)))
    )
    done = subprocess.run([NODE, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    scenario = nh.scenarios.get(name)
    for k, picture in zip(rows, json.loads(done.stdout)):
        matrices = np.array([s["model"] for s in picture["solid"]]).reshape(-1, 4, 4)
        expected = drawn(shown.visual, scenario.parameters, q[k])
        found = np.swapaxes(matrices[: len(expected)], 1, 2)
        assert np.abs(found - expected).max() < 1e-6 * size
        poses = shown.visual.poses(scenario.parameters, q[k])
        for cable, rope in zip(shown.visual.cables, matrices[len(expected) :]):
            ends = [rope[3, :3] + side * rope[2, :3] / 2 for side in (-1, 1)]
            for end, frame in zip(ends, (cable.start, cable.end)):
                assert np.abs(end - poses[frame].position).max() < 1e-6 * size
        assert picture["ghost"]
        assert np.linalg.norm(picture["camera"]["at"] - np.array(first_view(shown).center)) < (
            2 * size
        )


def test_a_reference_that_is_where_the_run_is_is_left_out(made):
    shown, _ = made("cart_pole")
    assert pages.payload(shown)["reference"] is not None
    assert pages.payload(replace(shown, reference=shown.run))["reference"] is None


def test_the_camera_sees_the_whole_motion(made):
    shown, _ = made("quadrotor_payload")
    view = first_view(shown)
    for aspect in (0.5, 1.0, 16 / 9):
        eye = view.eye(aspect)
        back = (eye - view.center) / np.linalg.norm(eye - view.center)
        right = np.cross([0, 0, 1], back) / np.linalg.norm(np.cross([0, 0, 1], back))
        up, seen = np.cross(back, right), shown.run.position.reshape(-1, 3) - eye
        depth = -seen @ back
        assert depth.min() > 0
        assert np.abs(seen @ up / depth).max() < np.tan(0.35)
        assert np.abs(seen @ right / depth).max() < aspect * np.tan(0.35)


def test_motion_in_a_vertical_plane_is_seen_from_its_side(made):
    assert first_view(made("cart_pole")[0]).pitch < 0.2 < first_view(made("car")[0]).pitch


def test_a_trajectory_is_a_page_in_a_notebook(tmp_path):
    run = pendulum()
    file = run.view(tmp_path / "own.html", open_page=False)
    text = file.read_text()
    assert "own motion" in text and '"label":"energy (J)"' in text
    frame = run._repr_html_()
    assert frame.startswith("<iframe") and unescape(frame.split('"')[1]) == text
    assert frame.count("<script") == 0


def test_opening_a_page_asks_the_browser(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    file = pendulum().view()
    assert opened == [file.as_uri()]
    file.unlink()


def test_a_trajectory_without_its_system_says_what_it_needs():
    run = replace(pendulum(), dsys=None)
    for draw in (run.view, run.plot, lambda: run.film("x.webp")):
        with pytest.raises(
            ValueError, match="needs the discrete system for its 4 states, got none"
        ):
            draw()
    assert run._repr_html_() is None


# Two runs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs():
    one, _ = animation("cart_pole", frames=101)
    rows = np.arange(0, 61, 2)
    run = one.reference
    shorter = replace(run, position=run.position[rows], wxyz=run.wxyz[rows])
    curves = tuple(replace(c, values=2 * c.values[rows]) for c in one.curves)
    return one, replace(one, title="b", times=one.times[rows], run=shorter, curves=curves)


def test_the_other_run_is_the_ghost(runs):
    one, other = runs
    both = together(one, other)
    assert both.title == "cart_pole <swings> | other: b"
    kept = both.reference
    np.testing.assert_allclose(kept.position[:61:2], other.run.position, atol=1e-12)
    np.testing.assert_allclose(kept.wxyz[:61:2], other.run.wxyz, atol=1e-12)
    middle = (other.run.position[3] + other.run.position[4]) / 2
    np.testing.assert_allclose(kept.position[7], middle, atol=1e-12)
    np.testing.assert_allclose(kept.position[61:], other.run.position[-1:].repeat(40, axis=0))


def test_plots_show_both_and_their_difference(runs):
    one, other = runs
    mine, _, difference, _ = together(one, other).curves
    assert mine.names[:3] == ("curve 0", "curve 0, other", "curve 1")
    np.testing.assert_allclose(mine.values[:61:2, 3], other.curves[0].values[:, 1])
    assert difference.label == "coordinates, difference (m)"
    expected = one.curves[0].values[:61:2] - other.curves[0].values
    np.testing.assert_allclose(difference.values[:61:2], expected, atol=1e-12)
    assert np.isnan(difference.values[61:]).all()
    assert len(pages.page(together(one, other))) > 10_000


def test_curves_are_compared_by_their_names_in_any_order(runs):
    one, other = runs
    turned = tuple(replace(c, names=c.names[::-1], values=c.values[:, ::-1]) for c in other.curves)
    for curves, same in zip(
        together(one, replace(other, curves=turned)).curves, together(one, other).curves
    ):
        np.testing.assert_array_equal(curves.values, same.values)


def test_runs_of_other_scenarios_are_refused(runs):
    with pytest.raises(ValueError, match="two runs in one page must have the same frames"):
        together(runs[0], animation("car", frames=11)[0])


# A study's runs ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
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
    assert "expected numbers, separated by commas" in capsys.readouterr().err
    assert cli.main([*given, "--runs", "9"]) == 2
    assert cli.main(["view", str(folder), str(folder), "--no-open"]) == 2
