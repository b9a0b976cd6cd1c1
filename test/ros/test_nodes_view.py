"""What a browser asks of the view beside a plant and a tracker."""

import asyncio
import json
import re
from contextlib import asynccontextmanager

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="needs aiohttp: pip install -e '.[view]'")


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
    assert wrong == (False, "the request arm is not available here")
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
                session, lambda message: "frame" in message and message["status"].get("scenario")
            )

    assert asyncio.run(look()) == "car"
    assert browser.node.log.count(browser.address) == 2
    assert browser.node.end() == 0
