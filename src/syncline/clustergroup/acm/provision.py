"""Clusters that the hub makes itself: pools, claims, deployments and their sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from syncline.clustergroup.acm.bundles import CLUSTERS, LATER, named
from syncline.clustergroup.acm.facts import GROUPS, Facts
from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.printing import Printer, is_empty, printed
from syncline.kube.gotemplate.fmt import sprint
from syncline.kube.objects import Obj

HIVE: Final = "hive.openshift.io"
POOLS, DEPLOYMENTS = "clusterPools", "clusterDeployments"
_NONE: Final = "None"
_MACHINES: Final = {"aws": "m5.xlarge", "azure": "Standard_D8s_v3"}
"""Clouds that can be provisioned, in the order of preference, and their machine types."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """A pool or a deployment of a group. ``name``: with the group's; ``owns``: it has a namespace of its own."""

    name: str
    group: Obj
    given: Obj
    owns: bool

    def named(self, out: Printer, part: str) -> Any:
        """The name of an object that belongs to it."""
        return out.plain(f"{self.name}-{part}")

    def cloud(self, out: Printer) -> tuple[str, Any, str]:
        """The cloud, its region and the type of machines. Raises :class:`RenderFailed` without a platform."""
        platform = out.field(self.given, "platform", GROUPS)
        for one, machine in _MACHINES.items():
            if not is_empty(settings := out.field(platform, one, f"{GROUPS}: platform")):
                return one, out.field(settings, "region", f"{GROUPS}: platform.{one}"), machine
        return _NONE, _NONE, _NONE


def wanted(facts: Facts, out: Printer, key: str) -> list[Wanted]:
    """Return the pools or the deployments of all groups."""
    return [one for group in facts.groups(out) for one in of_group(out, group, key)]


def of_group(out: Printer, group: Obj, key: str) -> Iterator[Wanted]:
    for given in out.each(group.get(key), f"{GROUPS}: {key}"):
        name = sprint(out.field(given, "name", f"{GROUPS}: {key}"), "-", group.get("name"))
        yield Wanted(name, group, given, key == DEPLOYMENTS)


def _labels(out: Printer, group: Obj) -> Obj:
    if is_empty(labels := group.get("acmlabels")):
        return {"clusterGroup": out.plain(group.get("name"))}
    found: Obj = out.lines(named(out, labels)) or {}
    return found


def sets(facts: Facts) -> list[Obj]:
    """Return a ManagedClusterSet for each group with clusters of its own."""
    out, made = facts.printer("provision/managedclusterset"), []
    for group in facts.groups(out):
        if not any(not is_empty(group.get(key)) for key in (POOLS, DEPLOYMENTS)):
            continue
        name = group.get("name")
        broker = {f"{CLUSTERS}/submariner-broker-ns": out.plain(f"{printed(name)}-broker")}
        metadata = {"annotations": {**broker, **LATER}, "name": out.plain(name)}
        made.append({"apiVersion": f"{CLUSTERS}/v1beta2", "kind": "ManagedClusterSet", "metadata": metadata})
    return made


def deployments(facts: Facts) -> list[Obj]:
    """Return a Namespace, a ClusterDeployment and a ManagedCluster for each deployment."""
    out = facts.printer("provision/clusterdeployment")
    return [made for one in wanted(facts, out, DEPLOYMENTS) for made in _deployment(out, one)]


def _deployment(out: Printer, one: Wanted) -> list[Obj]:
    for whose, holder in (("cluster", one.given), ("group", one.group)):
        if holder.get("name") is None:
            raise RenderFailed(out.part, f"managedClusterGroup clusterDeployment {whose} name is empty")
    cloud, region, _ = one.cloud(out)
    name = out.plain(one.name)
    metadata = {"name": name, "namespace": name, "labels": {"vendor": "OpenShift"}, "annotations": LATER}
    spec: Obj = {
        "baseDomain": out.plain(one.given.get("baseDomain")),
        "clusterName": name,
        "installAttemptsLimit": 1,
        "platform": {cloud: {"credentialsSecretRef": {"name": one.named(out, "creds")}, "region": out.plain(region)}},
        "provisioning": {
            "installConfigSecretRef": {"name": one.named(out, "install-config")},
            "sshPrivateKeySecretRef": {"name": one.named(out, "ssh-private-key")},
            "imageSetRef": {"name": _image_set(out, one)},
        },
        "pullSecretRef": {"name": one.named(out, "pull-secret")},
    }
    labels = {f"{CLUSTERS}/clusterset": out.plain(one.group.get("name")), **_labels(out, one.group)}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": f"{HIVE}/v1", "kind": "ClusterDeployment", "metadata": metadata, "spec": spec},
        {
            "apiVersion": f"{CLUSTERS}/v1",
            "kind": "ManagedCluster",
            "metadata": {"labels": labels, "name": name, "annotations": LATER},
            "spec": {"hubAcceptsClient": True},
        },
    ]


def _image_set(out: Printer, one: Wanted) -> Any:
    return out.plain(f"img{printed(one.given.get('openshiftVersion'))}-multi-appsub")


def pools(facts: Facts) -> list[Obj]:
    """Return each ClusterPool and a ClusterClaim for each of its clusters."""
    out = facts.printer("provision/clusterpool")
    return [made for one in wanted(facts, out, POOLS) for made in (_pool(out, one), *_claims(out, one))]


def _count(out: Printer, clusters: Any) -> int:
    if not is_empty(clusters) and not isinstance(clusters, str | list | dict):
        raise RenderFailed(out.part, f"{GROUPS}: clusters: len of {printed(clusters)[:80]}")
    return 0 if is_empty(clusters) else len(clusters)


def _pool(out: Printer, one: Wanted) -> Obj:
    cloud, region, _ = one.cloud(out)
    count, size = _count(out, one.given.get("clusters")), one.given.get("size")
    labels = {
        "cloud": cloud,
        "region": out.single(region),
        "vendor": "OpenShift",
        f"{CLUSTERS}/clusterset": out.plain(one.group.get("name")),
    }
    return {
        "apiVersion": f"{HIVE}/v1",
        "kind": "ClusterPool",
        "metadata": {
            "name": out.inside(one.name),
            "annotations": {"argocd.argoproj.io/sync-wave": "10", **LATER},
            "labels": labels,
        },
        "spec": {
            "size": count if is_empty(size) else out.plain(size),
            "runningCount": count,
            "baseDomain": out.plain(one.given.get("baseDomain")),
            "installConfigSecretTemplateRef": {"name": one.named(out, "install-config")},
            "imageSetRef": {"name": _image_set(out, one)},
            "pullSecretRef": {"name": one.named(out, "pull-secret")},
            "skipMachinePools": True,
            "platform": {
                cloud: {
                    "credentialsSecretRef": {"name": one.named(out, "creds")},
                    "region": out.plain(region),
                }
            },
        },
    }


def _claims(out: Printer, one: Wanted) -> Iterator[Obj]:
    for cluster in out.each(one.given.get("clusters"), f"{GROUPS}: clusters"):
        name = "-".join(out.lowered(each, GROUPS) for each in (cluster, one.group.get("name")))
        annotations = {
            "argocd.argoproj.io/sync-wave": "20",
            **LATER,
            f"{CLUSTERS}/createmanagedcluster": "true",
        }
        labels = {"clusterClaimName": out.plain(name), **_labels(out, one.group)}
        yield {
            "apiVersion": f"{HIVE}/v1",
            "kind": "ClusterClaim",
            "metadata": {"name": out.single(name), "annotations": annotations, "labels": labels},
            "spec": {"clusterPoolName": out.plain(one.name)},
        }
