"""How much clients may take of the server: :class:`Bounds`, and the account of one port, :class:`Usage`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one port; times in seconds."""

    connections: int = 4_000
    streams: int = 1_000
    """Calls at once on one connection: a proxy's carries those of many people."""
    header_bytes: int = 64 * 1024
    """Headers of one request, unpacked; a session cookie has a few kilobytes."""
    body_bytes: int = 32 * 1024 * 1024
    held_bytes: int = 256 * 1024 * 1024
    """Bodies of all connections that are not complete."""
    first_bytes_s: float = 10.0
    """Until a connection says which protocol it speaks, TLS handshake included."""
    body_s: float = 60.0
    """Until a request is complete."""
    idle_s: float = 300.0
    """Between two requests."""
    stalled_s: float = 60.0
    """Until a client that reads nothing loses its stream."""
    resets: int = 200
    """Streams that a client may take back within ``resets_s``; more is an attack (CVE-2023-44487)."""
    resets_s: float = 10.0
    unsent_bytes: int = 4 * 1024 * 1024
    """Answers to pings and settings that a client does not read."""


class Usage:
    """What the clients of one port hold now."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.connections = 0
        self.held = 0
        self.refused = 0
        """Connections that were closed at the limit."""
        self.cut_off = 0
        """Connections that were closed because of what they did, or did not do."""

    def hold(self, count: int) -> bool:
        """Count bytes of bodies that arrived; False if there is no room for them. They count until :meth:`free`."""
        self.held += count
        return self.held <= self.bounds.held_bytes

    def free(self, count: int) -> None:
        self.held -= count
