"""The view beside a plant and a tracker: what a browser gets is what the plant publishes."""

import asyncio
import json
import re

import numpy as np
import pytest

FRAMES = 20


def opened(nodes, probe, given):
    """A view, the address of its page, and the origin of that."""
    pytest.importorskip("aiohttp", reason="needs aiohttp: pip install -e '.[view]'")
    shown = nodes.start("view", given)
    probe.wait(lambda: "is shown at" in shown.log, "the view")
    address = re.search(r"http://\S+", shown.log)[0]
    return shown, address, address.partition("/?")[0]


def browser(origin):
    """A session as of a browser on a page."""
    import aiohttp

    jar = aiohttp.CookieJar(unsafe=True)  # cookies of a host without a name
    return aiohttp.ClientSession(cookie_jar=jar, headers={"Origin": origin})


@pytest.mark.slow
def test_a_browser_sees_what_the_plant_publishes(nodes, probe):
    from nh_control import scenarios

    given = {"scenario": "cart_pole"}
    shown, address, origin = opened(nodes, probe, given)
    data, frames = {}, []

    async def look():
        async with browser(origin) as session:
            page = await (await session.get(address)).text()
            data.update(json.loads(page.partition('id="data">')[2].partition("</script>")[0]))
            async with session.ws_connect(f"{origin}/states") as stream:
                nodes.start("plant", given | {"wait_for": ["view", "probe"], "duration_s": 60.0})
                nodes.start("tracker", given)
                while len({frame["time"] for frame in frames}) < FRAMES:
                    await asyncio.to_thread(probe.wait, lambda: probe.joint_states, "states")
                    message = json.loads((await stream.receive(120)).data)
                    frames.extend([message["frame"]] if "frame" in message else [])

    asyncio.run(look())
    probe.wait(lambda: _time(probe.joint_states[-1]) >= frames[-1]["time"], "what the page has")
    published = {
        round(_time(message), 6): dict(zip(message.name, message.position))
        for message in probe.joint_states
    }
    scenario = scenarios.get("cart_pole")
    visual, space = scenario.visual_model(), scenario.make_system(scenario.parameters).space
    joints = {joint.coordinate: joint for joint in scenario.joints}
    compared = 0
    for frame in frames:
        angles = published.get(round(frame["time"], 6))
        if angles is None:
            continue  # before the probe was heard
        q = np.array([joints[name].sign * angles[joints[name].name] for name in space.names])
        poses = visual.poses(scenario.parameters, q)
        expected = [poses[name].position for name in data["frames"]]
        numbers = np.array(frame["run"]).reshape(-1, 7)
        np.testing.assert_allclose(numbers[:, :3], expected, atol=1e-9)
        compared += 1
    assert compared >= FRAMES - 5
    assert shown.end() == 0


@pytest.mark.slow
def test_a_browser_sees_the_forces_of_contacts(nodes, probe):
    given = {"scenario": "wet_snakeboard"}
    shown, address, origin = opened(nodes, probe, given)

    async def look():
        async with browser(origin) as session:
            await (await session.get(address)).text()
            async with session.ws_connect(f"{origin}/states") as stream:
                plant = nodes.start("plant", given | {"wait_for": ["view"]})
                nodes.start("tracker", given)
                while plant.process.poll() is None:
                    message = json.loads((await stream.receive(120)).data)
                    lengths = message.get("frame", {}).get("arrowLengths", [])[-2:]
                    if lengths and all(lengths):
                        return lengths
        raise AssertionError("the plant has ended")

    assert min(asyncio.run(look())) > 0
    assert shown.end() == 0


