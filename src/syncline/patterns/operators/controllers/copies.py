"""Copies of a ClusterServiceVersion in the namespaces that its operator watches (``ensureCSVsInNamespaces``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from syncline.base.action import Action
from syncline.control.plan import Create, Delete, Patch
from syncline.kube.kinds.operatorlifecycle import SERVICE_VERSION
from syncline.kube.objects import Obj, annotations_of, labels_of, name_of, namespace_of
from syncline.patterns.operators.groups import is_marked, targets_of
from syncline.patterns.operators.names import COPIED_FROM, OPERATOR_GROUP, OPERATOR_NAMESPACE, TARGET_NAMESPACES
from syncline.patterns.operators.phases import Moved

UNCOPIABLE = frozenset(
    (
        *("Copied", "InvalidInstallModes", "NoTargetNamespaces", "UnsupportedOperatorGroup", "NoOperatorGroup"),
        *("TooManyOperatorGroups", "InterOperatorGroupOwnerConflict"),
        "CannotModifyStaticOperatorGroupProvidedAPIs",
    )
)
STATUS_HASH = "olm.operatorframework.io/nonStatusCopyHash"
_COMPONENT = "operators.coreos.com/"
_MARKS = (OPERATOR_GROUP, OPERATOR_NAMESPACE)


def unwanted(other: Obj, csv: Obj) -> bool:
    """Return whether ``other`` is a copy of ``csv``."""
    return name_of(other) == name_of(csv) and labels_of(other).get(COPIED_FROM) == namespace_of(csv)


def copying(
    csv: Obj,
    moved: Moved,
    groups: Sequence[Obj],
    copies: Mapping[str, Obj],
    namespaces: Sequence[str],
    disabled: bool,
) -> tuple[Action, ...]:
    """Return what brings the copies to what they should be. ``disabled``: an operator that watches all namespaces gets
    none (``spec.features.disableCopiedCSVs`` of the OLMConfig)."""
    home = namespace_of(csv)
    group = next((one for one in groups if namespace_of(one) == home and is_marked(csv, one)), None)
    if group is None or TARGET_NAMESPACES not in annotations_of(csv):
        return ()
    targets = targets_of(group)
    everywhere = targets == ("",)
    if targets == (home,) and not copies:
        return ()
    status = moved.status
    if not status.get("phase") or status.get("reason") in UNCOPIABLE:
        return ()
    wanted = (
        () if everywhere and disabled else [one for one in namespaces if one != home and (everywhere or one in targets)]
    )
    made: list[Action] = []
    for namespace in wanted:
        made += _copy(csv, status, namespace, copies.get(namespace))
    left = [one for namespace, one in copies.items() if namespace not in wanted]
    return (*made, *(Delete.of(one, "the operator does not watch the namespace") for one in left))


def _copy(csv: Obj, status: Obj, namespace: str, found: Obj | None) -> list[Action]:
    copied = {
        **{key: value for key, value in status.items() if key not in ("reason", "message", "requirementStatus")},
        "reason": "Copied",
        "message": f"The operator is running in {namespace_of(csv)} but is managing this namespace",
    }
    kept = {key: value for key, value in annotations_of(csv).items() if key in _MARKS}
    text = json.dumps([csv.get("spec"), kept], sort_keys=True)
    marks = {**kept, STATUS_HASH: hashlib.sha256(text.encode()).hexdigest()[:16]}
    why, name = f"its operator watches {namespace}", name_of(csv)
    if found is None:
        # A copy is no component of the operator.
        own = {key: value for key, value in labels_of(csv).items() if not key.startswith(_COMPONENT)}
        labels = {**own, COPIED_FROM: namespace_of(csv)}
        metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": marks}
        made = {"apiVersion": SERVICE_VERSION.api_version, "kind": SERVICE_VERSION.kind, "metadata": metadata}
        return [Create({**made, "spec": csv.get("spec")}, why)]
    actions: list[Action] = []
    if annotations_of(found).get(STATUS_HASH) != marks[STATUS_HASH]:
        body = {"metadata": {"annotations": marks}, "spec": csv.get("spec")}
        actions.append(Patch(SERVICE_VERSION, namespace, name, body, why))
    if (found.get("status") or {}) != copied:
        actions.append(Patch(SERVICE_VERSION, namespace, name, {"status": copied}, why, subresource="status"))
    return actions
