"""How Git hosts may be asked: :class:`Reach`, and what is remembered between questions: :class:`Memory`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from syncline.base.clock import Clock, SystemClock
from syncline.base.secret import Secret
from syncline.sources.remote.address import DEFAULT_NETWORKS, Networks

BASES: Mapping[str, str] = MappingProxyType(
    {
        "github": "https://api.github.com/",
        "gitlab": "https://gitlab.com/",
        "bitbucket": "https://api.bitbucket.org/2.0",
        "azureDevOps": "https://dev.azure.com",
        "codecommit": "https://codecommit.{region}.{domain}/",
        "tagging": "https://tagging.{region}.{domain}/",
        "sts": "https://sts.{region}.{domain}/",
    }
)
"""The addresses of the public hosts, used where a generator names no ``api``."""


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """Limits of one question."""

    pages: int = 200
    """Of one list."""
    items: int = 20_000
    """Repositories, branches and pull requests together."""
    requests: int = 10_000
    bytes: int = 8_000_000
    """Of one decompressed answer."""
    wait_s: float = 30.0
    """Without a byte from the host."""
    wall_s: float = 900.0
    """For everything together."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that the host may confirm with 304 Not Modified."""

    etag: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


Who = tuple[str, str]
"""An origin and a digest of the credentials with which it is asked; empty: without any."""


class Memory:
    """Answers with their ETags, by address and credentials, and moments before which hosts want no request. Bounded and
    thread-safe; one for all questions of a process."""

    def __init__(self, *, answers: int = 4_000, together: int = 32_000_000, each: int = 1_000_000) -> None:
        self._answers, self._together, self._each = answers, together, each
        self._kept: OrderedDict[tuple[str, Who], Kept] = OrderedDict()
        self._size = 0
        self._rests: OrderedDict[Who, datetime] = OrderedDict()
        self._lock = threading.Lock()

    def kept(self, url: str, who: Who) -> Kept | None:
        """Return the last answer of ``url`` to these credentials."""
        with self._lock:
            found = self._kept.get((url, who))
            if found is not None:
                self._kept.move_to_end((url, who))
            return found

    def keep(self, url: str, who: Who, answer: Kept) -> None:
        """Remember an answer; the one that was used least recently makes room."""
        with self._lock:
            before = self._kept.pop((url, who), None)
            self._size -= len(before.body) if before is not None else 0
            if len(answer.body) > self._each:
                return
            self._kept[url, who] = answer
            self._size += len(answer.body)
            while self._size > self._together or len(self._kept) > self._answers:
                _, gone = self._kept.popitem(last=False)
                self._size -= len(gone.body)

    def rests_until(self, who: Who) -> datetime | None:
        """Return the moment that the host named last to these credentials."""
        with self._lock:
            return self._rests.get(who)

    def rest(self, who: Who, until: datetime) -> None:
        """Remember when the host wants to be asked again."""
        with self._lock:
            self._rests[who] = until
            self._rests.move_to_end(who)
            while len(self._rests) > self._answers:
                self._rests.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Reach:
    """The administrator's settings for requests to Git hosts."""

    allowed: tuple[str, ...] = ()
    """Values of ``api`` that are allowed, compared letter by letter; empty: all (``--allowed-scm-providers``)."""
    networks: Networks = DEFAULT_NETWORKS
    """That are not reached, whatever names them."""
    ca_pem: str = ""
    """Certificates that are trusted beside those of the system (content of ``--scm-root-ca-path``)."""
    proxy: Secret | None = None
    """``--scm-proxy-url``; a Secret since it may hold a password. None: the proxy of the process."""
    no_proxy: str = ""
    limits: ProviderLimits = ProviderLimits()
    bases: Mapping[str, str] = field(default_factory=lambda: BASES)
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Variables of the process, from which AWS' identity and region are taken; empty: there is none."""
    memory: Memory = field(default_factory=Memory, repr=False)
    clock: Clock = field(default_factory=SystemClock, repr=False)
