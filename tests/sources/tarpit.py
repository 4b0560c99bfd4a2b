"""Servers that waste the time of whoever asks them: real sockets on the loopback address."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

Behaviour = Callable[[socket.socket, threading.Event], None]


def silent(connection: socket.socket, over: threading.Event) -> None:
    """Accepts and says nothing."""
    over.wait()


def trickling(first: bytes) -> Behaviour:
    """Says ``first``, and then a byte now and then, for ever."""

    def tell(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(first)
        while not over.wait(0.1):
            connection.sendall(b"a")

    return tell


def endless(first: bytes) -> Behaviour:
    """Says ``first`` and then as much as the other side takes."""

    def tell(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(first)
        while not over.is_set():
            connection.sendall(b"0" * 65536)

    return tell


class Tarpit:
    """Listens until it is closed. ``asked`` counts connections."""

    def __init__(self, behaviour: Behaviour = silent) -> None:
        self._behaviour = behaviour
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._connections: list[socket.socket] = []
        self.asked = 0
        self.port = int(self._socket.getsockname()[1])
        self.host = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.asked += 1
                self._connections.append(connection)
                if self._behaviour is not silent:
                    threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.recv(65536)
            self._behaviour(connection, self._over)

    def close(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for one in (self._socket, *self._connections):
            one.close()


@contextlib.contextmanager
def tarpit(behaviour: Behaviour = silent) -> Iterator[Tarpit]:
    made = Tarpit(behaviour)
    try:
        yield made
    finally:
        made.close()
