"""The comparison of an application: differences, health and conditions; begin at :func:`compare`.

Called by the Application controller for every refresh and every reconcile of an operation, with rendered manifests and
the live objects that take part. Frozen values leave; nothing is read or written here. The steps and their order are
those of Argo CD ``CompareAppState`` (reference argocd-app §§3.1, 3.7, 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from syncline.apply.annotations import (
    COMPARE_OPTIONS,
    has_option,
    hook_types,
    is_delete_hook,
    is_hook,
    is_ignored,
    is_skipped,
    needs_deletion_approval,
    wave,
)
from syncline.apply.diff import (
    DiffError,
    DiffMode,
    DiffSettings,
    IgnoreRule,
    Override,
    Prediction,
    respect_ignored,
)
from syncline.apply.diff.jq import gathered
from syncline.apply.diff.memo import Verdicts, settings_key
from syncline.apply.diff.model import DEFAULT_OVERRIDES
from syncline.apply.health import Health, health_of
from syncline.argo.clusters import HERE, Cluster
from syncline.argo.conditions import Condition
from syncline.argo.excluded import ResourceFilter
from syncline.argo.project import permits_destination, permits_kind
from syncline.argo.tracking import Tracking, instance_name
from syncline.gitops.comparison.health import ApplicationHealth, Part, application_health, part_of
from syncline.gitops.comparison.pairs import Arranged, arrange, pair_arranged
from syncline.gitops.comparison.targets import (
    Targets,
    is_managed_namespace,
    managed_metadata,
    managed_namespace,
    prepare_targets,
    scoped,
)
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.model import Pair
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    dig,
    gvk_of,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
)

IN_CLUSTER = "https://kubernetes.default.svc"
COMPARISON_ERROR = "ComparisonError"
MAX_OUTSIDE = 5
"""Namespaces that the destination leaves out and that conditions name."""


class SyncCode(StrEnum):
    """Values of ``status.sync.status``; NONE: the resource does not take part."""

    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"
    NONE = ""


@dataclass(frozen=True)
class ComparisonInput:
    """``live`` holds candidates: objects with this application's tracking data or with the key of a manifest."""

    app: Obj
    targets: tuple[Obj, ...]
    live: Mapping[ObjectRef, Obj]
    project: Obj
    kinds: KindTable
    tracking: Tracking = field(default_factory=Tracking)
    control_namespace: str = "argocd"
    overrides: Mapping[str, Override] = field(default_factory=lambda: DEFAULT_OVERRIDES)
    excluded: ResourceFilter = field(default_factory=ResourceFilter)
    verdicts: Verdicts | None = None
    """Cached results of earlier comparisons; they do not change the result."""
    diff: DiffSettings = field(default_factory=DiffSettings)
    """Settings common to all applications; mode, ignored fields and tracking are set here."""
    health: Callable[[Obj], Health | None] = health_of
    project_clusters: tuple[Mapping[str, str], ...] = ()
    server: str = ""
    """Server URL of the destination if the spec has its name only; empty: as in the spec."""
    cluster_name: str = ""
    destination: Cluster = HERE
    """Its Secret may name the only namespaces that it manages."""
    predicted: Callable[[Obj, Obj], Prediction | None] | None = None
    """Returns the API server's dry run of a manifest on its live object (compare option ``ServerSideDiff=true``), or
    None if there is none: the pair is then compared here."""
    before: Comparison | None = field(default=None, repr=False)
    """The last comparison with the same settings; results for unchanged objects are reused. It does not change the
    result."""
    fresh: bool = False
    """Differences and health depend on further inputs, so both are computed each time."""


