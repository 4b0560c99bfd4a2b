"""Base64 and base32 with Go's errors, and digests. Source: sprig's strings.go and crypto.go."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping

from syncline.kube.gotemplate.functions import Function, Kind
from syncline.kube.gotemplate.values import decode, encode


class CorruptError(ValueError):
    """Text that is no base64 or base32, in Go's words."""


def decode64(text: str) -> bytes:
    """Decode standard base64 with padding; line breaks are skipped. Raises :class:`CorruptError`."""
    data = encode(text)
    places = [at for at, byte in enumerate(data) if byte not in b"\r\n"]
    signs = bytes(data[at] for at in places)
    wrong = _wrong64(signs, [*places, len(data)])
    if wrong is not None:
        raise CorruptError(f"illegal base64 data at input byte {wrong}")
    return base64.b64decode(signs)


def _wrong64(signs: bytes, places: list[int]) -> int | None:
    """Return where Go finds an error; ``places`` are those of the signs in the text, and its end."""
    good, end = _run(_ALPHABET64, signs), places[-1]
    rest = good % 4
    if good == len(signs):
        return end - rest if rest else None
    if signs[good : good + 1] != b"=" or rest < 2:
        return places[good]
    last = good
    if rest == 2:
        last = good + 1
        if last == len(signs):
            return end
        if signs[last : last + 1] != b"=":
            return places[last] - 1
    return places[last + 1] if last + 1 < len(signs) else None


def decode32(text: str) -> bytes:
    """Decode standard base32 with padding; line breaks are skipped. Raises :class:`CorruptError`."""
    signs = encode(text).replace(b"\r", b"").replace(b"\n", b"")
    good = _run(_ALPHABET32, signs)
    rest, start = good % 8, good - good % 8
    wrong = _wrong32(signs, good, rest)
    if wrong is not None:
        raise CorruptError(f"illegal base32 data at input byte {wrong}")
    return base64.b32decode(signs[: start + 8] if rest else signs)


def _wrong32(signs: bytes, good: int, rest: int) -> int | None:
    left = len(signs) - good - 1
    if left < 0:
        return good - rest if rest else None
    if signs[good : good + 1] != b"=" or rest < 2 or left >= 8:
        return good
    if left + rest < 7:
        return len(signs)
    for at in range(good + 1, good + 8 - rest):
        if signs[at : at + 1] != b"=":
            return at - 1
    return good if rest in (3, 6) else None


def _run(alphabet: re.Pattern[bytes], signs: bytes) -> int:
    """Return how many signs belong to the alphabet before the first that does not."""
    found = alphabet.match(signs)
    return found.end() if found else 0


_ALPHABET64 = re.compile(rb"[A-Za-z0-9+/]*")
_ALPHABET32 = re.compile(rb"[A-Z2-7]*")


def _or_error(read: Callable[[str], bytes]) -> Callable[[str], str]:
    """sprig returns the error's text as the result."""

    def call(text: str) -> str:
        try:
            return decode(read(text))
        except CorruptError as error:
            return str(error)

    return call


def _text(call: Callable[[str], str]) -> Function:
    return Function(call, (Kind.STRING,), result=Kind.STRING)


ENCODING: Mapping[str, Function] = {
    "b64enc": _text(lambda text: base64.b64encode(encode(text)).decode()),
    "b64dec": _text(_or_error(decode64)),
    "b32enc": _text(lambda text: base64.b32encode(encode(text)).decode()),
    "b32dec": _text(_or_error(decode32)),
    "sha1sum": _text(lambda text: hashlib.sha1(encode(text), usedforsecurity=False).hexdigest()),
    "sha256sum": _text(lambda text: hashlib.sha256(encode(text)).hexdigest()),
    "sha512sum": _text(lambda text: hashlib.sha512(encode(text)).hexdigest()),
    "adler32sum": _text(lambda text: str(zlib.adler32(encode(text)))),
}
