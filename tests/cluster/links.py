"""One connection to a server in another process: requests with their answers, and a watch that is read beside them."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from bench.processes import Running, client_context

MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
LONGEST_S = 300.0
"""An answer that is not there by then never comes."""
BROKEN = (OSError, http.client.HTTPException)
"""What a connection raises when its server dies."""


class Link:
    """Raises one of :data:`BROKEN` when the server dies."""

    def __init__(self, server: Running, timeout_s: float = LONGEST_S) -> None:
        context = client_context(server.kubeconfig)
        self._link = http.client.HTTPSConnection(urlsplit(server.url).netloc, context=context, timeout=timeout_s)

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        self._link.request(method, path, None if body is None else json.dumps(body), headers or {})
        answer = self._link.getresponse()
        text = answer.read()
        return answer.status, json.loads(text)

    def text(self, path: str) -> str:
        self._link.request("GET", path)
        return self._link.getresponse().read().decode()

    def lines(self, path: str) -> list[Any]:
        self._link.request("GET", path)
        return [json.loads(line) for line in self._link.getresponse().read().splitlines()]

    def close(self) -> None:
        self._link.close()


class Watching:
    """A watch in a thread of its own; ``events`` are what it has told so far, ``over`` whether it ended."""

    def __init__(self, server: Running, path: str) -> None:
        self.events: list[Any] = []
        self.over = False
        self._told = threading.Condition()
        self._link = Link(server)._link
        self._link.request("GET", path)
        self._answer = self._link.getresponse()
        assert self._answer.status == 200
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(*BROKEN, ValueError, AttributeError):
            while line := self._answer.readline():
                with self._told:
                    self.events.append(json.loads(line))
                    self._told.notify_all()
        with self._told:
            self.over = True
            self._told.notify_all()

    def until(self, enough: Callable[[list[Any]], bool], timeout_s: float = LONGEST_S) -> list[Any]:
        """The events once they are ``enough``, or the watch is over."""
        with self._told:
            assert self._told.wait_for(lambda: enough(self.events) or self.over, timeout_s), (
                f"{len(self.events)} events in {timeout_s} s are not enough; the last: {self.events[-1:]}"
            )
            return list(self.events)

    def join(self) -> list[Any]:
        """All events, once the server has ended the watch or died."""
        self._thread.join(LONGEST_S)
        assert self.over, f"the watch has not ended in {LONGEST_S} s"
        return self.events
