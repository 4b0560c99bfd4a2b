"""The steps of an InstallPlan: the manifests of a bundle, the accounts and rights of its operator, a Subscription for
a dependency (``resolver/steps.go``, ``resolver/rbac.go``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from syncline.kube.kinds.operatorlifecycle import GROUP
from syncline.kube.objects import Obj, copied, dig, gvk_of, name_of
from syncline.patterns.operators.catalogs.model import Entry, SourceKey
from syncline.patterns.operators.names import owner_labels
from syncline.patterns.operators.resolver.constraints import PROPERTIES

_RBAC: Final = "rbac.authorization.k8s.io"
_FIRST: Final = {"ClusterServiceVersion": 0, "CustomResourceDefinition": 1}


def ordered(steps: Sequence[Obj]) -> list[Obj]:
    """Return ClusterServiceVersions, then definitions, then the rest (``OrderSteps``)."""
    return sorted(steps, key=lambda one: _FIRST.get(one["resource"]["kind"], 2))


def step(obj: Obj, resolving: str, source: SourceKey) -> Obj:
    gvk = gvk_of(obj)
    resource = {
        "sourceName": source.name,
        "sourceNamespace": source.namespace,
        "group": gvk.group,
        "version": gvk.version,
        "kind": "BundleSecret" if gvk.kind == "Secret" else gvk.kind,
        "name": name_of(obj),
        "manifest": json.dumps(obj, separators=(",", ":")),
    }
    return {"resolving": resolving, "resource": resource, "status": "Unknown"}


def steps_of_bundle(entry: Entry, namespace: str) -> list[Obj]:
    """Return the steps that install a bundle in a namespace."""
    made: list[Obj] = []
    for obj in entry.bundle.objects:
        if obj.get("kind") != "ClusterServiceVersion":
            made.append(step(obj, entry.name, entry.source))
            continue
        csv: Obj = copied(obj)
        csv["metadata"] = {**csv["metadata"], "namespace": namespace, "name": entry.name}
        properties = [{"type": one.kind, "value": one.value} for one in entry.bundle.properties]
        annotations = csv["metadata"].get("annotations") or {}
        csv["metadata"]["annotations"] = {**annotations, PROPERTIES: json.dumps({"properties": properties})}
        csv["spec"].pop("replaces", None)
        if entry.replaces:
            csv["spec"]["replaces"] = entry.replaces
        made.insert(0, step(csv, entry.name, entry.source))
        made += [step(one, entry.name, entry.source) for one in rights(csv, namespace)]
    return made


def subscription_step(entry: Entry, namespace: str) -> Obj:
    """Return the step of the Subscription for an operator that another one needs."""
    name = "-".join((entry.package, entry.channel, entry.source.name, entry.source.namespace))
    spec = {
        "source": entry.source.name,
        "sourceNamespace": entry.source.namespace,
        "name": entry.package,
        "channel": entry.channel,
        "startingCSV": entry.name,
        "installPlanApproval": "Automatic",
    }
    obj: Obj = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    return step(obj, entry.name, entry.source)


def _hashed(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]


def rights(csv: Obj, namespace: str) -> Iterator[Obj]:
    """Yield the service accounts, Roles and bindings of an install strategy."""
    name, strategy = name_of(csv), dig(csv, "spec", "install", "spec", default=None) or {}
    accounts: dict[str, None] = {}
    for part in ("permissions", "clusterPermissions"):
        for one in strategy.get(part) or ():
            accounts.setdefault(str(one.get("serviceAccountName") or ""))
    for account in accounts:
        if account and account != "default":
            yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}}
    yield from _granted(name, namespace, strategy.get("permissions") or (), "Role")
    yield from _granted(name, namespace, strategy.get("clusterPermissions") or (), "ClusterRole")


def _granted(csv: str, namespace: str, permissions: Iterable[Obj], kind: str) -> Iterator[Obj]:
    labels = owner_labels(csv, namespace)
    for one in permissions:
        account = str(one.get("serviceAccountName") or "")
        base = f"{csv}-{account}" if kind == "Role" else csv
        name = f"{base[:200]}-{_hashed(csv, namespace, one)}"
        metadata = {"name": name, "labels": labels} | ({"namespace": namespace} if kind == "Role" else {})
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": kind,
            "metadata": metadata,
            "rules": copied(list(one.get("rules") or ())),
        }
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }
