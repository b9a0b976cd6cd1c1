"""Films: the right number of pictures, which decode and show the motion."""

import gc
import io
import shutil
from dataclasses import replace

import numpy as np
import pytest
from motions import animation, pendulum
from PIL import Image, ImageSequence

import nh_control as nh
from nh_control.scenarios.visual_model import Arrow, Mesh, Shape
from nh_control.view import film, painter
from nh_control.view.film_formats import WRITERS, Film
from nh_control.view.painter import SKY, Camera, Painter

SMALL = (160, 90)


@pytest.fixture(scope="module")
def short():
    shown, _ = animation("cart_pole", frames=61)
    return replace(shown, times=np.linspace(0, 2, 61))


def colors(picture):
    return np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)


@pytest.mark.parametrize("suffix", ["webp", "gif", "png"])
def test_a_film_has_all_its_pictures(short, suffix, tmp_path):
    told = []
    progress = lambda *counts: told.append(counts)
    file = tmp_path / f"film.{suffix}"
    film.write(short, file, rate_hz=10.0, size=SMALL, progress=progress)
    with Image.open(file) as read:
        pictures = [one.convert("RGB") for one in ImageSequence.Iterator(read)]
    assert len(pictures) == 21 == told[-1][0] == told[-1][1]
    assert {one.size for one in pictures} == {SMALL}
    assert all(len(colors(one)) > 30 for one in pictures)
    first, last = (np.asarray(pictures[k], dtype=int) for k in (0, -1))
    assert np.abs(first - last).max() > 50


@pytest.mark.parametrize(
    ("suffix", "mean", "largest"), [("png", 0, 0), ("webp", 2, 120), ("gif", 0.2, 70)]
)
def test_a_film_shows_what_is_painted_at_the_right_times(suffix, mean, largest, short, tmp_path):
    file = film.write(short, tmp_path / f"film.{suffix}", size=SMALL, speed=3.0)
    painter = Painter(short, SMALL)
    painted = [painter.picture(int(k)) for k in film.rows(short.times, 10.0)]
    durations = []
    with Image.open(file) as read:
        for k, wanted in enumerate(painted):
            read.seek(k)
            apart = np.abs(np.asarray(read.convert("RGB"), int) - np.asarray(wanted, int))
            assert apart.mean() <= mean and apart.max() <= largest
            durations.append(read.info["duration"])
    assert sum(durations) == 700 and {30, 33, 34, 40}.issuperset(durations)


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_long_film_holds_few_pictures(suffix):
    """The number of pictures and parts of them in memory does not grow."""
    counts = []

    def pictures():
        for k in range(60):
            if k % 29 == 1:
                counts.append(sum(isinstance(one, Image.Image) for one in gc.get_objects()))
            yield Image.new("RGB", SMALL, (k, 0, 0))

    WRITERS[suffix](io.BytesIO(), pictures(), Film(SMALL, 30.0, 60))
    assert len(counts) == 3 and counts[2] - counts[1] <= 3


def test_a_picture_of_a_long_run_takes_no_longer():
    """Its path has few pieces, however many frames and laps there are."""
    angle = np.linspace(0, 400 * np.pi, 100_001)
    path = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(len(angle))])
    once, often = painter._thinned(path[:501], 0.004), painter._thinned(path, 0.004)
    assert len(once) == 501 and 1990 < len(often) <= painter.MOST_PIECES + 1
    np.testing.assert_array_equal(often[[0, -1]], path[[0, -1]])


