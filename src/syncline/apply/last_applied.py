"""Client-side apply: the last-applied annotation and its patch.

Called by the handler and by predictions of an apply. Pure. Source: kubectl ``pkg/util/apply.go`` and ``pkg/cmd/apply``.
"""

from __future__ import annotations

import json

from syncline.apply.annotations import OPERATION
from syncline.kube.client import PatchType
from syncline.kube.objects import GVK, Obj, annotations_of, meta
from syncline.kube.patching.threeway import three_way_json_merge, three_way_strategic
from syncline.kube.schema.extensions import MAX_ANNOTATIONS, json_note
from syncline.kube.schema.model import schema_for

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def with_last_applied(target: Obj) -> Obj:
    """Return the manifest with its last-applied annotation: itself without that annotation and our stamp."""
    bare = {k: v for k, v in annotations_of(target).items() if k not in (LAST_APPLIED, OPERATION)}
    content = {**target, "metadata": {**meta(target), "annotations": bare}}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    annotations = {**annotations_of(target), LAST_APPLIED: text}
    return {**target, "metadata": {**meta(target), "annotations": annotations}}


def last_applied(live: Obj) -> Obj:
    """Return the last applied manifest; empty if missing or invalid."""
    found = json_note(live, LAST_APPLIED, MAX_ANNOTATIONS)
    return found if isinstance(found, dict) else {}


def apply_patch(gvk: GVK, target: Obj, live: Obj) -> tuple[PatchType, Obj]:
    """Return the patch of an apply; empty if nothing changes. Built-in kinds merge lists by key."""
    modified = with_last_applied(target)
    schema = schema_for(gvk)
    if schema is None:
        return PatchType.MERGE, three_way_json_merge(last_applied(live), modified, live)
    return PatchType.STRATEGIC, three_way_strategic(last_applied(live), modified, live, schema)
