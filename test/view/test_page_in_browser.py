"""Pages in headless Chromium: they draw, ask for nothing, and do what their controls say."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from motions import animation, pendulum, written

import nh_control as nh
from nh_control.view import page as pages
from nh_control.view.live import LiveMotion
from nh_control.view.live_page import Offers, live_page
from nh_control.view.live_requests import ViewRequest
from nh_control.view.live_server import Answer, LiveServer
from nh_control.view.sources import of_trajectory

pytest.importorskip("aiohttp", reason="needs aiohttp: pip install -e '.[view]'")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright: pip install -e '.[browser-test]'"
)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]
DRAWING = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")


@pytest.fixture(scope="module")
def browsers():
    """Return f(drawing) -> a browser, with or without WebGL."""
    with playwright.sync_playwright() as driver:
        launched = {}

        def browser(drawing=True):
            if drawing not in launched:
                flags = ["--no-sandbox", *(DRAWING if drawing else ("--disable-3d-apis",))]
                launched[drawing] = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
            return launched[drawing]

        yield browser
        for one in launched.values():
            one.close()


def watched(page):
    """A page that keeps what it `said` of errors and what it `asked` for."""
    page.said, page.asked = [], []
    page.on("console", lambda m: page.said.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    return page


@pytest.fixture
def chromium(browsers):
    """Opens files: f(file, ...) -> a page that is drawn."""

    def opened(file, fragment="", size=(900, 420), drawing=True):
        viewport = dict(zip(("width", "height"), size))
        page = watched(browsers(drawing).new_page(viewport=viewport))
        page.goto(file.as_uri() + fragment)
        until(page, "() => window.page !== undefined")
        settle(page)
        return page

    return opened


def until(page, condition):
    """Wait for a condition in JavaScript. Playwright's `wait_for_function` would poll by `eval`,
    which the pages' security policy refuses from the second poll on.
    """
    wait(page, condition, lambda: page.evaluate(condition), polls=200)


def wait(page, what, condition, polls=600):
    """Wait until a condition holds, which `what` names, with 50 ms between polls."""
    for _ in range(polls):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not {what}: {page.said}")


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
    until(page, "() => window.page.timeline.now > 0")
    assert page.locator("#play").inner_text() == "Pause"
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
    until(page, "() => location.hash.includes('camera') && !window.page.timeline.dirty")
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
    with page.expect_event("load"):  # the address changes first, which also is a navigation
        page.select_option("#runs", label="snakeboard")
    until(page, "() => window.page !== undefined")
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


# Live pages --------------------------------------------------------------------------------------

OFFERS = Offers(
    {"Stop": {"name": "pause", "on": True}, "Step": {"name": "step"}},
    ("speed_factor", "fault"),
    ("pole_end",),
    goals=True,
)
RUNNING = {"state": "running", "silent": 0.0, "factor": 0.5}


@pytest.fixture(scope="module")
def motion():
    scenario = nh.scenarios.get("cart_pole")
    dsys = scenario.model()
    return LiveMotion(scenario, dsys, scenario.reference(dsys))


class Live:
    """A server with a page in a browser; `give(t, x)` sends the cart's state at a time."""

    def __init__(self, browser, motion):
        self.motion, self.asked = motion, []
        self.server = LiveServer(live_page(motion.animation, OFFERS), self.answer)
        view = {"width": 900, "height": 500}
        self.page = watched(browser.new_context(viewport=view).new_page())
        self.page.goto(self.server.address)
        made = "() => window.page?.live !== undefined"
        self.until("connected", lambda: self.page.evaluate(made) and self.server.browsers == 1)

    def until(self, what, condition):
        wait(self.page, what, condition)

    def answer(self, request):
        self.asked.append(request)
        return Answer(request.name != "step", f"{request.name} <b>it")

    def give(self, time, x, status=RUNNING):
        q, v = np.array([x, np.pi]), np.zeros(2)
        frame = self.motion.frame(time, q, v, np.array([0.3, np.pi]), {"cart_force": 1.0})
        self.server.send(json.dumps({"status": status, "frame": frame}))
        self.until("shown", lambda: self.page.evaluate("() => page.live.last") == time)
        settle(self.page)

    @property
    def said(self):
        return self.page.inner_text("#plant")

    def times(self):
        return self.page.evaluate("() => [...page.data.times]")

    def position(self, name):
        return self.page.evaluate(
            """(name) => page.scene.pose(page.data.run, page.data.frames.indexOf(name),
                page.timeline.now).slice(0, 3)""",
            name,
        )


