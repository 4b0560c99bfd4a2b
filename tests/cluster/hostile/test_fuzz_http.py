"""The same hostile requests over HTTP: what aiohttp makes of paths, queries, headers and bodies reaches the API too."""

from __future__ import annotations

import http.client
import json
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from tests.cluster.hostile.inputs import Inputs, valid_objects
from tests.cluster.hostile.test_fuzz import KUBERNETES_SAYS_500, shown
from tests.live import served_cluster

from syncline.assembly.settings import ClusterSettings
from syncline.kube.client import Request
from syncline.kube.text.jsontext import read_json

COUNT = 3_000
ANSWER_S = 300.0
"""A busy machine needs a while for one answer; one that never comes fails the test."""


def _target(request: Request) -> str:
    """As a client would send it; odd characters as bytes that need not be UTF-8."""

    def encoded(text: str, safe: str) -> str:
        return quote(text.encode("utf-8", "surrogatepass"), safe=safe)

    path = encoded(request.path or "/", "/:@,;=+!$&'()*~")
    query = "&".join(f"{encoded(name, '')}={encoded(value, '')}" for name, value in request.query.items())
    return (path if path.startswith("/") else f"/{path}") + (f"?{query}" if query else "")


class Caller:
    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, request: Request) -> tuple[int, bytes]:
        """Status and body; 0 when the server hung up. Of a watch only the beginning is read."""
        connection = self._connection or http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_S)
        self._connection = connection
        try:
            connection.putrequest(request.method or "GET", _target(request), skip_accept_encoding=True)
            for name, value in request.headers.items():
                raw = value.encode("utf-8", "surrogateescape").replace(b"\0", b"").replace(b"\n", b"")
                connection.putheader(name, raw)
            body = request.body
            if body is not None:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            if answer.getheader("transfer-encoding") == "chunked":
                self._connection = None
                connection.close()
                return answer.status, b""
            return answer.status, answer.read()
        except (http.client.RemoteDisconnected, ConnectionError, http.client.BadStatusLine):
            self._connection = None
            connection.close()
            return 0, b""


def test_hostile_requests_over_http_are_answered_and_the_server_goes_on(
    tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    inputs = Inputs(77)
    statuses: Counter[int] = Counter()
    errors: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: errors.append(handler.format(record))  # type: ignore[method-assign]
    logging.getLogger("syncline").addHandler(handler)
    logging.getLogger("aiohttp").addHandler(handler)
    try:
        with served_cluster(tmp_path, ClusterSettings(tls=False, controllers=())) as cluster:
            caller = Caller(cluster.cluster.port)
            for number in range(COUNT):
                if number % 500 == 0:
                    for path, obj in valid_objects():
                        caller.ask(Request("POST", path, {}, {"content-type": "application/json"}, _json(obj)))
                request = inputs.request()
                status, body = caller.ask(request)
                statuses[status] += 1
                assert not errors, f"request {number}: {errors[0][-1500:]}\n{shown(request)}"
                if status == 500:
                    told = read_json(body)
                    allowed = "reason" not in told and KUBERNETES_SAYS_500.match(told["message"])
                    assert allowed, f"request {number}: {told}\n{shown(request)}"
            assert caller.ask(Request("GET", "/readyz"))[0] == 200
            assert cluster.cluster.core.store.count("/namespaces") > 0
    finally:
        logging.getLogger("syncline").removeHandler(handler)
        logging.getLogger("aiohttp").removeHandler(handler)
    groups = Counter({f"{status // 100}xx": 0 for status in statuses})
    for status, count in statuses.items():
        groups[f"{status // 100}xx" if status else "hung up"] += count
    assert groups["2xx"] > COUNT // 20
    told = ", ".join(f"{count} {group}" for group, count in sorted(groups.items()) if count)
    figure("hostile requests over HTTP", f"{COUNT}: {told}")


def _json(obj: object) -> bytes:

    return json.dumps(obj).encode()
