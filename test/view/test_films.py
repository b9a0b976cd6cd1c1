"""Films: the right number of pictures, which decode and show the motion."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from motions import animation, pendulum
from PIL import Image, ImageSequence

import nh_control as nh
from nh_control.scenarios.visual_model import Arrow, Mesh, Shape
from nh_control.view import film
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
        ("film.avi", {}, "a film is .mp4, .webp"),
        ("film.gif", {"size": (161, 90)}, "even and at least 16"),
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
