"""The changes of machine configs that Applications would make at another revision, for a forecast on nodes.

Called by ``syncline mc impact --revision`` with a snapshot of the cluster and a reader of sources; it makes the
controller's comparison and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from syncline.argo.application import AppView
from syncline.argo.clusters import destination_of
from syncline.assembly.inspection.differences import application_differences
from syncline.assembly.machines.impact import impact_kinds
from syncline.control.cache import Cache
from syncline.gitops.application.manifests import SourceReader
from syncline.gitops.application.observing.observe import AppSettings, Destinations
from syncline.gitops.application.observing.system import SystemCache
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of, namespace_of
from syncline.machineconfig.impact.forecast import Change

SECRET = GroupKind("", "Secret")


@dataclass(frozen=True)
class RevisedChange:
    """The changes of Applications at a revision. ``notes``: Applications that could not be compared; ``problem``: why
    none could."""

    put: tuple[Obj, ...] = ()
    deleted: tuple[ObjectRef, ...] = ()
    origins: dict[ObjectRef, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problem: str = ""

    def joined(self, other: Change) -> Change:
        """Return these changes together with those of files, which are applied first."""
        deleted = (*other.deleted, *self.deleted)
        return Change(other.applied, (*other.put, *self.put), deleted, {**other.origins, **self.origins})


def revised_change(
    cache: Cache,
    revision: str,
    names: Sequence[str],
    reader: SourceReader,
    settings: AppSettings,
    now: datetime,
    destinations: Destinations | None = None,
    *,
    prune: bool = False,
) -> RevisedChange:
    """Return the differences of the Applications (``names``: these) at ``revision`` from the live objects, as far as
    they affect machines. An Application without such a revision is skipped and named."""
    put: list[Obj] = []
    deleted: list[ObjectRef] = []
    origins: dict[ObjectRef, str] = {}
    notes: list[str] = []
    apps = _applications(cache, names, settings)
    if isinstance(apps, str):
        return RevisedChange(problem=apps)
    asked, kinds = 0, impact_kinds()
    for app in apps:
        view, called = AppView(app), f"Application {name_of(app)}"
        if view.multi_source:
            notes.append(f"{called} has several sources, and --revision is for one: it was not asked")
            continue
        kept = {key: value for key, value in app["spec"].items() if key != "sourceHydrator"}
        spec = kept | {"source": view.sources[0] | {"targetRevision": revision}}
        found = application_differences(cache, app | {"spec": spec}, reader, settings, now, destinations)
        cache.put(APPLICATION.group_kind, app)
        if found.problems:
            notes.append(f"{called} could not be asked: {'; '.join(found.problems)}")
            continue
        asked += 1
        prunes = prune or bool(dig(app, "spec", "syncPolicy", "automated", "prune", default=False))
        for one in found.modified:
            if one.ref.group_kind not in kinds:
                continue
            origins[one.ref] = called
            if one.wanted is not None:
                put.append(one.wanted)
            elif prunes:
                deleted.append(one.ref)
            else:
                notes.append(f"{one.ref.kind} {one.ref.name} of {called} stays: without --prune it is not deleted")
    problem = "" if asked else f"--revision {revision}: {'; '.join(notes) or 'there is no Application in the cluster'}"
    return RevisedChange(tuple(put), tuple(deleted), origins, tuple(notes), problem)


def _applications(cache: Cache, names: Sequence[str], settings: AppSettings) -> list[Obj] | str:
    """Return the Applications that deploy to this cluster, or the first name that does not exist."""
    system = SystemCache(settings).of(cache).settings
    clusters = system.clusters(cache.objects(SECRET, settings.control_namespace))
    found = []
    for app in cache.objects(APPLICATION.group_kind):
        called = {name_of(app), f"{namespace_of(app)}/{name_of(app)}"}
        if names and not called & set(names):
            continue
        cluster = destination_of(app, clusters)
        if names and isinstance(cluster, str):
            return f"--app {name_of(app)}: {cluster}"
        if not isinstance(cluster, str) and cluster.is_here:
            found.append(app)
    missing = [
        name for name in names if not any(name in (name_of(a), f"{namespace_of(a)}/{name_of(a)}") for a in found)
    ]
    return f"--app {missing[0]}: no Application of that name brings objects to this cluster" if missing else found
