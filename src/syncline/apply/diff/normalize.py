"""Normalizes both sides before they are compared.

Called by the diff. Built-in rules (Secrets, roles, endpoints, creation time) come first, then ignored differences.
Pure: objects are never changed, copies share equal parts. Rules: gitops-engine ``pkg/diff`` ``Normalize`` and Argo CD
``util/argo/normalizers``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from syncline.apply.diff.jq import JqQuestion, Overran, Unreadable, without
from syncline.apply.diff.known_types import BUILT_IN, spelled
from syncline.apply.diff.model import DiffError, DiffSettings, IgnoreRule, Override
from syncline.kube.objects import Obj, gvk_of, meta, name_of, namespace_of
from syncline.kube.text.glob import glob_matches

RBAC = "rbac.authorization.k8s.io"


def normalize(obj: Obj, settings: DiffSettings) -> Obj:
    """Return ``obj`` as it is compared."""
    return without_ignored(tidied(obj, settings), settings)


def tidied(obj: Obj, settings: DiffSettings) -> Obj:
    """Normalize, but keep ignored fields, as the API server's dry run and its filter need them."""
    made = _without_creation_time(obj)
    gvk = gvk_of(made)
    if (gvk.group, gvk.kind) == ("", "Secret"):
        made = fold_string_data(made)
    elif gvk.group == RBAC and gvk.kind in ("ClusterRole", "Role"):
        made = _without_empty_rules(made, settings)
    elif (gvk.group, gvk.kind) == ("", "Endpoints"):
        made = _sorted_endpoints(made)
    return made


def without_ignored(obj: Obj, settings: DiffSettings) -> Obj:
    """Return ``obj`` without ignored fields, with known types in canonical form."""
    made = _without_ignored(obj, _matching_rules(obj, settings), settings)
    known = [field for override in _overrides_for(obj, settings) for field in override.known_types]
    return spelled(made, [*BUILT_IN.get(gvk_of(obj).group_kind, ()), *known])


def _without_creation_time(obj: Obj) -> Obj:
    if "creationTimestamp" not in meta(obj):
        return obj
    return obj | {"metadata": {k: v for k, v in obj["metadata"].items() if k != "creationTimestamp"}}


def fold_string_data(secret: Obj) -> Obj:
    """Move ``stringData`` into ``data``; non-text values stay as they are, null becomes the empty text."""
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
    if ignored or ("rules" in role and role["rules"] in (None, [])):
        return role | {"rules": None}
    return role


def _sorted_endpoints(endpoints: Obj) -> Obj:
    """Sort addresses and ports and set the default protocol, as controllers write them in any order."""
    subsets = endpoints.get("subsets")
    if not isinstance(subsets, list) or not all(isinstance(subset, dict) for subset in subsets):
        return endpoints
    made = [{key: _sorted_part(key, part) for key, part in subset.items()} for subset in subsets]
    return endpoints | {"subsets": sorted(made, key=_canonical)}


def _sorted_part(key: str, part: Any) -> Any:
    if not isinstance(part, list) or not all(isinstance(item, dict) for item in part):
        return part
    items = [{"protocol": "TCP"} | item for item in part] if key == "ports" else part
    return sorted(items, key=_canonical)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _matching_rules(obj: Obj, settings: DiffSettings) -> list[IgnoreRule]:
    """Return the rules of the settings for this kind, then those of the application; all apply together."""
    return [*(override.ignore for override in _overrides_for(obj, settings)), *_rules_of_application(obj, settings)]


def trusted_managers(obj: Obj, settings: DiffSettings) -> set[str]:
    """Return the managers whose fields are ignored. Of the settings only the kind's own key and ``*/*`` count, as
    upstream; other patterns trust no managers."""
    gvk = gvk_of(obj)
    own = (settings.overrides.get(key) for key in (f"{gvk.group}/{gvk.kind}", "*/*"))
    rules = [*(override.ignore for override in own if override), *_rules_of_application(obj, settings)]
    return {manager for rule in rules for manager in rule.managers}


def _rules_of_application(obj: Obj, settings: DiffSettings) -> list[IgnoreRule]:
    gvk = gvk_of(obj)
    return [
        rule
        for rule in settings.ignore
        if rule.name in ("", name_of(obj))
        and rule.namespace in ("", namespace_of(obj))
        and glob_matches(rule.group, gvk.group)
        and glob_matches(rule.kind, gvk.kind)
    ]


def reads_status(obj: Obj, settings: DiffSettings) -> bool:
    """Return whether a three-way comparison of the object may depend on its status or the owners of its fields."""
    rules = _matching_rules(obj, settings)
    ignored = any("/status" in rule.json_pointers for rule in rules)
    return not ignored or any(rule.jq_expressions or rule.managers for rule in rules)


def _overrides_for(obj: Obj, settings: DiffSettings) -> Iterator[Override]:
    gvk = gvk_of(obj)
    for key, override in settings.overrides.items():
        group, _, kind = key.rpartition("/")
        if glob_matches(group, gvk.group) and glob_matches(kind, gvk.kind):
            yield override


def _without_ignored(obj: Obj, rules: list[IgnoreRule], settings: DiffSettings) -> Obj:
    """Remove the fields that the rules address. Raises DiffError if an expression takes too long, and Unknown."""
    parts = tuple((rule.json_pointers, rule.jq_expressions) for rule in rules)
    question = JqQuestion(parts, obj)
    if not question.expressions:
        return without(obj, parts, lambda _expression, _obj: None)
    found = settings.jq.of(question)
    if isinstance(found, Overran):
        raise DiffError(
            f"jqPathExpressions of ignoreDifferences take too long for {gvk_of(obj).kind} {name_of(obj)}: {found}; "
            "name kinds and names, and fields instead of .."
        )
    if isinstance(found, Unreadable):
        raise DiffError(f"failed to create diff normalizer: {found.why}")
    trees = iter(found.trees)
    return without(obj, parts, lambda _expression, _obj: next(trees))


def check_rules(settings: DiffSettings) -> None:
    """Raise DiffError for an invalid expression, as a rule with a typo must not be ignored silently. Raises Unknown."""
    rules = [*settings.ignore, *(override.ignore for override in settings.overrides.values())]
    texts = tuple(dict.fromkeys(text for rule in rules for text in rule.jq_expressions))
    found = settings.jq.of(JqQuestion((((), texts),))) if texts else None
    if isinstance(found, Unreadable):
        raise DiffError(f"failed to create diff normalizer: {found.why}")
    if isinstance(found, Overran):
        raise DiffError(f"failed to create diff normalizer: {found}")
