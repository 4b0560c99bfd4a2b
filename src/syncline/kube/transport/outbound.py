"""What an API wants done before it can answer, as data: calls of webhooks and aggregated APIs, long evaluations.

An API without sockets answers a :class:`Pending` instead of a result; the code that hosts it makes the calls (or says
that no one does) and continues with ``resume``. A request that waits holds nothing: it is judged again with what was
answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from syncline.kube.errors import ApiError

__all__ = ["NO_NETWORK", "Aside", "Awaiting", "Computation", "OutboundCall", "Outcome", "Stream"]


@dataclass(frozen=True, slots=True)
class OutboundCall:
    """One HTTPS call. ``url`` is what is asked for and what failures name; ``timeout_s`` bounds all of it.

    ``address`` is where to connect instead of the URL's host (a Service's endpoint), ``server_name`` the name that the
    certificate has to carry (empty: the URL's), ``ca_pem`` who may have signed it (empty: the system's authorities).
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
    """A client that answers is believed (an APIService that says so)."""
    as_proxy: bool = False
    """Shown to be from the API server, by its front-proxy certificate."""
    follow: bool = True
    """Redirects are followed, as Kubernetes does for webhooks."""
    streams: bool = False
    """The body of a success has no end of its own (a watch): it comes as a stream of lines."""


@dataclass(frozen=True, slots=True)
class Computation:
    """A pure function of plain data that takes long, to be run where nothing waits for it
    (``kube/transport/elsewhere.py``).

    ``share``: whose it is; many computations of one user leave room for those of others.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    share: str = ""


@dataclass(frozen=True, slots=True)
class Aside:
    """A part of a large request, to be run in a thread beside the loop (``elsewhere.aside``). The outcome says only
    whether it was run."""

    run: Callable[[], None]
    share: str = ""
    first: bool = True
    """Of its request: later ones are never refused, the request may have written already."""


class Awaiting(Exception):
    """The request continues when these were done, each with its key. Not an ApiError: nothing answers with it."""

    def __init__(self, calls: Sequence[tuple[str, OutboundCall | Computation]]) -> None:
        super().__init__("others have to be asked first")
        self.calls = tuple(calls)


class Stream(Protocol):
    """A watch without a socket: the reader takes what is there and is woken when there is more."""

    on_ready: Callable[[], None] | None
    """Called (at most once per emptiness) when :meth:`take` would return something, or the stream ended."""

    def take(self, limit: int = 1000) -> list[bytes]:
        """The next encoded watch events (one JSON object each, no newline) or lines of a log (with the newline that
        the container wrote), oldest first; empty: nothing now."""
        ...

    @property
    def ended(self) -> bool:
        """True when nothing more will come and everything was taken."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """``failure`` is set where nothing was answered: why, as Go's HTTP client says it."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""
    stream: Stream | None = None
    """Instead of a body, where one was asked for."""
    value: Any = None
    error: ApiError | None = None
    """The result of a call or computation, or its failure."""


NO_NETWORK = "no calls are made from here: this cluster has no network"
"""Why a webhook fails in virtual time, where no test or rehearsal answers for it."""
