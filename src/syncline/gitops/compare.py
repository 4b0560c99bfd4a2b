"""The comparison of an application: what differs, how healthy it is, what is wrong.

Called by the Application controller for every refresh and every pass of an operation, with rendered manifests and the
live objects that take part. Frozen values leave; nothing is read or written here. The steps and their order are those
of Argo CD ``CompareAppState`` (reference argocd-app §§3.1, 3.7, 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from syncline.gitops.app_health import ApplicationHealth, application_health
from syncline.gitops.conditions import Condition
from syncline.gitops.diff import (
    DiffError,
    DiffMode,
    DiffSettings,
    IgnoreRule,
    Override,
    Prediction,
    respect_ignored,
)
from syncline.gitops.diff.jq import gathered
from syncline.gitops.diff.memo import Verdicts, settings_key
from syncline.gitops.health import Health, health_of
from syncline.gitops.project import permits_destination, permits_kind
from syncline.gitops.resource_filter import ResourceFilter
from syncline.gitops.sync.annotations import (
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
from syncline.gitops.sync.model import KindTable, Pair
from syncline.gitops.sync.pairs import pair_objects
from syncline.gitops.targets import (
    is_managed_namespace,
    managed_metadata,
    managed_namespace,
    prepare_targets,
    scoped,
)
from syncline.gitops.tracking import Tracking, instance_name
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

__all__ = [
    "Comparison",
    "ComparisonInput",
    "SyncCode",
    "asked_pairs",
    "asks_server",
    "compare",
    "diff_settings",
    "live_refs",
]

IN_CLUSTER = "https://kubernetes.default.svc"
COMPARISON_ERROR = "ComparisonError"
DEFAULT_OVERRIDES: Mapping[str, Override] = {"*/*": Override(IgnoreRule(json_pointers=("/status",)))}
"""A manifest's ``status`` is never a difference unless settings say so (``ignoreResourceStatusField: all``)."""


class SyncCode(StrEnum):
    """``status.sync.status``; NONE: a resource that does not take part."""

    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"
    NONE = ""


@dataclass(frozen=True)
class ComparisonInput:
    """``live`` holds candidates: whatever names this application and whatever has the key of a manifest."""

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
    """Answers of earlier comparisons; the result is the same without."""
    diff: DiffSettings = field(default_factory=DiffSettings)
    """What is the same for all applications; mode, ignored fields and tracking are filled in here."""
    health: Callable[[Obj], Health | None] = health_of
    project_clusters: tuple[Mapping[str, str], ...] = ()
    server: str = ""
    """The destination's, where its name alone is given; empty: as the spec says."""
    cluster_name: str = ""
    predicted: Callable[[Obj, Obj], Prediction | None] | None = None
    """What the API server makes of a manifest and its live object, where it is asked (compare option
    ``ServerSideDiff=true``); None for a pair that it was not asked about, which is compared here."""


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


@dataclass(frozen=True, slots=True)
class _Differences:
    """Per pair: modified or not; empty and an error if one of them could not be compared."""

    modified: tuple[bool, ...]
    error: str = ""
    failed: str = "Failed to compare desired state to live state"


def live_refs(targets: Iterable[Obj], kinds: KindTable, destination_namespace: str) -> list[ObjectRef]:
    """The keys of manifests as they would be live: what observation must look up whoever it belongs to."""
    refs = (ref_of(scoped(target, kinds, destination_namespace)) for target in targets)
    return sorted({ref for ref in refs if ref.name})