@pytest.mark.parametrize("suffix", ["webp", "mp4"])
def test_an_interrupted_film_leaves_no_file(suffix, short, tmp_path):
    if suffix == "mp4":
        pytest.importorskip("imageio_ffmpeg", reason="needs ffmpeg: pip install -e '.[film]'")
    file = tmp_path / f"film.{suffix}"
    file.write_bytes(b"older")

    def interrupted(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film.write(short, file, size=SMALL, progress=interrupted)
    assert list(tmp_path.iterdir()) == [file] and file.read_bytes() == b"older"


def test_an_mp4_is_of_ffmpeg(short, tmp_path):
    try:
        program = film.ffmpeg()
    except RuntimeError:
        pytest.skip("needs ffmpeg: pip install -e '.[film]'")
    import subprocess

    file = film.write(short, tmp_path / "film.mp4", rate_hz=10.0, size=SMALL, speed=2.0)
    command = [program, "-v", "error", "-i", file, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    pictures = np.frombuffer(raw, dtype="u1").reshape(-1, SMALL[1], SMALL[0], 3)
    assert len(pictures) == 11 and all(np.ptp(one) > 100 for one in pictures)


def test_without_ffmpeg_the_message_says_what_to_install(short, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    with pytest.raises(RuntimeError, match=r"pip install nh_control\[film\]"):
        film.write(short, tmp_path / "film.mp4")
    assert not (tmp_path / "film.mp4").exists()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("film.avi", {}, "expected .mp4, .webp"),
        ("film.gif", {"size": (161, 90)}, "even and >= 16"),
        ("film.gif", {"rate_hz": 0.0}, "rate_hz must be positive"),
        ("film.gif", {"speed": float("nan")}, "speed must be positive"),
    ],
)
def test_what_is_no_film_is_refused(short, name, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        film.write(short, tmp_path / name, **options)


def test_pictures_show_the_nearest_times():
    times = np.array([0.0, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(film.rows(times, 20.0), [0, 1, 1, 2, 2, 3, 3][:7])
    np.testing.assert_array_equal(film.rows(times, 10.0), [0, 1, 2, 3])
    np.testing.assert_array_equal(film.rows(np.zeros(1), 10.0), [0])


def test_a_point_is_painted_where_the_camera_sees_it():
    camera = Camera(np.array([0.0, -5.0, 0.0]), np.zeros(3), (200, 100))
    pixels, depth = camera.see(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]))
    np.testing.assert_allclose(pixels[0], [100, 50])
    scale = 50 / np.tan(0.35) / 5
    np.testing.assert_allclose(pixels[1], [100 + scale, 50 - scale])
    np.testing.assert_allclose(depth, 5)


@pytest.mark.parametrize("name", nh.scenarios.built_in())
def test_a_picture_of_every_scenario_is_not_blank(name):
    shown, _ = animation(name, frames=11)
    picture = Painter(shown, (320, 180)).picture(5)
    pixels = np.asarray(picture, dtype=int)
    assert (np.abs(pixels - SKY).max(axis=2) > 60).mean() > 0.002
    assert len(colors(picture)) > 50


def test_an_own_system_is_a_film_in_one_line(tmp_path):
    with Image.open(pendulum().film(tmp_path / "own.webp", size=SMALL, rate_hz=5.0)) as read:
        assert read.n_frames == 11


def test_a_body_that_is_small_in_its_motion_is_followed(short):
    run = short.run
    far = replace(run, position=run.position + np.linspace(0, 100, 61)[:, None, None] * [1, 0, 0])
    shown = replace(short, run=far, reference=None)
    pictures = [Painter(shown, SMALL).picture(k) for k in (5, 55)]
    painted = [(np.abs(np.asarray(p, dtype=int) - SKY).max(axis=2) > 60).mean() for p in pictures]
    assert min(painted) > 0.01


def test_arrows_shine_through_bodies(short):
    """Such as the force of the ground within a wheel; the body is seen, too."""
    box = Shape("box", (0.4, 0.4, 0.4), (1.0, 0.0, 0.0), "cart")
    arrow = Arrow("force", "cart", 1.0)
    visual = replace(short.visual, shapes=(box,), arrows=(arrow,))
    shown = [
        replace(short, visual=visual, reference=None, arrows=np.full((61, 1), length))
        for length in (0.0, 0.15)
    ]
    painters = [Painter(one, SMALL) for one in shown]
    at = short.run.track("cart")[5] + [0.0, 0.0, 0.1]
    across, down = painters[0]._camera.see(at)[0].astype(int) // 2
    before, within = (np.asarray(one.picture(5), int)[down, across] for one in painters)
    assert before[1] < 0.3 * before[0] and within[1] > before[1] + 20
    assert 0.3 * before[0] < within[0] < 0.8 * before[0]


def test_shapes_without_extent_and_surface_are_no_trouble(short):
    point = Mesh(np.zeros((4, 3)), np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]))
    shape = Shape("mesh", (1e-9, 1e-9, 1e-9), (1.0, 0.0, 0.0), "cart", mesh=point)
    shown = replace(short, visual=replace(short.visual, shapes=(*short.visual.shapes, shape)))
    np.testing.assert_array_equal(
        *(np.asarray(Painter(one, SMALL).picture(5)) for one in (shown, short))
    )
