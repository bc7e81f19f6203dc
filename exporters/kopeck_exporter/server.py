"""HTTP for Prometheus, the operator and the kubelet: few pages, small answers, no patience."""

import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Event
from time import monotonic
from typing import Any

REQUEST_SECONDS = 5.0  # from connect to close, however slowly a client reads or writes
TICK_SECONDS = 0.5


@dataclass(frozen=True)
class Page:
    """An answer with status 200."""

    content_type: str
    body: bytes


Render = Callable[[str], Page]
"""Makes a page for the value of the Accept header."""


class PageServer(ThreadingHTTPServer):
    """Serves each page at its path, one thread per request. Port 0 is any free port.

    `scraped` is set each time that a client was sent /metrics in full, if it was there already
    when the client asked.
    """

    def __init__(
        self, port: int, pages: Mapping[str, Render], request_seconds: float = REQUEST_SECONDS
    ) -> None:
        """Raises OSError if the port is taken."""
        self.pages = pages
        self._request_seconds = request_seconds
        self.scraped = Event()
        self._deadlines: dict[socket.socket, float] = {}
        self._dual_stack = socket.has_dualstack_ipv6()  # a pod has either family, or both
        self.address_family = socket.AF_INET6 if self._dual_stack else socket.AF_INET
        super().__init__(("", port), _Handler)

    def server_bind(self) -> None:
        """Not HTTPServer's, which looks up the host's name and may wait for DNS."""
        if self._dual_stack:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    def next_scrape(self) -> Event:
        """Set once a client that asks from now on was sent /metrics in full."""
        self.scraped = Event()
        return self.scraped

    def serve_until_shutdown(self) -> None:
        self.serve_forever(TICK_SECONDS)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._deadlines[request] = monotonic() + self._request_seconds
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Between requests; a timeout per read would let one byte now and then hold a thread."""
        now = monotonic()
        for request, deadline in list(self._deadlines.items()):
            if deadline < now:
                _end(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no fault of ours; all else is printed."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _end(request: socket.socket) -> None:
    """Wakes the thread that reads or writes it, which then closes it."""
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:  # it ended by itself
        return


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        scraped = self.server.scraped  # before the page is made: a later one waits for a later page
        path = self.path.partition("?")[0]
        render = self.server.pages.get(path)
        if render is None:
            paths = ", ".join(self.server.pages)
            self._send(HTTPStatus.NOT_FOUND, _text(f"nothing here; there are {paths}\n"))
            return
        self._send(HTTPStatus.OK, render(self.headers.get("Accept", "")))
        if path == "/metrics":
            scraped.set()

    def _send(self, status: HTTPStatus, page: Page) -> None:
        self.send_response(status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        self.wfile.write(page.body)

    def log_message(self, *_: Any) -> None:
        """Three requests every few seconds are no news."""


def _text(text: str) -> Page:
    return Page("text/plain; charset=utf-8", text.encode())