def compare(seen: ComparisonInput) -> Comparison:
    """Compare everything; never raises for what manifests or live objects hold. Raises Unknown where expressions of
    users are to be evaluated first."""
    app = instance_name(seen.app, seen.control_namespace)
    destination = _destination(seen)
    prepared = prepare_targets(
        seen.targets, app, destination, seen.kinds, seen.tracking, seen.excluded, _server(seen.app)
    )
    live = _ours(seen, app, prepared.objects)
    targets, pre_delete, post_delete = _split_delete_hooks(_with_namespace(seen.app, prepared.objects, live))
    paired = pair_objects(targets, live, destination, seen.kinds)
    if prepared.error:
        differences = _Differences((False,) * len(paired.pairs), prepared.error, "Failed to load target state")
    else:
        differences = _differences(seen, paired.pairs)
    to_sync = paired.pairs
    if not differences.error:
        try:
            to_sync = _pairs_to_sync(seen, paired.pairs)
        except DiffError as error:
            differences = _Differences((False,) * len(paired.pairs), str(error))
    rows = [
        _row(seen, pair, paired.hooks, changed, app)
        for pair, changed in zip(paired.pairs, differences.modified, strict=True)
    ]
    conditions = [
        *prepared.conditions,
        *_shared(seen, app, live),
        *_errors_of(differences),
        *_without_namespace(seen, paired.pairs),
    ]
    health = application_health(seen.app, paired.pairs, seen.health)
    conditions += [Condition(COMPARISON_ERROR, f"error setting app health: {error}") for error in health.errors]
    return Comparison(
        status=_status(seen.app, rows, paired.pairs, bool(differences.error)),
        health=health,
        resources=tuple(_shown(row, health.of[index], bool(differences.error)) for index, row in enumerate(rows)),
        conditions=tuple(conditions),
        pairs=to_sync,
        hooks=paired.hooks,
        in_sync=_in_sync(paired.pairs, differences),
        has_pre_delete_hooks=pre_delete,
        has_post_delete_hooks=post_delete,
        images=frozenset(image for pair in paired.pairs if pair.live for image in _images(pair.live)),
    )


def _destination(seen: ComparisonInput) -> str:
    return str(dig(seen.app, "spec", "destination", "namespace", default=""))


def _server(app: Obj) -> str:
    return str(dig(app, "spec", "destination", "server", default="")).rstrip("/") or IN_CLUSTER


def _cluster_name(app: Obj) -> str:
    name = str(dig(app, "spec", "destination", "name", default=""))
    return name or ("in-cluster" if _server(app) == IN_CLUSTER else "")


def _ours(seen: ComparisonInput, app: str, targets: tuple[Obj, ...]) -> dict[ObjectRef, Obj]:
    """Live objects that take part and that the project permits."""
    wanted = {ref_of(target) for target in targets}
    found: dict[ObjectRef, Obj] = {}
    for ref, obj in sorted(seen.live.items()):
        if seen.excluded.excludes(ref.group, ref.kind, _server(seen.app)):
            continue
        mine = seen.tracking.app_name(obj) == app and not owner_references(obj)
        if (mine or ref in wanted) and _permitted(seen, ref):
            found[ref] = obj
    return found


def _permitted(seen: ComparisonInput, ref: ObjectRef) -> bool:
    if not seen.project:
        return True
    if not permits_kind(seen.project, ref.group, ref.kind, ref.name, namespaced=bool(ref.namespace)):
        return False
    if not ref.namespace:
        return True
    server, name = seen.server or _server(seen.app), seen.cluster_name or _cluster_name(seen.app)
    return permits_destination(seen.project, server, name, ref.namespace, seen.project_clusters)


def _with_namespace(app: Obj, targets: tuple[Obj, ...], live: Mapping[ObjectRef, Obj]) -> list[Obj]:
    """With the destination Namespace, if the application manages it, it is ours and no manifest describes it."""
    described = any(is_managed_namespace(target, app) for target in targets)
    if not described and any(is_managed_namespace(obj, app) for obj in live.values()):
        return [*targets, managed_namespace(app)]
    return list(targets)


