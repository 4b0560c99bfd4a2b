"""Protects HTTP listeners without authentication from web pages: :meth:`BrowserGuard.refusal` judges each request.

A page can make its visitor's browser send requests to this machine (cross-site forms, WebSockets), and can read the
responses if the page's own host name resolves to this machine (DNS rebinding). Programs send the address they call as
Host, no foreign ``Origin``, and a content type. Pure; called by ``cluster/serving/guarding.py`` for each request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

WILDCARDS = ("", "0.0.0.0", "::")
"""Hosts to listen on that stand for every address of the machine."""
DEFAULT_PORTS = {"http": 80, "https": 443}
FORMS = ("application/x-www-form-urlencoded",)
"""The only content type of programs that a page may send without a preflight request."""
SHOWN = 80
"""The characters of a value that a refusal repeats."""
_WATCHED = ("host", "origin", "sec-fetch-site", "content-type", "content-length", "transfer-encoding", "user-agent")
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._~-]+)(?::([0-9]{0,5}))?", re.ASCII)
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*", re.ASCII)
_ORIGIN = re.compile(r"(https?)://(.+)", re.ASCII)
_CLIENT_GO = re.compile(r"[^ ]+/[^ ]+ \([a-z0-9]+/[a-z0-9]+\) kubernetes/[^ ]+", re.ASCII)
"""``kubectl create --raw`` is the only client that sends a body without a content type. A page cannot imitate it: the
browser sets the User-Agent of requests without a preflight."""
_PROGRAMS = re.compile(r"application/[a-z0-9!#$&^_.+-]+", re.ASCII)

_Place = tuple[str, int | None]
"""A normalized host, and the port if one was written."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP status and a message for the author of the client."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class BrowserGuard:
    """The checks of one listener: ``host`` is its listen address, ``names`` are further host names that callers may
    use.

    On a loopback listener ``Host`` must name the loopback. On other listeners ``Host`` may be any address (pods are
    called by IP), and any name unless ``names`` are given."""

    host: str
    names: tuple[str, ...] = ()

    def refusal(self, local: str, target: str, headers: Iterable[tuple[str, str]]) -> Refusal | None:
        """Return why a request is refused, or None if it is allowed. ``local`` is the local address of the connection
        (empty after the caller left), ``target`` the request target of the first line."""
        found: dict[str, list[str]] = {name: [] for name in _WATCHED}
        for name, value in headers:
            if (lower := name.lower()) in found:
                found[lower].append(value.strip())
        if len(found["host"]) > 1:
            return Refusal(400, "the request has several Host headers; send one")
        text = found["host"][0] if found["host"] else None
        asked = _place(text) if text is not None else None
        if text is not None and asked is None:
            return Refusal(400, f"Host {_shown(text)}: not HOST or HOST:PORT")
        return (
            self._misdirected(local, asked, text)
            or _foreign_target(target, asked)
            or _foreign_page(found, asked)
            or _unlabelled_body(found)
        )

    def _misdirected(self, local: str, asked: _Place | None, text: str | None) -> Refusal | None:
        """Return the refusal of a wrong Host. An attacker may point a name of theirs to this address; addresses and our
        own names are safe. A public listener without ``names`` cannot know its names, so it accepts all."""
        here = (not local or is_loopback(local)) and self.host not in WILDCARDS
        if not here and not self.names:
            return None
        if asked is None:
            return Refusal(400, "the request has no Host header; send one")
        address = _address(asked[0])
        if address is not None:
            fine = not here or is_loopback(asked[0])
        else:
            fine = asked[0] in {"localhost", *map(_plain, self.names), _plain(self.host)}
        if fine:
            return None
        return Refusal(
            403,
            f"Host {_shown(text or '')}: this address answers to 127.0.0.1, [::1], localhost and the names that were "
            "allowed; ask one of these, or allow the name with --allowed-host",
        )


def is_loopback(host: str) -> bool:
    """Return True for a loopback address; host names return False."""
    address = _address(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address is not None and (mapped or address).is_loopback


def is_host_name(text: str) -> bool:
    """Return True if ``text`` is a host name that can be allowed: without scheme, port or wildcard."""
    return _NAME.fullmatch(_plain(text)) is not None


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _plain(host: str) -> str:
    """Return the name in lower case without the final dot."""
    return host.lower().removesuffix(".")


def _place(authority: str) -> _Place | None:
    """Return host and port of ``HOST[:PORT]``; None if it is malformed, for instance with a user."""
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        return None
    host, port = _plain(parts[1]), parts[2]
    if host.startswith("["):
        address = _address(host[1:-1])
        if not isinstance(address, IPv6Address):
            return None
        host = str(address)
    if not host or (port and int(port) > 65535):
        return None
    return host, int(port) if port else None


def _foreign_target(target: str, asked: _Place | None) -> Refusal | None:
    """Refuse ``GET http://elsewhere/ HTTP/1.1``, a request to a proxy, unless its host equals the Host header."""
    if target.startswith("/") or target == "*":
        return None
    scheme, separator, rest = target.partition("://")
    named = _place(re.split(r"[/?#]", rest, maxsplit=1)[0]) if separator else None
    if named is not None and asked is not None and _same(named, asked, scheme.lower()):
        return None
    return Refusal(400, f"request target {_shown(target)}: this is no proxy; begin it with /")


def _foreign_page(found: dict[str, list[str]], asked: _Place | None) -> Refusal | None:
    """Return why a request comes from a foreign page. Pages of another port of this machine are foreign, too."""
    for origin in found["origin"]:
        parts = _ORIGIN.fullmatch(origin.lower())
        place = _place(parts[2]) if parts is not None else None
        if parts is None or place is None or asked is None or not _same(place, asked, parts[1]):
            return Refusal(403, f"Origin {_shown(origin)}: pages of other origins are not answered")
    for site in found["sec-fetch-site"]:
        if site not in ("same-origin", "none"):
            return Refusal(403, f"Sec-Fetch-Site {_shown(site)}: pages of other origins are not answered")
    return None


def _same(one: _Place, other: _Place, scheme: str) -> bool:
    port = DEFAULT_PORTS.get(scheme)
    return one[0] == other[0] and (one[1] or port) == (other[1] or port)


def _unlabelled_body(found: dict[str, list[str]]) -> Refusal | None:
    """Refuse bodies that a page can send without a preflight request: untyped, text or form. Programs never send
    these."""
    if not found["transfer-encoding"] and not any(length.strip("0") for length in found["content-length"]):
        return None
    types = found["content-type"]
    plain = types[0].partition(";")[0].strip().lower() if len(types) == 1 else ""
    if _PROGRAMS.fullmatch(plain) and plain not in FORMS:
        return None
    if not types and len(found["user-agent"]) == 1 and _CLIENT_GO.fullmatch(found["user-agent"][0]):
        return None
    said = _shown(", ".join(types)) if types else "missing"
    return Refusal(415, f"Content-Type {said}: say what the body is, such as application/json")


def _shown(text: str) -> str:
    return ascii(text[:SHOWN])
