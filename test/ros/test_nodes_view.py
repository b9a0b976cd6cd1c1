"""The view beside a plant and a tracker: what a browser gets is what the plant publishes, and what
it asks for is done or refused.
"""

import asyncio
import json
import re
from contextlib import asynccontextmanager

import numpy as np
import pytest
from probe import time_ns

from nh_control import scenarios

aiohttp = pytest.importorskip("aiohttp", reason="needs aiohttp: pip install -e '.[view]'")

FRAMES = 20


class Browser:
    """A browser with the page of a view; its methods run within `asyncio.run`."""

    def __init__(self, nodes, probe, given):
        self.node = nodes.start("view", given)
        probe.wait(lambda: "is shown at" in self.node.log, "the view")
        self.address = re.search(r"http://\S+", self.node.log)[0]
        self.origin = self.address.partition("/?")[0]

    @asynccontextmanager
    async def session(self):
        jar = aiohttp.CookieJar(unsafe=True)  # cookies of a host without a name
        given = {"cookie_jar": jar, "headers": {"Origin": self.origin}}
        async with aiohttp.ClientSession(**given) as session:
            yield session, await (await session.get(self.address)).text()

    async def until(self, session, found):
        """Look at what is sent until a function of it finds something, and return that."""
        async with session.ws_connect(f"{self.origin}/states") as stream:
            while True:
                if result := found(json.loads((await stream.receive(120)).data)):
                    return result

    def ask(self, *requests):
        """(done, message) of requests, (name, what else they say)."""

        async def ask():
            async with self.session() as (session, _):
                for name, more in requests:
                    asked = json.dumps({"name": name, **more})
                    async with session.post(f"{self.origin}/requests", data=asked) as answer:
                        yield await answer.json()

        async def answers():
            return [(answer["done"], answer["message"]) async for answer in ask()]

        return asyncio.run(answers())


@pytest.mark.slow
def test_a_browser_sees_what_the_plant_publishes_with_the_forces_of_its_contacts(nodes, probe):
    given = {"scenario": "wet_snakeboard"}
    browser, data, frames = Browser(nodes, probe, given), {}, {}

    def seen(message):
        """Whether frames with forces have come that are known to have been published."""
        if frame := message.get("frame"):
            frames[round(frame["time"], 6)] = frame
        return sum(all(frame["arrowLengths"][-2:]) for frame in frames.values()) >= FRAMES

    async def look():
        async with browser.session() as (session, page):
            data.update(json.loads(page.partition('id="data">')[2].partition("</script>")[0]))
            nodes.start("plant", given | {"wait_for": ["view", "probe"], "on_finish": "continue"})
            nodes.start("tracker", given)
            await browser.until(session, seen)

    asyncio.run(look())
    there = lambda: probe.odometry and time_ns(probe.odometry[-1]) >= max(frames) * 1e9
    probe.wait(there, "what the page has")
    scenario = scenarios.get("wet_snakeboard")
    visual = scenario.visual_model()
    joints, bodies = (
        {round(time_ns(message) / 1e9, 6): message for message in heard}
        for heard in (probe.joint_states, probe.odometry)
    )
    common = frames.keys() & joints.keys() & bodies.keys()
    assert len(common) >= FRAMES - 5  # others came before the probe was heard
    for time_s in common:
        place, turn = bodies[time_s].pose.pose.position, bodies[time_s].pose.pose.orientation
        q = np.array(
            [*joints[time_s].position[:2], 2 * np.arctan2(turn.z, turn.w), place.x, place.y]
        )
        poses = visual.poses(scenario.parameters, q)
        numbers = np.array(frames[time_s]["run"]).reshape(-1, 7)
        shown = {name: row[:3] for name, row in zip(data["frames"], numbers) if name in poses}
        expected = [poses[name].position for name in shown]
        np.testing.assert_allclose(list(shown.values()), expected, atol=1e-9)
        assert len(shown) == len(poses)  # beside them are frames of contacts
    assert browser.node.end() == 0


@pytest.mark.slow
def test_a_page_s_requests_do_what_plant_and_tracker_allow(nodes, probe):
    given = {"scenario": "quadrotor_payload", "reference": "hover", "on_finish": "continue"}
    browser = Browser(nodes, probe, given)
    # where the tracker is late the payload stays in the air
    plant = {"wait_for": ["view"], "wrench.targets": ["payload"], "fallback": "tracker"}
    nodes.start("plant", given | plant)
    nodes.start("tracker", given)
    probe.wait_mode("running")
    probe.wait(lambda: "goals_accepted" in probe.values("tracker"), "the tracker")
    bounds, names = {}, set()

    def heard(message):
        bounds.update(message["status"].get("bounds", {}))
        names.update(name for name, *_ in message["status"].get("nodes", ()))
        return bounds and "tracker" in names

    async def look():
        async with browser.session() as (session, _):
            await browser.until(session, heard)

    asyncio.run(look())
    far, near = {"position": [1e6, 0.0, 1.0]}, {"position": [0.5, 0.2, 1.2]}
    refused, accepted = browser.ask(("goal", far), ("goal", near))
    assert not refused[0] and "refused" in refused[1]
    assert accepted == (True, "goal accepted")
    pulled, speed, fault = browser.ask(
        ("pull", {"target": "payload", "force": [9.0, 0.0, 0.0]}),
        ("change", {"parameter": "speed_factor", "value": "0.9"}),
        ("change", {"parameter": "fault", "value": "magic=1"}),
    )
    assert pulled == (True, "payload: 4 N")
    probe.wait_value("wrenches_accepted", "1")
    assert speed == (True, "speed_factor is 0.9")
    assert not fault[0] and "magic" in fault[1]
    running, paused, step, wrong = browser.ask(
        ("step", {}), ("pause", {"on": True}), ("step", {}), ("arm", {"on": True})
    )
    assert not running[0] and "pause" in running[1]
    assert paused[0] and paused[1].startswith("paused at step ")
    assert step == (True, f"paused at step {int(paused[1].split()[-1]) + 1}")
    assert wrong == (False, "nobody here takes the request arm")
    probe.wait_mode("paused")
    ((reset, said),) = browser.ask(("reset", {}))
    assert reset and said.endswith("at step 0")


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_a_plant_of_another_scenario_is_followed_at_the_same_address(nodes, probe):
    """A browser that comes back with its cookie gets the other scenario's page."""
    given = {"wait_for_tracker": False, "on_finish": "continue"}
    # options of the first scenario that the second one does not have
    first = {"scenario": "quadrotor_payload", "reference": "hover", "step_s": 0.02}
    browser = Browser(nodes, probe, first)
    plant = nodes.start("plant", {"scenario": "quadrotor_payload", **given})
    probe.wait(lambda: probe.bodies, "states")

    async def look():
        async with browser.session() as (session, page):
            assert "quad1" in page
            plant.kill()
            nodes.start("plant", {"scenario": "car", **given})
            told = lambda: "car is shown at" in browser.node.log
            await asyncio.to_thread(probe.wait, told, "the other scenario")
            assert "quad1" not in await (await session.get(f"{browser.origin}/")).text()
            return await browser.until(
                session,
                lambda message: "frame" in message and message["status"].get("scenario"),
            )

    assert asyncio.run(look()) == "car"
    assert browser.node.log.count(browser.address) == 2
    assert browser.node.end() == 0
