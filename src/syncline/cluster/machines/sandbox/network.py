"""The network of a sandbox: a loopback whose API ports are forwarded through a Unix socket to the API server."""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import struct
import threading

from syncline.cluster.machines.sandbox import CONNECTIONS

API_SOCKET = "/run/syncline/api.sock"
"""Path of the API's socket in the sandbox."""
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
    """Listen on the loopback; an address other than 127.0.0.1 is added to it."""
    if host != LOCAL:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for request, value in ((SIOCSIFADDR, host), (SIOCSIFNETMASK, ALONE)):
                address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(value))
                fcntl.ioctl(control, request, struct.pack("16s16s", b"lo:1", address))
    return socket.create_server((host, port), backlog=CONNECTIONS)


def forward(listeners: list[socket.socket]) -> None:
    """Forward ports in the sandbox to the API's Unix socket, until this process is killed with its namespace."""
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
    """Copy bytes in both directions until both sides end; a slow side blocks only its own direction."""
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
        how = socket.SHUT_RDWR  # one side has ended: wait for neither
    for each in (sink,) if how == socket.SHUT_WR else (sink, source):
        with contextlib.suppress(OSError):
            each.shutdown(how)