@pytest.fixture
def live(browsers, motion):
    shown = Live(browsers(), motion)
    yield shown
    shown.page.context.close()
    shown.server.close()


def test_the_scene_follows_and_plots_extend(live, motion):
    live.give(0.0, 0.0)
    before, visual = scene(live.page), motion.animation.visual
    frame = visual.shapes[0].frame
    for k in range(1, 5):
        live.give(0.5 * k, 0.2 * k)
    assert live.times() == [0.0, 0.5, 1.0, 1.5, 2.0] and now(live.page) == 2.0
    parameters = nh.scenarios.get("cart_pole").parameters
    expected = visual.poses(parameters, np.array([0.8, np.pi]))[frame].position
    np.testing.assert_allclose(live.position(frame), expected, atol=1e-6)
    assert (np.abs(scene(live.page) - before).sum(axis=2) > 30).any()
    curves = live.page.evaluate(
        "() => page.data.curves.map((c, i) => [c.label, [...page.plots.plots[i].values]])"
    )
    positions = next(values for label, values in curves if label == "configuration (m)")
    np.testing.assert_allclose(positions, [0.0, 0.2, 0.4, 0.6, 0.8], atol=1e-6)
    assert "running" in live.said and "0.50× real time" in live.said
    assert live.page.evaluate("() => page.plots.range") == [0, 2]
    origin = live.server.address.partition("/?")[0].removeprefix("http://")
    assert live.page.said == []
    assert all(url.split("/")[2] == origin for url in live.page.asked if "://" in url)


def test_what_was_can_be_looked_at_while_it_goes_on(live):
    for k in range(5):
        live.give(0.5 * k, 0.2 * k)
    seek(live.page, 0.5)
    live.give(2.5, 1.0)
    assert now(live.page) == 0.5 and live.times()[-1] == 2.5
    live.page.keyboard.press("End")
    live.give(3.0, 1.0)
    assert now(live.page) == 3.0


def test_a_reset_begins_anew_and_a_known_state_is_nothing_new(live):
    for k in range(3):
        live.give(1.0 * k, 0.2)
    live.give(2.0, 0.4)
    assert live.times() == [0.0, 1.0, 2.0]
    live.give(0.01, 0.0)
    assert live.times() == pytest.approx([0.01]) and now(live.page) == pytest.approx(0.01)


def test_the_window_rolls(live):
    rows = live.page.evaluate("""() => {
        const frame = (t) => ({ time: t, run: page.data.run.slice(0, 7 * page.data.frames.length),
          reference: page.data.reference.slice(0, 7 * page.data.frames.length), loads: [],
          arrowLengths: page.data.arrows.map(() => 0),
          curves: page.data.curves.map((c) => c.names.map(() => t)) });
        for (let k = 0; k < 5000; k++) page.live._append(frame(k / 30));
        return [page.data.times.length, page.data.times[0], page.data.times.at(-1),
          page.plots.plots[0].values[0], page.data.run.length / page.data.frames.length / 7];
    }""")
    assert rows == pytest.approx([1200, 3800 / 30, 4999 / 30, 3800 / 30, 1200], rel=1e-6)


