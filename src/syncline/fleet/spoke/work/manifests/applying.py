"""How one manifest of a work is applied, by its update strategy; pure. :func:`plan_manifest`.

Rules: ``pkg/work/spoke/apply`` of upstream (reference ocm-pull-model §6.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from syncline.apply.diff.jq import Answers
from syncline.base.action import Action
from syncline.control.plan import Apply, Create, Delete, Replace
from syncline.fleet.conditions import condition
from syncline.fleet.spoke.work.manifests.ignoring import IgnoreFieldError, content_hash, without_ignored
from syncline.fleet.spoke.work.manifests.typed import contains, defaulted, kind_of, same, same_content, updated
from syncline.fleet.spoke.work.ownership import Ownership, owner_patch
from syncline.kube.kinds.manifestworks import SPEC_HASH
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    finalizers,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_references,
    resource_version,
)

MANAGER: Final = "work-agent"
"""Default field manager of server-side applies; others begin with it."""
_DEFAULT: Final[Mapping[str, Any]] = {"type": "Update"}


class Depth(StrEnum):
    """How a live object is compared with its manifest."""

    READ = "read"
    """Not at all: nothing is written."""
    METADATA = "metadata"
    """Its content is known to be as it was applied; labels, annotations and owners are compared."""
    DRIFT = "drift"
    """What the manifest says; what others have added stays."""
    FULL = "full"
    """All of it."""


@dataclass(frozen=True, slots=True)
class ManifestPlan:
    """What a manifest needs.

    ``write`` is None if nothing is to be written. ``own_after``: the object that the write returns gets its owner by a
    patch of its own (:func:`~syncline.fleet.spoke.work.ownership.owner_patch`), as no field of ours.
    """

    write: Action | None
    why: str
    own_after: bool = False
    first: Delete | None = None
    """The live object must go first: a field differs that cannot be changed."""
    instead: tuple[Delete, Create] | None = None
    """What is done if the API refuses the write for a field that is immutable."""
    refused: str = ""
    """Why its content is not applied, whatever ``write`` does."""


def plan_manifest(
    manifest: Obj,
    live: Obj | None,
    strategy: Mapping[str, Any] | None,
    ownership: Ownership,
    answers: Answers,
    depth: Depth = Depth.FULL,
    rival: str = "",
) -> ManifestPlan:
    """Return what one manifest needs.

    ``live``: the object on the spoke, None only if it does not exist; ``strategy``: ``updateStrategy`` in force;
    ``answers``: of jq expressions; ``rival``: the AppliedManifestWork whose Application it is already. Raises
    :class:`~syncline.fleet.spoke.work.manifests.ignoring.IgnoreFieldError`, ValueError for an unknown strategy or a
    manifest that contradicts itself, and ``apply.diff.jq.Unknown``.
    """
    manifest = _without_uid(manifest)
    if rival and live is not None:
        # Upstream lets works overwrite each other: a cluster would go to and fro between releases of two hubs.
        plan = _owning(live, ownership, "the next owner of an Application")
        return replace(plan, refused=owned_elsewhere(live, rival, ownership.reference))
    match (strategy or _DEFAULT).get("type") or "Update":
        case "ReadOnly":
            return ManifestPlan(None, "the manifest is only read (ReadOnly)")
        case "CreateOnly":
            if live is None:
                return _creation(manifest, ownership)
            return _owning(live, ownership, "it exists, and is only created (CreateOnly)")
        case "ServerSideApply":
            settings = dig(dict(strategy or {}), "serverSideApply") or {}
            return _server_side(manifest, live, settings, ownership, answers, depth)
        case "Update":
            known = kind_of(manifest)
            manifest = known.prepare(manifest, live) if known is not None else manifest
            return _creation(manifest, ownership) if live is None else _update(manifest, live, ownership, depth)
        case other:
            allowed = "Update, CreateOnly, ReadOnly, ServerSideApply"
            raise ValueError(f"updateStrategy.type of a manifest is {other!r}; use one of {allowed}")


def owned_elsewhere(live: Obj, rival: str, reference: Obj) -> str:
    """Return why an Application is another work's. ``rival``: the AppliedManifestWork of that; ``reference``: the owner
    reference of the work that would have it."""
    hub, _, work = rival.partition("-")
    whose = "this hub" if str(reference["name"]).startswith(f"{hub}-") else "another hub"
    return (
        f"Application {namespace_of(live)}/{name_of(live)} is that of work {work} of {whose}, which brought it first: "
        "give one of the two another name, or delete the other. If the agent of that one is gone, delete "
        f"AppliedManifestWork {rival} on the cluster"
    )


def _without_uid(manifest: Obj) -> Obj:
    """Return the manifest without a uid, which would be a precondition."""
    if "uid" not in meta(manifest):
        return manifest
    return {**manifest, "metadata": {key: value for key, value in meta(manifest).items() if key != "uid"}}


def _with_meta(obj: Obj, **fields: Any) -> Obj:
    """Return the object with these fields of metadata; empty ones that it does not have stay absent."""
    known = meta(obj)
    return {**obj, "metadata": {**known, **{key: value for key, value in fields.items() if value or key in known}}}


def _owning(live: Obj, ownership: Ownership, why: str) -> ManifestPlan:
    verb = "add" if ownership.owned else "remove"
    return ManifestPlan(owner_patch(live, ownership, f"{verb} the owner: {why}"), why)


def _creation(manifest: Obj, ownership: Ownership) -> ManifestPlan:
    made = _with_meta(
        manifest,
        labels=_kept(labels_of(manifest)),
        annotations=_kept(annotations_of(manifest)),
        ownerReferences=ownership.applied_to([]),
    )
    why = "it does not exist"
    return ManifestPlan(Create(made, why), why)


def _kept(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return labels or annotations without those that say what to remove."""
    return {key: value for key, value in wanted.items() if not key.endswith("-")}


