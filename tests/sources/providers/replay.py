"""A Git host over loopback HTTP that replays answers written from its public API documentation."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Replay:
    """One answer: JSON, or ``raw`` bytes."""

    value: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    @property
    def body(self) -> bytes:
        return self.raw if self.raw is not None else json.dumps(self.value).encode()


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def line(self) -> str:
        """``/path?a=1&b=2``, the query sorted."""
        query = "&".join(f"{name}={value}" for name, value in sorted(self.query.items()))
        return f"{self.path}?{query}" if query else self.path


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients go away in the middle of an answer that is too large, or of a handshake: that is no news."""


class ReplayHost:
    """``answers`` by ``/path?query`` (the query sorted and decoded) or by path alone; several are given in turn. What
    is not there is 404 in ``missing``. An ETag is honoured."""

    def __init__(
        self,
        answers: Mapping[str, Replay | list[Replay]],
        missing: Replay | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answers = {key: list(one) if isinstance(one, list) else [one] for key, one in answers.items()}
        self.missing = missing or Replay({"message": "Not Found"}, 404)
        self.asked: list[Asked] = []
        self.connections = 0
        self.hangs_up = False
        """Close each connection after an answer without a word."""
        host = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                host.connections += 1

            def log_message(self, *_: object) -> None: ...

            def _any(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                parts = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                query = dict(parse_qsl(parts.query, keep_blank_values=True))
                one = Asked(self.command, parts.path, query, headers, self.rfile.read(length))
                host.asked.append(one)
                self._answer(one, host.answer(one))

            def _answer(self, one: Asked, found: Replay) -> None:
                same = found.headers.get("ETag") and one.headers.get("if-none-match") == found.headers["ETag"]
                body = b"" if same else found.body
                self.send_response(304 if same else found.status)
                headers = {"Content-Type": "application/json", **found.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                if not same:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if one.method != "HEAD":
                    self.wfile.write(body)
                self.close_connection = self.close_connection or host.hangs_up

            do_GET = do_HEAD = do_POST = do_OPTIONS = _any

        self._http = _Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, one: Asked) -> Replay:
        turns = self.answers.get(one.line) or self.answers.get(one.path)
        if not turns:
            return self.missing
        return turns.pop(0) if len(turns) > 1 else turns[0]

    @property
    def lines(self) -> list[str]:
        """What was asked, in order."""
        return [one.line for one in self.asked]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
