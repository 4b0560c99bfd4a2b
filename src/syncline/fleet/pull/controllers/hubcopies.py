"""Applications that are pulled by a cluster and also run on the hub itself, by annotation.

The pull model's Application is dormant on the hub. With :data:`ALSO` a second one beside it is synced there, by the
hub's GitOps controllers, as if a person had made it in that namespace: the AppProject decides whether it may.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from syncline.apply.last_applied import LAST_APPLIED
from syncline.argo.application import HYDRATE, REFRESH, SKIP_RECONCILE
from syncline.argo.clusters import IN_CLUSTER_SERVER
from syncline.argo.conditions import Condition
from syncline.argo.typed import stored_spec
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Delete, Plan, Replace
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.applications import travelling
from syncline.fleet.pull.notices import HUB_COPY_ERROR, noted
from syncline.fleet.pull.observe import APPS
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    copied,
    finalizers,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    owner_references,
    uid_of,
)

ALSO: Final = "syncline.dev/also-on-hub"
"""Annotation of a pulled Application on the hub, with the value ``true``."""
END: Final = "-on-hub"
"""End of the name of the second Application."""
_STAYS: Final = frozenset({SKIP_RECONCILE, REFRESH, HYDRATE, LAST_APPLIED})
_GROUPS: Final = (f"{names.APPS}/", "syncline.dev/")
"""Annotations that are of the way to a cluster."""


@dataclass(frozen=True, slots=True)
class Copied:
    """``app`` None: it is gone. ``copy``: the object of the second one's name."""

    app: Obj | None = field(repr=False)
    copy: Obj | None = field(repr=False)


def copy_controller() -> Controller[Copied]:
    """Return the controller."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Copied | None:
        if not cache.has_synced(APPS):
            return None
        app, copy = cache.get(ref), cache.get(ObjectRef(*APPS, ref.namespace, ref.name + END))
        if app is None or (copy is None and not _wanted(app)):
            return None
        return Copied(app, copy)

    def of_copy(copy: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        if name_of(copy).endswith(END):
            yield ObjectRef(*APPS, namespace_of(copy), name_of(copy).removesuffix(END))

    return Controller(
        name="pulled-hub-copy",
        kind=APPS,
        predicate=differ(travelling),
        watches=(Watch(APPS, of_copy, differ(travelling)),),
        observe=observe,
        plan=plan_copy,
    )


def _wanted(app: Obj) -> bool:
    return names.is_carried(app) and annotations_of(app).get(ALSO) == "true" and not is_terminating(app)


def plan_copy(seen: Copied, now: datetime) -> Plan:
    """Plan the second Application; one of its name that is not ours is left alone."""
    app, copy = seen.app, seen.copy
    if app is None or is_terminating(app):
        return Plan(why="it goes with its owner")
    ours = copy is not None and any(one.get("uid") == uid_of(app) for one in owner_references(copy))
    if not _wanted(app):
        gone = (Delete.of(copy, f"annotation {ALSO} is gone"),) if copy is not None and ours else ()
        status = noted(app, (HUB_COPY_ERROR,), (), now)
        return Plan((gone,) if gone else (), why="it runs on its cluster alone", status=status)
    wanted = copy_of(app)
    if copy is None:
        return Plan(((Create(wanted, "it runs on the hub, too"),),), why="it runs on the hub, too")
    if not ours:
        where = f"{namespace_of(copy)}/{name_of(copy)}"
        text = f"Application {where} exists and is not of {ALSO}: rename one of them, or remove the annotation"
        return Plan(why=text, status=noted(app, (HUB_COPY_ERROR,), (Condition(HUB_COPY_ERROR, text),), now))
    status = noted(app, (HUB_COPY_ERROR,), (), now)
    if _shown(copy) == _shown(wanted) or is_terminating(copy):
        return Plan(why="it is as it should be", status=status)
    metadata = {**copy["metadata"], **{key: wanted["metadata"].get(key) for key in ("labels", "annotations")}}
    update = Replace({**copy, "metadata": metadata, "spec": wanted["spec"]}, "the Application changed")
    return Plan(((update,),), why="the Application changed", status=status)


def _shown(app: Obj) -> tuple[object, ...]:
    annotations = {key: value for key, value in annotations_of(app).items() if key not in _STAYS}
    return labels_of(app), annotations, stored_spec(app.get("spec") or {})


def copy_of(app: Obj) -> Obj:
    """Return the second Application: the same sources and project, the hub as its destination."""
    labels = {key: value for key, value in labels_of(app).items() if not key.startswith(_GROUPS)}
    annotations = {
        key: value for key, value in annotations_of(app).items() if key not in _STAYS and not key.startswith(_GROUPS)
    }
    owner = {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "name": name_of(app), "uid": uid_of(app)}
    metadata: Obj = {"name": name_of(app) + END, "namespace": namespace_of(app), "ownerReferences": [owner]}
    metadata |= {"labels": labels, "annotations": annotations}
    metadata |= {"finalizers": finalizers(app)} if finalizers(app) else {}
    spec = copied(app.get("spec") or {})
    given = spec.get("destination") or {}
    spec["destination"] = {"server": IN_CLUSTER_SERVER, "namespace": str(given.get("namespace") or "")}
    return {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "metadata": metadata, "spec": spec}
