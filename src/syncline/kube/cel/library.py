"""Implements Kubernetes' own functions: regular expressions, URLs, quantities, addresses, versions, named formats.

Used by ``program`` through ``functions``. Source: apiserver ``pkg/cel/library``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

from syncline.kube.cel.values import (
    CIDR,
    IP,
    MAX_INT,
    MIN_INT,
    URL,
    EvaluationError,
    Format,
    Optional,
    Quantity,
    Semver,
    no_overload,
)
from syncline.kube.text.formats import matches_format
from syncline.kube.text.names import LABEL_LENGTH, dns_label, dns_label_1035, dns_subdomain
from syncline.kube.text.quantity import parse_quantity
from syncline.kube.text.re2 import Pattern, compile_pattern

Function = Callable[..., Any]
T = TypeVar("T")
NANO = 1_000_000_000


def _works(read: Function) -> Function:
    def check(*args: Any) -> bool:
        if not isinstance(args[0], str):
            raise no_overload()
        try:
            read(*args)
        except EvaluationError:
            return False
        return True

    return check


# --- regular expressions -------------------------------------------------------------------------------------------


def _pattern(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except re.error as error:
        raise EvaluationError(f"Illegal regex: error parsing regexp: {error}") from None


MAX_FOUND = 20_000
"""The most matches of one call; more would exceed every budget of an evaluation."""


def _searched(search: Callable[[], T]) -> T:
    try:
        return search()
    except re.error as error:
        raise EvaluationError(str(error)) from None


def _find(text: str, pattern: str) -> str:
    found = _searched(lambda: _pattern(pattern).search(text))
    return found.group(0) if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    most = MAX_FOUND + 1 if limit < 0 else min(limit, MAX_FOUND + 1)
    found = [match.group(0) for match in islice(_searched(lambda: _pattern(pattern).finditer(text)), most)]
    if len(found) > MAX_FOUND:
        raise EvaluationError("operation cancelled: actual cost limit exceeded")
    return found


# --- quantities ----------------------------------------------------------------------------------------------------


def _quantity(text: Any) -> Quantity:
    if not isinstance(text, str):
        raise no_overload()
    try:
        return Quantity(parse_quantity(text).nano)
    except ValueError:
        why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise EvaluationError(why) from None


def _compared(work: Callable[[Any, Any], Any]) -> Function:
    def compare(one: Any, other: Any) -> Any:
        if isinstance(one, Quantity) and isinstance(other, Quantity):
            return work(one.nano, other.nano)
        if isinstance(one, Semver) and isinstance(other, Semver):
            return work(one.order, other.order)
        raise no_overload()

    return compare


def _whole(value: Quantity) -> bool:
    return value.nano % NANO == 0 and MIN_INT <= value.nano // NANO <= MAX_INT


def _as_integer(value: Quantity) -> int:
    if not _whole(value):
        raise EvaluationError("cannot convert value to integer")
    return value.nano // NANO


def _moved(sign: int) -> Function:
    def work(one: Quantity, other: Any) -> Quantity:
        return Quantity(one.nano + sign * (other.nano if isinstance(other, Quantity) else int(other) * NANO))

    return work


# --- URLs ----------------------------------------------------------------------------------------------------------


def _url(text: Any) -> URL:
    if not isinstance(text, str):
        raise no_overload()
    if not matches_format("uri", text):
        raise EvaluationError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return URL(text)


def _split_host(url: URL) -> tuple[str, str, str]:
    """Return (host with port, host, port)."""
    host = urlsplit(url.text).netloc.rpartition("@")[2]
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return host, name, rest.removeprefix(":")
    name, _, port = host.partition(":")
    return host, name, port


def _query(url: URL) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url.text).query, keep_blank_values=True)


def _escaped_path(url: URL) -> str:
    rest = url.text.partition(":")[2]
    if not url.text.startswith("/") and not rest.startswith("/"):
        return ""
    path = urlsplit(url.text).path
    return quote(path, safe="%/:@!$&'()*+,;=-._~")


# --- addresses -----------------------------------------------------------------------------------------------------


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if len(text) > MAX_VERSION:
        raise EvaluationError(f"IP Address of {len(text)} characters parse error during conversion from string")
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        why = f'ParseAddr("{text}"): {_address_fault(text)}'
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string: {why}') from None
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def _address_fault(text: str) -> str:
    """Return the error of Go's ``netip`` for an invalid address."""
    if ":" in text:
        return "each colon-separated field must have at least one digit"
    if "." not in text:
        return "unable to parse IP"
    fields = text.split(".")
    if any(field.isdigit() and len(field) > 1 and field[0] == "0" for field in fields):
        return "IPv4 field has octet with leading zero"
    if any(field.isdigit() and int(field) > 255 for field in fields):
        return "IPv4 field has value >255"
    if not all(field.isdigit() for field in fields):
        return "unexpected character"
    return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"


