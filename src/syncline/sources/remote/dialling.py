"""Opens connections with a deadline for each step (resolve, connect, handshake): :func:`open_connection`.

Used by ``sources/remote/web.py``. The system's resolver cannot be interrupted, so it runs in a thread that may outlive
its caller; such threads are few, and no project takes all of them.
"""

from __future__ import annotations

import http.client
import queue
import socket
import ssl
import threading
import time
from typing import Any

from syncline.base.places import Limits
from syncline.sources.remote.turns import Turns

RESOLVING = Turns("name resolution", Limits(32, {"project": 16}))


def open_connection(
    host: str, port: int, wait_s: float, wall_s: float, context: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    """Return a connection that connects with its first request: ``wait_s`` limits each step, ``wall_s`` all names and
    addresses together."""
    connection: Any
    if context is None:
        connection = http.client.HTTPConnection(host, port, timeout=wait_s)
    else:
        connection = _Tls(host, port, context, wait_s)
    connection._create_connection = _Dial(wall_s)  # what http.client dials with; its users replace it the same way
    opened: http.client.HTTPConnection = connection
    return opened


class _Tls(http.client.HTTPSConnection):
    """``sock`` is set during the handshake, so that a deadline can close it."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, wait_s: float) -> None:
        super().__init__(host, port, timeout=wait_s, context=context)
        self._tls = context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        name = getattr(self, "_tunnel_host", None) or self.host
        wrapped = self._tls.wrap_socket(self.sock, server_hostname=name, do_handshake_on_connect=False)
        self.sock = wrapped
        wrapped.do_handshake()


class _Dial:
    """Like ``socket.create_connection``, with one deadline for everything."""

    def __init__(self, wall_s: float) -> None:
        self._wall_s = wall_s

    def __call__(self, address: tuple[str, int], timeout: float, _source: object = None) -> socket.socket:
        until = time.monotonic() + min(timeout, self._wall_s)
        failure: OSError = OSError("the name has no address")
        for family, kind, protocol, _, place in _resolved(*address, max(until - time.monotonic(), 0.001)):
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("no connection in time")
            made = socket.socket(family, kind, protocol)
            try:
                made.settimeout(left)
                made.connect(place)
                made.settimeout(timeout)
            except OSError as error:
                made.close()
                failure = error
                continue
            return made
        raise failure


def _resolved(host: str, port: int, limit_s: float) -> list[Any]:
    """Return the result of the system's resolver. Raises OSError, including TimeoutError."""
    answer: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()
    place = RESOLVING.enter()

    def ask() -> None:
        try:
            answer.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answer.put(error if isinstance(error, OSError) else OSError(f"{host} is no name of a host"))
        finally:
            RESOLVING.leave(place)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        found = answer.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError(f"the name {host} was not resolved in time") from None
    if isinstance(found, OSError):
        raise found
    return found
