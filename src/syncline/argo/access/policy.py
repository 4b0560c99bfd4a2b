"""Reads the lines of ``policy.csv``: :func:`read_policy`.

Pure. Rules: Argo CD ``util/rbac`` (``loadPolicyLine``) and its model: a ``p`` line permits or denies, a ``g`` line
gives a subject a role. Lines come from administrators and from the roles of AppProjects, which tenants may write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

FIELD = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",]*))(,|$)')
MAX_LINES = 20_000
"""Lines of one policy; each decision looks at those of the subject's roles."""
MAX_LINE = 4_096
MAIN = "policy.csv"


class PolicyError(ValueError):
    """A line that is no policy."""


@dataclass(frozen=True, slots=True)
class Permission:
    """One ``p`` line: ``subject`` may (``effect`` allow) or may not (deny) ``action`` objects of ``resource``.

    ``resource``, ``action`` and ``object`` are patterns, ``subject`` is not. ``origin`` says where the line stands.
    """

    subject: str
    resource: str
    action: str
    object: str
    effect: str
    origin: str

    def __str__(self) -> str:
        fields = ("p", self.subject, self.resource, self.action, self.object, self.effect)
        return f"{', '.join(fields)} ({self.origin})"


@dataclass(frozen=True, slots=True)
class Membership:
    """One ``g`` line: ``member`` (an account, a group or a role) has all permissions of ``role``."""

    member: str
    role: str


@dataclass(frozen=True, slots=True)
class Policy:
    """The lines of one policy, in their order."""

    permissions: tuple[Permission, ...] = ()
    memberships: tuple[Membership, ...] = ()

    def __add__(self, other: Policy) -> Policy:
        return Policy(self.permissions + other.permissions, self.memberships + other.memberships)


def read_policy(text: str, origin: str) -> Policy:
    """Return the policy of ``text``; empty lines and comments are left out. Raises :class:`PolicyError`."""
    permissions: list[Permission] = []
    memberships: list[Membership] = []
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise PolicyError(f"{origin} has {len(lines)} lines; at most {MAX_LINES} are allowed")
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        place = f"{origin} line {number}"
        match _fields(line, place):
            case ["p", subject, resource, action, target, effect]:
                permissions.append(Permission(subject, resource, action, target, effect, place))
            case ["g", member, role]:
                memberships.append(Membership(member, role))
            case _:
                raise PolicyError(
                    f"{place}: invalid RBAC policy: {line}; allowed are "
                    "'p, subject, resource, action, object, allow|deny' and 'g, member, role'"
                )
    return Policy(tuple(permissions), tuple(memberships))


def _fields(line: str, place: str) -> list[str]:
    """Return the fields of one CSV line as Go reads them: a quoted field is quoted as a whole, trailing blanks stay."""
    if len(line) > MAX_LINE:
        raise PolicyError(f"{place} has {len(line)} characters; at most {MAX_LINE} are allowed")
    fields: list[str] = []
    start, more = 0, ","
    while more:
        found = FIELD.match(line, start)
        if found is None:
            raise PolicyError(f'{place}: error parsing policy line {line!r}: a " stands inside a field or has no end')
        quoted, plain, more = found.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        start = found.end()
    return fields


def policy_text(data: Mapping[str, str]) -> str:
    """Return the lines of ``argocd-rbac-cm``: ``policy.csv`` first, then each ``policy.NAME.csv`` by name."""
    others = [key for key in sorted(data) if key.startswith("policy.") and key.endswith(".csv") and key != MAIN]
    return "\n".join([data.get(MAIN, ""), *(data[key] for key in others)])
