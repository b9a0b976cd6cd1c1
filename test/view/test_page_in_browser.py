"""Pages in headless Chromium: they draw, ask for nothing, and do what their controls say."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from motions import animation, pendulum, written

import nh_control as nh
from nh_control.view import page as pages
from nh_control.view.sources import of_trajectory

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright: pip install -e '.[browser-test]'"
)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]
DRAWING = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")


@pytest.fixture(scope="module")
def chromium():
    """Opens files; `opened(file)` is a page that is drawn, with what it said and asked for."""
    with playwright.sync_playwright() as driver:
        browsers = {}

        def opened(file, fragment="", size=(900, 420), drawing=True):
            if drawing not in browsers:
                flags = DRAWING if drawing else ("--disable-3d-apis",)
                browsers[drawing] = driver.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox", *flags]
                )
            page = browsers[drawing].new_page(viewport=dict(zip(("width", "height"), size)))
            page.said, page.asked = [], []
            page.on("console", lambda m: page.said.append(m.text) if m.type == "error" else None)
            page.on("pageerror", lambda error: page.said.append(str(error)))
            page.on("request", lambda request: page.asked.append(request.url))
            page.goto(file.as_uri() + fragment)
            for _ in range(100):
                if page.evaluate("() => window.page !== undefined"):
                    break
                page.wait_for_timeout(50)
            settle(page)
            return page

        yield opened
        for browser in browsers.values():
            browser.close()


def settle(page):
    """Wait for two pictures, so that what was asked for is drawn."""
    page.evaluate(
        "() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))"
    )


def now(page):
    return page.evaluate("() => window.page.timeline.now")


def seek(page, time):
    page.evaluate("(t) => window.page.timeline.seek(t)", time)
    settle(page)


def scene(page):
    """The scene's pixels (height, width, 3)."""
    import base64
    import io

    from PIL import Image

    url = page.evaluate("() => document.getElementById('scene').toDataURL()")
    image = Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))
    return np.asarray(image.convert("RGB"), dtype=int)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return written(
        pages.page(animation("cart_pole", frames=201)[0]), tmp_path_factory.mktemp("page")
    )


def quiet(page, file):
    """Whether nothing went wrong and nothing came from elsewhere."""
    local = (file.as_uri(), "data:", "blob:")
    return page.said == [] and all(url.startswith(local) for url in page.asked)


def test_a_page_draws_and_seeks(chromium, file):
    page = chromium(file, "#t=5")
    assert quiet(page, file) and now(page) == pytest.approx(5)
    before = scene(page)
    assert np.unique(before.reshape(-1, 3), axis=0).shape[0] > 200
    seek(page, 9)
    assert np.abs(scene(page) - before).max() > 50
    seek(page, 5)
    np.testing.assert_array_equal(scene(page), before)
    page.close()


def test_points_are_drawn_where_the_camera_projects_them(chromium, file):
    """The ball at the end of the pole, which is orange, at three times."""
    page = chromium(file, "#t=0")
    page.keyboard.press("t")
    page.keyboard.press("r")
    for time in (1.0, 6.0, 13.0):
        seek(page, time)
        x, y = page.evaluate(
            """() => { const { scene, timeline, data } = window.page;
            const i = data.frames.indexOf("pole_end");
            return scene.renderer.project(scene.pose(data.run, i, timeline.now).slice(0, 3)); }"""
        )
        red, green, blue = scene(page)[int(y), int(x)]
        assert red > 1.3 * green > 1.3 * blue
    page.close()


