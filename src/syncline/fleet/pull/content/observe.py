"""Reads what the content of one Application is made of; frozen, without a decision."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from syncline.argo.application import AppView
from syncline.argo.content.chunks import ContentError, canonical
from syncline.argo.content.entries import chunk_names, entries_of
from syncline.argo.content.names import RENDERED, wants_content
from syncline.argo.content.sealing import NO_ONE, PublicKey, Recipient, key_bytes, public_key
from syncline.argo.project import permits_app_namespace, permits_source
from syncline.argo.project.scoped import with_scoped
from syncline.argo.tracking import instance_name
from syncline.control.cache import OfKind, Snapshot
from syncline.control.plan import Create, Replace
from syncline.fleet.pull import names
from syncline.fleet.pull.content.carrying import applications_in
from syncline.fleet.pull.content.rendering import Question, Rendering, Renderings
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.observe import APPS, Carried, unlisted
from syncline.fleet.pull.propagation import is_bound, plan_app
from syncline.fleet.pull.works import payload
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.kinds.content import CHUNK, CONTENT, TARGET, TARGET_NAME
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, name_of, namespace_of
from syncline.kube.schema.extensions import SOURCE

CONTENTS: Final = CONTENT.group_kind
CHUNKS: Final = CHUNK.group_kind
TARGETS: Final = TARGET.group_kind
SECRETS: Final = GroupKind("", "Secret")
PROJECTS: Final = APP_PROJECT.group_kind
HUB_SECRET: Final = "syncline-content"
"""Secret of the hub's keyed digests, in Argo CD's namespace."""
BY_HUB_APP: Final = "content-application"
"""Index of ApplicationContents by ``NAMESPACE/NAME`` of the hub's Application."""
BY_CHUNK: Final = "content-chunk"
"""Index of ApplicationContents by ``NAMESPACE/NAME`` of each chunk."""


def hub_app(content: Obj) -> tuple[str, str]:
    """Return namespace and name of the hub's Application."""
    found = dig(content, "content", "hub") or {}
    return str(found.get("namespace") or ""), str(found.get("name") or "")


def _of_app(content: Obj) -> Iterable[str]:
    return ("/".join(hub_app(content)),)


def _of_chunks(content: Obj) -> Iterable[str]:
    space = namespace_of(content)
    return {f"{space}/{name}" for entry in entries_of(content) for name in chunk_names(entry)}


INDICES: Final = {BY_HUB_APP: OfKind(CONTENTS, _of_app), BY_CHUNK: OfKind(CONTENTS, _of_chunks)}


Carries = Callable[[Snapshot, ObjectRef], Carried | None]
"""Reads what of an Application travels now."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the pass needs beside the cache. ``draw``: returns 32 random bytes."""

    settings: PullSettings
    renderings: Renderings
    draw: Callable[[], bytes]


@dataclass(frozen=True)
class ContentObserved:
    """An Application whose cluster gets rendered manifests. ``app`` None: it is gone, or does not ask for that."""

    ref: ObjectRef
    app: Obj | None = field(repr=False)
    index: Obj | None = field(default=None, repr=False)
    stale: Sequence[Obj] = field(default=(), repr=False)
    """ApplicationContents of it that have no use: of another cluster, or of an Application that is gone."""
    who: Recipient = NO_ONE
    work: str = ""
    problem: str = ""
    """Why nothing is rendered."""
    waits: str = ""
    """What the cluster or the hub must say first."""
    question: Question | None = None
    rendering: Rendering | None = None
    reading: str = ""
    key: PublicKey | None = None
    secret: bytes | None = field(default=None, repr=False)
    """Of keyed digests; None: not made yet."""
    seed: bytes = field(default=b"", repr=False)
    present: frozenset[str] = frozenset()
    """Names of the chunks in the cluster's namespace."""
    sealed: Mapping[str, str] = field(default_factory=dict)
    """Names of sealed chunks by id."""
    poll_s: float = 180.0
    argo_namespace: str = ""
    unlisted: str = ""
    pinned: bool = False
    """An order resolves its revisions: it answers a refresh."""
    used: frozenset[str] = frozenset()
    """Digests of content that the work names now: they stay."""


def observe_content(cache: Snapshot, ref: ObjectRef, around: Surroundings, carries: Carries) -> ContentObserved | None:
    """Read one Application; None if nothing of it is or should be here."""
    app = cache.get(ref)
    mine = cache.indexed(BY_HUB_APP, f"{ref.namespace}/{ref.name}")
    wanted = app is not None and names.is_carried(app) and wants_content(app)
    if not wanted and not mine:
        return None
    missing = unlisted(cache, (APPS, CONTENTS, CHUNKS, TARGETS, SECRETS, PROJECTS))
    if app is None or not wanted or missing:
        return ContentObserved(ref, app if missing else None, stale=mine, unlisted=missing)
    carried = carries(cache, ref)
    if carried is None or carried.seen is None or carried.unlisted:
        return ContentObserved(ref, app, unlisted=carried.unlisted if carried is not None else str(APPS))
    return _observed(cache, ref, app, carried, mine, around)