def _merged(live: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return live labels or annotations with the wanted ones; ``KEY-`` removes a key."""
    removed = {key.rstrip("-") for key in wanted if key.endswith("-")}
    return {key: value for key, value in {**live, **_kept(wanted)}.items() if key not in removed}


def _update(manifest: Obj, live: Obj, ownership: Ownership, depth: Depth) -> ManifestPlan:
    """Replace the content; labels, annotations and owners are merged, finalizers stay as they are."""
    known = kind_of(manifest)
    labels = _merged(labels_of(live), labels_of(manifest))
    annotations = _merged(annotations_of(live), annotations_of(manifest))
    owners = ownership.applied_to(owner_references(live))
    merged = (labels, annotations, owners) != (labels_of(live), annotations_of(live), owner_references(live))
    if not merged and has_content(manifest, live, depth):
        return ManifestPlan(None, "it is as the manifest says")
    made = _with_meta(
        manifest if known is None else updated(known, manifest, live),
        labels=labels,
        annotations=annotations,
        ownerReferences=owners,
        finalizers=finalizers(live),
        resourceVersion=resource_version(live),
    )
    if known is not None and known.recreated(live, made):
        why = "it differs from the manifest in a field that cannot be changed"
        return ManifestPlan(Create(_as_new(made), why), why, first=Delete.of(live, why))
    why = "it differs from the manifest"
    instead = (Delete.of(live, why), Create(_as_new(made), why)) if known is not None and known.immutable else None
    return ManifestPlan(Replace(made, why), why, instead=instead)


def has_content(manifest: Obj, live: Obj, depth: Depth) -> bool:
    """Return whether a live object has the content of its manifest, as far as ``depth`` compares it."""
    if depth is Depth.METADATA:
        return True
    known, equal = kind_of(manifest), contains if depth is Depth.DRIFT else same
    if known is not None:
        return same_content(known, manifest, live, equal)
    return equal(_content(live), _content(defaulted(manifest)))


def _content(obj: Obj) -> Obj:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


_OF_ONE_OBJECT: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def _as_new(obj: Obj) -> Obj:
    return {**obj, "metadata": {key: value for key, value in meta(obj).items() if key not in _OF_ONE_OBJECT}}


def _server_side(
    manifest: Obj,
    live: Obj | None,
    settings: Mapping[str, Any],
    ownership: Ownership,
    answers: Answers,
    depth: Depth,
) -> ManifestPlan:
    """Apply; with ``ignoreFields`` only what changed on the hub since the last time."""
    sent: Obj = _without_empty_times(manifest)
    fields = settings.get("ignoreFields") or ()
    if fields:
        reduced = without_ignored(sent, fields, answers)
        digest = content_hash(reduced)
        if live is not None and annotations_of(live).get(SPEC_HASH) == digest:
            return _owning(live, ownership, "the hub's content is the one applied last")
        sent = _annotated(sent if live is None else reduced, digest)
    elif live is not None and depth is not Depth.FULL and contains(live, _said(sent)):
        return _owning(live, ownership, "it is as the manifest says")
    why = "it does not exist" if live is None else "the manifest is applied"
    manager = str(settings.get("fieldManager") or MANAGER)
    return ManifestPlan(Apply(sent, manager, why, force=bool(settings.get("force"))), why, own_after=True)


def _said(manifest: Obj) -> Obj:
    """Return what a manifest says about its object, with the defaults of its content."""
    metadata = {name: meta(manifest)[name] for name in ("labels", "annotations") if name in meta(manifest)}
    return {**_content(defaulted(manifest)), "metadata": metadata}


def _annotated(obj: Obj, digest: str) -> Obj:
    return _with_meta(obj, annotations={**annotations_of(obj), SPEC_HASH: digest})


def _without_empty_times(value: Any) -> Any:
    """Return the value without null creation times in any metadata: each would be a change of generation."""
    if isinstance(value, list):
        return [_without_empty_times(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {key: _without_empty_times(one) for key, one in value.items()}
    if isinstance(made.get("metadata"), dict) and made["metadata"].get("creationTimestamp", "") is None:
        made["metadata"] = {key: one for key, one in made["metadata"].items() if key != "creationTimestamp"}
    return made


def applied_condition(error: Exception | None, generation: int) -> Obj:
    """Return the condition Applied of a manifest, without a time; ``error``: why it could not be applied."""
    if error is None:
        return condition("Applied", "True", "AppliedManifestComplete", "Apply manifest complete", generation)
    if isinstance(error, IgnoreFieldError):
        text = f"Failed to process ignoreFields: {error}"
        return condition("Applied", "False", "AppliedManifestSSAIgnoreFieldError", text, generation)
    return condition("Applied", "False", "AppliedManifestFailed", f"Failed to apply manifest: {error}", generation)
