"""Paths and addresses: Go's ``path`` and ``net/url`` as sprig uses them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from syncline.kube.gotemplate.fmt import sprintf
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind
from syncline.kube.gotemplate.sprig.reflection import NIL_POINTER
from syncline.kube.gotemplate.values import decode, encode, go_kind

STRING, DICT = Kind.STRING, Kind.DICT


def clean(path: str) -> str:
    """Return the shortest path with the same meaning, ``.`` for an empty one."""
    rooted = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", ".") and (part != ".." or not rooted):
            parts.append(part)
    return ("/" if rooted else "") + "/".join(parts) or "."


def base(path: str) -> str:
    """Return the last element; ``.`` for an empty path, ``/`` for one of slashes."""
    if not path:
        return "."
    return path.rstrip("/").rpartition("/")[2] or "/"


def directory(path: str) -> str:
    head, slash, _ = path.rpartition("/")
    return clean(head + slash)


def extension(path: str) -> str:
    _, dot, tail = path.rpartition("/")[2].rpartition(".")
    return dot + tail if dot else ""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of an address, decoded; ``user`` is None without userinfo, ``query`` stays encoded."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    """As it is written again: ``name:password``, encoded."""
    host: str = ""
    path: str = ""
    query: str = ""
    force_query: bool = False
    fragment: str = ""


class UrlError(ValueError):
    """Why Go does not parse an address."""


_HEX = b"0123456789ABCDEFabcdef"
_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
_PLAIN = {
    "path": _UNRESERVED | frozenset(b"$&+,/:;=@"),
    "user": _UNRESERVED | frozenset(b"$&+,;="),
    "host": _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\""),
    "zone": _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\""),
    "fragment": _UNRESERVED | frozenset(b"$&+,/:;=?@!()*"),
}
"""Bytes that stay as they are, by part."""


def unescaped(text: str, part: str) -> str:
    """Decode ``%41``. Raises :class:`UrlError`."""
    data, made, at = encode(text), bytearray(), 0
    while at < len(data):
        byte = data[at]
        if byte == ord("%"):
            digits = data[at + 1 : at + 3]
            if len(digits) < 2 or any(digit not in _HEX for digit in digits):
                raise UrlError(f"invalid URL escape {sprintf('%q', decode(data[at : at + 3]))}")
            value = int(digits, 16)
            whole = decode(data[at : at + 3])
            if part == "host" and digits[0] in b"01234567" and whole != "%25":
                raise UrlError(f"invalid URL escape {sprintf('%q', whole)}")
            if part == "zone" and whole != "%25" and value != ord(" ") and value not in _PLAIN["zone"]:
                raise UrlError(f"invalid URL escape {sprintf('%q', whole)}")
            made.append(value)
            at += 3
            continue
        if part in ("host", "zone") and byte < 0x80 and byte not in _PLAIN[part]:
            raise UrlError(f"invalid character {sprintf('%q', chr(byte))} in host name")
        made.append(byte)
        at += 1
    return decode(bytes(made))


def escaped(text: str, part: str) -> str:
    plain = _PLAIN[part]
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in encode(text))


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def parse(text: str) -> Url:
    """Parse an address. Raises :class:`UrlError` in Go's words."""
    front, _, raw_fragment = text.partition("#")
    shown = front
    try:
        fields = _parsed(front)
        shown = text
        if raw_fragment:
            fields["fragment"] = unescaped(raw_fragment, "fragment")
    except UrlError as error:
        raise UrlError(f"parse {sprintf('%q', shown)}: {error}") from None
    return Url(**fields)


def _parsed(text: str) -> dict[str, Any]:
    if _CONTROL.search(text):
        raise UrlError("net/url: invalid control character in URL")
    if text == "*":
        return {"path": "*"}
    scheme, rest = _scheme(text)
    fields: dict[str, Any] = {"scheme": scheme.lower()}
    if rest.endswith("?") and rest.count("?") == 1:
        rest, fields["force_query"] = rest[:-1], True
    else:
        rest, _, fields["query"] = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return {**fields, "opaque": rest}
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    if (scheme or not rest.startswith("///")) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        fields.update(_authority(authority, fields["scheme"]))
    fields["path"] = unescaped(rest, "path")
    return fields


def _scheme(text: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    if found:
        return found[1], text[found.end() :]
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    return "", text


_USERINFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")


def _authority(text: str, scheme: str) -> dict[str, Any]:
    userinfo, mark, host = text.rpartition("@")
    fields: dict[str, Any] = {"host": _host(host, scheme)}
    if not mark:
        return fields
    if not _USERINFO.fullmatch(userinfo):
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    written = escaped(unescaped(name, "user"), "user")
    if colon:
        written += ":" + escaped(unescaped(password, "user"), "user")
    return {**fields, "user": written}


_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)