@dataclass(frozen=True)
class Comparison:
    status: SyncCode
    health: ApplicationHealth
    resources: tuple[Obj, ...]
    """Rows as in ``status.resources``: empty fields left out."""
    conditions: tuple[Condition, ...]
    pairs: tuple[Pair, ...]
    hooks: tuple[Obj, ...]
    in_sync: frozenset[ObjectRef]
    has_pre_delete_hooks: bool = False
    has_post_delete_hooks: bool = False
    images: frozenset[str] = frozenset()
    made: _Made | None = field(default=None, compare=False, repr=False)
    """Intermediate results for the next comparison."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """The manifests as targets: the part of a comparison that does not depend on live objects."""

    given: tuple[Obj, ...]
    prepared: Targets
    wanted: frozenset[ObjectRef]
    arranged: Arranged
    with_namespace: Arranged | None
    """As ``arranged``, with the destination Namespace if the application manages it without a manifest."""
    pre_delete: bool
    post_delete: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """A live object, its owner by tracking data, and whether it takes part: owned by the application and permitted."""

    obj: Obj
    owner: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class _Judged:
    """One pair with its results."""

    pair: Pair
    modified: bool
    to_sync: Pair | None
    part: Part
    row: _Row
    shown: Obj
    images: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Made:
    """``pairs`` by the identities of their objects, ``judged`` by that of the pair; both keep these alive."""

    ready: _Ready
    found: Mapping[ObjectRef, _Found]
    pairs: Mapping[tuple[int, int], Pair]
    judged: Mapping[int, _Judged]


def live_refs(targets: Iterable[Obj], kinds: KindTable, destination_namespace: str) -> list[ObjectRef]:
    """Return the keys that manifests would have as live objects, sorted."""
    refs = (ref_of(scoped(target, kinds, destination_namespace)) for target in targets)
    return sorted({ref for ref in refs if ref.name})


def compare(observed: ComparisonInput) -> Comparison:
    """Compare all pairs; never raises for the content of objects. Raises Unknown if user expressions must be evaluated
    first. Results of the previous comparison are reused for unchanged objects."""
    before = observed.before.made if observed.before is not None else None
    if before is not None and before.ready.given is not observed.targets:
        before = None
    ready = before.ready if before is not None else _ready(observed)
    outside = _outside(observed, ready.prepared)
    live = _ours(observed, ready, before.found if before is not None else {}) if not outside else {}
    arranged = _arranged(observed, ready, live)
    pairs = pair_arranged(
        arranged, {ref: one.obj for ref, one in live.items() if one.allowed}, before.pairs if before is not None else {}
    )
    judged, errors = _judge_all(
        observed, ready, arranged.hooks, pairs, before.judged if before is not None else {}, outside
    )
    error = bool(errors)
    conditions = [
        *ready.prepared.conditions,
        *_shared(observed, live),
        *(Condition(COMPARISON_ERROR, one) for one in errors),
        *_without_namespace(observed, pairs),
    ]
    health = application_health([one.part for one in judged])
    conditions += [Condition(COMPARISON_ERROR, f"error setting app health: {why}") for why in health.errors]
    return Comparison(
        status=_status(observed.app, judged, error),
        health=health,
        resources=tuple(one.shown for one in judged),
        conditions=tuple(conditions),
        pairs=tuple(one.to_sync for one in judged if one.to_sync is not None),
        hooks=arranged.hooks,
        in_sync=frozenset() if error else _in_sync(judged),
        has_pre_delete_hooks=ready.pre_delete,
        has_post_delete_hooks=ready.post_delete,
        images=frozenset(image for one in judged for image in one.images),
        made=None
        if error
        else _Made(
            ready,
            live,
            {(id(one.pair.target), id(one.pair.live)): one.pair for one in judged},
            {id(one.pair): one for one in judged},
        ),
    )


def _ready(observed: ComparisonInput) -> _Ready:
    app, destination = _app_name(observed), _destination(observed)
    prepared = prepare_targets(
        observed.targets, app, destination, observed.kinds, observed.tracking, observed.excluded, _server(observed.app)
    )
    # Delete hooks take no part in a sync, unless they are sync hooks as well.
    before = [is_delete_hook(target, "PreDelete") for target in prepared.objects]
    after = [is_delete_hook(target, "PostDelete") for target in prepared.objects]
    kept = [target for target, *ends in zip(prepared.objects, before, after) if _is_synced(target, any(ends))]
    own = managed_metadata(observed.app) is not None and not any(
        is_managed_namespace(t, observed.app) for t in prepared.objects
    )
    more = [managed_namespace(observed.app)] if own else []
    return _Ready(
        given=observed.targets,
        prepared=prepared,
        wanted=frozenset(map(ref_of, prepared.objects)),
        arranged=arrange(kept, destination, observed.kinds),
        with_namespace=arrange([*kept, *more], destination, observed.kinds) if own else None,
        pre_delete=any(before),
        post_delete=any(after),
    )


def _is_synced(target: Obj, of_deletion: bool) -> bool:
    return not of_deletion or any(str(kind) != "Skip" for kind in hook_types(target))


def _arranged(observed: ComparisonInput, ready: _Ready, live: Mapping[ObjectRef, _Found]) -> Arranged:
    """Return the targets, with the destination Namespace if it is ours, managed, and in no manifest."""
    alone = ready.with_namespace
    if alone is None or not any(one.allowed and is_managed_namespace(one.obj, observed.app) for one in live.values()):
        return ready.arranged
    return alone


def _judge_all(
    observed: ComparisonInput,
    ready: _Ready,
    hooks: tuple[Obj, ...],
    pairs: tuple[Pair, ...],
    known: Mapping[int, _Judged],
    outside: Mapping[ObjectRef, str],
) -> tuple[list[_Judged], list[str]]:
    """Return the result of each pair, and why nothing could be compared: then no pair counts as modified."""
    settings = diff_settings(observed)
    judge = _Judge(
        observed, settings, settings_key(settings), observed.verdicts or Verdicts(), _app_name(observed), hooks
    )
    if ready.prepared.error:
        errors = [f"Failed to load target state: {ready.prepared.error}"]
    elif outside:
        first = {ref.namespace: text for ref, text in reversed(list(outside.items()))}
        errors = [f"Failed to load live state: {first[space]}" for space in sorted(first)[:MAX_OUTSIDE]]
    else:
        try:
            return gathered(*(partial(judge.again, pair, known.get(id(pair))) for pair in pairs)), []
        except DiffError as failed:
            errors = [f"Failed to compare desired state to live state: {failed}"]
    return [judge.failed(pair, outside.get(pair.ref, "")) for pair in pairs], errors


def _outside(observed: ComparisonInput, prepared: Targets) -> dict[ObjectRef, str]:
    """Return the targets that the destination leaves out, in order, and why: then nothing is compared, as upstream."""
    refs = sorted(map(ref_of, prepared.objects))
    return {ref: why for ref in refs if (why := observed.destination.refuses(ref.kind, ref.namespace, ref.name))}


@dataclass(frozen=True, slots=True)
class _Judge:
    observed: ComparisonInput
    settings: DiffSettings
    known_by: str
    verdicts: Verdicts
    app: str
    hooks: tuple[Obj, ...]

    def again(self, pair: Pair, known: _Judged | None) -> _Judged:
        """Return the result of a pair, reusing ``known``. Raises DiffError and Unknown."""
        observed = self.observed
        if known is not None and not observed.fresh:
            return known
        modified = _is_modified(observed, pair, self.verdicts, self.settings, self.known_by)
        to_sync = _to_sync(observed, pair, self.settings, self.app)
        part = part_of(observed.app, pair, observed.health)
        if known is not None and (known.modified, known.to_sync, known.part) == (modified, to_sync, part):
            return known
        row = _row(observed, pair, self.hooks, modified, self.app)
        images = tuple(_images(pair.live)) if pair.live else ()
        return _Judged(pair, modified, to_sync, part, row, _shown(row, part.health, False), images)

    def failed(self, pair: Pair, outside: str) -> _Judged:
        observed, part = self.observed, part_of(self.observed.app, pair, self.observed.health)
        if outside and part.health is not None:
            part = replace(part, health=replace(part.health, message=outside))
        row = _row(observed, pair, self.hooks, False, self.app)
        images = tuple(_images(pair.live)) if pair.live else ()
        return _Judged(pair, False, pair, part, row, _shown(row, part.health, True), images)


def _app_name(observed: ComparisonInput) -> str:
    return instance_name(observed.app, observed.control_namespace)


def _destination(observed: ComparisonInput) -> str:
    return str(dig(observed.app, "spec", "destination", "namespace", default=""))


def _server(app: Obj) -> str:
    return str(dig(app, "spec", "destination", "server", default="")).rstrip("/") or IN_CLUSTER


def _cluster_name(app: Obj) -> str:
    name = str(dig(app, "spec", "destination", "name", default=""))
    return name or ("in-cluster" if _server(app) == IN_CLUSTER else "")


def _ours(observed: ComparisonInput, ready: _Ready, known: Mapping[ObjectRef, _Found]) -> dict[ObjectRef, _Found]:
    """Return the candidates; those that the project permits are ``allowed`` and take part."""
    app = _app_name(observed)
    judged: dict[ObjectRef, _Found] = {}
    for ref, obj in sorted(observed.live.items(), key=_first):
        before = known.get(ref)
        judged[ref] = (
            before if before is not None and before.obj is obj else _found(observed, app, ref, obj, ready.wanted)
        )
    return judged


def _first(pair: tuple[ObjectRef, Obj]) -> ObjectRef:
    return pair[0]


def _found(observed: ComparisonInput, app: str, ref: ObjectRef, obj: Obj, wanted: frozenset[ObjectRef]) -> _Found:
    owner = observed.tracking.app_name(obj)
    ours = ref in wanted or (owner == app and not owner_references(obj))
    excluded = observed.excluded.excludes(ref.group, ref.kind, _server(observed.app))
    return _Found(obj, owner, ours and not excluded and _permitted(observed, ref))


def _permitted(observed: ComparisonInput, ref: ObjectRef) -> bool:
    if not observed.project:
        return True
    if not permits_kind(observed.project, ref.group, ref.kind, ref.name, namespaced=bool(ref.namespace)):
        return False
    if not ref.namespace:
        return True
    server, name = observed.server or _server(observed.app), observed.cluster_name or _cluster_name(observed.app)
    return permits_destination(observed.project, server, name, ref.namespace, observed.project_clusters)


def _shared(observed: ComparisonInput, live: Mapping[ObjectRef, _Found]) -> list[Condition]:
    app, found = _app_name(observed), []
    mine = f"{namespace_of(observed.app)}/{name_of(observed.app)}".lstrip("/")
    for ref, one in live.items():
        if one.allowed and one.owner and one.owner != app:
            text = f"{ref.kind}/{ref.name} is part of applications {mine} and {one.owner.replace('_', '/')}"
            found.append(Condition("SharedResourceWarning", text))
    return found


def diff_settings(observed: ComparisonInput) -> DiffSettings:
    """Return the settings for comparing this application's pairs; also for commands that show differences."""
    options = dig(observed.app, "spec", "syncPolicy", "syncOptions", default=[])
    structured = "ServerSideApply=true" in options
    return replace(
        observed.diff,
        mode=DiffMode.STRUCTURED_MERGE if structured else observed.diff.mode,
        ignore=tuple(IgnoreRule.parse(rule) for rule in dig(observed.app, "spec", "ignoreDifferences", default=[])),
        overrides=observed.overrides,
        tracking=observed.tracking,
        include_mutation_webhook=has_option(observed.app, "IncludeMutationWebhook=true", COMPARE_OPTIONS),
    )


