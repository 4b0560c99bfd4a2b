"""Kubernetes' own CEL functions: lists, regular expressions, quantities, URLs, addresses.

Called by ``expr.py`` when it sets up the engine; in come the engine's types, out come function declarations. Quantities
are floats here, and URLs, addresses and networks are their texts, so that no new types are needed.

Source: apiserver ``pkg/cel/library``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from syncline.kube.quantity import NANO, parse_quantity
from syncline.kube.re2 import compile_pattern

__all__ = ["library"]


def library(engine: Any) -> list[Any]:
    """Declarations of every function, each with its implementation."""
    kind = engine.Type
    return _Declarations(engine).all_of(
        [
            ("isSorted", True, [kind.LIST], kind.BOOL, lambda items: list(items) == sorted(items)),
            ("sum", True, [kind.LIST], kind.DYN, sum),
            ("min", True, [kind.LIST], kind.DYN, min),
            ("max", True, [kind.LIST], kind.DYN, max),
            ("find", True, [kind.STRING, kind.STRING], kind.STRING, _find),
            ("findAll", True, [kind.STRING, kind.STRING], kind.LIST, _find_all),
            *_quantities(kind),
            *_urls(kind),
            *_addresses(kind),
        ]
    )


Function = tuple[str, bool, list[Any], Any, Callable[..., Any]]


class _Declarations:
    """Overloads of one name belong to one declaration."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def all_of(self, functions: list[Function]) -> list[Any]:
        by_name: dict[str, list[Any]] = {}
        for number, (name, member, parameters, returns, work) in enumerate(functions):
            overload = self._engine.Overload(f"kubernetes_{name}_{number}", returns, parameters, member, work)
            by_name.setdefault(name, []).append(overload)
        return [self._engine.FunctionDecl(name, overloads) for name, overloads in by_name.items()]


def _find(text: str, pattern: str) -> str:
    found = compile_pattern(pattern).search(text)
    return found.group(0) if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [found.group(0) for found in compile_pattern(pattern).finditer(text)]


def _works(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


# --- quantities ----------------------------------------------------------------------------------------------------


def _quantity(text: str) -> float:
    return parse_quantity(text).nano / NANO


def _quantities(kind: Any) -> list[Function]:
    number = kind.DOUBLE
    return [
        ("quantity", False, [kind.STRING], number, _quantity),
        ("isQuantity", False, [kind.STRING], kind.BOOL, _works(_quantity)),
        ("isGreaterThan", True, [number, number], kind.BOOL, lambda one, other: one > other),
        ("isLessThan", True, [number, number], kind.BOOL, lambda one, other: one < other),
        ("compareTo", True, [number, number], kind.INT, lambda one, other: (one > other) - (one < other)),
        ("isInteger", True, [number], kind.BOOL, float.is_integer),
        ("asInteger", True, [number], kind.INT, int),
        ("asApproximateFloat", True, [number], number, float),
        ("sign", True, [number], kind.INT, lambda value: (value > 0) - (value < 0)),
        ("add", True, [number, number], number, lambda one, other: one + other),
        ("add", True, [number, kind.INT], number, lambda one, other: one + other),
        ("sub", True, [number, number], number, lambda one, other: one - other),
        ("sub", True, [number, kind.INT], number, lambda one, other: one - other),
    ]


# --- URLs ----------------------------------------------------------------------------------------------------------


def _url(text: str) -> str:
    parts = urlsplit(text)
    if not parts.scheme and not text.startswith("/"):
        raise ValueError(f"URL parse error during conversion from string: {text!r}")
    return text


def _part(read: Callable[[SplitResult], str]) -> Callable[[str], str]:
    return lambda text: read(urlsplit(text))


def _urls(kind: Any) -> list[Function]:
    text = kind.STRING
    return [
        ("url", False, [text], text, _url),
        ("isURL", False, [text], kind.BOOL, _works(_url)),
        ("getScheme", True, [text], text, _part(lambda parts: parts.scheme)),
        ("getHost", True, [text], text, _part(lambda parts: parts.netloc.rpartition("@")[2])),
        ("getHostname", True, [text], text, _part(lambda parts: parts.hostname or "")),
        ("getPort", True, [text], text, _part(lambda parts: str(parts.port or ""))),
        ("getEscapedPath", True, [text], text, _part(lambda parts: parts.path)),
    ]


# --- addresses and networks ----------------------------------------------------------------------------------------


def _ip(text: str) -> str:
    return str(ipaddress.ip_address(text))


def _cidr(text: str) -> str:
    if "/" not in text:
        raise ValueError(f"network address parse error: {text!r} has no prefix length")
    return str(ipaddress.ip_interface(text))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(text, strict=False)


def _contains_ip(network: str, address: str) -> bool:
    return ipaddress.ip_address(address) in _network(network)


def _contains_cidr(network: str, other: str) -> bool:
    outer, inner = _network(network), _network(other)
    return outer.version == inner.version and inner[0] in outer and inner[-1] in outer


def _addresses(kind: Any) -> list[Function]:
    text = kind.STRING
    return [
        ("ip", False, [text], text, _ip),
        ("isIP", False, [text], kind.BOOL, _works(_ip)),
        ("family", True, [text], kind.INT, lambda value: ipaddress.ip_address(value).version),
        ("isLoopback", True, [text], kind.BOOL, lambda value: ipaddress.ip_address(value).is_loopback),
        ("isUnspecified", True, [text], kind.BOOL, lambda value: ipaddress.ip_address(value).is_unspecified),
        ("cidr", False, [text], text, _cidr),
        ("isCIDR", False, [text], kind.BOOL, _works(_cidr)),
        ("containsIP", True, [text, text], kind.BOOL, _contains_ip),
        ("containsCIDR", True, [text, text], kind.BOOL, _contains_cidr),
        ("prefixLength", True, [text], kind.INT, lambda value: _network(value).prefixlen),
        ("masked", True, [text], text, lambda value: str(_network(value))),
    ]
