"""A real proxy between an operator and its API server, to count what passes and to break it.

Requests go through one `interception`, which may answer in the API server's place, drop the
connection, or do something between request and answer. Watch streams are broken from outside.
"""

import asyncio
import base64
import math
import ssl
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from tests.waiting import eventually

# Longer lines than any object of a test has.
_LINE_BYTES = 2**22


@dataclass(frozen=True)
class Call:
    """A request as the operator sent it."""

    method: str
    path_and_query: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = field(compare=False)
    is_from_kopf: bool = field(compare=False)

    @property
    def path(self) -> str:
        return self.path_and_query.partition("?")[0]

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.path_and_query

    def names(self, text: str) -> bool:
        """Whether the request is about what the text names, such as a namespace."""
        return text in self.path_and_query or text.encode() in self.body


@dataclass(frozen=True)
class Write:
    """A mutating request that reached the API server, and the HTTP status of its answer."""

    call: Call
    status: int


@dataclass(frozen=True)
class StreamFault:
    """What becomes of a watch stream: its last words, and how it ends."""

    last_words: bytes = b""
    then: Literal["end", "abort", "silence"] = "end"


def in_stream_error(code: int, reason: str) -> StreamFault:
    """An event of type ERROR, and a clean end."""
    event = f'{{"type":"ERROR","object":{{"kind":"Status","code":{code},"reason":"{reason}"}}}}\n'
    return StreamFault(event.encode())


EXPIRED = in_stream_error(410, "Expired")
CLEAN_END = StreamFault()
HALF_A_LINE = StreamFault(b'{"type":"MODIFIED","object":{"kind":"Po')
ABORT = StreamFault(then="abort")
SILENCE = StreamFault(then="silence")


class DroppedError(Exception):
    """Raised by an interception: the connection ends without an answer."""


Forward = Callable[[], Awaitable[web.StreamResponse]]
Interception = Callable[[Call, Forward], Awaitable[web.StreamResponse]]


async def _no_interception(_: Call, forward: Forward) -> web.StreamResponse:
    return await forward()


class Refusals:
    """An interception: so many matching requests get an HTTP error, all others pass.

    With `although_done` the API server does what it is asked, and only the answer is an error.
    """

    def __init__(
        self,
        matches: Callable[[Call], bool],
        status: int,
        *,
        times: float = math.inf,
        retry_after_seconds: int | None = None,
        although_done: bool = False,
    ) -> None:
        self._matches = matches
        self._status = status
        self._left = times
        self._although_done = although_done
        self._headers = (
            {} if retry_after_seconds is None else {"Retry-After": str(retry_after_seconds)}
        )

    @property
    def are_used_up(self) -> bool:
        return self._left <= 0

    async def __call__(self, call: Call, forward: Forward) -> web.StreamResponse:
        if self.are_used_up or not self._matches(call):
            return await forward()
        self._left -= 1
        if self._although_done:
            await forward()
        said = {"kind": "Status", "code": self._status, "message": "refused by the test's proxy"}
        return web.json_response(said, status=self._status, headers=self._headers)


class _Stream:
    """A watch stream on its way to the operator."""

    def __init__(self, response: web.StreamResponse, request: web.BaseRequest) -> None:
        self._response = response
        self._request = request
        self._faults: asyncio.Queue[StreamFault] = asyncio.Queue()

    def suffer(self, fault: StreamFault) -> None:
        self._faults.put_nowait(fault)

    async def run(self, upstream: aiohttp.ClientResponse) -> None:
        """Pass events on until a fault ends the stream."""
        flow = asyncio.create_task(self._flow(upstream))
        try:
            while True:
                fault = await self._faults.get()
                flow.cancel()
                if fault.last_words:
                    await self._response.write(fault.last_words)
                if fault.then == "abort":
                    _abort(self._request)
                if fault.then != "silence":
                    return
        finally:
            flow.cancel()

    async def _flow(self, upstream: aiohttp.ClientResponse) -> None:
        with suppress(aiohttp.ClientError, ConnectionError):
            async for line in upstream.content:
                await self._response.write(line)
        self.suffer(CLEAN_END)