def _observed(
    cache: Snapshot, ref: ObjectRef, app: Obj, carried: Carried, mine: Sequence[Obj], around: Surroundings
) -> ContentObserved:
    assert carried.seen is not None, "it is carried"
    settings = around.settings
    copy = _travels(carried)
    bare = copy if copy is not None else payload(app, carried.variant)
    cluster, work = str(app["metadata"]["annotations"][names.CLUSTER]), names.work_name(app)
    who = Recipient(cluster, namespace_of(bare), name_of(bare))
    target = cache.get(ObjectRef(*TARGETS, cluster, TARGET_NAME))
    key = _key(target)
    problem = _problem(cache, app, carried, settings)
    made = cache.get(ObjectRef(*SECRETS, settings.argo_namespace, HUB_SECRET))
    lacks = problem or target is None or copy is None
    question = None if lacks or target is None or copy is None else _question(app, copy, who, target, settings)
    index = cache.get(ObjectRef(*CONTENTS, cluster, work))
    return ContentObserved(
        ref,
        app,
        index,
        [one for one in mine if (namespace_of(one), name_of(one)) != (cluster, work)],
        who,
        work,
        problem,
        "" if key is not None else _nothing_said(cluster, target),
        question,
        around.renderings.latest(question) if question is not None else None,
        around.renderings.waiting(question) if question is not None else "",
        key,
        _secret(made),
        around.draw(),
        frozenset(name_of(one) for one in cache.objects(CHUNKS, cluster)),
        {str(one.get("id")): str(one.get("name")) for each in entries_of(index) for one in each.get("sealed") or ()},
        settings.poll_s,
        settings.argo_namespace,
        pinned=carried.seen.permit is not None and bool(carried.seen.permit.pins.commits),
        used=frozenset(annotations_of(one).get(RENDERED, "") for one in applications_in(carried.seen.work or {})),
    )


def _travels(carried: Carried) -> Obj | None:
    """Return the cluster's copy as it would be written now, at the commits of an order; where an order holds it back,
    the copy that is there; None: nothing travels yet."""
    assert carried.seen is not None, "it is carried"
    for action in plan_app(carried.seen, carried.variant).actions:
        if isinstance(action, Create | Replace):
            yet = applications_in(action.obj)
            if yet:
                return yet[0]
    return next(iter(applications_in(carried.seen.work or {})), None)


def _problem(cache: Snapshot, app: Obj, carried: Carried, settings: PullSettings) -> str:
    """Return why the hub may not render it: the annotation is the tenant's, the repositories are not. The hub reads
    them with its own credentials, so its AppProject decides, as it does for Applications that the hub syncs."""
    assert carried.seen is not None, "it is carried"
    view = AppView(app)
    if carried.seen.cluster is None:
        return f"ManagedCluster {app['metadata']['annotations'][names.CLUSTER]} does not exist"
    target = str(app["metadata"]["annotations"][names.CLUSTER])
    if carried.variant is Variant.ACM and not is_bound(target, carried.seen.decisions):
        return f"no PlacementDecision in namespace {view.namespace} selects cluster {target}"
    ref = ObjectRef(*PROJECTS, settings.argo_namespace, view.project)
    project = cache.get(ref)
    if project is None:
        why = cache.unread(ref) or f"it does not exist in namespace {settings.argo_namespace} of the hub"
        return f"AppProject {view.project}: {why}; the hub renders only what a project of its own permits"
    if not permits_app_namespace(project, view.namespace, settings.argo_namespace):
        return f"AppProject {view.project}: sourceNamespaces does not permit namespace {view.namespace}"
    project = with_scoped(project, cache.objects(SECRETS, settings.argo_namespace), ())
    refused = [url for one in view.sources if not permits_source(project, url := str(one.get("repoURL") or ""))]
    if refused:
        return f"AppProject {view.project}: sourceRepos does not permit {refused[0]}"
    return "" if view.sources else "it has no source"


def _nothing_said(cluster: str, target: Obj | None) -> str:
    if target is not None:
        return f"the key in ContentTarget {cluster}/{TARGET_NAME} is not one of X25519: its agent writes it again"
    return (
        f"cluster {cluster} has not said for which key and versions its content is made (ContentTarget "
        f"{cluster}/{TARGET_NAME}): that is for an agent of Syncline to say, OCM's own agents do not know content"
    )


def _key(target: Obj | None) -> PublicKey | None:
    for one in (dig(target or {}, "spec", "keys") or ())[:1]:
        try:
            found = public_key(key_bytes(one.get("publicKey")))
        except ContentError:
            return None
        return found if found.id == one.get("id") else None
    return None


def _secret(obj: Obj | None) -> bytes | None:
    try:
        return key_bytes(dig(obj or {}, "data", "key")) if obj is not None else None
    except ContentError:
        return None


def _question(app: Obj, copy: Obj, who: Recipient, target: Obj, settings: PullSettings) -> Question:
    view = AppView(copy)
    version = str(dig(target, "spec", "kubeVersion") or "")
    served = tuple(map(str, dig(target, "spec", "apiVersions") or ()))
    versions = hashlib.sha256(canonical([version, served])).hexdigest()[:16]
    return Question(
        f"{who.cluster}/{namespace_of(app)}/{name_of(app)}/{versions}",
        view.sources,
        view.revisions_wanted,
        instance_name(copy, settings.argo_namespace),
        view.project,
        view.destination_namespace,
        version,
        served,
        annotations_of(copy).get(SOURCE, ""),
    )
