"""Calls that an API must make before it can respond, as data: webhooks, aggregated APIs, long computations.

An API without sockets returns a :class:`Pending`; its host makes the calls (or fails them) and continues with
``resume``. A waiting request holds no lock: it is evaluated again with the outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from syncline.kube.errors import ApiError


@dataclass(frozen=True, slots=True)
class OutboundCall:
    """One HTTPS call. ``url`` is requested and named in failures; ``timeout_s`` bounds the whole call.

    ``address`` overrides the URL's host for the connection (a Service's endpoint), ``server_name`` is the name in the
    certificate (empty: the URL's), ``ca_pem`` its accepted issuers (empty: the system's authorities).
    """

    url: str
    body: bytes = b""
    timeout_s: float = 10.0
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_pem: str = ""
    server_name: str = ""
    address: tuple[str, int] | None = None
    insecure: bool = False
    """Skip the verification of the certificate (``insecureSkipTLSVerify`` of an APIService)."""
    as_proxy: bool = False
    """Present the API server's front-proxy certificate."""
    follow: bool = True
    """Follow redirects, as Kubernetes does for webhooks."""
    streams: bool = False
    """The body of a success does not end (a watch): it is returned as a stream of lines."""


@dataclass(frozen=True, slots=True)
class Computation:
    """A pure function of plain data that takes long, run in another process (``kube/transport/elsewhere.py``).

    ``share`` names its user: the computations of one user leave room for those of others.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    share: str = ""


@dataclass(frozen=True, slots=True)
class Aside:
    """A part of a large request, run in a thread (``elsewhere.aside``). The outcome only tells that it ran."""

    run: Callable[[], None]
    share: str = ""
    first: bool = True
    """The first of its request; later ones are never refused, because the request may have written already."""


class Awaiting(Exception):
    """Raised until the calls are done, each with its key; then the request continues. It is never sent to a client."""

    def __init__(self, calls: Sequence[tuple[str, OutboundCall | Computation]]) -> None:
        super().__init__("others have to be asked first")
        self.calls = tuple(calls)


class Stream(Protocol):
    """A watch without a socket: the reader takes the available events, and is woken by new ones."""

    on_ready: Callable[[], None] | None
    """Called (at most once while it is empty) when :meth:`take` would return something, or the stream ended."""

    def take(self, limit: int = 1000) -> list[bytes]:
        """Return the next encoded watch events (one JSON object each, no newline) or log lines (with the container's
        newline), oldest first; empty: none now."""
        ...

    @property
    def ended(self) -> bool:
        """True when everything was taken and nothing more will come."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call. ``failure``: why there was no response, in the words of Go's HTTP client."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""
    stream: Stream | None = None
    """Set in place of a body, if requested."""
    value: Any = None
    error: ApiError | None = None
    """The result of a call or computation, or its failure."""


NO_NETWORK = "no calls are made from here: this cluster has no network"
"""Why a webhook fails in virtual time, unless a test or rehearsal provides a response."""