def asks_server(app: Obj, default: bool) -> bool:
    """Return whether server-side diff is on: by the Application's compare option, else ``default``."""
    if has_option(app, "ServerSideDiff=false", COMPARE_OPTIONS):
        return False
    return default or has_option(app, "ServerSideDiff=true", COMPARE_OPTIONS)


def asked_pairs(observed: ComparisonInput) -> tuple[Pair, ...]:
    """Return the pairs with manifest and live object, to which server-side diff applies."""
    ready = _ready(observed)
    live = _ours(observed, ready, {})
    found = {ref: one.obj for ref, one in live.items() if one.allowed}
    pairs = pair_arranged(_arranged(observed, ready, live), found, {})
    return tuple(pair for pair in pairs if pair.target is not None and pair.live is not None)


def _is_modified(
    observed: ComparisonInput, pair: Pair, verdicts: Verdicts, settings: DiffSettings, known_by: str
) -> bool:
    """Return whether a pair differs. Raises DiffError and Unknown."""
    if observed.predicted is not None and pair.target is not None and pair.live is not None:
        found = observed.predicted(pair.target, pair.live)
        if found is not None:
            asked = found.of(settings)
            return verdicts.modified(pair.target, pair.live, asked, settings_key(asked))
    return verdicts.modified(pair.target, pair.live, settings, known_by)


