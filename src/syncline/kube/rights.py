"""Turns missing rights into the rules of a Role that would grant them: :func:`ask_for`.

The rights come from refusals of an API server (RBAC words them alike everywhere), or from the requests made. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

REFUSAL = re.compile(
    r'cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)" '
    r'(?:in the namespace "(?P<namespace>[^"]+)"|at the cluster scope)'
)
MAX_NAMES = 8
"""The most names in one rule; with more, the rule covers all objects."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A right for one verb on one resource. ``namespace`` empty: cluster scope; ``name`` empty: every object."""

    namespace: str
    group: str
    resource: str
    verb: str
    name: str = ""


def missing_right(message: str) -> Right | None:
    """Return the right that an RBAC refusal names, or None for other refusals."""
    found = REFUSAL.search(message)
    return Right(found["namespace"] or "", found["group"], found["resource"], found["verb"]) if found else None


def ask_for(rights: Iterable[Right]) -> list[str]:
    """Return one sentence per namespace: what was refused, and the rules to ask for, ready to paste."""
    return [_sentence(space, list(some)) for space, some in groupby(sorted(set(rights)), lambda one: one.namespace)]


def role_for(rights: Iterable[Right]) -> str:
    """Return the text of the Role to ask for; the rights are of one namespace."""
    known = sorted(set(rights))
    role = f"Role in {known[0].namespace}" if known[0].namespace else "ClusterRole"
    return f"a {role} with rules: [{', '.join(_rule(*one) for one in _merged(known))}]"


def _sentence(namespace: str, rights: list[Right]) -> str:
    refused = [
        f"{' and '.join(verbs)} {_called(group, plural, names)}" for group, plural, verbs, names in _merged(rights)
    ]
    where = f"in namespace {namespace}" if namespace else "at the cluster scope"
    return f"you may not {', '.join(refused)} {where}; ask for {role_for(rights)}"


def _merged(rights: list[Right]) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Combine rights on the same resource and names into one rule with several verbs."""
    for (group, resource), some in groupby(rights, lambda one: (one.group, one.resource)):
        by_verb: dict[str, set[str]] = {}
        for one in some:
            by_verb.setdefault(one.verb, set()).add(one.name)
        alike: dict[tuple[str, ...], list[str]] = {}
        for verb, names in by_verb.items():
            every = "" in names or len(names) > MAX_NAMES
            alike.setdefault(() if every else tuple(sorted(names)), []).append(verb)
        for kept, verbs in alike.items():
            yield group, resource, sorted(verbs), list(kept)


def _called(group: str, resource: str, names: list[str]) -> str:
    plural = f"{resource}.{group}" if group else resource
    return f"{plural} {' and '.join(names)}" if names else plural


def _rule(group: str, resource: str, verbs: list[str], names: list[str]) -> str:
    named = f", resourceNames: {_listed(names)}" if names else ""
    return f'{{apiGroups: ["{group}"], resources: ["{resource}"]{named}, verbs: {_listed(verbs)}}}'


def _listed(words: list[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"
