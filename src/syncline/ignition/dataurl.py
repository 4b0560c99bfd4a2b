"""``data:`` URLs, as strict as upstream reads them: ``data:[type/subtype][;attr=value…][;base64],payload``.

The grammar and its sentences are those of vincent-petithory/dataurl, which Ignition and the Machine Config Operator
use. Values of attributes may be quoted; the payload is percent-escaped text of URL characters, or padded base64.
"""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes


class DataUrlError(ValueError):
    """An invalid data URL; the message is upstream's."""


_TOKEN = r"!#$%&'*+\-.0-9A-Z^_`a-z{|}~"
_TOKENS = re.compile(f"[{_TOKEN}]*")
_TYPES = ("text", "image", "audio", "video", "application", "message", "multipart")
_QUOTED = re.compile(r"((?:[\x00-!#-\[\]-\x7f]|\\[\x00-\x7f])*)(.?)", re.DOTALL)
_ALPHANUMERIC = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PLAIN = _ALPHANUMERIC + b"!$%&'()*+,-./:;=?@_~"
_BASE64 = _ALPHANUMERIC + b"+/=\n"
_PADDED = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})[0-9a-fA-F]?")
_GO_ESCAPE = re.compile(
    r"""\\(?:[abfnrtv\\"]|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|"""
    r"""U(?:0000(?![dD][89a-fA-F])|000[1-9a-fA-F]|0010)[0-9a-fA-F]{4})|[^\\"\n]"""
)


def decode_data_url(text: str) -> bytes:
    """Return the bytes of a data URL; raises :class:`DataUrlError`."""
    payload, based = _payload(text)
    return _base64(payload) if based else _unescaped(payload)


def check_data_url(text: str) -> None:
    """Raise :class:`DataUrlError` if decoding would."""
    payload, based = _payload(text)
    if not based:
        _check_escapes(payload)
    elif not _PADDED.fullmatch(payload):
        _base64(payload)


def _payload(text: str) -> tuple[str, bool]:
    """What follows the comma, and whether it is base64."""
    if not text.startswith("data:"):
        raise DataUrlError("missing data prefix")
    at, based = _media_type(text, 5), False
    while text[at] == ";":
        at, based = _parameter(text, at + 1)
    payload = text[at + 1 :]
    if payload.encode("utf-8", "replace").translate(None, _BASE64 if based else _PLAIN):
        raise DataUrlError("invalid data character")
    return payload, based


def _media_type(text: str, at: int) -> int:
    """Behind ``type/subtype``; the comma or semicolon that follows is at the returned index."""
    head = text[at : at + 1]
    if head in (";", ","):
        return at
    if not head:
        raise DataUrlError("missing comma before data")
    if not _TOKENS.fullmatch(head):
        raise DataUrlError("invalid character after data prefix")
    private = text[at : at + 2].lower() == "x-"
    if head in ("x", "X") and not private and text[at + 1 : at + 2] not in ("", "-"):
        at += 2  # upstream swallows the sign behind the x unseen
    end = _tokens(text, at)
    if end == len(text):
        raise DataUrlError("missing media type slash")
    if text[end] != "/":
        raise DataUrlError("invalid character for media type")
    if not private and not text[5:end].startswith(_TYPES):
        raise DataUrlError("invalid media type")
    at = _tokens(text, end + 1)
    if at == len(text):
        raise DataUrlError("incomplete media type")
    if text[at] not in ";,":
        raise DataUrlError("invalid character for media subtype")
    return at


def _parameter(text: str, at: int) -> tuple[int, bool]:
    """Behind one ``attr=value`` or ``base64``; whether it was the latter."""
    end = _tokens(text, at)
    if at == end and text[at : at + 1] not in ("", "=", ","):
        raise DataUrlError("invalid character for parameter attribute")
    if at == end or end == len(text):
        raise DataUrlError("unterminated parameter sequence")
    if text[end] == ",":
        if text[at:end] != "base64":
            raise DataUrlError(f"expected base64, got {text[at:end]}")
        return end, True
    if text[end] != "=":
        raise DataUrlError("invalid character for parameter attribute")
    return _value(text, end + 1), False


def _value(text: str, at: int) -> int:
    head = text[at : at + 1]
    if not head:
        raise DataUrlError("missing comma before data")
    if head == '"':
        return _quoted_value(text, at + 1)
    end = _tokens(text, at)
    if end == at:
        raise DataUrlError("invalid character for parameter value")
    if end == len(text):
        raise DataUrlError("missing comma before data")
    if text[end] not in ";,":
        raise DataUrlError("invalid character for parameter value")
    _check_escapes(text[at:end])
    return end


def _quoted_value(text: str, at: int) -> int:
    match = _QUOTED.match(text, at)
    assert match
    if match[2] == "\\" and match.end() < len(text):
        raise DataUrlError("invalid escaped character")
    if match[2] != '"':
        ended = match[2] in ("", "\\")
        raise DataUrlError("unclosed quoted string" if ended else "invalid character for parameter value")
    if not re.fullmatch(f"(?:{_GO_ESCAPE.pattern})*", match[1]):
        raise DataUrlError("invalid syntax")
    at = match.end()
    if at == len(text):
        raise DataUrlError("missing comma before data")
    if text[at] not in ";,":
        raise DataUrlError("expected semicolon or comma")
    return at


def _tokens(text: str, at: int) -> int:
    match = _TOKENS.match(text, at)
    assert match
    return match.end()


def _unescaped(text: str) -> bytes:
    _check_escapes(text)
    return unquote_to_bytes(text)


def _check_escapes(text: str) -> None:
    match = _BAD_ESCAPE.search(text)
    if match is not None:
        what = "unexpected end of" if match.end() == len(text) else "invalid char 0x25 in"
        raise DataUrlError(f"rfc2396: {what} unescape sequence")


def _base64(text: str) -> bytes:
    """Decode the padded standard alphabet, line ends allowed; errors have the position where Go stops."""
    packed = text.replace("\n", "")
    try:
        if len(packed) % 4 == 0 and "=" not in packed[:-2]:
            return base64.b64decode(packed, validate=True)
    except binascii.Error:
        pass
    raise DataUrlError(f"illegal base64 data at input byte {_base64_fault(text)}")


def _base64_fault(text: str) -> int:
    """Where Go's decoder stops: it reads quanta of four, passing over line ends."""
    at, length = 0, len(text)
    while True:
        for index in range(4):
            while at < length and text[at] == "\n":
                at += 1
            if at == length:
                return at - index if index else length
            sign = text[at]
            at += 1
            if sign != "=":
                continue
            if index < 2:
                return at - 1
            return _padding_fault(text, at, index)


def _padding_fault(text: str, at: int, index: int) -> int:
    """The fault at or behind the first ``=``, which stood at ``index`` of its quantum and before ``at``."""
    length = len(text)
    if index == 2:
        while at < length and text[at] == "\n":
            at += 1
        if at == length:
            return length
        if text[at] != "=":
            return at - 1
        at += 1
    while at < length and text[at] == "\n":
        at += 1
    return at
