"""Reads armoured PGP public keys, as ``argocd-gpg-keys-cm`` holds them: :func:`public_keys`.

Pure; no program is run. Rules: RFC 4880, and which fields Argo CD ``util/sourceintegrity/gpg.go`` takes from what gpg
prints. Whether a key is genuine or expired is judged where signatures are verified.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from syncline.kube.objects import Obj

MAX_TEXT = 1_000_000
MAX_KEYS = 64
_BEGIN, _END = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
_BLOCK = re.compile(rf"{_BEGIN}[^\n]*\n(.*?)\n{_END}", re.DOTALL)
_KEY, _USER = 6, 13
_NUMBERED = {1: "rsa", 2: "rsa", 3: "rsa", 16: "elg", 17: "dsa"}
"""Algorithms whose first number says how long a key is."""
_CURVES = {
    "2b06010401da470f01": "ed25519",
    "2b060104019755010501": "cv25519",
    "2a8648ce3d030107": "nistp256",
    "2b81040022": "nistp384",
    "2b81040023": "nistp521",
}
_SHORT, _LONG = re.compile(r"[0-9A-Fa-f]{16}"), re.compile(r"[0-9A-Fa-f]{40}")


class KeyFormatError(ValueError):
    """A text that is no public key, or an id that is none."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key with its identities and subkeys; ``data`` is its armoured text."""

    fingerprint: str
    owner: str
    kind: str
    data: str

    @property
    def key_id(self) -> str:
        return self.fingerprint[24:]

    def as_obj(self) -> Obj:
        return {
            "keyID": self.key_id,
            "fingerprint": self.fingerprint,
            "owner": self.owner,
            "trust": "unknown",
            "subType": self.kind,
            "keyData": self.data,
        }


def key_id(text: str) -> str:
    """Return the short id of an id or a fingerprint. Raises :class:`KeyFormatError`."""
    if _LONG.fullmatch(text):
        return text[24:]
    if _SHORT.fullmatch(text):
        return text
    raise KeyFormatError(f"'{text[:80]}' is not a valid GnuPG key ID")


def public_keys(text: str) -> dict[str, PublicKey]:
    """Return the keys of an armoured text by their short id. Raises :class:`KeyFormatError` if there is none."""
    if len(text) > MAX_TEXT:
        raise KeyFormatError(f"the keys are longer than {MAX_TEXT} letters")
    found: dict[str, PublicKey] = {}
    for block in _BLOCK.finditer(text.replace("\r\n", "\n")):
        for key in _keys(_decoded(block[1])):
            found[key.key_id] = key
            if len(found) > MAX_KEYS:
                raise KeyFormatError(f"there are more than {MAX_KEYS} keys")
    if not found:
        raise KeyFormatError("no valid OpenPGP data found")
    return found


def _decoded(body: str) -> bytes:
    lines = body.split("\n")
    start = next((at + 1 for at, line in enumerate(lines) if not line.strip()), 0)
    kept = [line.strip() for line in lines[start:] if not re.fullmatch(r"=[A-Za-z0-9+/]{4}", line.strip())]
    try:
        return base64.b64decode("".join(kept), validate=True)
    except binascii.Error:
        raise KeyFormatError("the armour of the key is not base64") from None


def _keys(raw: bytes) -> Iterator[PublicKey]:
    parts: list[tuple[int, bytes, bytes]] = []
    for packet in _packets(raw):
        if packet[0] == _KEY and parts:
            yield _key(parts)
            parts = []
        if parts or packet[0] == _KEY:
            parts.append(packet)
    if parts:
        yield _key(parts)


def _packets(raw: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield tag, body and the whole of each packet. Raises :class:`KeyFormatError`."""
    at = 0
    while at < len(raw):
        first = raw[at]
        if not first & 0x80:
            raise KeyFormatError("the key is damaged: a packet has no tag")
        if first & 0x40:
            tag, (size, start) = first & 0x3F, _new_length(raw, at + 1)
        else:
            tag, width = (first >> 2) & 0xF, (1, 2, 4, 0)[first & 3]
            start = at + 1 + width
            size = int.from_bytes(raw[at + 1 : start], "big") if width else len(raw) - start
        if start + size > len(raw):
            raise KeyFormatError("the key is damaged: a packet is cut off")
        yield tag, raw[start : start + size], raw[at : start + size]
        at = start + size


def _new_length(raw: bytes, at: int) -> tuple[int, int]:
    first = raw[at] if at < len(raw) else 255
    if first < 192:
        return first, at + 1
    if first < 224 and at + 1 < len(raw):
        return ((first - 192) << 8) + raw[at + 1] + 192, at + 2
    if first == 255:
        return int.from_bytes(raw[at + 1 : at + 5], "big"), at + 5
    raise KeyFormatError("the key is damaged: a packet has no length")


def _key(parts: list[tuple[int, bytes, bytes]]) -> PublicKey:
    body = parts[0][1]
    if len(body) < 8 or body[0] != 4:
        raise KeyFormatError("only keys of version 4 are known")
    hashed = hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False)
    owner = next((body.decode("utf-8", "replace") for tag, body, _ in parts if tag == _USER), "")
    return PublicKey(hashed.hexdigest().upper(), owner, _kind(body), _armoured(b"".join(whole for *_, whole in parts)))


def _kind(body: bytes) -> str:
    algorithm = body[5]
    if algorithm in _NUMBERED:
        return f"{_NUMBERED[algorithm]}{int.from_bytes(body[6:8], 'big')}"
    return _CURVES.get(body[7 : 7 + body[6]].hex(), "unknown")


def _armoured(raw: bytes) -> str:
    check = 0xB704CE
    for byte in raw:
        check ^= byte << 16
        for _ in range(8):
            check = (check << 1) ^ (0x1864CFB if check & 0x800000 else 0)
            check &= 0xFFFFFF
    text = base64.b64encode(raw).decode()
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    end = base64.b64encode(check.to_bytes(3, "big")).decode()
    return f"{_BEGIN}\n\n{lines}\n={end}\n{_END}\n"
