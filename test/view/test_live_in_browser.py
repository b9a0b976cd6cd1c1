"""A live page in headless Chromium: it follows, keeps what was, and says how the plant is."""

import json
import shutil

import numpy as np
import pytest
from test_page_in_browser import DRAWING, now, scene, seek, settle

import nh_control as nh
from nh_control.view.live import LiveMotion
from nh_control.view.live_page import Offers, live_page
from nh_control.view.live_requests import Asked
from nh_control.view.live_server import Answer, LiveServer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs Playwright: pip install -e '.[browser-test]'"
)
pytest.importorskip("aiohttp", reason="needs aiohttp: pip install -e '.[view]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]
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


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *DRAWING])
        yield browser
        browser.close()


class Live:
    """A server with a page in a browser; `give(t, x)` sends the cart's state at a time."""

    def __init__(self, browser, motion):
        self.motion, self.asked = motion, []
        self.server = LiveServer(live_page(motion.animation, OFFERS), self.answer)
        self.page = browser.new_context(viewport={"width": 900, "height": 500}).new_page()
        self.page.said, self.page.asked = [], []
        self.page.on("pageerror", lambda error: self.page.said.append(str(error)))
        self.page.on("request", lambda request: self.page.asked.append(request.url))
        self.page.on(
            "console", lambda m: self.page.said.append(m.text) if m.type == "error" else None
        )
        self.page.goto(self.server.address)
        made = "() => window.page?.live !== undefined"
        self.until("connected", lambda: self.page.evaluate(made) and self.server.browsers == 1)

    def until(self, what, condition):
        for _ in range(600):
            if condition():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"not {what}: {self.page.said}")

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
def live(chromium, motion):
    shown = Live(chromium, motion)
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
    assert live.asked == [Asked("pause", on=True), Asked("step"), Asked("goal", False, position)]
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
