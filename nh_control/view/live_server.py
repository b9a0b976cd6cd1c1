"""The server of a live page, which runs in a separate thread. It serves the page and a stream of
states, and it accepts requests from users who opened the address that contains its token. By
default it only accepts connections from this machine.

Slow browsers do not delay anyone. Each browser has a short queue, in which a new message replaces
the oldest one. If a browser stops reading, its connection is closed.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from nh_control.view.live_requests import LARGEST, RequestError, ViewRequest, parsed

if TYPE_CHECKING:
    from aiohttp import web

Handler = Callable[[Any], Awaitable[Any]]
HERE = "127.0.0.1"
COOKIE = "nh_control_view"
QUEUE = 2
"""Maximum number of messages that wait for a browser. Newer messages replace older ones."""
SEND_S, ALIVE_S, END_S = 5.0, 10.0, 2.0
"""Times (s) that a browser has to receive a message, to answer a ping, and to close."""
BUFFER = 65536
"""Maximum number of bytes that a browser has not read yet. This limits how far its page lags
behind.
"""
BROWSERS = 16
WAITING = 8
"""Maximum number of waiting requests."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
OPEN_THE_ADDRESS = "Open the address that the view printed, with its token."


class ViewMissing(RuntimeError):
    """aiohttp cannot be imported. The message says what to install."""


def require_aiohttp() -> None:
    """Raise ViewMissing if aiohttp is not installed."""
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        raise ViewMissing(
            "a live page needs aiohttp: pip install 'nh_control[view]', or -e '.[view]' in the "
            "folder of the sources"
        ) from None


class Answer(NamedTuple):
    """The answer to a request: whether it was carried out, and a text, such as the reason for a
    refusal.
    """

    done: bool
    message: str


def only_shows(_: ViewRequest) -> Answer:
    """The answer to any request if the page does not accept requests."""
    return Answer(False, "this page only shows the plant")


