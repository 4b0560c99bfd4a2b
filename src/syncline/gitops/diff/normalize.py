"""What is taken out of both sides before they are compared.

Called by the diff. Built-in rules (Secrets, roles, endpoints, creation time) first, then what users ignore. Pure:
objects are never changed, copies share what is equal. Rules: gitops-engine ``pkg/diff`` ``Normalize`` and Argo CD
``util/argo/normalizers``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from syncline.gitops.diff.model import DiffSettings, IgnoreRule, Override
from syncline.kube.errors import ApiError
from syncline.kube.glob import glob_matches
from syncline.kube.objects import Obj, dig, gvk_of, meta, name_of, namespace_of
from syncline.kube.patches import json_patch

__all__ = ["fold_string_data", "matching_rules", "normalize"]

RBAC = "rbac.authorization.k8s.io"


def normalize(obj: Obj, settings: DiffSettings) -> Obj:
    """``obj`` as it takes part in the comparison."""
    made = _without_creation_time(obj)
    gvk = gvk_of(made)
    if (gvk.group, gvk.kind) == ("", "Secret"):
        made = fold_string_data(made)
    elif gvk.group == RBAC and gvk.kind in ("ClusterRole", "Role"):
        made = _without_empty_rules(made, settings)
    for rule in matching_rules(made, settings):
        made = _without_ignored(made, rule)
    return made


def _without_creation_time(obj: Obj) -> Obj:
    if "creationTimestamp" not in meta(obj):
        return obj
    return obj | {"metadata": {k: v for k, v in obj["metadata"].items() if k != "creationTimestamp"}}


def fold_string_data(secret: Obj) -> Obj:
    """``stringData`` as ``data``; what is no text is taken over as it is, a null becomes the empty text."""
    strings, data = secret.get("stringData"), secret.get("data")
    folded = dict(data) if isinstance(data, dict) else data
    made = dict(secret)
    if isinstance(strings, dict):
        folded = folded if isinstance(folded, dict) else {}
        folded |= {key: _encoded(value) for key, value in strings.items()}
        del made["stringData"]
    if isinstance(folded, dict):
        if all(value is None or isinstance(value, str) for value in folded.values()):
            folded = {key: value or "" for key, value in folded.items()}
        made["data"] = folded
    return made


def _encoded(value: Any) -> Any:
    return base64.b64encode(value.encode()).decode() if isinstance(value, str) else value


def _without_empty_rules(role: Obj, settings: DiffSettings) -> Obj:
    ignored = settings.ignore_aggregated_roles and isinstance(role.get("aggregationRule"), dict)
    if "rules" in role and (ignored or not role["rules"]):
        return role | {"rules": None}
    return role


def matching_rules(obj: Obj, settings: DiffSettings) -> list[IgnoreRule]:
    """Rules of the settings for this kind, then those of the application; all of them apply together."""
    gvk = gvk_of(obj)
    found = [override.ignore for _, override in _overrides_for(obj, settings)]
    for rule in settings.ignore:
        if rule.name not in ("", name_of(obj)) or rule.namespace not in ("", namespace_of(obj)):
            continue
        if glob_matches(rule.group, gvk.group) and glob_matches(rule.kind, gvk.kind):
            found.append(rule)
    return found


def _overrides_for(obj: Obj, settings: DiffSettings) -> Iterator[tuple[str, Override]]:
    gvk = gvk_of(obj)
    for key, override in settings.overrides.items():
        group, _, kind = key.rpartition("/")
        if glob_matches(group, gvk.group) and glob_matches(kind, gvk.kind):
            yield key, override


def _without_ignored(obj: Obj, rule: IgnoreRule) -> Obj:
    made = obj
    for pointer in rule.json_pointers:
        try:
            made = json_patch(made, [{"op": "remove", "path": pointer}])
        except ApiError:  # nothing there to ignore
            continue
    return made if dig(made, "kind") is not None else obj
