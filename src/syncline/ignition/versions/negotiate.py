"""Which version of the specification a client of the config server understands, from its Accept header.

``application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1``. Source: openshift/machine-config-operator
``pkg/server/api.go``: entries by falling quality, the first Ignition entry with a version decides; parameters that
cannot be read count as absent.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass

from syncline.ignition.golang import Version, parse_version

_DEFAULT = "2.2.0"
_NEWEST_MINOR = 5
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


class NegotiationError(ValueError):
    """No version that is asked for can be served; answer 400."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One entry: ``type/subtype``, the version if it has one, and how much it is wanted (a 32-bit float)."""

    type: str
    version: Version | None
    quality: float


def negotiate(accept: str) -> str:
    """The version to serve: ``2.2.0`` or one of ``3.0.0`` to ``3.5.0``. Raises :class:`NegotiationError`."""
    for entry in parse_accept(accept):
        if entry.type.partition("/")[2] != "vnd.coreos.ignition+json" or entry.version is None:
            continue
        version = entry.version
        if version.major == 2 and not version.older_than(Version(2, 2, 0)):
            return _DEFAULT
        if version.major == 3 and version.minor > _NEWEST_MINOR:
            return f"3.{_NEWEST_MINOR}.0"
        if (version.major == 3 and version.minor >= 0) or (version.major, version.minor) == (2, 2):
            return f"{version.major}.{version.minor}.0"
        raise NegotiationError(f"unsupported Ignition version in Accept header: {accept}")
    return _DEFAULT


def parse_accept(accept: str) -> list[Accepted]:
    """Entries by falling quality, equal ones in the header's order; what has no slash is passed over."""
    entries = [entry for part in accept.split(",") if (entry := _entry(part)) is not None]
    return sorted(entries, key=lambda entry: -entry.quality)


def _entry(text: str) -> Accepted | None:
    kind, *parameters = (part.strip(_SPACE) for part in text.strip(_SPACE).split(";"))
    if "/" not in kind:
        return None
    version: Version | None = None
    quality: float | None = None
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if equals and name == "version" and version is None:
            version = parse_version(value)
        elif equals and name == "q" and quality is None:
            quality = _float32(value)
    return Accepted(kind, version, 1.0 if quality is None else quality)


_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_SEPARATOR = re.compile(r"(?<=[0-9])_(?=[0-9])")
_HEX_SEPARATOR = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)


def _float32(text: str) -> float | None:
    """``strconv.ParseFloat`` with 32 bits, ``_`` between digits included; None where it fails, also when the number is
    too large."""
    if _INFINITE.fullmatch(text):
        return -math.inf if text.startswith("-") else math.inf
    if text.lower() == "nan":
        return math.nan
    decimal, hexadecimal = _SEPARATOR.sub("", text), _HEX_SEPARATOR.sub("", text)
    try:
        if _DECIMAL.fullmatch(decimal):
            wide = float(decimal)
        elif _HEXADECIMAL.fullmatch(hexadecimal):
            wide = float.fromhex(hexadecimal)
        else:
            return None
        narrow: float = struct.unpack("f", struct.pack("f", wide))[0]
    except (OverflowError, ValueError):
        return None
    return None if math.isinf(narrow) else narrow
