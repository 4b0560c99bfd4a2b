"""What came from outside in a recorded operation: commits, writes of people, failures of nodes; pure. Entry point:
:func:`acts_of`. All else was done by controllers, and is what a replay does again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from syncline.argo.tracking import TRACKING_ID
from syncline.kube.kinds.argoproj import APPLICATION, GROUP
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    meta,
    owner_references,
    ref_of,
)
from syncline.rehearsal.reality.recording import Recording, Seen, writers

PEOPLE = re.compile(
    r"(?i)(kubectl|oc|argocd|argocd-server|k9s|lens|helm|mozilla|curl|python-requests|syncline-story"
    r"|syncline(-(pool|node|rollout|plan|cluster))?)\b.*"
)
"""Field managers of programs that people use."""
CONTROLLERS = re.compile(r"(?i)syncline-(holds|patterns|hub|policy|pull|node-agent)|argocd-(application-)?controller")
MADE = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences")
UNSAID = ("status", "apiVersion", "kind", "metadata")
FLEETING = frozenset(("Event", "Lease", "EndpointSlice", "Endpoints", "Pod", "ReplicaSet", "ControllerRevision"))
"""Kinds that people write rarely, and controllers all the time."""
OURS = (GroupKind("", "Node"), GroupKind("", "Namespace"))
"""Kinds that no controller deletes by itself: machines and projects leave since it was decided outside."""
REFRESH = "argocd.argoproj.io/refresh"
STATE = "machineconfiguration.openshift.io/state"


@dataclass(frozen=True, slots=True)
class Commit:
    """A repository was seen at a commit, under the revision that an Application names."""

    at: datetime
    url: str
    revision: str
    sha: str

    def __str__(self) -> str:
        return f"commit {self.sha[:12]} of {self.url}"


@dataclass(frozen=True, slots=True)
class Write:
    """A person created (``whole``) or changed an object, or deleted it (``body`` None)."""

    at: datetime
    ref: ObjectRef
    body: Mapping[str, Any] | None
    whole: bool = False
    by: str = ""

    def __str__(self) -> str:
        does = "deletes" if self.body is None else "creates" if self.whole else "changes"
        return f"{self.by or 'a person'} {does} {self.ref}"


@dataclass(frozen=True, slots=True)
class Power:
    """A machine failed, outside any update (``up`` False), or was there again."""

    at: datetime
    node: str
    up: bool

    def __str__(self) -> str:
        return f"node {self.node} {'is back' if self.up else 'fails'}"


@dataclass(frozen=True, slots=True)
class Abort:
    """A person ended the sync of an Application."""

    at: datetime
    ref: ObjectRef

    def __str__(self) -> str:
        return f"the sync of {self.ref.name} is ended"


Act = Commit | Write | Power | Abort


def commits_at(recording: Recording) -> tuple[Commit, ...]:
    """Return where the repositories were when the record began, as far as Applications had seen them."""
    found = [each for obj in recording.first if _is_application(obj) for each in _commits(recording.began, obj)]
    return tuple(found)


def acts_of(recording: Recording) -> tuple[Act, ...]:
    """Return what came from outside, in order of time."""
    return tuple(_Sorting(recording).acts())


@dataclass
class _Sorting:
    recording: Recording
    objects: dict[ObjectRef, Obj] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    commits: set[tuple[str, str, str]] = field(default_factory=set)
    written: set[ObjectRef] = field(default_factory=set)
    """What a person ever wrote, and so may delete."""

    def acts(self) -> Iterator[Act]:
        self.objects = {ref_of(obj): obj for obj in self.recording.first}
        self.written = {ref for ref, obj in self.objects.items() if any(map(_is_person, writers({}, obj)))}
        self.commits = {(each.url, each.revision, each.sha) for each in commits_at(self.recording)}
        for seen in self.recording.seen:
            version, old = seen.version, self.objects.get(seen.version.ref, {})
            if version.gone:
                self.objects.pop(version.ref, None)
            else:
                self.objects[version.ref] = version.obj
            yield from self._of(seen, old)

    def _of(self, seen: Seen, old: Obj) -> Iterator[Act]:
        at, ref, obj = seen.version.at, seen.version.ref, seen.version.obj
        if ref.group_kind == APPLICATION.group_kind and not seen.version.gone:
            for each in _commits(at, obj):
                if (key := (each.url, each.revision, each.sha)) not in self.commits:
                    self.commits.add(key)
                    yield each
            if _phase(obj) == "Terminating" and _phase(old) == "Running":
                yield Abort(at, ref)
        if ref.group_kind == ("", "Node"):
            yield from self._power(at, ref.name, old, obj)
        if ref.kind in FLEETING:
            return
        if seen.version.gone:
            mine = ref in self.written or ref.group_kind in OURS
            if mine and not (owner_references(obj) or _is_of_application(obj) or _is_leaving(obj, self.objects)):
                yield Write(at, ref, None)
            return
        person = next((name for name in seen.by if _is_person(name)), "")
        self.written |= {ref} if person else set()
        if person and (change := changed(old, obj)):
            yield Write(at, ref, change, whole=not old, by=person)

    def _power(self, at: datetime, name: str, old: Obj, new: Obj) -> Iterator[Act]:
        if _is_ready(old) and not _is_ready(new) and annotations_of(new).get(STATE, "Done") == "Done":
            self.down.add(name)
            yield Power(at, name, up=False)
        elif name in self.down and _is_ready(new):
            self.down.discard(name)
            yield Power(at, name, up=True)


def changed(old: Obj, new: Obj) -> Obj:
    """Return the merge patch of what people may say of an object; the whole object if there was none."""
    if not old:
        metadata = {key: each for key, each in meta(new).items() if key not in MADE}
        return {**{key: each for key, each in new.items() if key not in ("status", "metadata")}, "metadata": metadata}
    found = {key: each for key, each in _merge(old, new).items() if key not in UNSAID}
    said = {key: _merge(meta(old).get(key) or {}, meta(new).get(key) or {}) for key in ("labels", "annotations")}
    said["annotations"].pop(REFRESH, None)  # a commit is seen in a replay without it
    said = {key: each for key, each in said.items() if each}
    return {**found, **({"metadata": said} if said else {})}


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> Obj:
    found: Obj = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            found[key] = value
        elif isinstance(value, dict) and isinstance(old[key], dict):
            inner = _merge(old[key], value)
            found |= {key: inner} if inner else {}
        elif value != old[key]:
            found[key] = value
    return found


def _commits(at: datetime, app: Obj) -> Iterator[Commit]:
    """Yield what the last comparison of an Application saw, for each source."""
    sync = dig(app, "status", "sync", default={})
    several = dig(sync, "comparedTo", "sources")
    sources = several or [dig(sync, "comparedTo", "source", default={})]
    for source, sha in zip(sources, sync.get("revisions") or [sync.get("revision")], strict=False):
        if isinstance(source, dict) and source.get("repoURL") and sha and not source.get("chart"):
            yield Commit(at, str(source["repoURL"]), str(source.get("targetRevision") or "HEAD"), str(sha))


def _is_application(obj: Obj) -> bool:
    return obj.get("kind") == APPLICATION.kind and str(obj.get("apiVersion")).startswith(GROUP)


def _phase(app: Obj) -> str:
    return str(dig(app, "status", "operationState", "phase") or "")


def _is_ready(node: Obj) -> bool:
    conditions = dig(node, "status", "conditions", default=[])
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _is_person(manager: str) -> bool:
    return PEOPLE.fullmatch(manager) is not None and CONTROLLERS.fullmatch(manager) is None


def _is_of_application(obj: Obj) -> bool:
    """Return whether a sync made the object, so that a sync deletes it."""
    return TRACKING_ID in annotations_of(obj) or "app.kubernetes.io/instance" in labels_of(obj)


def _is_leaving(obj: Obj, objects: Mapping[ObjectRef, Obj]) -> bool:
    """Return whether the object goes with its namespace."""
    namespace = meta(obj).get("namespace")
    if not namespace:
        return False
    there = objects.get(ObjectRef("", "Namespace", "", str(namespace)))
    return there is None or "deletionTimestamp" in meta(there)
