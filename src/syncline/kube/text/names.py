"""DNS labels and subdomains, the syntax of names of objects, groups and kinds.

Used by validators on every floor. Each function returns the problems of a text in Kubernetes' words, empty if it is
valid. Source: Kubernetes apimachinery ``pkg/util/validation``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, wraps

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)


def pattern_text(text: str, pattern: str, *examples: str) -> str:
    """Return Kubernetes' description of a pattern: ``… (e.g. 'a', or 'b', regex used for validation is '…')``."""
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{text} (e.g. {shown}, regex used for validation is '{pattern}')"


def longer(text: str, most: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {most} {unit}"] if len(text.encode()) > most else []


MAX_REMEMBERED_CHARS = 320
"""Longer texts are invalid anyway, and are not cached, so that clients cannot fill the memory."""


def remembered(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Cache the result of a check, which every write of an object repeats. Each caller gets its own list, which it may
    change."""
    known = lru_cache(maxsize=8192)(check)

    @wraps(check)
    def asked(text: str) -> list[str]:
        return list(known(text)) if len(text) <= MAX_REMEMBERED_CHARS else check(text)

    return asked


@remembered
def dns_label(text: str) -> list[str]:
    problems = longer(text, LABEL_LENGTH)
    if not re.fullmatch(_LABEL, text):
        if re.fullmatch(SUBDOMAIN, text):
            # A subdomain fails only by its dots, so the message says so (IsDNS1123Label).
            problems.append("must not contain dots")
        else:
            problems.append(pattern_text(_LABEL_TEXT, _LABEL, "my-name", "123-abc"))
    return problems


@remembered
def dns_subdomain(text: str) -> list[str]:
    problems = longer(text, SUBDOMAIN_LENGTH)
    if not re.fullmatch(SUBDOMAIN, text):
        problems.append(pattern_text(SUBDOMAIN_TEXT, SUBDOMAIN, "example.com"))
    return problems


def dns_label_1035(text: str) -> list[str]:
    problems = longer(text, LABEL_LENGTH)
    if not re.fullmatch(_LABEL_1035, text):
        problems.append(pattern_text(_LABEL_1035_TEXT, _LABEL_1035, "my-name", "abc-123"))
    return problems