class ApiProxy:
    """Stands between an operator and a kubeconfig's API server, from entering until leaving."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self._cluster: dict[str, Any] = config["clusters"][0]["cluster"]
        self._token: str = config["users"][0]["user"]["token"]
        self._tls = _tls(kubeconfig, self._cluster)
        self._streams: set[_Stream] = set()
        self._address: Future[str] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.kubeconfig = folder / "kubeconfig-of-proxy"
        self.interception: Interception = _no_interception
        self.writes: list[Write] = []

    def __enter__(self) -> Self:
        self._thread.start()
        config = _config_without_credentials(self._address.result(timeout=30))
        self.kubeconfig.write_text(yaml.safe_dump(config))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def wait_until_watched(self) -> None:
        """Until jobs and pods are watched through here."""

        def both() -> None:
            assert len(self._streams) == 2

        eventually(both)

    def break_watches(self, fault: StreamFault) -> None:
        """Let all watch streams that are open now suffer a fault; later ones are sound."""

        async def suffer() -> None:
            for stream in self._streams:
                stream.suffer(fault)

        asyncio.run_coroutine_threadsafe(suffer(), self._loop).result(timeout=30)

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        # With cancellation, what a dead operator asked for and did not get is not done any more.
        server = web.Server(self._handle, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        async with aiohttp.ClientSession(
            connector=connector,
            read_bufsize=_LINE_BYTES,
            timeout=aiohttp.ClientTimeout(total=None),
            headers={"Authorization": f"Bearer {self._token}"},
        ) as self._session:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self._address.set_result(f"http://127.0.0.1:{runner.addresses[0][1]}")
            await self._stopped.wait()
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        call = await _call(request)
        try:
            return await self.interception(call, lambda: self._forward(call, request))
        except DroppedError:
            _abort(request)
            return web.Response()

    async def _forward(self, call: Call, request: web.BaseRequest) -> web.StreamResponse:
        async with self._session.request(
            call.method,
            URL(self._cluster["server"] + call.path_and_query, encoded=True),
            data=call.body or None,
            headers=dict(call.headers),
        ) as upstream:
            if call.is_watch and upstream.status == 200:
                return await self._stream(upstream, request)
            answer = web.Response(
                status=upstream.status,
                body=await upstream.read(),
                headers=_kept(upstream.headers, ("Content-Type", "Retry-After")),
            )
        if call.is_write:
            self.writes.append(Write(call, upstream.status))
        return answer

    async def _stream(
        self, upstream: aiohttp.ClientResponse, request: web.BaseRequest
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=_kept(upstream.headers, ("Content-Type",)))
        await response.prepare(request)
        stream = _Stream(response, request)
        self._streams.add(stream)
        try:
            with suppress(ConnectionError):
                await stream.run(upstream)
        finally:
            self._streams.discard(stream)
        return response


async def _call(request: web.BaseRequest) -> Call:
    return Call(
        method=request.method,
        path_and_query=request.raw_path,
        body=await request.read(),
        headers=tuple(_kept(request.headers, ("Accept", "Content-Type")).items()),
        is_from_kopf=request.headers.get("User-Agent", "").startswith("kopf"),
    )


def _kept(headers: Any, names: tuple[str, ...]) -> dict[str, str]:
    return {name: headers[name] for name in names if name in headers}


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _tls(kubeconfig: Path, cluster: dict[str, Any]) -> ssl.SSLContext:
    if data := cluster.get("certificate-authority-data"):
        return ssl.create_default_context(cadata=base64.b64decode(data).decode())
    if name := cluster.get("certificate-authority"):
        return ssl.create_default_context(cafile=kubeconfig.parent / name)
    return ssl.create_default_context()


def _config_without_credentials(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": server}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
        "current-context": "proxy",
    }
