"""ControllerRevisions: the templates of a StatefulSet or DaemonSet, numbered and named by their hash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from syncline.cluster.builtin.owners import owner_reference
from syncline.cluster.builtin.workloads.templates import template_hash, without_label
from syncline.control.plan import Create, Delete, Patch
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    dig,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

REVISION = GroupKind("apps", "ControllerRevision")
HASH_LABEL = "controller-revision-hash"
_STORED_HASH = "controller.kubernetes.io/hash"


@dataclass(frozen=True, slots=True)
class History:
    """``update`` is the current template's revision; if it does not exist yet, ``action`` creates it."""

    update: Obj
    action: Create | Patch | None
    revisions: tuple[Obj, ...]

    @property
    def name(self) -> str:
        return name_of(self.update)

    @property
    def hash(self) -> str:
        return labels_of(self.update).get(HASH_LABEL) or labels_of(self.update).get(_STORED_HASH, "")

    def named(self, name: str) -> Obj | None:
        return next((each for each in self.revisions if name_of(each) == name), None)


def history(owner: Obj, revisions: tuple[Obj, ...], *, hash_label: str = _STORED_HASH) -> History:
    """Return the revision of the current template, or the action that creates it; an older one that is used again
    becomes the newest (Kubernetes ``getStatefulSetRevisions``)."""
    data = _data(owner)
    newest = max((int(each.get("revision") or 0) for each in revisions), default=0)
    for known in sorted(revisions, key=lambda each: -int(each.get("revision") or 0)):
        if known.get("data") != data:
            continue
        if int(known.get("revision") or 0) == newest:
            return History(known, None, revisions)
        metadata = {"uid": uid_of(known), "resourceVersion": resource_version(known)}
        body = {"metadata": metadata, "revision": newest + 1}
        kind = GVK("apps", "v1", REVISION.kind)
        renumber = Patch(kind, namespace_of(known), name_of(known), body, "its template is wanted again")
        return History(known, renumber, revisions)
    made = _revision(owner, data, newest + 1, hash_label)
    return History(made, Create(made, "the template is new"), revisions)


def _data(owner: Obj) -> Obj:
    template = without_label(dig(owner, "spec", "template"), "")
    made: Obj = _sorted({"spec": {"template": template | {"$patch": "replace"}}})
    return made


def _sorted(value: Any) -> Any:
    """Return a value with sorted keys, as Go writes maps: revisions are compared as bytes."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _revision(owner: Obj, data: Obj, number: int, hash_label: str) -> Obj:
    digest = template_hash(dig(owner, "spec", "template"), dig(owner, "status", "collisionCount") or None)
    labels = dict(dig(owner, "spec", "template", "metadata", "labels", default={})) | {hash_label: digest}
    return {
        "apiVersion": "apps/v1",
        "kind": REVISION.kind,
        "metadata": {
            "name": f"{name_of(owner)}-{digest}",
            "namespace": namespace_of(owner),
            "labels": labels,
            "ownerReferences": [owner_reference(owner)],
        },
        "data": data,
        "revision": number,
    }


def template_of(revision: Obj) -> Obj:
    """Return the pod template of a revision."""
    template: Obj = dict(dig(revision, "data", "spec", "template", default={}))
    template.pop("$patch", None)
    return template


def expired(owner: Obj, known: History, in_use: set[str], *, live_count: bool = False) -> tuple[Delete, ...]:
    """Return deletes of unused revisions beyond ``revisionHistoryLimit``, oldest first. ``live_count``: revisions in
    use count against the limit too (DaemonSets)."""
    limit = int(dig(owner, "spec", "revisionHistoryLimit", default=10))
    old = sorted((each for each in known.revisions if name_of(each) != known.name), key=_number)
    unused = [each for each in old if name_of(each) not in in_use]
    too_many = max(len(old if live_count else unused) - limit, 0)
    return tuple(Delete.of(each, "beyond the history limit") for each in unused[:too_many])


def _number(revision: Obj) -> int:
    return int(revision.get("revision") or 0)