def _split_delete_hooks(targets: list[Obj]) -> tuple[list[Obj], bool, bool]:
    """Hooks of the application's deletion take no part in a sync, unless they are sync hooks as well."""
    before = [is_delete_hook(target, "PreDelete") for target in targets]
    after = [is_delete_hook(target, "PostDelete") for target in targets]
    kept = [
        target
        for target, first, last in zip(targets, before, after, strict=True)
        if not (first or last) or any(str(kind) != "Skip" for kind in hook_types(target))
    ]
    return kept, any(before), any(after)


def _shared(seen: ComparisonInput, app: str, live: Mapping[ObjectRef, Obj]) -> list[Condition]:
    found: list[Condition] = []
    mine = f"{namespace_of(seen.app)}/{name_of(seen.app)}".lstrip("/")
    for ref, obj in live.items():
        owner = seen.tracking.app_name(obj)
        if owner and owner != app:
            text = f"{ref.kind}/{ref.name} is part of applications {mine} and {owner.replace('_', '/')}"
            found.append(Condition("SharedResourceWarning", text))
    return found


def diff_settings(seen: ComparisonInput) -> DiffSettings:
    """How the pairs of this application are compared; also for faces that show what differs."""
    options = dig(seen.app, "spec", "syncPolicy", "syncOptions", default=[])
    structured = "ServerSideApply=true" in options
    return replace(
        seen.diff,
        mode=DiffMode.STRUCTURED_MERGE if structured else seen.diff.mode,
        ignore=tuple(IgnoreRule.parse(rule) for rule in dig(seen.app, "spec", "ignoreDifferences", default=[])),
        overrides=seen.overrides,
        tracking=seen.tracking,
        include_mutation_webhook=has_option(seen.app, "IncludeMutationWebhook=true", COMPARE_OPTIONS),
    )


def asks_server(app: Obj, default: bool) -> bool:
    """Whether the API server is asked what differs: the Application's compare option, else ``default``."""
    if has_option(app, "ServerSideDiff=false", COMPARE_OPTIONS):
        return False
    return default or has_option(app, "ServerSideDiff=true", COMPARE_OPTIONS)


def asked_pairs(seen: ComparisonInput) -> tuple[Pair, ...]:
    """Manifests with their live objects: those about which the API server is asked."""
    app, destination = instance_name(seen.app, seen.control_namespace), _destination(seen)
    prepared = prepare_targets(
        seen.targets, app, destination, seen.kinds, seen.tracking, seen.excluded, _server(seen.app)
    )
    live = _ours(seen, app, prepared.objects)
    targets, _, _ = _split_delete_hooks(_with_namespace(seen.app, prepared.objects, live))
    pairs = pair_objects(targets, live, destination, seen.kinds).pairs
    return tuple(pair for pair in pairs if pair.target is not None and pair.live is not None)


def _differences(seen: ComparisonInput, pairs: tuple[Pair, ...]) -> _Differences:
    settings = diff_settings(seen)
    verdicts = seen.verdicts or Verdicts()
    known_by = settings_key(settings)
    judged = (partial(_is_modified, seen, pair, verdicts, settings, known_by) for pair in pairs)
    try:
        return _Differences(tuple(gathered(*judged)))
    except DiffError as error:
        return _Differences((False,) * len(pairs), str(error))


def _is_modified(seen: ComparisonInput, pair: Pair, verdicts: Verdicts, settings: DiffSettings, known_by: str) -> bool:
    """Raises DiffError and Unknown."""
    if seen.predicted is not None and pair.target is not None and pair.live is not None:
        found = seen.predicted(pair.target, pair.live)
        if found is not None:
            asked = found.of(settings)
            return verdicts.modified(pair.target, pair.live, asked, settings_key(asked))
    return verdicts.modified(pair.target, pair.live, settings, known_by)