def test_what_is_asked_for_is_answered_in_the_page(live):
    def answered(text):
        live.until(text, lambda: live.page.inner_text("#answer") == text)

    live.page.click("text=Stop")
    answered("pause <b>it")
    live.page.click("header >> text=Step")
    answered("refused: step <b>it")
    live.page.fill("#goal", " 1, -0.5 2 ")
    live.page.press("#goal", "Enter")
    answered("goal <b>it")
    position = (1.0, -0.5, 2.0)
    assert live.asked == [
        ViewRequest("pause", on=True),
        ViewRequest("step"),
        ViewRequest("goal", False, position),
    ]
    live.page.fill("#goal", "here")
    live.page.press("#goal", "Enter")
    answered("refused: goal: expected three finite numbers as position")
    assert len(live.asked) == 3
    live.server.close()
    live.page.click("text=Stop")
    answered("refused: the view does not answer")
    live.server = LiveServer("<p>")


def drag(live, mode, dx, dy, release=True):
    live.page.check(f"[name=mouse][value={mode}]")
    x, y = live.page.evaluate(
        """() => page.scene.renderer.project(page.live.place(page.data.frames.indexOf("pole_end")))
        """
    )
    live.page.mouse.move(x, y)
    live.page.mouse.down()
    live.page.mouse.move(x + dx, y + dy, steps=3)
    if release:
        live.page.mouse.up()
    return x, y


def test_a_body_is_pulled_by_the_mouse(live):
    live.give(0.0, 0.0, {**RUNNING, "nodes": [], "missed": "4", "bounds": {"pole_end": 3.0}})
    assert live.said.endswith("4 missed steps")
    camera = live.page.evaluate("() => page.scene.camera.yaw")
    drag(live, "pull", 60, 0, release=False)
    begun = len(live.asked)  # one on its way may be of a place before
    live.until("pulled", lambda: len(live.asked) > begun + 2)
    marks = live.page.evaluate("() => page.scene.marks")
    live.page.mouse.up()
    live.until("released", lambda: live.asked[-1].force == (0.0, 0.0, 0.0))
    pulls = live.asked[:-1]
    assert {one.target for one in live.asked} == {"pole_end"}
    force = np.array(max((one.force for one in pulls), key=np.linalg.norm))
    way = np.array(marks[0]["to"]) - live.position("pole_end")
    assert 0 < np.linalg.norm(force) <= 3.0 and len(marks) == 1
    assert force @ way == pytest.approx(np.linalg.norm(force) * np.linalg.norm(way), rel=1e-6)
    size = live.page.evaluate("() => page.data.view.size")
    expected = 3.0 * min(1.0, 2 * np.linalg.norm(way) / size)
    assert np.linalg.norm(force) == pytest.approx(expected, rel=1e-6)
    assert live.page.evaluate("() => page.scene.marks") == []
    assert live.page.evaluate("() => page.scene.camera.yaw") == camera and live.page.said == []


def test_a_goal_is_dragged_over_its_height_and_with_shift_up(live):
    live.page.evaluate("() => { page.scene.camera.pitch = 0.7; }")
    live.give(0.0, 0.0)
    height = live.position("pole_end")[2]
    x, y = drag(live, "goal", 40, 20)
    live.until("sent", lambda: len(live.asked) == 1)
    (goal,) = live.asked
    assert goal.name == "goal" and goal.position[2] == pytest.approx(height)
    settle(live.page)
    drawn = live.page.evaluate(
        "(at) => page.scene.renderer.project(at)", list(map(float, goal.position))
    )
    np.testing.assert_allclose(drawn, [x + 40, y + 20], atol=0.5)
    live.page.keyboard.down("Shift")
    live.page.mouse.move(x + 40, y + 20)
    live.page.mouse.down()
    live.page.mouse.move(x + 40, y - 40, steps=3)
    live.page.mouse.up()
    live.page.keyboard.up("Shift")
    live.until("sent", lambda: len(live.asked) == 2)
    upper = live.asked[1].position
    assert upper[2] > height + 0.05 and upper[:2] == pytest.approx(goal.position[:2])
    drag(live, "turn", 30, 0)
    assert len(live.asked) == 2