def test_clicks_keys_and_the_timeline_set_the_time(chromium, file):
    page = chromium(file, "#t=0")
    plot = page.locator("figure canvas").first
    box = plot.bounding_box()
    page.mouse.click(box["x"] + 52 + (box["width"] - 70) / 2, box["y"] + 30)
    assert now(page) == pytest.approx(10, abs=0.1)
    page.keyboard.press("ArrowRight")
    assert now(page) > 10
    page.keyboard.press("End")
    assert now(page) == pytest.approx(20)
    page.keyboard.press("Home")
    assert now(page) == 0
    page.keyboard.press(" ")
    for _ in range(100):
        if now(page) > 0:
            break
        page.wait_for_timeout(50)
    assert now(page) > 0 and page.locator("#play").inner_text() == "Pause"
    page.keyboard.press(" ")
    page.locator("figure button.name").first.click()
    assert page.locator("figure button.name").first.get_attribute("aria-pressed") == "false"
    assert quiet(page, file)
    page.close()


def test_a_link_keeps_time_and_camera(chromium, file):
    page = chromium(file, "#t=3")
    page.mouse.move(300, 200)
    page.mouse.down()
    page.mouse.move(380, 230, steps=3)
    page.mouse.up()
    for _ in range(100):
        fragment = page.evaluate("() => location.hash")
        if "camera" in fragment and page.evaluate("() => !window.page.timeline.dirty"):
            break
        page.wait_for_timeout(100)
    page.wait_for_timeout(500)
    fragment = page.evaluate("() => location.hash")
    camera = page.evaluate("() => window.page.scene.camera")
    page.close()
    again = chromium(file, fragment)
    assert now(again) == pytest.approx(3)
    other = again.evaluate("() => window.page.scene.camera")
    assert other["yaw"] == pytest.approx(camera["yaw"], abs=1e-3)
    assert other["distance"] == pytest.approx(camera["distance"], rel=1e-3)
    again.close()


@pytest.mark.parametrize(
    ("button", "name", "begin"),
    [("#picture", "scene.png", b"\x89PNG"), ("#film", "scene.webm", b"\x1a\x45\xdf\xa3")],
)
def test_buttons_save_the_scene_and_the_whole_motion(chromium, tmp_path, button, name, begin):
    page = chromium(written(pages.page(of_trajectory(pendulum())), tmp_path), "#t=1")
    with page.expect_download() as saved:
        page.locator(button).click()
    assert saved.value.suggested_filename == name
    assert Path(saved.value.path()).read_bytes()[:4] == begin
    page.close()


def test_a_run_is_chosen_and_the_link_keeps_it(chromium, tmp_path):
    runs = {name: animation(name, frames=51)[0] for name in ("cart_pole", "snakeboard")}
    page = chromium(written(pages.page_of_runs(runs), tmp_path), "#t=5")
    assert page.inner_text("h1").startswith("cart_pole")
    with page.expect_navigation():
        page.select_option("#runs", label="snakeboard")
    page.wait_for_function("() => window.page !== undefined")
    settle(page)
    assert page.inner_text("h1").startswith("snakeboard") and now(page) == pytest.approx(5)
    assert "run=1" in page.url and page.said == []
    page.close()


def test_without_webgl_there_is_a_message_and_plots(chromium, file):
    page = chromium(file, "#t=3", drawing=False)
    assert "WebGL 2" in page.locator("#message").inner_text()
    page.keyboard.press("ArrowRight")
    assert now(page) > 3 and page.locator("#picture").is_disabled()
    page.close()


def test_a_narrow_screen_shows_everything(chromium, file):
    page = chromium(file, "#t=3", size=(380, 700))
    for name in ("#scene", "#plots", "#time", "#play", "#speed"):
        box = page.locator(name).bounding_box()
        assert box["width"] > 30 and box["height"] > 10
        assert box["x"] >= 0 and box["x"] + box["width"] <= 380
        assert box["y"] + box["height"] <= 700
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 380
    page.close()


@pytest.mark.parametrize("name", nh.scenarios.built_in())
def test_every_scenario_opens(chromium, name, tmp_path):
    file = written(pages.page(animation(name, frames=41)[0]), tmp_path)
    page = chromium(file, "#t=7")
    assert quiet(page, file)
    assert np.unique(scene(page).reshape(-1, 3), axis=0).shape[0] > 150
    page.close()
