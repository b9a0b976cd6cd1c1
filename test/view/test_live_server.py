"""Who gets in at a live page's server, what it answers, and that nothing holds it up."""

import asyncio
import html
import http.client
import json
import re
import socket
import sys
import threading
import time

import numpy as np
import pytest
from motions import animation

import nh_control as nh
from nh_control.discrete.contact_forces import ContactPlaces
from nh_control.view import live_server
from nh_control.view.contacts import arrow_scale
from nh_control.view.live import LiveMotion
from nh_control.view.live_page import Offers, live_page
from nh_control.view.live_requests import FIELDS, LARGEST, RequestError, ViewRequest, parsed
from nh_control.view.live_server import Answer, LiveServer, ViewMissing

aiohttp = pytest.importorskip("aiohttp", reason="needs aiohttp: pip install -e '.[view]'")


@pytest.fixture
def served():
    """A server, `asked` of which are the requests that it was to answer; it ends."""
    asked = []

    def answer(request):
        asked.append(request)
        return Answer(request.name != "goal", f"{request.name}: why not")

    server = LiveServer("<p>the page", answer)
    server.asked = asked
    yield server
    server.close()


class Browser:
    """Asks a server as a browser that has opened its address, unless headers say otherwise."""

    def __init__(self, server):
        self.port, self.token = server.port, server.address.partition("token=")[2]
        self.origin = f"http://127.0.0.1:{server.port}"
        self.headers = {
            "Origin": self.origin,
            "Cookie": f"nh_control_view_{server.port}={self.token}",
        }

    def ask(self, method, path, body=None, **changed):
        """Status, text and headers of the answer; None leaves a header out."""
        names = {"origin": "Origin", "cookie": "Cookie", "host": "Host"}
        headers = {**self.headers, **{names[name]: value for name, value in changed.items()}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        given = {name: value for name, value in headers.items() if value is not None}
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, dict(answer.getheaders())

    def request(self, body, **changed):
        """Status and text of the answer to a request of the page."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", "/requests", body, **changed)[:2]

    def messages(self, count):
        async def listen():
            async with aiohttp.ClientSession(headers=self.headers) as session:
                url = f"{self.origin}/states"
                async with session.ws_connect(url, headers={"Origin": self.origin}) as stream:
                    return [(await stream.receive(30)).data for _ in range(count)]

        return asyncio.run(listen())


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_address_opens_the_page_and_its_token_stays_in_a_cookie(served):
    browser = Browser(served)
    assert served.address.startswith(f"http://127.0.0.1:{served.port}/?token=")
    path = f"/?token={browser.token}"
    status, _, headers = browser.ask("GET", path, origin=None, cookie=None)
    assert status == 303 and headers["Location"] == "/"
    cookie = headers["Set-Cookie"]
    assert browser.headers["Cookie"] in cookie and len(browser.token) >= 32
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    status, text, headers = browser.ask("GET", "/", origin=None)
    assert (status, text) == (200, "<p>the page")
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"


STRANGERS = {
    "no token": {"cookie": None},
    "another token": {"cookie": "nh_control_view=other"},
    "another host": {"host": "example.com"},
    "another name of this machine": {"host": "example.com", "origin": "http://example.com"},
    "another port": {"host": "127.0.0.1:1"},
    "another page": {"origin": "http://example.com"},
    "another page here": {"origin": "http://127.0.0.1:1"},
    "a file": {"origin": "null"},
}


@pytest.mark.parametrize("changed", STRANGERS.values(), ids=STRANGERS)
def test_strangers_are_refused_everywhere(served, changed):
    browser = Browser(served)
    for method, path in (("GET", "/"), ("GET", "/states"), ("GET", "/none"), ("PUT", "/")):
        assert browser.ask(method, path, **changed)[0] == 403
    assert browser.request({"name": "step"}, **changed)[0] == 403
    if "cookie" not in changed:  # not with the token in the address either
        assert browser.ask("GET", f"/?token={browser.token}", **changed)[0] == 403
    assert browser.ask("GET", "/?token=%C3%A9%00", cookie=None)[0] == 403
    for method, path in (("POST", "/requests"), ("GET", "/states")):  # which need an origin
        assert browser.ask(method, path, b'{"name": "step"}', origin=None)[0] == 403
    assert served.asked == [] and served.browsers == 0
    assert browser.ask("GET", "/")[0] == 200


def test_it_listens_on_loopback_only(served):
    assert served._listening.getsockname()[0] == "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
        try:
            outward.connect(("10.255.255.255", 1))  # sends nothing
        except OSError:
            pytest.skip("this machine has no network")
        own = outward.getsockname()[0]
    with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
        socket.create_connection((own, served.port), 5)


def test_requests_are_answered_with_the_reason_of_a_refusal(served):
    browser = Browser(served)
    assert browser.request({"name": "pause", "on": True}) == (
        200,
        '{"done": true, "message": "pause: why not"}',
    )
    status, text = browser.request({"name": "goal", "position": [1, -0.5, 2e0]})
    assert status == 200 and json.loads(text) == {"done": False, "message": "goal: why not"}
    assert served.asked == [
        ViewRequest("pause", on=True),
        ViewRequest("goal", position=(1.0, -0.5, 2.0)),
    ]


WRONG = [b"", b"\xff\xfe", b"[" * 4000, b'{"name": "step"}' + b" " * LARGEST, b" " * 10_000_000]
WRONG += [b'{"name": "goal", "position": [1, 2, 1' + 400 * b"0" + b"]}"]
WRONG += rb"""null
3
[]
"pause"
{
{"name": "fly"}
{"name": ["pause"], "on": true}
{"name": "pause"}
{"name": "pause", "on": 1}
{"name": "pause", "on": "true"}
{"name": "pause", "on": true, "on": false}
{"name": "step", "count": 3}
{"name": "goal", "position": [1, 2]}
{"name": "goal", "position": {"x": 1}}
{"name": "goal", "position": [1, 2, true]}
{"name": "goal", "position": [1, 2, "3"]}
{"name": "goal", "position": [1, 2, NaN]}
{"name": "goal", "position": [1, 2, -Infinity]}
{"name": "goal", "position": [1, 2, 1e999]}""".splitlines()


def test_what_is_no_request_is_answered_by_400(served):
    browser = Browser(served)
    for body in WRONG:
        with_reason = browser.request(body)
        assert with_reason[0] == 400 and with_reason[1], body[:60]
    assert served.asked == []
    assert browser.request({"name": "step"})[0] == 200


def test_one_request_more_than_may_wait_is_answered_by_503():
    answered = threading.Event()

    def answer(_):
        answered.wait(30)
        return Answer(True, "")

    server, found = LiveServer("", answer), []
    try:
        browser = Browser(server)
        asking = [
            threading.Thread(target=lambda: found.append(browser.request({"name": "step"})[0]))
            for _ in range(live_server.WAITING)
        ]
        for one in asking:
            one.start()
        while server._waiting < live_server.WAITING:
            time.sleep(0.01)
        # if it waited, too, it would be answered after 30 s
        status, text = browser.request({"name": "step"})
        assert status == 503 and "waiting for an answer" in text
        answered.set()
        for one in asking:
            one.join()
        assert found == [200] * live_server.WAITING
        assert browser.request({"name": "step"})[0] == 200
    finally:
        answered.set()
        server.close()


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_bodies_are_answered_and_forgotten(served, count):
    """Random bytes, and requests of which some bytes have been changed; over one connection."""
    draw, browser = np.random.default_rng(0), Browser(served)
    samples = [json.dumps({"name": n, **dict.fromkeys(f, [0, 1, 2])}) for n, f in FIELDS.items()]
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    statuses = set()
    for k in range(count):
        if k % 2:
            body = draw.bytes(int(draw.integers(0, 200)))
        else:
            changed = bytearray(samples[k // 2 % len(samples)].encode())
            for _ in range(draw.integers(1, 4)):
                changed[draw.integers(len(changed))] = draw.integers(256)
            body = bytes(changed)
        connection.request("POST", "/requests", body, browser.headers)
        answer = connection.getresponse()
        answer.read()
        statuses.add(answer.status)
        try:
            parsed(body)
        except RequestError:
            assert answer.status == 400
    assert statuses <= {200, 400}
    assert browser.ask("GET", "/")[0] == 200


def test_garbage_in_place_of_http_ends_its_connection_alone(served):
    draw, browser = np.random.default_rng(0), Browser(served)
    for k in range(50):
        with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
            garbage = draw.bytes(500) if k % 2 else b"GET / HTTP/1.1\r\nHost: \r\n" + b"a" * 20000
            connection.sendall(garbage + b"\r\n\r\n")
    assert browser.ask("GET", "/")[0] == 200


def test_browsers_get_the_newest_message_and_then_what_comes(served):
    for k in range(100):
        served.send(str(k))
    until(lambda: not served._is_notified)
    assert Browser(served).messages(1) == ["99"]
    going = threading.Event()

    def taken():
        return not served._is_notified and not any(one._messages for one in list(served._browsers))

    def go_on():
        until(lambda: served.browsers == 2)
        for k in range(100, 103):
            until(taken)
            served.send(str(k))
        until(taken)
        going.set()

    thread = threading.Thread(target=go_on)
    thread.start()
    found = []
    others = [
        threading.Thread(target=lambda: found.append(Browser(served).messages(4))) for _ in "ab"
    ]
    for other in others:
        other.start()
    for other in (*others, thread):
        other.join(60)
    assert going.is_set() and found == [["99", "100", "101", "102"]] * 2
    until(lambda: served.browsers == 0)


def stuck(server):
    browser = Browser(server)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    lines = [
        "GET /states HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
        *(f"{name}: {value}" for name, value in browser.headers.items()),
    ]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    until(lambda: server.browsers == 1)
    return connection


def test_a_browser_that_takes_nothing_holds_up_nobody_and_is_left(served, monkeypatch):
    monkeypatch.setattr(live_server, "SEND_S", 1.0)
    with stuck(served):
        (hung,) = served._browsers
        for _ in range(300):
            served.send("x" * 20000)
            time.sleep(0.001)
            assert len(hung._messages) <= live_server.QUEUE
        newest = Browser(served).messages(1)
        assert newest == ["x" * 20000]
        until(lambda: served.browsers == 0)
    assert Browser(served).ask("GET", "/")[0] == 200


def test_what_a_browser_says_in_the_stream_ends_it(served):
    browser = Browser(served)
    served.send("there")

    async def talk():
        async with aiohttp.ClientSession(headers=browser.headers) as session:
            url = f"{browser.origin}/states"
            async with session.ws_connect(url, headers={"Origin": browser.origin}) as stream:
                await stream.receive(30)
                await stream.send_str('{"name": "step"}')
                return (await stream.receive(30)).type

    assert asyncio.run(talk()) in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    assert served.asked == []


def test_at_the_end_nothing_is_left():
    before = set(threading.enumerate())
    server = LiveServer("<p>")
    connection = stuck(server)
    Browser(server).request({"name": "step"})
    server.close()
    assert set(threading.enumerate()) == before
    connection.settimeout(30)
    try:
        while connection.recv(65536):
            continue
    except ConnectionError:
        pass  # it was cut
    connection.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), 5)
    LiveServer("<p>", port=server.port).close()


@pytest.mark.parametrize("port", [None, 70000])
def test_where_it_cannot_listen_it_says_so(served, port):
    port = port or served.port
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1, port {port}"):
        LiveServer("<p>", port=port)


def test_a_server_for_all_answers_to_the_name_by_which_it_is_reached():
    server = LiveServer("<p>", host="0.0.0.0")
    try:
        browser = Browser(server)
        assert server.address.startswith("http://localhost:")
        assert browser.ask("GET", "/")[0] == 200
        assert browser.ask("GET", "/", host=f"example.com:{server.port}", origin=None)[0] == 403
    finally:
        server.close()


def test_without_aiohttp_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(ViewMissing, match=r"needs aiohttp: pip install 'nh_control\[view\]'"):
        LiveServer("<p>")


def test_a_live_page_asks_nobody_but_its_server():
    shown, _ = animation("cart_pole", 101)
    text = live_page(shown)
    assert "default-src 'none'; connect-src 'self'; script-src" in text
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["reference"] is not None and data["view"]["size"] > 0
    assert text.count("https:") == 0 and text.count("new WebSocket(") == 1
    assert data["pulled"] == {} and "data-ask" not in text.partition("<footer>")[0]


def test_what_is_offered_is_in_the_page_and_nothing_of_it_is_markup():
    shown, _ = animation("quadrotor_payload", 11)
    asked = {"name": "pause", "on": True}
    offers = Offers({"<b>": asked}, ("speed_factor", "fault"), ("payload", "big_quad1", "x"))
    text = live_page(shown, offers)
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    names = data["frames"]
    assert {key: names[i] for key, i in data["pulled"].items()} == {
        "payload": "payload",
        "big_quad1": "quad1",
        "x": "payload",  # which leaves the trail
    }
    assert "<b>" not in text and 'data-change="fault"' in text and 'value="goal"' not in text
    (given,) = re.findall(r'data-ask="([^"]*)"', text)
    assert json.loads(html.unescape(given)) == asked and data["paces"]


# Contact forces in a live page -------------------------------------------------------------------


Q = np.array([0.4, 0.3, 0.5, 1, 2.0])
FORCES = {"rear_wheels": np.array([0.0, 3.0, -4.0]), "front_wheels": np.zeros(3)}


@pytest.fixture(scope="module")
def board():
    scenario = nh.scenarios.get("wet_snakeboard")
    dsys = scenario.model()
    start = dsys.state([0, 0.3, 0, 0, 0], [0.3, -0.2, 0.1, 0.5, 0.2])
    return dsys, LiveMotion(scenario, dsys, dsys.simulate(start, np.zeros((100, 2))))


def shown(board, forces):
    """The frame's frames (F, 7) and lengths of arrows at a state, with their names."""
    dsys, motion = board
    frame = motion.frame(1.0, Q, np.zeros(dsys.system.space.nw), Q, {}, forces=forces)
    names = motion.animation.run.names
    places = ContactPlaces(dsys.system)(Q)
    return dict(zip(names, np.reshape(frame["run"], (-1, 7)))), frame["arrowLengths"], places


def test_arrows_have_the_places_and_directions_of_the_forces(board):
    poses, lengths, places = shown(board, FORCES)
    rear, front = (poses[f"contact {name}"] for name in FORCES)
    assert rear[:3] == pytest.approx(places["rear_wheels"])
    assert front[:3] == pytest.approx(places["front_wheels"])
    w, x, y, z = rear[3:]
    along = [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]
    assert along == pytest.approx([0.0, 0.6, -0.8])
    # half as long as the board with turned trucks for the reference's largest force: it skids
    extent = 4 + 0.6 * np.cos(0.3) + 0.72 * np.sin(0.3)
    assert lengths[-2:] == [pytest.approx(5 * 0.5 * extent / (0.4 * 9.81), rel=1e-3), 0]
    doubled = {name: 2 * force for name, force in FORCES.items()}
    assert shown(board, doubled)[1][-2] == pytest.approx(2 * lengths[-2])


def test_unknown_forces_have_arrows_without_length(board):
    _, lengths, _ = shown(board, {})
    animation = board[1].animation
    assert lengths[-2:] == [0.0, 0.0]
    assert animation.arrows.shape[1] == len(animation.visual.arrows) == len(lengths)


def test_the_sizes_of_forces_are_a_curve_and_null_where_they_are_unknown(board):
    dsys, motion = board
    (place,) = (
        i for i, one in enumerate(motion.animation.curves) if one.label == "contact force (N)"
    )
    assert motion.animation.curves[place].names == tuple(FORCES)
    q, v = np.zeros(5), np.zeros(dsys.system.space.nw)
    known = {"rear_wheels": FORCES["rear_wheels"]}
    assert motion.frame(1.0, q, v, q, {}, forces=known)["curves"][place] == [5.0, None]


def test_where_the_reference_touches_nothing_the_arrow_of_the_weight_is_the_longest():
    """A board at rest, whose wheels push nowhere; its largest mass is its 4 kg m^2."""
    scenario = nh.scenarios.get("wet_snakeboard")
    dsys = scenario.model()
    rest = dsys.simulate(dsys.state(np.zeros(5), np.zeros(5)), np.zeros((3, 2)))
    scale = arrow_scale(scenario.visual_model(), scenario.parameters, dsys, rest)
    assert scale == pytest.approx(0.5 * 4.6 / (9.81 * 4.0), rel=1e-3)