class LiveServer:
    """Serves `page` on a port (0 selects a free port) of `host` until `close` is called. `answer`
    answers the requests from the page, one at a time, in a separate thread.

    The user opens `address`. Anyone who knows the address can watch and send requests. With the
    `token` of an earlier server, that server's browsers can reconnect. By default the token is
    new.

    Raises ViewMissing if aiohttp is missing, and OSError if the server cannot listen.
    """

    def __init__(
        self,
        page: str,
        answer: Callable[[ViewRequest], Answer] = only_shows,
        host: str = HERE,
        port: int = 0,
        token: str = "",
    ):
        require_aiohttp()
        self._page, self._answer, self._host = page, answer, host
        self.token = token or secrets.token_urlsafe(24)
        self._listening = _listening(host, port)
        self.port: int = self._listening.getsockname()[1]
        self._newest: str | None = None
        self._is_notified = False
        self._browsers: set[_Browser] = set()
        self._pool = ThreadPoolExecutor(1, "requests")
        self._waiting = 0
        self._loop = asyncio.new_event_loop()
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._serve, args=(started,), name="view")
        self._thread.start()
        started.result()

    @property
    def address(self) -> str:
        """The address of the page, including the token."""
        host = "localhost" if self._host in ("", "0.0.0.0", "::") else self._host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/?token={self.token}"

    @property
    def browsers(self) -> int:
        """The number of connected browsers."""
        return len(self._browsers)

    def send(self, text: str) -> None:
        """Send a message to all browsers. May be called from any thread, and returns
        immediately.
        """
        self._newest = text
        if not self._is_notified:  # otherwise the loop is about to send the newest message
            self._is_notified = True
            self._loop.call_soon_threadsafe(self._spread)

    def close(self) -> None:
        """Close all connections and stop the threads."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._pool.shutdown()

    def _serve(self, started: Future[None]) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run(started))
        finally:
            self._loop.close()
            self._listening.close()

    async def _run(self, started: Future[None]) -> None:
        from aiohttp import web

        self._end = asyncio.Event()

        @web.middleware
        async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._check(request)
            return await handler(request)

        application = web.Application(middlewares=[checked], client_max_size=LARGEST)
        application.router.add_get("/", self._on_page)
        application.router.add_get("/states", self._on_states)
        application.router.add_post("/requests", self._on_request)
        runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=END_S, handle_signals=False
        )
        await runner.setup()
        await web.SockSite(runner, self._listening).start()
        started.set_result(None)
        await self._end.wait()
        for browser in list(self._browsers):
            browser.leave()
        await runner.cleanup()

    # authorization ------------------------------------------------------------------------------

    def _check(self, request: web.Request) -> None:
        """Refuse a request with status 403 unless it comes from a page of this server that was
        opened with the token. Opening the address sets a cookie that contains the token.
        """
        from aiohttp import web

        # A wrong Host indicates DNS rebinding, and a wrong Origin indicates that the request comes
        # from another website.
        hosts, origins = (request.headers.getall(name, []) for name in ("Host", "Origin"))
        if len(hosts) != 1 or hosts[0].lower() not in self._names(request):
            raise web.HTTPForbidden(text="This is not a name of this server.", headers=HEADERS)
        needed = request.method != "GET" or request.path == "/states"
        if (origins or needed) and origins != [f"http://{hosts[0]}"]:
            raise web.HTTPForbidden(text="The request comes from another page.", headers=HEADERS)
        cookie = f"{COOKIE}_{self.port}"
        if request.path == "/" and self._is_token(request.query.get("token", "")):
            opened = web.HTTPSeeOther("/", headers=HEADERS)
            opened.set_cookie(cookie, self.token, httponly=True, samesite="Strict", path="/")
            raise opened
        if not self._is_token(request.cookies.get(cookie, "")):
            raise web.HTTPForbidden(text=OPEN_THE_ADDRESS, headers=HEADERS)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def _names(self, request: web.Request) -> set[str]:
        """The names that browsers may use to address this server. Other names are refused, because
        an attacker may have pointed them at this machine.
        """
        local = request.transport.get_extra_info("sockname") if request.transport else None
        names = {self._host, socket.gethostname()} - {"", "0.0.0.0", "::"}
        names |= {local[0]} if local else set()
        if names & {HERE, "::1", "localhost"}:
            names.add("localhost")
        bracketed = {f"[{name}]" if ":" in name else name for name in names}
        return {f"{name}:{self.port}".lower() for name in bracketed}

    # responses ----------------------------------------------------------------------------------

    async def _on_page(self, _: web.Request) -> web.Response:
        from aiohttp import web

        return web.Response(text=self._page, content_type="text/html", headers=HEADERS)

    async def _on_states(self, request: web.Request) -> web.StreamResponse:
        """Send the newest messages through a WebSocket. Messages from the browser are not read."""
        from aiohttp import WSMsgType, web

        if len(self._browsers) >= BROWSERS:
            return web.Response(status=503, text=f"{BROWSERS} pages are open; close one of them.")
        stream = web.WebSocketResponse(
            heartbeat=ALIVE_S, compress=False, max_msg_size=LARGEST, writer_limit=1, timeout=END_S
        )
        if not stream.can_prepare(request):
            return web.Response(status=400, text="Expected a WebSocket.")
        await stream.prepare(request)
        browser = _Browser(stream, request.transport)
        self._browsers.add(browser)
        if self._newest is not None:
            browser.put(self._newest)
        sending = asyncio.ensure_future(browser.send())
        try:
            async for message in stream:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break  # pages do not send messages here
        finally:
            self._browsers.discard(browser)
            sending.cancel()
            await asyncio.wait([sending])
        await stream.close()
        return stream

    async def _on_request(self, request: web.Request) -> web.Response:
        """Answer a request. The status is 400 if the request is invalid."""
        from aiohttp import web

        try:
            command = parsed(await asyncio.wait_for(request.read(), SEND_S))
        except (RequestError, web.HTTPRequestEntityTooLarge, asyncio.TimeoutError) as error:
            text = str(error) if isinstance(error, RequestError) else "Too long."
            return web.Response(status=400, text=text, headers=HEADERS)
        if self._waiting >= WAITING:
            return web.Response(status=503, text="Too many requests are waiting for an answer.")
        self._waiting += 1
        try:
            done, message = await self._loop.run_in_executor(self._pool, self._answer, command)
        finally:
            self._waiting -= 1
        return web.json_response({"done": done, "message": message}, headers=HEADERS)

    def _spread(self) -> None:
        self._is_notified = False
        for browser in self._browsers:
            if self._newest is not None:
                browser.put(self._newest)


class _Browser:
    """The connection to a single browser, with its waiting messages, oldest first."""

    def __init__(self, stream: web.WebSocketResponse, transport: asyncio.BaseTransport | None):
        self._stream, self._transport = stream, transport
        self._messages: deque[str] = deque(maxlen=QUEUE)
        self._there = asyncio.Event()

    def put(self, text: str) -> None:
        """Queue the newest message."""
        self._messages.append(text)
        self._there.set()

    async def send(self) -> None:
        """Send messages until the browser disconnects or stops reading."""
        try:
            while not self._stream.closed:
                await self._there.wait()
                self._there.clear()
                while self._messages:
                    text = self._messages.popleft()
                    await asyncio.wait_for(self._stream.send_str(text), SEND_S)
        except (OSError, asyncio.TimeoutError):
            self.leave()

    def leave(self) -> None:
        """Close the connection without sending a closing message."""
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.abort()


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens on the given host and port. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        listener.bind((host, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        raise OSError(f"cannot listen on {host}, port {port}: {error}") from error
    return listener
