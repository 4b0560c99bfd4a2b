"""The copy of a policy that one cluster gets: :func:`replicated`; pure. Rules of upstream's propagator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from syncline.kube.kinds.governance import GROUP, POLICY, POLICY_SET
from syncline.kube.objects import Obj, annotations_of, copied, dig, labels_of, meta, name_of, namespace_of
from syncline.patterns.policies.names import (
    CLUSTER_NAME,
    CLUSTER_NAMESPACE,
    IGNORED_BY_ARGO,
    ROOT_LABEL,
    TRIGGER,
    is_enforced,
)
from syncline.patterns.policies.templates.text import HUB, has_template


def full_name(policy: Obj) -> str:
    """Return NAMESPACE.NAME, the name of its copies."""
    return f"{namespace_of(policy)}.{name_of(policy)}"


def root_of(name: str) -> tuple[str, str] | None:
    """Return namespace and name of the policy that a copy with this name is of."""
    namespace, dot, rest = name.partition(".")
    return (namespace, rest) if dot and namespace and rest else None


def replicated(root: Obj, cluster: str, given: str, sets: Mapping[tuple[str, str], Obj]) -> Obj:
    """Return the copy for a cluster. ``given``: the remediation action of a binding, or ""; ``sets``: the PolicySets of
    the hub by namespace and name."""
    spec: Obj = copied(root.get("spec") or {})
    if given and not is_enforced(spec.get("remediationAction")):
        spec["remediationAction"] = given
    place = namespace_of(root)
    spec["dependencies"] = canonical(spec.get("dependencies") or (), place, sets)
    for one in spec.get("policy-templates") or ():
        if isinstance(one, dict):
            one["extraDependencies"] = canonical(one.get("extraDependencies") or (), place, sets)
            for key in ("extraDependencies", "ignorePending"):
                if not one.get(key):
                    one.pop(key, None)
    if not spec["dependencies"]:
        del spec["dependencies"]
    all_of_it = spec.get("copyPolicyMetadata") is not False
    name = full_name(root)
    labels = {**_kept(labels_of(root), all_of_it), CLUSTER_NAME: cluster, CLUSTER_NAMESPACE: cluster, ROOT_LABEL: name}
    annotations = {**_kept(annotations_of(root), all_of_it), IGNORED_BY_ARGO[0]: IGNORED_BY_ARGO[1]}
    annotations.pop(TRIGGER, None)
    return {
        "apiVersion": POLICY.api_version,
        "kind": POLICY.kind,
        "metadata": {"name": name, "namespace": cluster, "labels": labels, "annotations": annotations},
        "spec": spec,
    }


def _kept(values: Mapping[str, str], all_of_it: bool) -> dict[str, str]:
    return {key: one for key, one in values.items() if all_of_it or key.startswith(f"{GROUP}/")}


def canonical(listed: Sequence[Any], namespace: str, sets: Mapping[tuple[str, str], Obj]) -> list[Obj]:
    """Return dependencies as clusters understand them: policies by the names of their copies, sets as policies."""
    made: list[Obj] = []
    for one in listed:
        kind, version = one.get("kind"), one.get("apiVersion")
        if kind == POLICY_SET.kind and version == POLICY_SET.api_version:
            made += _members(one, str(one.get("namespace") or namespace), sets)
        elif kind == POLICY.kind and version == POLICY.api_version:
            made.append(_policy(one, namespace))
        else:
            made.append({key: each for key, each in one.items() if key != "namespace" or each})
    return made


def _members(one: Obj, namespace: str, sets: Mapping[tuple[str, str], Obj]) -> list[Obj]:
    found = sets.get((namespace, str(one.get("name"))))
    if found is None:
        return [{**one, "namespace": namespace}]
    base = {"apiVersion": POLICY.api_version, "kind": POLICY.kind, "compliance": one.get("compliance")}
    return [{**base, "name": f"{namespace}.{each}"} for each in dig(found, "spec", "policies") or ()]


def _policy(one: Obj, namespace: str) -> Obj:
    name = str(one.get("name"))
    given = str(one.get("namespace") or "")
    made = {key: each for key, each in one.items() if key != "namespace"}
    return made if not given and "." in name else {**made, "name": f"{given or namespace}.{name}"}


def same(wanted: Obj, live: Obj) -> bool:
    return all(wanted[key] == live.get(key) for key in ("spec",)) and (
        labels_of(wanted) == labels_of(live) and annotations_of(wanted) == annotations_of(live)
    )


def updated(wanted: Obj, live: Obj) -> Obj:
    """Return the live copy with what it should have."""
    metadata = {**meta(live), **{key: wanted["metadata"][key] for key in ("labels", "annotations")}}
    return {**live, "metadata": metadata, "spec": wanted["spec"]}


def templated(policy: Obj) -> tuple[int, ...]:
    """Return the places of the policy templates with templates of the hub."""
    found = dig(policy, "spec", "policy-templates") or ()
    return tuple(at for at, one in enumerate(found) if has_template(repr(one.get("objectDefinition")), HUB))
