"""What each work says in the report of its set, read once for each version of what it is read from: :class:`Entries`.

A report has an entry for each cluster, and mostly one of them changes. All of it can be read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from syncline.fleet.pull import names
from syncline.fleet.pull.details import Failed, failed_of
from syncline.fleet.pull.report import SetKey, entry_of
from syncline.kube.objects import Obj, ObjectRef, annotations_of, name_of, namespace_of

MAX_SETS: Final = 1_000
"""Sets whose entries are kept; of further ones each entry is read each time."""
_Place = tuple[str, str]
Find = Callable[[ObjectRef], Obj | None]


@dataclass(frozen=True, slots=True)
class Sources:
    """The kinds of an Application, and of the report of its cluster on it, and how they are found."""

    app: tuple[str, str]
    details: tuple[str, str]
    get: Find
    whole: Callable[[str, str], Obj | None]
    """Returns the ApplicationReport of a cluster and a work with all its parts."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one work says. ``app`` and ``details`` are the objects that were read; ``carried``: whether the Application
    is the work's."""

    work: Obj
    app_ref: ObjectRef | None
    app: Obj | None
    details_ref: ObjectRef
    details: Obj | None
    carried: bool
    said: Obj = field(repr=False)
    failed: Failed

    def holds(self, get: Find) -> bool:
        """Return whether the objects are still those that were read; one in parts is read each time."""
        if self.details is not None and "part" in (self.details.get("report") or {}):
            return False
        same_app = self.app_ref is None or get(self.app_ref) is self.app
        return same_app and get(self.details_ref) is self.details


@dataclass(slots=True)
class Entries:
    """The entries of sets. Bounded: the sets that were read last."""

    _kept: OrderedDict[SetKey, dict[_Place, Entry]] = field(default_factory=OrderedDict)

    def of(self, key: SetKey, works: Iterable[Obj], sources: Sources) -> list[Entry]:
        """Return what works say, in their order."""
        known, made = self._kept.pop(key, {}), {}
        for work in works:
            place = work["metadata"]["namespace"], work["metadata"]["name"]
            entry = known.get(place)
            if entry is None or entry.work is not work or not entry.holds(sources.get):
                entry = _read(key, work, sources)
            made[place] = entry
        if made:
            self._kept[key] = made
        while len(self._kept) > MAX_SETS:
            self._kept.popitem(last=False)
        return list(made.values())


def _read(key: SetKey, work: Obj, sources: Sources) -> Entry:
    named = names.hub_application(work)
    app_ref = ObjectRef(*sources.app, *named) if named is not None else None
    app = sources.get(app_ref) if app_ref is not None else None
    details_ref = ObjectRef(*sources.details, namespace_of(work), name_of(work))
    whole = sources.whole(namespace_of(work), name_of(work))
    return Entry(
        work,
        app_ref,
        app,
        details_ref,
        sources.get(details_ref),
        app is not None and is_of(work, app),
        entry_of(key, work),
        failed_of(whole) if whole is not None else Failed(),
    )


def is_of(work: Obj, app: Obj) -> bool:
    """Return whether a work is the one of an Application that its annotations name.

    An agent may write the annotations of the works of its cluster. So what they name counts only if the Application
    itself names that cluster, and the work has its name: no cluster reports for an Application of another one.
    """
    return annotations_of(app).get(names.CLUSTER) == namespace_of(work) and names.work_name(app) == name_of(work)
