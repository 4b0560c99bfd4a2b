"""The text formats of schemas of custom resources: :func:`matches_format`.

Used by value checks and validation rules. An unlisted format is not checked, as in apiextensions
(``supportedV3Formats``). Source of the rules: kube-openapi ``strfmt`` and its copy of ``govalidator``.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable
from datetime import date
from functools import cache

_DATE_TIME = re.compile(
    r"^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$",
    re.ASCII,
)
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _pattern(text: str, flags: re.RegexFlag = re.ASCII) -> Callable[[str], bool]:
    compiled = cache(lambda: re.compile(text, flags))  # compiled on first use: some are long
    return lambda value: compiled().fullmatch(value) is not None


def _is_date(value: str) -> bool:
    try:
        return len(value) == 10 and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _is_date_time(value: str) -> bool:
    found = _DATE_TIME.match(value)
    if not found or not _is_date("-".join(found.group(1, 2, 3))):
        return False
    hour, minute, second = (int(part) for part in found.group(4, 5, 6))
    return hour < 24 and minute < 60 and second < 60


# --- networks ------------------------------------------------------------------------------------------------------


def _sloppy(value: str) -> str:
    """Remove leading zeros, which Go before 1.17 ignored."""
    return re.sub(r"(?<![0-9A-Fa-f:])0+(?=\d)", "", value) if "." in value else value


def _is_ip(value: str) -> bool:
    try:
        return "%" not in value and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def _is_cidr(value: str) -> bool:
    host, slash, bits = value.partition("/")
    if not slash or not _is_ip(_sloppy(host)) or not re.fullmatch(r"\d{1,3}", bits, re.ASCII):
        return False
    return int(bits) <= (128 if ":" in host else 32)


_HEX = "[0-9A-Fa-f]"
_MAC = re.compile(
    rf"{_HEX}{{2}}(:{_HEX}{{2}}){{5}}((:{_HEX}{{2}}){{2}}|(:{_HEX}{{2}}){{14}})?"
    rf"|{_HEX}{{2}}(-{_HEX}{{2}}){{5}}((-{_HEX}{{2}}){{2}}|(-{_HEX}{{2}}){{14}})?"
    rf"|{_HEX}{{4}}(\.{_HEX}{{4}}){{2}}((\.{_HEX}{{4}})|(\.{_HEX}{{4}}){{7}})?"
)
_HOST = re.compile(r"[lds](-?[lds]{0,62})?|([lds]([-lds]{0,61}[lds])?\.)+l{2,63}")


def _letter_class(letter: str) -> str:
    if letter in "-.":
        return letter
    if letter.isascii():
        return "d" if letter.isdigit() else "l" if letter.isalpha() else "s" if letter in "$+<=>^`|~" else "!"
    return {"L": "l", "S": "s"}.get(unicodedata.category(letter)[0], "!")


def _is_hostname(value: str) -> bool:
    if len(value.encode()) > 255 or any(len(part.encode()) > 63 for part in value.split(".")):
        return False
    return _HOST.fullmatch("".join(map(_letter_class, value))) is not None


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _is_uri(value: str) -> bool:
    """Return True for an absolute URI or an absolute path (``url.ParseRequestURI``)."""
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in value):
        return False
    scheme = _SCHEME.match(value)
    rest = value[scheme.end() :] if scheme else value
    if not rest.startswith("/"):
        return scheme is not None
    path = rest.partition("?")[0]
    if _BAD_PERCENT.search(path):
        return False
    if not (scheme and rest.startswith("//")):
        return True
    host = path[2:].partition("/")[0].rpartition("@")[2]
    if host.startswith("["):
        return re.fullmatch(r"\[[^\]]*\](:\d*)?", host) is not None
    return re.fullmatch(r"[^ \"<>\\^`{|}]*?(:\d*)?", host) is not None and host.count(":") <= 1


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\x80-\U0010ffff-]+"
_QUOTED = r'"(?:[^"\\\r\n]|\\.)*"'
_ADDRESS = rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_ATOM}(?:\.{_ATOM})*|\[[^\[\]\\]*\])"
_EMAIL = re.compile(rf"\s*(?:(?:(?:{_ATOM}|{_QUOTED}|\.)\s*)*<\s*{_ADDRESS}\s*>|{_ADDRESS})\s*(?:\([^()]*\))?\s*")


# --- numbers with check digits -------------------------------------------------------------------------------------

_CARD = re.compile(
    r"4\d{12}(\d{3})?|5[1-5]\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800|35\d{3})\d{11}",
    re.ASCII,
)


def _is_card(value: str) -> bool:
    digits = re.sub("[^0-9]", "", value)
    if not _CARD.fullmatch(digits):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(number % 10 + number // 10 for number in doubled) % 10 == 0


def _is_isbn10(value: str) -> bool:
    digits = re.sub(r"[\s-]+", "", value)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum((at + 1) * (10 if digit == "X" else int(digit)) for at, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(value: str) -> bool:
    digits = re.sub(r"[\s-]+", "", value)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits)) % 10 == 0


# --- durations -----------------------------------------------------------------------------------------------------

_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_GO_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_GO_DURATION = re.compile(rf"[+-]?((?:{_GO_PART.pattern})+|0)", re.ASCII)
_LOOSE_PART = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_WORDS: tuple[tuple[tuple[str, ...], str, int], ...] = (
    (("ns",), "nano", 1),
    (("us", "µs"), "micro", 10**3),
    (("ms",), "milli", 10**6),
    (("s",), "sec", 10**9),
    (("m",), "min", 60 * 10**9),
    (("h", "hr"), "hour", 3600 * 10**9),
    (("d",), "day", 86400 * 10**9),
    (("w", "wk"), "week", 7 * 86400 * 10**9),
)


def parse_duration_ns(value: str) -> int | None:
    """Parse a duration as written by Go or people (``1h30m``, ``3 days``) into nanoseconds; None if invalid."""
    if _GO_DURATION.fullmatch(value):
        total = sum(round(float(number) * _NS[unit]) for number, unit in _GO_PART.findall(value))
        return -total if value.startswith("-") else total
    total, known = 0, False
    for number, word in _LOOSE_PART.findall(value):
        unit = word.lower()
        for exact, prefix, size in _WORDS:
            if unit in exact or unit.startswith(prefix):
                total, known = total + int(number) * size, True
    return total if known else None


# --- the table -----------------------------------------------------------------------------------------------------

_BYTE = r"0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5]"
_SSN = _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _pattern(r"[0-9a-fA-F]{24}"),
    "byte": _pattern(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": _is_card,
    "date": _is_date,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "duration": lambda value: parse_duration_ns(value) is not None,
    "email": lambda value: _EMAIL.fullmatch(value) is not None,
    "hexcolor": _pattern(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": lambda value: "." in value and _is_ip(_sloppy(value)),
    "ipv6": lambda value: ":" in value and _is_ip(value),
    "isbn": lambda value: _is_isbn10(value) or _is_isbn13(value),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8s-long-name": lambda value: len(value) <= 253 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", value) is not None,
    "k8s-short-name": lambda value: len(value) <= 63 and re.fullmatch(_LABEL, value) is not None,
    "mac": lambda value: _MAC.fullmatch(value) is not None,
    "password": lambda value: True,
    "rgbcolor": _pattern(rf"rgb\(\s*({_BYTE})\s*,\s*({_BYTE})\s*,\s*({_BYTE})\s*\)"),
    "ssn": lambda value: len(value) == 11 and _SSN(value),
    "uri": _is_uri,
    "uuid": _pattern(_UUID % ("[0-9a-f]{4}", "[0-9a-f]{4}"), re.IGNORECASE),
    "uuid3": _pattern(_UUID % ("3[0-9a-f]{3}", "[0-9a-f]{4}"), re.IGNORECASE),
    "uuid4": _pattern(_UUID % ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), re.IGNORECASE),
    "uuid5": _pattern(_UUID % ("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), re.IGNORECASE),
}


def matches_format(name: str, text: str) -> bool:
    """Return True if ``text`` has the format, or the format is unknown."""
    check = _FORMATS.get(name)
    return check is None or check(text)
