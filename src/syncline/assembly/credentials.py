"""Keeps the reader of repositories informed about credentials, settings and projects of the control namespace.

Wraps the performer of :class:`Render`: before each render it is seen, in the loop's own thread, whether anything of the
kinds that are read arrived since the last one; then what is read of them, and only if that changed it is parsed.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, runtime_checkable

from syncline.assembly.source_rules import MAPS, source_rules
from syncline.base.action import Work
from syncline.base.clock import Clock
from syncline.control.cache import Snapshot
from syncline.gitops.application.manifests import (
    Join,
    Manifests,
    ManifestStore,
    Reading,
    Render,
    RenderPerformer,
    SourceReader,
)
from syncline.gitops.application.observe import AppSettings
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import GroupKind, ObjectRef, labels_of, name_of, resource_version
from syncline.sources.credentials import CERTIFICATES_MAP, KNOWN_HOSTS_MAP, SECRET_TYPE, CredentialBook, credential_book
from syncline.sources.sourcing import SourceRules

__all__ = ["CredentialedRenders"]

SECRETS = GroupKind("", "Secret")
NAMED = sorted((KNOWN_HOSTS_MAP, CERTIFICATES_MAP, *MAPS))
"""ConfigMaps that are read."""


@runtime_checkable
class _Learns(Protocol):
    def learn(self, book: CredentialBook) -> None: ...

    def learn_rules(self, rules: SourceRules) -> None: ...


class CredentialedRenders(RenderPerformer):
    """Renders with the credentials of this moment, if the reader can take any."""

    def __init__(
        self, reader: SourceReader, store: ManifestStore, clock: Clock, cache: Snapshot, settings: AppSettings
    ) -> None:
        super().__init__(reader, store, clock, settings.read_patience_s)
        self._learner = reader if isinstance(reader, _Learns) else None
        self._cache = cache
        self._namespace = settings.control_namespace
        self._seen: tuple[object, ...] = ()
        """What the cache counted when it was looked at last."""
        self._known: tuple[tuple[str, str], ...] = ()

    def perform(self, action: Render | Join) -> Generator[Work, Any, Manifests | Reading | None]:
        if self._learner is not None:
            self._teach(self._learner)
        return (yield from super().perform(action))

    def _teach(self, learner: _Learns) -> None:
        named = (self._cache.get(ObjectRef("", "ConfigMap", self._namespace, name)) for name in NAMED)
        maps = [found for found in named if found is not None]
        changes = (self._cache.changes(kind) for kind in (SECRETS, APP_PROJECT.group_kind))
        seen = (*changes, *(f"{name_of(found)} {resource_version(found)}" for found in maps))
        if seen == self._seen:
            return
        self._seen = seen
        secrets = [s for s in self._cache.objects(SECRETS, self._namespace) if SECRET_TYPE in labels_of(s)]
        projects = self._cache.objects(APP_PROJECT.group_kind, self._namespace)
        state = tuple((name_of(obj), resource_version(obj)) for obj in (*secrets, *maps, *projects))
        if state != self._known:
            learner.learn(credential_book(secrets, maps))
            learner.learn_rules(source_rules(projects, maps))
            self._known = state