def test_parameters_are_changed_and_nodes_tell_how_they_are(live):
    nodes = [["plant", "warn", "3 steps <missed>"], ["tracker", "ok", "tracking"]]
    live.give(0.0, 0.0, {**RUNNING, "nodes": nodes, "bounds": {}})
    assert live.page.inner_text("#nodes").split("\n") == [
        "plant: 3 steps <missed>",
        "tracker: tracking",
    ]
    assert live.page.get_attribute("#nodes li", "class") == "warn"
    live.page.fill("[data-change=fault]", " delay=0.01 ")
    live.page.press("[data-change=fault]", "Enter")
    live.page.select_option("#speed", "0.5")
    live.until("asked", lambda: len(live.asked) == 2)
    assert [(one.parameter, one.value) for one in live.asked] == [
        ("fault", "delay=0.01"),
        ("speed_factor", "0.5"),
    ]


def test_a_plant_that_stands_still_and_a_view_that_is_gone_are_told(live):
    live.give(0.0, 0.0)
    stale = {"state": "no new states", "silent": 4.2, "factor": None}
    live.server.send(json.dumps({"status": stale}))
    live.until("told", lambda: live.said == "no new states for 4 s")
    live.until("silent", lambda: live.said.startswith("no answer for"))
    port = live.server.port
    live.server.close()
    live.server = LiveServer("another page", port=port)  # with another token
    live.page.wait_for_timeout(1500)
    assert live.said.startswith("no answer for") and live.server.browsers == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_dark_where_the_system_is(scheme, browsers, tmp_path):
    shown, _ = animation("snakeboard", frames=21)
    file = written(pages.page(shown), tmp_path)
    page = watched(browsers().new_page(color_scheme=scheme))
    page.goto(file.as_uri() + "#t=5")
    until(page, "() => window.page?.timeline.now === 5")
    page.wait_for_timeout(300)
    corners = page.evaluate(
        """() => {
      window.page.scene.draw(5);
      const { gl } = window.page.scene.renderer, out = new Uint8Array(4);
      gl.readPixels(2, gl.drawingBufferHeight - 3, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, out);
      const panel = getComputedStyle(document.getElementById("plots")).backgroundColor;
      return [out[0], Number(panel.match(/\\\\d+/)[0])];
    }""".replace("\\\\", "\\")
    )
    assert not page.said and all((level > 200) == (scheme == "light") for level in corners)
    page.close()


def test_keys_turn_the_scene_that_has_the_focus(chromium, tmp_path):
    shown, _ = animation("snakeboard", frames=21)
    page = chromium(written(pages.page(shown), tmp_path), "#t=5")
    camera = "JSON.stringify(window.page.scene.camera)"
    page.evaluate("document.body.focus()")
    before = page.evaluate(camera)
    page.focus("#scene")
    seen = {before}
    for key in ("ArrowLeft", "ArrowUp", "Shift+ArrowRight", "PageUp"):
        page.keyboard.press(key)
        seen.add(page.evaluate(camera))
    assert len(seen) == 5 and page.evaluate("window.page.timeline.now") == 5


def test_fields_stand_above_the_scene_on_phones(chromium, tmp_path):
    shown, _ = animation("snakeboard", frames=21)
    offers = Offers(buttons={"pause": {}}, changes=("fault", "disturb"), goals=True)
    file = written(live_page(shown, offers), tmp_path)
    for width, beside in ((390, True), (1000, False)):
        page = chromium(file, size=(width, 800))
        bottom = page.evaluate("document.querySelector('header').getBoundingClientRect().bottom")
        top = page.evaluate("document.getElementById('scene').getBoundingClientRect().top")
        assert (bottom <= top) == beside
