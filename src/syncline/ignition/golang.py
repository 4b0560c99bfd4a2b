"""Rules of Go's standard library that Ignition depends on: paths, versions, quoted text, URLs.

A source must be refused exactly if Go refuses it, so the rules are Go's and not those of ``urllib``. As in Ignition's
own programs, a host may contain several colons.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes


def clean(path: str) -> str:
    """Return the shortest equal path (``path.Clean``): no ``.``, ``..``, doubled or trailing slash; ``.`` if empty."""
    rooted = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "..":
            parts.pop()
        elif not rooted:
            parts.append(part)
    done = "/".join(parts)
    return f"/{done}" if rooted else done or "."


def joined(*parts: str) -> str:
    """Join parts with single slashes and clean the result (``path.Join``); empty parts are ignored."""
    some = [part for part in parts if part]
    return clean("/".join(some)) if some else ""


def extension(path: str) -> str:
    """Return the part from the last dot of the last element (``path.Ext``): ``.service``; empty without a dot."""
    last = path.rpartition("/")[2]
    dot = last.rfind(".")
    return last[dot:] if dot >= 0 else ""


@dataclass(frozen=True, slots=True, order=False)
class Version:
    """A semantic version as coreos/go-semver reads it. Equality compares all parts."""

    major: int
    minor: int
    patch: int
    pre: str = ""
    build: str = ""

    def __str__(self) -> str:
        pre = f"-{self.pre}" if self.pre else ""
        build = f"+{self.build}" if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{build}"

    @property
    def numbers(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    def older_than(self, other: Version) -> bool:
        """Compare by precedence: a pre-release comes before its release; build data is ignored."""
        if self.numbers != other.numbers:
            return self.numbers < other.numbers
        if not self.pre or not other.pre:
            return bool(self.pre) and not other.pre
        return [_rank(part) for part in self.pre.split(".")] < [_rank(part) for part in other.pre.split(".")]


_INT = re.compile(r"[+-]?[0-9]+")
_IDENTIFIER = re.compile(r"(?:[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")


def parse_version(text: str) -> Version | None:
    """Parse ``3.4.0``; leading zeros and signs are accepted, as in coreos/go-semver. None if it is invalid."""
    text, _, build = text.partition("+")
    text, _, pre = text.partition("-")
    parts = text.split(".", 2)
    if len(parts) != 3 or not all(_INT.fullmatch(part) for part in parts):
        return None
    if not (_IDENTIFIER.fullmatch(pre) and _IDENTIFIER.fullmatch(build)):
        return None
    numbers = [int(part) if len(part) < 21 else 2**63 for part in parts]
    if any(not -(2**63) <= number < 2**63 for number in numbers):
        return None
    major, minor, patch = numbers
    return Version(major, minor, patch, pre, build)


def _rank(part: str) -> tuple[bool, int, str]:
    """Numbers come before words."""
    return (False, int(part), "") if part.isascii() and part.isdigit() and len(part) < 4000 else (True, 0, part)


_QUOTES = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """``%q``: the text in double quotes, unprintable characters escaped."""
    return '"' + "".join(_quoted_sign(sign) for sign in text) + '"'


def _quoted_sign(sign: str) -> str:
    if sign in _QUOTES:
        return _QUOTES[sign] if sign != "\v" else "\\v"
    if sign == "\v":
        return "\\v"
    if sign.isprintable():
        return sign
    code = ord(sign)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class UrlError(ValueError):
    """An invalid URL."""


@dataclass(frozen=True, slots=True)
class Url:
    """``scheme`` in lower case; ``opaque`` is what follows it when there is no slash; ``query`` still escaped."""

    scheme: str
    opaque: str
    query: str

    def values(self, name: str) -> list[str] | None:
        """Return every value of a query parameter, None if it does not occur. Invalid pairs, and those with a
        semicolon, are ignored."""
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
    """Parse a URL; raises :class:`UrlError` if Go would."""
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
