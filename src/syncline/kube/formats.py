"""The text formats that schemas of custom resources know.

Called by value checks. In come a format's name and a text; out comes whether it fits. A format that is not listed here
is not checked at all, as in apiextensions (``supportedV3Formats``). Source of the rules: kube-openapi ``strfmt``.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

__all__ = ["matches_format"]

_DATE_TIME = re.compile(
    r"^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$",
    re.ASCII,
)
_HOSTNAME = re.compile(r"^(?=.{1,253}$)([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,62}))(\.[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,62}))*\.?$")
_EMAIL = re.compile(r"^[^@\s]+@[^@\s]+$")
_UNITS = "ns|us|µs|μs|ms|s|m|h|d|w|sec|min|seconds?|minutes?|hours?|days?|weeks?"
_DURATION = re.compile(rf"^[+-]?(\d+(\.\d*)?\s*({_UNITS})\s*)+$")
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


def _pattern(text: str, flags: re.RegexFlag = re.ASCII) -> Callable[[str], bool]:
    compiled = re.compile(text, flags)
    return lambda value: compiled.fullmatch(value) is not None


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


def _is_address(version: int) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            return ipaddress.ip_address(value).version == version
        except ValueError:
            return False

    return check


def _is_cidr(value: str) -> bool:
    try:
        return "/" in value and bool(ipaddress.ip_interface(value))
    except ValueError:
        return False


def _is_base64(value: str) -> bool:
    try:
        return value == "" or (bool(base64.b64decode(value, validate=True)) and len(value) % 4 == 0)
    except (binascii.Error, ValueError):
        return False


def _is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) or value.startswith("/")


def _is_hostname(value: str) -> bool:
    return _HOSTNAME.match(value) is not None


_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _pattern(r"[0-9a-fA-F]{24}"),
    "byte": _is_base64,
    "cidr": _is_cidr,
    "creditcard": _pattern(r"[0-9 -]{13,23}"),
    "date": _is_date,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "duration": lambda value: _DURATION.match(value.strip()) is not None or value == "0",
    "email": lambda value: _EMAIL.match(value) is not None,
    "hexcolor": _pattern(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "isbn": _pattern(r"(\d[- ]?){9}[\dX]|(\d[- ]?){13}"),
    "isbn10": _pattern(r"(\d[- ]?){9}[\dX]"),
    "isbn13": _pattern(r"(\d[- ]?){13}"),
    "k8s-long-name": lambda value: len(value) <= 253 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", value) is not None,
    "k8s-short-name": _pattern(_LABEL),
    "mac": _pattern(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}"),
    "password": lambda value: True,
    "rgbcolor": _pattern(r"rgb\(\s*(\d{1,3}|\d+%)\s*,\s*(\d{1,3}|\d+%)\s*,\s*(\d{1,3}|\d+%)\s*\)"),
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _is_uri,
    "uuid": _pattern(_UUID % ("[0-9a-f]{4}", "[0-9a-f]{4}"), re.IGNORECASE),
    "uuid3": _pattern(_UUID % ("3[0-9a-f]{3}", "[0-9a-f]{4}"), re.IGNORECASE),
    "uuid4": _pattern(_UUID % ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), re.IGNORECASE),
    "uuid5": _pattern(_UUID % ("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), re.IGNORECASE),
}


def matches_format(name: str, text: str) -> bool:
    """Whether ``text`` fits the format; every text fits a format that is not known."""
    check = _FORMATS.get(name)
    return check is None or check(text)
