"""Validate IP addresses and ranges: leniently for older fields, strictly for newer ones.

The validators of pods, services and networks call it. Source: Kubernetes apimachinery ``pkg/util/validation/ip.go``.
"""

from __future__ import annotations

import ipaddress
import re

from syncline.base.remember import remember
from syncline.cluster.validation.engine.causes import invalid
from syncline.cluster.validation.engine.integers import natural
from syncline.kube.errors import FieldCause

IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
CIDR_TEXT = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@remember(4096)
def sloppy_ip(text: str) -> Address | None:
    """Parse an address as Go long did, ignoring leading zeros; None if it is malformed."""
    plain = re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9]+(?:\.|$))", "", text) if "." in text else text
    try:
        return None if "%" in text else ipaddress.ip_address(plain)
    except ValueError:
        return None


@remember(4096)
def _strict(text: str) -> Address | None:
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def legacy_ip_causes(text: str, path: str) -> list[FieldCause]:
    """Accept any notation of an address, except those that programs interpret differently."""
    address = sloppy_ip(text)
    if address is None:
        return [invalid(path, text, IP_TEXT)]
    if _strict(text) is None:
        return [invalid(path, text, "must not have leading 0s")]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return [invalid(path, text, "must not be an IPv4-mapped IPv6 address")]
    return []


def ip_causes(text: str, path: str) -> list[FieldCause]:
    """Require the canonical form of an address."""
    causes = legacy_ip_causes(text, path)
    address = sloppy_ip(text)
    if not causes and str(address) != text:
        causes.append(invalid(path, text, f'must be in canonical form ("{address}")'))
    return causes


def ip_problems(text: str) -> list[str]:
    """As :func:`ip_causes`, for a name."""
    return [cause.message.split(": ", 2)[2] for cause in ip_causes(text, "")]


def ip_warnings(text: str, path: str) -> list[str]:
    """Return warnings about accepted but discouraged notations."""
    address = sloppy_ip(text)
    if address is None:
        return []
    if _strict(text) is None:
        return [f'{path}: non-standard IP address "{text}" is invalid: use "{address}"']
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return [f'{path}: non-standard IP address "{text}" is invalid: use "{address.ipv4_mapped}"']
        if str(address) != text:
            return [f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{address}")']
    return []


def legacy_cidr_causes(text: str, path: str) -> list[FieldCause]:
    """Validate a range; its host bits must be zero."""
    head, slash, length = text.partition("/")
    address = sloppy_ip(head)
    most = 0 if address is None else address.max_prefixlen
    if address is None or not slash or not re.fullmatch(r"[0-9]{1,3}", length) or int(length) > most:
        return [invalid(path, text, CIDR_TEXT)]
    causes: list[FieldCause] = []
    if _strict(head) is None or (len(length) > 1 and length.startswith("0")):
        causes.append(invalid(path, text, "must not have leading 0s in IP or prefix length"))
    elif isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        causes.append(invalid(path, text, "must not have an IPv4-mapped IPv6 address"))
    network = ipaddress.ip_network(f"{address}/{int(length)}", strict=False)
    if network.network_address != address:
        why = "must not have bits set beyond the prefix length"
        causes.append(invalid(path, text, why))
    return causes


def cidr_warnings(text: str, path: str) -> list[str]:
    head, _, length = text.partition("/")
    address = sloppy_ip(head)
    if address is None or natural(length, address.max_prefixlen) is None:
        return []
    network = ipaddress.ip_network(f"{address}/{int(length)}", strict=False)
    if _strict(head) is None or network.network_address != address:
        host = f"{address}/{address.max_prefixlen}"
        return [f'{path}: CIDR value "{text}" is ambiguous in this context (should be "{network}" or "{host}"?)']
    if isinstance(network, ipaddress.IPv6Network) and str(network) != text:
        return [f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{network}")']
    return []
