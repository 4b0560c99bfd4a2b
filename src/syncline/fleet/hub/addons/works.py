"""The ManifestWorks of an add-on: manifests spread over works by their size, and the work of its hooks; pure.

Rules: ``agentdeploy`` of upstream's addon-framework, and sdk-go's work builder. A manifest stays in the work where it
is; new ones fill what room there is, the largest first, then further works.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from syncline.fleet.addons import ORPHAN, PRE_DELETE
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.addons.managed import config_hashes_of
from syncline.kube.kinds.managedaddons import ADDON_NAME, MANAGED_ADDON
from syncline.kube.kinds.manifestworks import MANIFEST_WORK, SPEC_HASH
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, labels_of, name_of, namespace_of, uid_of

LIMIT: Final = int(500 * 1024 * 0.8)
"""Bytes of JSON in one work; upstream leaves a fifth of its limit for what grows."""
HOOKS: Final = {"Job": ("jobs", "JobComplete", "True"), "Pod": ("pods", "PodPhase", "Succeeded")}
"""Kinds of hooks: resource, the value of its feedback that says when it is done, and that value."""


class Identity(NamedTuple):
    """What a manifest is, whatever it says."""

    api_version: str
    kind: str
    namespace: str
    name: str


def identity_of(manifest: Obj) -> Identity:
    kind = gvk_of(manifest)
    return Identity(kind.api_version, kind.kind, namespace_of(manifest), name_of(manifest))


def size_of_manifest(manifest: Obj) -> int:
    return len(json.dumps(manifest, separators=(",", ":"), ensure_ascii=False).encode())


def deploy_prefix(addon: str) -> str:
    return f"addon-{addon}-deploy"


def hook_name(addon: str) -> str:
    return f"addon-{addon}-pre-delete"


def is_hook(manifest: Obj) -> bool:
    """Return whether a manifest is a Job or Pod that runs before the add-on is deleted."""
    return manifest.get("kind") in HOOKS and (
        PRE_DELETE in annotations_of(manifest) or PRE_DELETE in labels_of(manifest)
    )


@dataclass(slots=True)
class _Filling:
    name: str
    manifests: list[Obj] = field(default_factory=list)
    size: int = 0

    def add(self, manifest: Obj, size: int) -> None:
        self.manifests.append(manifest)
        self.size += size

    @property
    def room(self) -> int:
        return max(0, LIMIT - self.size)


def spread(addon: str, manifests: Iterable[Obj], works: Sequence[Obj]) -> dict[str, list[Obj]]:
    """Return the manifests of each work by its name; an empty list: the work has none left. ``works``: those that
    exist, in order of names."""
    wanted = {identity_of(one): one for one in manifests}
    filled = []
    for work in works:
        one = _Filling(name_of(work))
        for live in dig(work, "spec", "workload", "manifests") or ():
            manifest = wanted.pop(identity_of(live), None)
            if manifest is not None:
                one.add(manifest, size_of_manifest(manifest))
        filled.append(one)
    sized = sorted(((size_of_manifest(one), identity) for identity, one in wanted.items()), key=lambda it: (-it[0], it))
    later: list[_Filling] = []
    for size, identity in sized:
        roomy = max(filled, key=lambda one: one.room, default=None)
        if roomy is not None and size < roomy.room:
            roomy.add(wanted[identity], size)
            continue
        if not later or later[-1].size + size >= LIMIT:
            later.append(_Filling(_free_name(addon, [*filled, *later])))
        later[-1].add(wanted[identity], size)
    return {one.name: one.manifests for one in (*filled, *later)}


def _free_name(addon: str, taken: Iterable[_Filling]) -> str:
    """Return the first name from the number of works on that none has."""
    names = {one.name for one in taken}
    number = len(names)
    while f"{deploy_prefix(addon)}-{number}" in names:
        number += 1
    return f"{deploy_prefix(addon)}-{number}"


def owner_of_work(addon: Obj) -> Obj:
    return {
        "apiVersion": MANAGED_ADDON.api_version,
        "kind": MANAGED_ADDON.kind,
        "name": name_of(addon),
        "uid": uid_of(addon),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _work(addon: Obj, name: str, spec: Obj, notes: dict[str, str]) -> Obj:
    metadata: Obj = {
        "name": name,
        "namespace": namespace_of(addon),
        "labels": {ADDON_NAME: name_of(addon)},
        "ownerReferences": [owner_of_work(addon)],
    }
    return {
        "apiVersion": MANIFEST_WORK.api_version,
        "kind": MANIFEST_WORK.kind,
        "metadata": metadata | ({"annotations": notes} if notes else {}),
        "spec": spec,
    }


def deploy_works(
    addon: Obj, manifests: Iterable[Obj], configs: Sequence[Obj], works: Sequence[Obj]
) -> tuple[list[Obj], list[Obj]]:
    """Return the works that the add-on is to have, and those among ``works`` that it is not to have any more.
    ``configs``: how manifests are applied and what of them is reported."""
    deployed = [one for one in manifests if not is_hook(one)]
    orphans = [_identifier(one) for one in deployed if ORPHAN in annotations_of(one)]
    option: dict[str, Any] = {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": {"orphaningRules": orphans},
    }
    rest: Obj = ({"deleteOption": option} if orphans else {}) | ({"manifestConfigs": list(configs)} if configs else {})
    references = dig(addon, "status", "configReferences")
    text = json.dumps(config_hashes_of(addon) or {}, sort_keys=True, separators=(",", ":"))
    notes = {SPEC_HASH: text} if references else {}
    prefix = deploy_prefix(name_of(addon)) + "-"
    live = [one for one in works if name_of(one).startswith(prefix)]
    found = spread(name_of(addon), deployed, live)
    made = [
        _work(addon, name, {"workload": {"manifests": ones}, **rest}, notes) for name, ones in found.items() if ones
    ]
    return made, [one for one in live if not found[name_of(one)]]


def hook_work(addon: Obj, manifests: Iterable[Obj]) -> Obj | None:
    """Return the work of the hooks; None if there are none."""
    hooks = [one for one in manifests if is_hook(one)]
    if not hooks:
        return None
    rules = [{"type": "WellKnownStatus"}]
    configs = [{"resourceIdentifier": _identifier(one), "feedbackRules": rules} for one in hooks]
    spec = {"workload": {"manifests": hooks}, "manifestConfigs": configs}
    return _work(addon, hook_name(name_of(addon)), spec, {})


def hooks_done(work: Obj) -> bool:
    """Return whether each hook of the live work has ended well."""
    available = find_condition(dig(work, "status", "conditions") or (), "Available") or {}
    hooks = dig(work, "spec", "workload", "manifests") or ()
    if available.get("status") != "True" or not hooks:
        return False
    return all(_hook_done(work, one) for one in hooks)


def _hook_done(work: Obj, hook: Obj) -> bool:
    resource, value, wanted = HOOKS[str(hook.get("kind"))]
    for one in dig(work, "status", "resourceStatus", "manifests") or ():
        meta = one.get("resourceMeta") or {}
        if (meta.get("resource"), meta.get("namespace", ""), meta.get("name")) == (
            resource,
            namespace_of(hook),
            name_of(hook),
        ):
            values = dig(one, "statusFeedback", "values") or ()
            return any(each.get("name") == value and dig(each, "fieldValue", "string") == wanted for each in values)
    return False


def _identifier(manifest: Obj) -> Obj:
    """Return how a work names a manifest: its resource is guessed from its kind, as upstream does."""
    namespace = {"namespace": namespace_of(manifest)} if namespace_of(manifest) else {}
    kind = gvk_of(manifest)
    return {"group": kind.group, "resource": plural_of(kind.kind), "name": name_of(manifest), **namespace}


def plural_of(kind: str) -> str:
    """Guess the resource of a kind (apimachinery ``UnsafeGuessKindToResource``)."""
    name = kind.lower()
    if not name or name.endswith("endpoints"):
        return name
    if name.endswith("s"):
        return name + "es"
    if name.endswith("y"):
        return name.removesuffix("y") + "ies"
    return name + "s"