@pytest.mark.slow
def test_a_page_s_requests_do_what_plant_and_tracker_allow(nodes, probe):
    given = {"scenario": "quadrotor_payload", "reference": "hover", "on_finish": "continue"}
    _, address, origin = opened(nodes, probe, given)
    # where the tracker is late the payload stays in the air
    plant = {"wait_for": ["view"], "wrench.targets": ["payload"], "fallback": "tracker"}
    nodes.start("plant", given | plant)
    nodes.start("tracker", given)
    probe.wait_mode("running")
    probe.wait(lambda: "goals_accepted" in probe.values("tracker"), "the tracker")

    async def heard():
        """Wait until the view has heard plant and tracker, too."""
        async with browser(origin) as session:
            await (await session.get(address)).text()
            async with session.ws_connect(f"{origin}/states") as stream:
                bounds, names = {}, set()
                while not bounds or "tracker" not in names:
                    status = json.loads((await stream.receive(120)).data)["status"]
                    bounds = status.get("bounds", bounds)
                    names |= {name for name, *_ in status.get("nodes", ())}

    async def ask(*requests):
        async with browser(origin) as session:
            await (await session.get(address)).text()
            answers = []
            for name, more in requests:
                asked = json.dumps({"name": name, **more})
                async with session.post(f"{origin}/requests", data=asked) as answer:
                    answers.append(await answer.json())
        return [(answer["done"], answer["message"]) for answer in answers]

    def asked(*requests):
        return asyncio.run(ask(*requests))

    asyncio.run(heard())
    far, near = {"position": [1e6, 0.0, 1.0]}, {"position": [0.5, 0.2, 1.2]}
    (refused, accepted) = asked(("goal", far), ("goal", near))
    assert not refused[0] and "refused" in refused[1]
    assert accepted == (True, "goal accepted")
    pulled, speed, fault = asked(
        ("pull", {"target": "payload", "force": [9.0, 0.0, 0.0]}),
        ("change", {"parameter": "speed_factor", "value": "0.9"}),
        ("change", {"parameter": "fault", "value": "magic=1"}),
    )
    assert pulled == (True, "payload: 4 N")
    probe.wait(lambda: probe.values("plant").get("wrenches_accepted") == "1", "the wrench")
    assert speed == (True, "speed_factor is 0.9")
    assert not fault[0] and "magic" in fault[1]
    running, paused, step, wrong = asked(
        ("step", {}), ("pause", {"on": True}), ("step", {}), ("arm", {"on": True})
    )
    assert not running[0] and "pause" in running[1]
    assert paused[0] and paused[1].startswith("paused at step ")
    at = int(paused[1].split()[-1])
    assert step == (True, f"paused at step {at + 1}")
    assert wrong == (False, "nobody here takes the request arm")
    probe.wait_mode("paused")
    ((reset, said),) = asked(("reset", {}))
    assert reset and said.endswith("at step 0")


def _time(message):
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_a_plant_of_another_scenario_is_followed_at_the_same_address(nodes, probe):
    """A browser that comes back with its cookie gets the other scenario's page."""
    pytest.importorskip("aiohttp", reason="needs aiohttp: pip install -e '.[view]'")
    given = {"wait_for_tracker": False, "on_finish": "continue"}
    # options of the first scenario that the second one does not have
    shown = nodes.start(
        "view", {"scenario": "quadrotor_payload", "reference": "hover", "step_s": 0.02}
    )
    probe.wait(lambda: "is shown at" in shown.log, "the view")
    first = nodes.start("plant", {"scenario": "quadrotor_payload", **given})
    probe.wait(lambda: probe.bodies, "states")
    address = re.search(r"http://\S+", shown.log)[0]
    origin = address.partition("/?")[0]

    async def page(session, where):
        return await (await session.get(where)).text()

    async def look():
        async with browser(origin) as session:
            assert "quad1" in await page(session, address)
            first.kill()
            nodes.start("plant", {"scenario": "car", **given})
            told = "car is shown at"
            await asyncio.to_thread(probe.wait, lambda: told in shown.log, "the other scenario")
            assert "quad1" not in await page(session, f"{origin}/")
            async with session.ws_connect(f"{origin}/states") as stream:
                while True:
                    message = json.loads((await stream.receive(120)).data)
                    if "frame" in message and "scenario" in message["status"]:
                        return message["status"]["scenario"]

    assert asyncio.run(look()) == "car"
    assert shown.log.count(address) == 2
    assert shown.end() == 0
