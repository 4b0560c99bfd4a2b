"""A Unix socket through which sandboxes reach the API server, and only it."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from pathlib import Path

from syncline.cluster.machines.sandbox import CONNECTIONS
from syncline.cluster.machines.sandbox.network import pump

log = logging.getLogger("syncline.machines")


class Gateway:
    """A Unix socket that forwards to the API server."""

    def __init__(self, path: Path, host: str, port: int) -> None:
        self.path = path
        self._address = (host, port)
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._listener = socket.socket(socket.AF_UNIX)
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._listener.bind(f"/proc/self/fd/{folder}/{path.name}")  # the name of a socket has at most 107 bytes
        os.close(folder)
        path.chmod(0o666)  # in a folder of ours alone; inside, commands are another user
        self._listener.listen(CONNECTIONS)
        threading.Thread(target=self._accept, name="api gateway", daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._free.acquire()
            threading.Thread(target=self._carry, args=(connection,), daemon=True).start()

    def _carry(self, connection: socket.socket) -> None:
        try:
            with connection, socket.create_connection(self._address, timeout=10) as server:
                server.settimeout(None)
                pump(connection, server)
        except OSError as error:
            log.debug("a connection of a container to the API ended: %s", error)
        finally:
            self._free.release()
