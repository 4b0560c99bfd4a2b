"""Which texts Go takes for a URL (``net/url.Parse``): only what verdicts of Ignition need of one.

A source is refused as unparsable exactly where Go refuses it, so the rules are Go's and not those of ``urllib``.
Several colons in a host pass, as they do in Ignition's own programs.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

__all__ = ["Url", "UrlError", "parse_url"]


class UrlError(ValueError):
    """The text is no URL."""


@dataclass(frozen=True, slots=True)
class Url:
    """``scheme`` in lower case; ``opaque`` is what follows it when there is no slash; ``query`` still escaped."""

    scheme: str
    opaque: str
    query: str

    def values(self, name: str) -> list[str] | None:
        """Every value of one query parameter, None if the parameter does not occur. Pairs that cannot be read, or that
        hold a semicolon, are passed over."""
        found: list[str] = []
        for pair in self.query.split("&"):
            if not pair or ";" in pair:
                continue
            key, _, value = pair.partition("=")
            if _BAD_ESCAPE.search(key) or _BAD_ESCAPE.search(value):
                continue
            if unquote_to_bytes(key.replace("+", " ")) == name.encode():
                found.append(unquote_to_bytes(value.replace("+", " ")).decode(errors="replace"))
        return found or None


_CONTROL = re.compile("[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_PORT = re.compile(r"(?::[0-9]*)?")
_HOST_SIGN = re.compile(r"[^\x00-\x20#/?@\\^`{|}\x7f]*")
_HOST_ESCAPE = re.compile(r"%(?!25)[0-7][0-9a-fA-F]")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")


def parse_url(text: str) -> Url:
    """Raises :class:`UrlError` where Go does."""
    text, _, fragment = text.partition("#")
    _escapes(fragment)
    if _CONTROL.search(text):
        raise UrlError("invalid control character in URL")
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme, rest = (match[1].lower(), text[match.end() :]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, rest, query)
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        _authority(authority)
        rest = slash + path
    _escapes(rest)
    return Url(scheme, "", query)


def _escapes(text: str) -> None:
    if _BAD_ESCAPE.search(text):
        raise UrlError("invalid URL escape")


def _authority(authority: str) -> None:
    user, at, host = authority.rpartition("@")
    _host(host)
    if at:
        if not _USER.fullmatch(user):
            raise UrlError("invalid userinfo")
        _escapes(user)


def _host(host: str) -> None:
    opened = host.rfind("[")
    if opened > 0:
        raise UrlError("invalid IP-literal")
    if opened == 0:
        _literal_host(host)
        return
    colon = host.rfind(":")
    if colon >= 0 and not _PORT.fullmatch(host, colon):
        raise UrlError("invalid port after host")
    _host_signs(host)


def _literal_host(host: str) -> None:
    """``[fe80::1%25en0]:80``: an IPv6 address in brackets, maybe with a zone."""
    closed = host.rfind("]")
    if closed < 0:
        raise UrlError("missing ']' in host")
    if not _PORT.fullmatch(host[closed + 1 :]):
        raise UrlError("invalid port after host")
    address, percent, zone = host[1:closed].partition("%25")
    _host_signs(address)
    if percent:
        _zone(zone)
    try:
        ipaddress.IPv6Address(unquote_to_bytes(address).decode(errors="replace"))
    except ValueError:
        raise UrlError("invalid host") from None


def _zone(zone: str) -> None:
    """Escapes may only stand for what might stand there unescaped, or for a space."""
    _escapes(zone)
    meant = _ESCAPE.sub(lambda match: "-" if match[1] in ("20", "25") else chr(int(match[1], 16)), zone)
    if not zone or "%" in meant or not _HOST_SIGN.fullmatch(meant):
        raise UrlError("invalid zone")
    if any(int(code, 16) > 0x7F for code in _ESCAPE.findall(zone)):
        raise UrlError("invalid URL escape")


def _host_signs(host: str) -> None:
    _escapes(host)
    if not _HOST_SIGN.fullmatch(host) or _HOST_ESCAPE.search(host):
        raise UrlError("invalid character in host name")
