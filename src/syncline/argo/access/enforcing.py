"""Decides one request by the lines of a policy: :class:`Enforcer`.

Pure. Rule: the model of Argo CD's ``assets/model.conf``: a request is permitted where a line that applies to one of
the subject's roles permits it and none denies it. Roles are followed through ten memberships, as casbin follows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from syncline.argo.access.policy import Permission, Policy
from syncline.kube.text.glob import glob_matches
from syncline.kube.text.re2 import compile_pattern

MAX_DEPTH = 10
"""Memberships from a subject to a role; further ones do not count."""


class MatchMode(StrEnum):
    """How ``resource``, ``action`` and ``object`` of a line are matched (``policy.matchMode``)."""

    GLOB = "glob"
    """``*`` matches every letter, ``/`` too."""
    REGEX = "regex"
    """An expression that may match anywhere in the text."""

    @classmethod
    def of(cls, text: str) -> MatchMode:
        """Return the mode of a ConfigMap's value; every text but ``regex`` means globs."""
        return cls.REGEX if text == cls.REGEX else cls.GLOB


class Request(NamedTuple):
    """What a subject asks for: ``applications``, ``sync``, ``my-project/my-app``."""

    resource: str
    action: str
    object: str

    def __str__(self) -> str:
        return f"{self.resource}, {self.action}, {self.object}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a request; ``rule`` is the line that decided, empty where none applied."""

    allowed: bool
    rule: str = ""

    def __bool__(self) -> bool:
        return self.allowed


@dataclass(frozen=True)
class Enforcer:
    """One policy, indexed by subject."""

    policy: Policy
    mode: MatchMode = MatchMode.GLOB

    def decide(self, subject: str, request: Request) -> Decision:
        """Return whether ``subject`` may do what it asks for.

        A pattern that cannot be read denies, where it is met before a line that denies: what it meant is unknown.
        """
        allowed = Decision(False)
        for permission in self._lines(subject):
            try:
                applies = self._applies(permission, request)
            except re.error as error:
                return Decision(False, f"{permission} has an invalid pattern: {error}")
            if not applies:
                continue
            if permission.effect == "deny":
                return Decision(False, str(permission))
            if permission.effect == "allow" and not allowed:
                allowed = Decision(True, str(permission))
        return allowed

    def knows(self, member: str) -> bool:
        """Return True if a membership names ``member``."""
        return member in self._roles

    def empty_roles(self) -> tuple[str, ...]:
        """Return the roles that have members and no line, neither of their own nor of the roles that they have."""
        roles = dict.fromkeys(membership.role for membership in self.policy.memberships)
        return tuple(role for role in roles if not any(name in self._by_subject for name in self.roles_of(role)))

    def roles_of(self, subject: str) -> frozenset[str]:
        """Return ``subject`` and all roles that it has."""
        found = {subject}
        last = found
        for _ in range(MAX_DEPTH):
            last = {role for member in last for role in self._roles.get(member, ())} - found
            if not last:
                break
            found |= last
        return frozenset(found)

    def _lines(self, subject: str) -> Iterator[Permission]:
        """Yield the lines of all roles of ``subject`` in the order of the policy."""
        places = sorted(place for role in self.roles_of(subject) for place in self._by_subject.get(role, ()))
        return (self.policy.permissions[place] for place in places)

    def _applies(self, permission: Permission, request: Request) -> bool:
        patterns = (permission.resource, permission.action, permission.object)
        return all(self._matches(pattern, text) for pattern, text in zip(patterns, request, strict=True))

    def _matches(self, pattern: str, text: str) -> bool:
        if self.mode is MatchMode.REGEX:
            return compile_pattern(pattern).search(text) is not None
        return glob_matches(pattern, text)

    @cached_property
    def _by_subject(self) -> Mapping[str, list[int]]:
        index: dict[str, list[int]] = {}
        for place, permission in enumerate(self.policy.permissions):
            index.setdefault(permission.subject, []).append(place)
        return index

    @cached_property
    def _roles(self) -> Mapping[str, list[str]]:
        roles: dict[str, list[str]] = {}
        for membership in self.policy.memberships:
            roles.setdefault(membership.member, []).append(membership.role)
        return roles