def _ip(value: Any) -> IP:
    if isinstance(value, CIDR):
        return IP(value.interface.ip)
    if not isinstance(value, str):
        raise no_overload()
    return IP(_address(value))


def _cidr(text: Any) -> CIDR:
    if not isinstance(text, str):
        raise no_overload()
    host, slash, bits = text.partition("/")
    try:
        if not slash or not re.fullmatch(r"0|[1-9]\d{0,2}", bits):
            raise ValueError("no '/'" if not slash else "bad bits after slash")
        _address(host)
        return CIDR(ipaddress.ip_interface(text))
    except (ValueError, EvaluationError) as error:
        raise EvaluationError(f"network address parse error during conversion from string: {error}") from None


def _argument(read: Function, text: str) -> Any:
    """Parse an address argument; an invalid one is a missing overload."""
    try:
        return read(text)
    except EvaluationError:
        raise no_overload() from None


def _contains_ip(network: CIDR, other: Any) -> bool:
    address = _argument(_ip, other).address if isinstance(other, str) else other.address
    return address in network.interface.network


def _contains_cidr(network: CIDR, other: Any) -> bool:
    inner = (_argument(_cidr, other) if isinstance(other, str) else other).interface
    outer = network.interface.network
    same = outer.version == inner.version
    return bool(same and inner.ip in outer and outer.prefixlen <= inner.network.prefixlen)


def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def _global(value: IP) -> bool:
    address = value.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def _link_local_multicast(value: IP) -> bool:
    networks = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))
    return any(value.address in network for network in networks)


# --- versions ------------------------------------------------------------------------------------------------------

_PRE = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    rf"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-({_PRE}(?:\.{_PRE})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)


MAX_VERSION = 1_000
"""The longest version or address text; longer ones are invalid."""


def _semver(text: Any, normalize: bool = False) -> Semver:
    if not isinstance(text, str):
        raise no_overload()
    if len(text) > MAX_VERSION:
        raise EvaluationError(f"invalid version of {len(text)} characters; at most {MAX_VERSION} are read")
    given = _normalized(text) if normalize else text
    found = _SEMVER.fullmatch(given)
    if found is None:
        raise EvaluationError(
            "No Major.Minor.Patch elements found" if given.count(".") < 2 else f"invalid version {text}"
        )
    major, minor, patch = (int(part) for part in found.group(1, 2, 3))
    return Semver(major, minor, patch, tuple(found.group(4).split(".")) if found.group(4) else ())


def _normalized(text: str) -> str:
    """Remove a leading v and leading zeros, and add missing parts."""
    head = re.match(r"[0-9.]*", text.removeprefix("v"))
    assert head is not None
    rest = text.removeprefix("v")[head.end() :]
    parts = [part.lstrip("0") or "0" if part else part for part in head.group().split(".")]
    return ".".join([*parts, "0", "0"][: max(3, len(parts))]) + rest


# --- named formats -------------------------------------------------------------------------------------------------

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _unfinished(name: str) -> str:
    return name[:-1] + "a" if len(name) > 1 and name.endswith("-") else name