def _to_sync(observed: ComparisonInput, pair: Pair, settings: DiffSettings, app: str) -> Pair | None:
    """Return the pair as synced. A live object whose tracking id names another object is a copy, or comes from a
    generateName: it stays (behaviour 64, ``WithResourcesFilter``). With ``RespectIgnoreDifferences=true`` manifests
    keep the live values of ignored fields; the operation's options win over the spec's."""
    if pair.target is None:
        return pair if observed.tracking.is_self_referenced(app, pair.live, None) else None
    asked = dig(observed.app, "operation", "sync", "syncOptions", default=[])
    options = asked or dig(observed.app, "spec", "syncPolicy", "syncOptions", default=[])
    if "RespectIgnoreDifferences=true" not in options:
        return pair
    return Pair(respect_ignored(pair.target, pair.live, settings), pair.live)


def _without_namespace(observed: ComparisonInput, pairs: Sequence[Pair]) -> list[Condition]:
    found: list[Condition] = []
    for pair in pairs:
        if pair.ref.namespace or not observed.kinds.namespaced(pair.ref.group_kind):
            continue
        gvk = gvk_of(pair.obj)
        text = f"Namespace for {name_of(pair.obj)} {gvk.group}/{gvk.version}, Kind={gvk.kind} is missing."
        found.append(Condition("InvalidSpecError", text))
    return found


@dataclass(frozen=True, slots=True)
class _Row:
    obj: Obj
    status: SyncCode
    counts: bool
    hook: bool
    requires_pruning: bool
    requires_confirmation: bool
    wave: int
    modified: bool


