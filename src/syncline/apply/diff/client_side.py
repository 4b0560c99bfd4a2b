"""Predicts the result of a client-side apply on the live object.

Called by the diff with normalized objects; returns the pair (live, predicted) in one spelling, so that a JSON
comparison suffices. Only fields of the last apply or the manifest can differ: fields from a server or another
controller are on both sides. Rules: gitops-engine ``pkg/diff`` ``ThreeWayDiff``.
"""

from __future__ import annotations

from typing import Any

from syncline.apply.diff.typed import builtin_schema, keep_fields, keep_list_fields, with_defaults
from syncline.kube.objects import GroupKind, Obj, dig, gvk_of, meta
from syncline.kube.patching.patches import json_merge_patch
from syncline.kube.patching.strategic import strategic_merge_patch
from syncline.kube.patching.threeway import three_way_json_merge, three_way_strategic

STATEFUL_SETS = (GroupKind("apps", "StatefulSet"), GroupKind("extensions", "StatefulSet"))


def predict(original: Obj, target: Obj, live: Obj) -> tuple[Obj, Obj]:
    """Return live and predicted object. ``original``: the last applied manifest.

    Raises ValueError or ApiError if no patch can be computed.
    """
    original, target = _without_place(original), _without_place(target)
    schema = builtin_schema(original)
    if schema is None:
        patch = three_way_json_merge(original, target, keep_fields(original, live))
        return live, json_merge_patch(live, patch)
    reduced = _with_claims_reduced(original, live) if gvk_of(original).group_kind in STATEFUL_SETS else live
    patch = three_way_strategic(original, target, reduced, schema)
    observed = with_defaults(live)
    return observed, with_defaults(strategic_merge_patch(live, patch, schema)) if patch else observed


def _without_place(obj: Obj) -> Obj:
    """Return the manifest without namespace and without an empty map of annotations."""
    metadata = {key: value for key, value in meta(obj).items() if key != "namespace"}
    if metadata.get("annotations") in ({}, None):
        metadata.pop("annotations", None)
    return obj | {"metadata": metadata} if "metadata" in obj else obj


def _with_claims_reduced(original: Obj, live: Obj) -> Obj:
    """Remove the server's defaults from claim templates, as they are not reproduced here."""
    stated: Any = dig(original, "spec", "volumeClaimTemplates")
    actual: Any = dig(live, "spec", "volumeClaimTemplates")
    if not isinstance(stated, list) or not isinstance(actual, list):
        return live
    return live | {"spec": live["spec"] | {"volumeClaimTemplates": keep_list_fields(stated, actual)}}