def _label_value(text: str) -> list[str]:
    problems = [f"must be no more than {LABEL_LENGTH} bytes"] if len(text.encode()) > LABEL_LENGTH else []
    return problems if not text or _NAME.fullmatch(text) else [*problems, _VALUE_TEXT]


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        shown = f"a valid label key {_NAME_TEXT} with an optional DNS subdomain prefix and '/'"
        return [f"{shown} (e.g. 'example.com/MyName')"]
    problems: list[str] = []
    if slash:
        problems += [f"prefix part {why}" for why in (dns_subdomain(prefix) if prefix else ["must be non-empty"])]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > LABEL_LENGTH:
        problems.append(f"name part must be no more than {LABEL_LENGTH} bytes")
    return problems if _NAME.fullmatch(name) else [*problems, f"name part {_NAME_TEXT}"]


def _strfmt(name: str, why: str) -> Callable[[str], list[str]]:
    return lambda text: [] if matches_format(name, text) else [why]


_UUID_TEXT = "does not match the UUID format"
_FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": dns_label,
    "dns1123LabelPrefix": lambda text: dns_label(_unfinished(text)),
    "dns1123Subdomain": dns_subdomain,
    "dns1123SubdomainPrefix": lambda text: dns_subdomain(_unfinished(text)),
    "dns1035Label": dns_label_1035,
    "dns1035LabelPrefix": lambda text: dns_label_1035(_unfinished(text)),
    "qualifiedName": _qualified_name,
    "labelValue": _label_value,
    "uri": _strfmt("uri", "invalid URI for request"),
    "uuid": _strfmt("uuid", _UUID_TEXT),
    "byte": _strfmt("byte", "invalid base64"),
    "date": _strfmt("date", "invalid date"),
    "datetime": _strfmt("datetime", "invalid datetime"),
}


def _validate(form: Any, text: str) -> Optional:
    if not isinstance(form, Format):
        raise no_overload()
    problems = _FORMATS[form.name](text)
    return Optional(problems, True) if problems else Optional()


def _named(name: str) -> Optional:
    return Optional(Format(name), True) if name in _FORMATS else Optional()


FUNCTIONS: dict[str, Function] = {
    "find": _find,
    "findAll": _find_all,
    "quantity": _quantity,
    "isQuantity": _works(_quantity),
    "sign": lambda value: (value.nano > 0) - (value.nano < 0),
    "isInteger": _whole,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda value: value.nano / NANO,
    "isGreaterThan": _compared(lambda one, other: one > other),
    "isLessThan": _compared(lambda one, other: one < other),
    "compareTo": _compared(lambda one, other: (one > other) - (one < other)),
    "add": _moved(1),
    "sub": _moved(-1),
    "url": _url,
    "isURL": _works(_url),
    "getScheme": lambda url: urlsplit(url.text).scheme,
    "getHost": lambda url: _split_host(url)[0],
    "getHostname": lambda url: _split_host(url)[1],
    "getPort": lambda url: _split_host(url)[2],
    "getEscapedPath": _escaped_path,
    "getQuery": _query,
    "ip": _ip,
    "isIP": _works(_ip),
    "ip.isCanonical": _is_canonical,
    "family": lambda value: value.address.version,
    "isUnspecified": lambda value: value.address.is_unspecified,
    "isLoopback": lambda value: value.address.is_loopback,
    "isLinkLocalMulticast": _link_local_multicast,
    "isLinkLocalUnicast": lambda value: value.address.is_link_local,
    "isGlobalUnicast": _global,
    "cidr": _cidr,
    "isCIDR": _works(_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": lambda value: CIDR(ipaddress.ip_interface(str(value.interface.network))),
    "prefixLength": lambda value: value.interface.network.prefixlen,
    "semver": _semver,
    "isSemver": _works(_semver),
    "major": lambda value: value.major,
    "minor": lambda value: value.minor,
    "patch": lambda value: value.patch,
    "format.named": _named,
    "validate": _validate,
}
FUNCTIONS |= {f"format.{name}": partial(Format, name) for name in _FORMATS}
