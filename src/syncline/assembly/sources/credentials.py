"""Updates the reader of repositories with the credentials, settings and projects of the control namespace.

It wraps handlers of renders and hydrations: before each, in the loop's thread, it checks whether objects of these kinds
arrived since the last one; only then it reads them, and only changed ones are parsed.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, runtime_checkable

from syncline.assembly.sources.source_rules import MAPS, reach_of, source_rules
from syncline.base.action import Handler
from syncline.control.cache import Snapshot
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import GroupKind, ObjectRef, labels_of, name_of, resource_version
from syncline.sources.providers.reach import Reach
from syncline.sources.remote.credentials import (
    CERTIFICATES_MAP,
    KNOWN_HOSTS_MAP,
    SECRET_TYPE,
    CredentialStore,
    credential_store,
)
from syncline.sources.sourcing import SourceRules

SECRETS = GroupKind("", "Secret")
NAMED = sorted((KNOWN_HOSTS_MAP, CERTIFICATES_MAP, *MAPS))
"""Names of the ConfigMaps that are read."""


@runtime_checkable
class _Learns(Protocol):
    def learn(self, book: CredentialStore) -> None: ...

    def learn_rules(self, rules: SourceRules) -> None: ...

    def learn_reach(self, reach: Reach) -> None: ...


class Teacher:
    """Passes the current credentials, settings and projects to a reader that accepts them."""

    def __init__(self, reader: object, cache: Snapshot, namespace: str) -> None:
        self._learner = reader if isinstance(reader, _Learns) else None
        self._cache = cache
        self._namespace = namespace
        self._observed: tuple[object, ...] = ()
        """The cache's counters at the last check."""
        self._known: tuple[tuple[str, str], ...] = ()

    def teach(self) -> None:
        if self._learner is None:
            return
        named = (self._cache.get(ObjectRef("", "ConfigMap", self._namespace, name)) for name in NAMED)
        maps = [found for found in named if found is not None]
        changes = (self._cache.changes(kind) for kind in (SECRETS, APP_PROJECT.group_kind))
        observed = (*changes, *(f"{name_of(found)} {resource_version(found)}" for found in maps))
        if observed == self._observed:
            return
        self._observed = observed
        secrets = [s for s in self._cache.objects(SECRETS, self._namespace) if SECRET_TYPE in labels_of(s)]
        projects = self._cache.objects(APP_PROJECT.group_kind, self._namespace)
        state = tuple((name_of(obj), resource_version(obj)) for obj in (*secrets, *maps, *projects))
        if state != self._known:
            self._learner.learn(credential_store(secrets, maps))
            self._learner.learn_rules(source_rules(projects, maps))
            self._learner.learn_reach(reach_of(maps))
            self._known = state


class Taught:
    """A handler that updates the reader's credentials before it starts."""

    def __init__(self, handler: Handler, teacher: Teacher) -> None:
        self._handler = handler
        self._teacher = teacher

    def handle(self, action: Any) -> Generator[Any, Any, Any]:
        self._teacher.teach()
        return (yield from self._handler.handle(action))