def _pairs_to_sync(seen: ComparisonInput, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """What takes part in a sync. A live object whose tracking id names another one is a copy, or was made from a
    generateName: it is left alone (behaviour 64, ``WithResourcesFilter``). With ``RespectIgnoreDifferences=true``
    manifests keep the live values of ignored fields; options are those of the operation asked for, else the spec's.
    """
    app = instance_name(seen.app, seen.control_namespace)
    pairs = tuple(p for p in pairs if p.target is not None or seen.tracking.is_self_referenced(app, p.live, None))
    asked = dig(seen.app, "operation", "sync", "syncOptions", default=[])
    options = asked or dig(seen.app, "spec", "syncPolicy", "syncOptions", default=[])
    if "RespectIgnoreDifferences=true" not in options:
        return pairs
    settings = diff_settings(seen)

    def kept(pair: Pair) -> Pair:
        return pair if pair.target is None else Pair(respect_ignored(pair.target, pair.live, settings), pair.live)

    return tuple(gathered(*(partial(kept, pair) for pair in pairs)))


def _errors_of(differences: _Differences) -> list[Condition]:
    if not differences.error:
        return []
    return [Condition(COMPARISON_ERROR, f"{differences.failed}: {differences.error}")]


def _without_namespace(seen: ComparisonInput, pairs: tuple[Pair, ...]) -> list[Condition]:
    found: list[Condition] = []
    for pair in pairs:
        gvk = gvk_of(pair.obj)
        if seen.kinds.namespaced(gvk.group_kind) and not namespace_of(pair.obj):
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


def _row(seen: ComparisonInput, pair: Pair, hooks: tuple[Obj, ...], changed: bool, app: str) -> _Row:
    target, live, obj = pair.target, pair.live, pair.obj
    hook = _shows_as_hook(obj)
    own = seen.tracking.is_self_referenced(app, live, target)
    status, counts = _resource_status(seen, pair, changed, hook, own)
    gvk = gvk_of(obj)
    if seen.project and not permits_kind(
        seen.project, gvk.group, gvk.kind, name_of(obj), namespaced=bool(seen.kinds.namespaced(gvk.group_kind))
    ):
        status = SyncCode.UNKNOWN
    options = dig(seen.app, "spec", "syncPolicy", "syncOptions", default=[])
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


def _resource_status(seen: ComparisonInput, pair: Pair, changed: bool, hook: bool, own: bool) -> tuple[SyncCode, bool]:
    """The status of one resource, and whether it makes the application out of sync."""
    skipped = pair.target is not None and is_skipped(pair.target)
    if hook or is_ignored(pair.obj) or skipped or not own:
        return SyncCode.NONE, False
    new_namespace = is_managed_namespace(pair.target, seen.app) and pair.live is None
    if not new_namespace and (changed or pair.target is None or pair.live is None):
        extraneous = pair.target is None and has_option(pair.live, "IgnoreExtraneous", COMPARE_OPTIONS)
        return SyncCode.OUT_OF_SYNC, not extraneous
    return SyncCode.SYNCED, False


def _wave(pair: Pair, hook: bool, hooks: tuple[Obj, ...]) -> int:
    """The manifest's; of a live hook that of its manifest."""
    if pair.target is not None:
        return wave(pair.target)
    ref = ref_of(pair.obj)
    return next((wave(one) for one in reversed(hooks) if hook and _same_place(ref_of(one), ref)), 0)


def _same_place(one: ObjectRef, other: ObjectRef) -> bool:
    return (one.kind, one.namespace, one.name) == (other.kind, other.namespace, other.name)


def _status(app: Obj, rows: list[_Row], pairs: tuple[Pair, ...], failed: bool) -> SyncCode:
    if failed:
        return SyncCode.UNKNOWN
    if any(row.counts for row in rows) or _namespace_metadata_changed(app):
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


def _in_sync(pairs: tuple[Pair, ...], differences: _Differences) -> frozenset[ObjectRef]:
    if differences.error:
        return frozenset()
    return frozenset(
        ref_of(pair.live)
        for pair, changed in zip(pairs, differences.modified, strict=True)
        if pair.live is not None and pair.target is not None and not changed
    )


def _images(obj: Obj) -> list[str]:
    """Images of a Pod and of whatever has a pod template."""
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