def _row(observed: ComparisonInput, pair: Pair, hooks: tuple[Obj, ...], changed: bool, app: str) -> _Row:
    target, live, obj = pair.target, pair.live, pair.obj
    hook = _shows_as_hook(obj)
    own = observed.tracking.is_self_referenced(app, live, target)
    status, counts = _resource_status(observed, pair, changed, hook, own)
    gvk = gvk_of(obj)
    if observed.project and not permits_kind(
        observed.project, gvk.group, gvk.kind, name_of(obj), namespaced=bool(observed.kinds.namespaced(gvk.group_kind))
    ):
        status = SyncCode.UNKNOWN
    options = dig(observed.app, "spec", "syncPolicy", "syncOptions", default=[])
    return _Row(
        obj=obj,
        status=status,
        counts=counts,
        hook=hook,
        requires_pruning=target is None and live is not None and own,
        requires_confirmation=any(needs_deletion_approval(one, options) for one in (target, live) if one is not None),
        wave=_wave(pair, hook, hooks),
        modified=changed,
    )


def _shows_as_hook(obj: Obj) -> bool:
    return is_hook(obj) or is_delete_hook(obj, "PreDelete") or is_delete_hook(obj, "PostDelete")


def _resource_status(
    observed: ComparisonInput, pair: Pair, changed: bool, hook: bool, own: bool
) -> tuple[SyncCode, bool]:
    """Return the status of one resource, and whether it makes the application OutOfSync."""
    skipped = pair.target is not None and is_skipped(pair.target)
    if hook or is_ignored(pair.obj) or skipped or not own:
        return SyncCode.NONE, False
    new_namespace = is_managed_namespace(pair.target, observed.app) and pair.live is None
    if not new_namespace and (changed or pair.target is None or pair.live is None):
        extraneous = pair.target is None and has_option(pair.live, "IgnoreExtraneous", COMPARE_OPTIONS)
        return SyncCode.OUT_OF_SYNC, not extraneous
    return SyncCode.SYNCED, False


def _wave(pair: Pair, hook: bool, hooks: tuple[Obj, ...]) -> int:
    """Return the manifest's wave; for a live hook, that of its manifest."""
    if pair.target is not None:
        return wave(pair.target)
    ref = ref_of(pair.obj)
    return next((wave(one) for one in reversed(hooks) if hook and _same_place(ref_of(one), ref)), 0)


def _same_place(one: ObjectRef, other: ObjectRef) -> bool:
    return (one.kind, one.namespace, one.name) == (other.kind, other.namespace, other.name)


def _status(app: Obj, judged: Sequence[_Judged], failed: bool) -> SyncCode:
    if failed:
        return SyncCode.UNKNOWN
    if any(one.row.counts for one in judged) or _namespace_metadata_changed(app):
        return SyncCode.OUT_OF_SYNC
    return SyncCode.SYNCED


def _namespace_metadata_changed(app: Obj) -> bool:
    wanted = managed_metadata(app)
    result: Any = dig(app, "status", "operationState", "syncResult")
    return wanted is not None and result is not None and result.get("managedNamespaceMetadata") != wanted


def _shown(row: _Row, health: Health | None, failed: bool) -> Obj:
    gvk = gvk_of(row.obj)
    status = SyncCode.UNKNOWN if failed else row.status
    shown: Obj = {
        "group": gvk.group,
        "version": gvk.version,
        "kind": gvk.kind,
        "namespace": namespace_of(row.obj),
        "name": name_of(row.obj),
        "status": str(status),
        "hook": row.hook,
        "requiresPruning": row.requires_pruning,
        "requiresDeletionConfirmation": row.requires_confirmation,
        "syncWave": row.wave,
    }
    if health is not None:
        message = {"message": health.message} if health.message else {}
        shown["health"] = {"status": str(health.status), **message}
    return {key: value for key, value in shown.items() if value}


def _in_sync(judged: Sequence[_Judged]) -> frozenset[ObjectRef]:
    pairs = (one.pair for one in judged if not one.modified)
    return frozenset(pair.ref for pair in pairs if pair.live is not None and pair.target is not None)


def _images(obj: Obj) -> list[str]:
    """Return the images of a Pod or of an object with a pod template."""
    spec = dig(obj, "spec", default={})
    templates = (
        spec,
        dig(spec, "template", "spec", default={}),
        dig(spec, "jobTemplate", "spec", "template", "spec", default={}),
    )
    listed: list[Any] = []
    for pod in templates:
        for containers in ("initContainers", "containers"):
            found = pod.get(containers) if isinstance(pod, dict) else None
            listed += found if isinstance(found, list) else []
    images = (item.get("image") for item in listed if isinstance(item, dict))
    return [image for image in images if isinstance(image, str) and image]
