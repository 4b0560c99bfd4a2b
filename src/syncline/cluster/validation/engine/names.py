"""Validate names, labels, keys, ports and addresses as Kubernetes does.

The validators of this package call it with a text and get a list of problems in Kubernetes' words, empty if it is
valid. Source: Kubernetes apimachinery ``pkg/util/validation`` and ``pkg/api/validation/path``.
"""

from __future__ import annotations

import ipaddress
import re

from syncline.kube.text.names import (
    LABEL_LENGTH,
    SUBDOMAIN,
    SUBDOMAIN_LENGTH,
    SUBDOMAIN_TEXT,
    dns_label,
    dns_label_1035,
    dns_subdomain,
    longer,
    pattern_text,
    remembered,
)

__all__ = [
    "c_identifier",
    "config_key",
    "dns_label",
    "dns_label_1035",
    "dns_subdomain",
    "dns_subdomain_underscores",
    "domain_prefixed_path",
    "env_name",
    "fully_qualified",
    "http_header",
    "is_ip",
    "label_value",
    "path_segment",
    "port_name",
    "prefixed_dns_label",
    "prefixed_dns_label_1035",
    "prefixed_dns_subdomain",
    "qualified_name",
    "wildcard_subdomain",
]


_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_HEADER = "[-A-Za-z0-9]+"
_LABEL_UNDERSCORES = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORES = rf"{_LABEL_UNDERSCORES}(\.{_LABEL_UNDERSCORES})*"
_WILDCARD = rf"\*\.{SUBDOMAIN}"

_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character"
)
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)


def dns_subdomain_underscores(text: str) -> list[str]:
    """Validate a resolver's search domain, which allows underscores (IsDNS1123SubdomainWithUnderscore)."""
    problems = longer(text, SUBDOMAIN_LENGTH)
    if not re.fullmatch(_SUBDOMAIN_UNDERSCORES, text):
        shown = SUBDOMAIN_TEXT.replace("characters, '-'", "characters, '_', '-'")
        problems.append(pattern_text(shown, _SUBDOMAIN_UNDERSCORES, "example.com"))
    return problems


def fully_qualified(text: str) -> list[str]:
    """Validate a host name with a domain (IsFullyQualifiedDomainName)."""
    name = text.removesuffix(".")
    if not name:
        return ["must not be empty"]
    problems = dns_subdomain(name)
    if not problems and name.count(".") < 1:
        problems = ["should be a domain with at least two segments separated by dots"]
    return problems


def http_header(text: str) -> list[str]:
    """Validate the name of an HTTP header."""
    if re.fullmatch(_HEADER, text):
        return []
    shown = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [pattern_text(shown, _HEADER, "X-Header-Name")]


def wildcard_subdomain(text: str) -> list[str]:
    problems = longer(text, SUBDOMAIN_LENGTH)
    if not re.fullmatch(_WILDCARD, text):
        problems.append(pattern_text(_WILDCARD_TEXT, _WILDCARD, "*.example.com"))
    return problems


def _unfinished(name: str) -> str:
    """Return a generateName with a character in place of a trailing dash."""
    return name[:-1] + "a" if len(name) > 1 and name.endswith("-") else name


def prefixed_dns_label(name: str) -> list[str]:
    return dns_label(_unfinished(name))


def prefixed_dns_label_1035(name: str) -> list[str]:
    return dns_label_1035(_unfinished(name))


def prefixed_dns_subdomain(name: str) -> list[str]:
    return dns_subdomain(_unfinished(name))


def path_segment(name: str) -> list[str]:
    """Validate a URL path segment: RBAC names, generated names of custom kinds."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


@remembered
def qualified_name(text: str) -> list[str]:
    """Validate label and annotation keys, condition types: an optional DNS prefix, a slash, a name."""
    parts = text.split("/")
    problems: list[str] = []
    if len(parts) > 2:
        shown = pattern_text("a valid label key " + _NAME_TEXT, _NAME, "MyName", "my.name", "123-abc")
        return [shown + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    name = parts[-1]
    if len(parts) == 2:
        listed = dns_subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in listed]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > LABEL_LENGTH:
        problems.append(f"name part must be no more than {LABEL_LENGTH} bytes")
    if not re.fullmatch(_NAME, name):
        problems.append("name part " + pattern_text(_NAME_TEXT, _NAME, "MyName", "my.name", "123-abc"))
    return problems


@remembered
def label_value(text: str) -> list[str]:
    problems = longer(text, LABEL_LENGTH, "bytes")
    if not re.fullmatch(_VALUE, text):
        problems.append(pattern_text(_VALUE_TEXT, _VALUE, "MyValue", "my_value", "12345"))
    return problems


def domain_prefixed_path(text: str) -> list[tuple[str, str]]:
    """Validate ``acme.io/foo``: return the problems of domain and path (IsDomainPrefixedPath)."""
    domain, _, rest = text.partition("/")
    if not text:
        return []
    if not domain or not rest:
        return [(text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    problems = [(domain, problem) for problem in dns_subdomain(domain)]
    if not re.fullmatch(_HTTP_PATH, rest):
        problems.append((rest, f"Invalid path (regex used for validation is '{_HTTP_PATH}')"))
    return problems


_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def config_key(text: str) -> list[str]:
    """Validate a key of a ConfigMap or Secret."""
    problems = longer(text, SUBDOMAIN_LENGTH)
    if not re.fullmatch(_CONFIG_KEY, text):
        shown = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(pattern_text(shown, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text == ".":
        problems.append("must not be '.'")
    elif text == "..":
        problems.append("must not be '..'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def c_identifier(text: str) -> list[str]:
    if re.fullmatch(_IDENTIFIER, text):
        return []
    shown = (
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
        "characters or '_'"
    )
    return [pattern_text(shown, _IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def env_name(text: str) -> list[str]:
    """Validate an environment variable's name: printable ASCII without ``=`` (relaxed validation)."""
    if text and all(" " <= char <= "~" and char != "=" for char in text):
        return []
    if not text:
        return ["environment variable name must be non-empty"]
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def port_name(text: str) -> list[str]:
    """Validate a container port's name (IANA service name)."""
    problems: list[str] = []
    if len(text) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text
