"""The network of a sandbox: a loopback on which the API's ports lead through a Unix socket to the API server."""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import struct
import threading

from syncline.cluster.machines.sandbox import CONNECTIONS

__all__ = ["API_SOCKET", "forward", "listen", "loopback_up", "pump"]

API_SOCKET = "/run/syncline/api.sock"
"""Where the way to the API begins inside."""
CHUNK = 65536
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
SIOCSIFADDR, SIOCSIFNETMASK, ALONE = 0x8916, 0x891C, "255.255.255.255"
LOCAL = "127.0.0.1"


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(control, SIOCGIFFLAGS, request + bytes(16))[:18])[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP) + bytes(16))


def listen(host: str, port: int) -> socket.socket:
    """Another address than 127.0.0.1 becomes the second one of the loopback."""
    if host != LOCAL:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for request, value in ((SIOCSIFADDR, host), (SIOCSIFNETMASK, ALONE)):
                address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(value))
                fcntl.ioctl(control, request, struct.pack("16s16s", b"lo:1", address))
    return socket.create_server((host, port), backlog=CONNECTIONS)


def forward(listeners: list[socket.socket]) -> None:
    """From ports in the sandbox to the API's Unix socket, until this process is ended with its namespace."""
    free = threading.BoundedSemaphore(CONNECTIONS)
    while True:
        for listener in select.select(listeners, [], [])[0]:
            client, _ = listener.accept()
            free.acquire()
            threading.Thread(target=_serve, args=(client, free), daemon=True).start()


def _serve(client: socket.socket, free: threading.BoundedSemaphore) -> None:
    try:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(API_SOCKET)
            pump(client, server)
    finally:
        free.release()


def pump(left: socket.socket, right: socket.socket) -> None:
    """Carry bytes both ways until both sides have ended; a side that does not read holds up its own direction alone."""
    back = threading.Thread(target=_carry, args=(right, left), daemon=True)
    back.start()
    _carry(left, right)
    back.join()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    how = socket.SHUT_WR
    try:
        while data := source.recv(CHUNK):
            sink.sendall(data)
    except OSError:
        how = socket.SHUT_RDWR  # one of them is gone: no one must wait for it
    for each in (sink,) if how == socket.SHUT_WR else (sink, source):
        with contextlib.suppress(OSError):
            each.shutdown(how)