def _host(text: str, scheme: str) -> str:
    opened = text.rfind("[")
    if opened > 0:
        raise UrlError("invalid IP-literal")
    if opened == 0:
        return _literal_host(text)
    if ":" in text:
        # One colon is allowed, other schemes than HTTP may have more.
        strict = scheme in ("http", "https")
        _check_port(text[text.index(":") if strict else text.rindex(":") :])
    return unescaped(text, "host")


def _literal_host(text: str) -> str:
    """Return an IPv6 address in brackets, maybe with a zone and a port."""
    closed = text.rfind("]")
    if closed < 0:
        raise UrlError("missing ']' in host")
    _check_port(text[closed + 1 :])
    zone = text[:closed].find("%25")
    end = closed if zone < 0 else zone
    host = unescaped(text[1:end], "host") + unescaped(text[end:closed], "zone")
    _check_address(host)
    return f"[{host}]{text[closed + 1 :]}"


def _check_address(host: str) -> None:
    address, mark, zone = host.partition("%")
    sort = next((sign for sign in host if sign in ".:%"), "")
    shown = f"invalid host: ParseAddr({sprintf('%q', host)}): "
    if sort == "%":
        raise UrlError(shown + "missing IPv6 address")
    if sort == ":" and mark and not zone:
        raise UrlError(shown + "zone must be a non-empty string")
    try:
        found = ipaddress.ip_address(address if sort == ":" else host)
    except ValueError:
        raise UrlError(shown + "unable to parse IP") from None
    if found.version == 4:
        raise UrlError("invalid IP-literal")


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise UrlError(f"invalid port {sprintf('%q', text)} after host")


def hostname(host: str) -> str:
    """Return the host without port and brackets."""
    colon = host.rfind(":")
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        host = host[:colon]
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def written(url: Url) -> str:
    """Return the text of an address."""
    text = f"{url.scheme}:" if url.scheme else ""
    if url.opaque:
        text += url.opaque
    else:
        if url.scheme or url.host or url.user is not None:
            if url.host or url.path or url.user is not None:
                text += "//"
            text += f"{url.user}@" if url.user is not None else ""
            text += escaped(url.host, "host")
        path = "*" if url.path == "*" else escaped(url.path, "path")
        if path and not path.startswith("/") and url.host:
            text += "/"
        if not text and ":" in path.partition("/")[0]:
            text += "./"
        text += path
    if url.force_query or url.query:
        text += f"?{url.query}"
    return text + (f"#{escaped(url.fragment, 'fragment')}" if url.fragment else "")


def _url_parse(text: str) -> dict[str, Any]:
    try:
        url = parse(text)
    except UrlError as error:
        raise FunctionError(f"unable to parse url: {error}") from None
    return {
        "scheme": url.scheme,
        "host": url.host,
        "hostname": hostname(url.host),
        "path": url.path,
        "query": url.query,
        "opaque": url.opaque,
        "fragment": url.fragment,
        "userinfo": url.user or "",
    }


def _url_join(parts: dict[str, Any]) -> str:
    texts: dict[str, Any] = {}
    for key in ("scheme", "host", "path", "query", "opaque", "fragment", "userinfo"):
        value = parts.get(key, "")
        if value is None:
            raise FunctionError(NIL_POINTER)
        if not isinstance(value, str):
            raise FunctionError(f"unable to parse {key} key, must be of type string, but {go_kind(value)} found")
        texts[key] = value
    user = None
    if userinfo := texts.pop("userinfo"):
        try:
            user = parse(f"proto://{userinfo}@host").user
        except UrlError as error:
            raise FunctionError(f"unable to parse userinfo in dict: {error}") from None
    return written(Url(user=user, **texts))


def _is_absolute(path: str) -> bool:
    return path.startswith("/")


def _text(call: Any, result: Kind = STRING) -> Function:
    return Function(call, (STRING,), result=result)


PATHS = {
    "base": _text(base),
    "dir": _text(directory),
    "clean": _text(clean),
    "ext": _text(extension),
    "isAbs": _text(_is_absolute, Kind.BOOL),
}

URLS: Mapping[str, Function] = {
    **PATHS,
    **{f"os{name[0].upper()}{name[1:]}": function for name, function in PATHS.items()},
    "urlParse": _text(_url_parse, DICT),
    "urlJoin": Function(_url_join, (DICT,), result=STRING),
}
