"""What a ClusterServiceVersion needs before it is installed: a Kubernetes version, definitions, APIs, accounts and
their rights (``requirementAndPermissionStatus``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from syncline.kube.objects import Obj, dig, name_of, namespace_of, owner_references, uid_of
from syncline.patterns.operators.deployments import deployment_specs, strategy_problem
from syncline.patterns.operators.granted import NO_GRANTS, Grants

PRESENT, NOT_PRESENT, NOT_SATISFIED = "Present", "NotPresent", "PresentNotSatisfied"
NOT_AVAILABLE = "PresentNotAvailable"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


@dataclass(frozen=True, slots=True)
class Needs:
    """What the cluster has of what operators need."""

    definitions: Mapping[str, Obj] = field(default_factory=dict)
    """CustomResourceDefinitions by name."""
    accounts: Mapping[str, Obj] = field(default_factory=dict)
    """Service accounts of the namespace by name."""
    api_services: Mapping[str, Obj] = field(default_factory=dict)
    served: frozenset[tuple[str, str, str]] = frozenset()
    """Group, version and kind of what the API serves."""
    grants: Grants = NO_GRANTS
    server_version: str = "v0.0.0"


@dataclass(frozen=True, slots=True)
class Required:
    """``statuses``: ``status.requirementStatus``; ``invalid``: why the strategy cannot be read."""

    met: bool
    statuses: tuple[Obj, ...] = ()
    invalid: str = ""


def judge(csv: Obj, needs: Needs) -> Required:
    """Return whether all that a ClusterServiceVersion needs is there."""
    problem = strategy_problem(csv)
    if problem:
        return Required(False, (), problem)
    found = [*_kubernetes(csv, needs), *_definitions(csv, needs), *_services(csv, needs), *_native(csv, needs)]
    if invalid := _invalid_rule(csv, needs):
        return Required(False, (), f"rule invalid: {invalid}")
    permissions = _permissions(csv, needs)
    met = all(ok for ok, _ in (*found, *permissions))
    return Required(met, tuple(status for _, status in (*found, *permissions)))


Judged = tuple[bool, Obj]


def _status(group: str, version: str, kind: str, name: str, status: str, message: str = "", uid: str = "") -> Obj:
    made = {"group": group, "version": version, "kind": kind, "name": name, "status": status, "message": message}
    return made | ({"uuid": uid} if uid else {})


def _semver(text: str) -> tuple[int, int, int, int, str] | None:
    found = _VERSION.fullmatch(text.removeprefix("v"))
    if found is None:
        return None
    major, minor, patch, pre = found.groups()
    return int(major), int(minor), int(patch), 0 if pre else 1, pre or ""


def _kubernetes(csv: Obj, needs: Needs) -> Iterator[Judged]:
    wanted = str(dig(csv, "spec", "minKubeVersion", default="") or "")
    if not wanted:
        return
    short = needs.server_version.removeprefix("v").split("-")[0]
    server, least = _semver(short), _semver(wanted)
    message, ok = f"CSV minKubeVersion ({wanted}) less than server version ({needs.server_version})", True
    if server is None:
        message, ok = "Server version parsing error", False
    elif least is None:
        message, ok = "CSV version parsing error", False
    elif least > server:
        message = f"CSV version requirement not met: minKubeVersion ({wanted}) > server version ({short})"
        ok = False
    status = PRESENT if ok else NOT_SATISFIED
    yield ok, _status("operators.coreos.com", "v1alpha1", "ClusterServiceVersion", name_of(csv), status, message)


def _described(csv: Obj, part: str, which: str) -> Sequence[Obj]:
    return dig(csv, "spec", part, which, default=None) or ()


def _definitions(csv: Obj, needs: Needs) -> Iterator[Judged]:
    kinds = "customresourcedefinitions"
    described = {str(one.get("name")): one for which in ("required", "owned") for one in _described(csv, kinds, which)}
    for name in sorted(described):
        ok, status, message, uid = _definition(needs.definitions.get(name), str(described[name].get("version") or ""))
        yield ok, _status("apiextensions.k8s.io", "v1", "CustomResourceDefinition", name, status, message, uid)


def _definition(definition: Obj | None, version: str) -> tuple[bool, str, str, str]:
    if definition is None:
        return False, NOT_PRESENT, "CRD is not present", ""
    versions = dig(definition, "spec", "versions", default=None) or ()
    if not any(one.get("name") == version and one.get("served") for one in versions):
        return False, NOT_PRESENT, "CRD version not served", ""
    conditions = dig(definition, "status", "conditions", default=None) or ()
    true = {one.get("type") for one in conditions if one.get("status") == "True"}
    if not {"Established", "NamesAccepted"} <= true:
        return False, NOT_AVAILABLE, "CRD is present but the Established condition is False (not available)", ""
    return True, PRESENT, "CRD is present and Established condition is true", uid_of(definition)


def _services(csv: Obj, needs: Needs) -> Iterator[Judged]:
    part = "apiservicedefinitions"
    for one in _described(csv, part, "required"):
        group, version, kind = (str(one.get(key) or "") for key in ("group", "version", "kind"))
        name = f"{version}.{group}"
        service = needs.api_services.get(name)
        conditions = dig(service or {}, "status", "conditions", default=None) or ()
        up = any(each.get("type") == "Available" and each.get("status") == "True" for each in conditions)
        ok = (group, version, kind) in needs.served and service is not None and up
        uid = uid_of(service) if ok and service is not None else ""
        status = PRESENT if ok else NOT_PRESENT
        yield ok, _status("apiregistration.k8s.io", "v1", "APIService", name, status, "", uid)
    names = {one.get("name") for one in deployment_specs(csv)}
    for one in _described(csv, part, "owned"):
        ok, name = one.get("deploymentName") in names, f"{one.get('version')}.{one.get('group')}"
        status = "DeploymentFound" if ok else "DeploymentNotFound"
        yield ok, _status("apiregistration.k8s.io", "v1", "APIService", name, status)


def _native(csv: Obj, needs: Needs) -> Iterator[Judged]:
    for one in dig(csv, "spec", "nativeAPIs", default=None) or ():
        group, version, kind = (str(one.get(key) or "") for key in ("group", "version", "kind"))
        ok = (group, version, kind) in needs.served
        message = "Native API exists" if ok else "Native API does not exist"
        yield ok, _status(group, version, kind, f"{version}.{group}", PRESENT if ok else NOT_PRESENT, message)


def _permissions(csv: Obj, needs: Needs) -> list[Judged]:
    """Return one status for each service account that the strategy names."""
    found: dict[str, Judged] = {}
    for part, namespace in (("permissions", namespace_of(csv)), ("clusterPermissions", "")):
        for permission in dig(csv, "spec", "install", "spec", part, default=None) or ():
            name = str(permission.get("serviceAccountName") or "")
            before = found.get(name)
            found[name] = _account(csv, name, namespace, permission.get("rules") or (), needs, before)
    return [found[name] for name in sorted(found)]


def _invalid_rule(csv: Obj, needs: Needs) -> str:
    """Return why a rule for an account that exists means nothing; "" if each means something (``ruleValid``)."""
    strategy = dig(csv, "spec", "install", "spec", default=None) or {}
    permissions = [*(strategy.get("permissions") or ()), *(strategy.get("clusterPermissions") or ())]
    for permission in permissions:
        if permission.get("serviceAccountName") not in needs.accounts:
            continue
        for rule in permission.get("rules") or ():
            if not rule.get("verbs"):
                return "policy rule must have at least one verb"
            if rule.get("nonResourceURLs") and any(
                rule.get(key) for key in ("apiGroups", "resources", "resourceNames")
            ):
                return "rule cannot apply to both regular resources and non-resource URLs"
    return ""


def _account(csv: Obj, name: str, namespace: str, rules: Sequence[Obj], needs: Needs, before: Judged | None) -> Judged:
    ok, status = before or (True, _status("", "v1", "ServiceAccount", name, PRESENT))
    account = needs.accounts.get(name)
    if account is None:
        return False, {**status, "status": NOT_PRESENT, "message": "Service account does not exist"}
    owners = [one for one in owner_references(account) if one.get("kind") == "ClusterServiceVersion"]
    if owners and not any(one.get("uid") == uid_of(csv) for one in owners):
        message = "Service account is owned by another ClusterServiceVersion"
        return False, {**status, "status": NOT_SATISFIED, "message": message}
    dependents, scope = list(status.get("dependents") or ()), "namespaced" if namespace else "cluster"
    for rule in rules:
        held = needs.grants.satisfied(name, namespace_of(csv), namespace, rule)
        ok = ok and held
        text = f"{scope} rule:{_marshalled(rule)}"
        state = "Satisfied" if held else "NotSatisfied"
        about = {"group": "rbac.authorization.k8s.io", "kind": "PolicyRule", "version": "v1"}
        dependents.append({**about, "status": state, "message": text})
        if not held:
            message = "Policy rule not satisfied for service account"
            status = {**status, "status": NOT_SATISFIED, "message": message}
    return ok, {**status, **({"dependents": dependents} if dependents else {})}


def _marshalled(rule: Obj) -> str:
    """Print a rule as Go marshals it: fields in order, empty ones left out."""
    fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return json.dumps({key: rule[key] for key in fields if rule.get(key) or key == "verbs"}, separators=(",", ":"))
