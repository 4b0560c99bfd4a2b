"""Kinds whose objects are computed on request from stored objects: read-only, as an aggregated API of another process
would serve them. A role brings them (``Role.hosted``), the registry serves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from syncline.cluster.storage.store import Key, Store, Stored
from syncline.kube.objects import Obj, name_of, namespace_of

VERBS: Final = ("get", "list")
MOST_BYTES: Final = 64_000_000
"""Bytes of computed objects that are kept, until what they are computed of changes; those of one namespace always."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """``definition``: of the kind, never stored. ``source``: the storage resource that the objects are computed of,
    ``compute``: all of its objects and a namespace ("": all) in, the objects that are visible there out."""

    definition: Obj
    source: str
    compute: Callable[[Sequence[Obj], str], Sequence[Obj]]

    @property
    def established(self) -> Obj:
        """The definition as one that is served."""
        names, conditions = self.definition["spec"]["names"], [{"type": "Established", "status": "True"}]
        return {**self.definition, "status": {"acceptedNames": names, "conditions": conditions}}


class Computed:
    """The objects of one hosted kind as the verbs read them; kept while the objects of its source stay."""

    def __init__(self, store: Store, hosted: Hosted, storage: str) -> None:
        self._store, self._hosted, self._storage = store, hosted, storage
        self._state: tuple[tuple[str, str, int], ...] = ()
        self._kept: dict[str, list[Stored]] = {}
        self._bytes = 0

    def __call__(self, namespace: str) -> list[Stored]:
        """Return what is visible in a namespace; "": in all of them."""
        sources = self._store.list(self._hosted.source)
        state = tuple((one.key.namespace, one.key.name, one.revision) for one in sources)
        if state != self._state:
            self._kept, self._bytes, self._state = {}, 0, state
        found = self._kept.get(namespace)
        if found is None:
            revision = max((one.revision for one in sources), default=self._store.revision)
            made = self._hosted.compute([one.obj for one in sources], namespace)
            found = [Stored.of(Key(self._storage, namespace_of(one), name_of(one)), revision, one) for one in made]
            size = sum(len(one.raw) for one in found)
            if self._bytes + size > MOST_BYTES:
                self._kept, self._bytes = {}, 0
            self._kept[namespace] = found
            self._bytes += size
        return found
