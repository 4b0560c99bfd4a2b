"""GitOpsClusters: the clusters of a Placement become clusters of an Argo CD (reference ocm-pull-model §10).

A pass is over all GitOpsClusters, as upstream: a cluster Secret that none of them claims goes once its ManagedCluster
is gone. Service accounts, the cluster proxy, the add-on and the agent are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from syncline.argo.clusters import SECRET_TYPE
from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.plan import Create, Delete, Patch, Replace, SetStatus, set_status
from syncline.fleet.conditions import condition, find_condition, is_true, with_condition
from syncline.fleet.hub.placement.model import PLACEMENT_LABEL
from syncline.fleet.pull import gitops_secrets as secrets
from syncline.fleet.pull.names import APPS
from syncline.kube.objects import GVK, Obj, labels_of, name_of, namespace_of

Get = Callable[[str, str, str], Obj | None]
"""The object of a kind, a namespace and a name."""
List = Callable[[str, str], Sequence[Obj]]
"""The objects of a kind in a namespace; empty: in all."""
ALLOWED = f"{APPS}/gitops-argo-namespace"
_SECRET = GVK("", "v1", "Secret")
_ROLE = "-applicationset-controller-placement"
_MAX_MESSAGE = 4096
NO_POLICIES = "Failed to create policy template: policies are not supported; leave spec.createPolicyTemplate out"
NOT_SUPPORTED = (
    "GitOpsCluster v1alpha1 is kept and not acted on: without spec.argoServer it is one of argocd-pull-integration, "
    "whose agent add-on (spec.argoCDAgentAddon) is not supported; use apps.open-cluster-management.io/v1beta1 with "
    "argoServer and placementRef"
)
_STARTED = ("Ready", "PlacementResolved", "ArgoServerVerified", "ApplicationSetResourcesReady", "PolicyTemplateReady")
_NEEDED = ("PlacementResolved", "ArgoServerVerified", "ClustersRegistered")
_NOT_REQUIRED = {
    "AddOnDeploymentConfigsReady": "AddOnDeploymentConfigs not required (GitOps addon disabled)",
    "ManagedClusterAddOnsReady": "ManagedClusterAddons not required (GitOps addon disabled)",
    "AddOnTemplateReady": "AddOnTemplate not required (ArgoCD agent disabled)",
    "GitOpsAddonPrereqsReady": "GitOps addon RBAC prerequisites not required (agent disabled)",
    "ArgoCDAgentPrereqsReady": "ArgoCD agent prerequisites not required (agent disabled)",
    "CertificatesReady": "ArgoCD agent certificates not required (agent disabled)",
    "ManifestWorksApplied": "ManifestWorks not required (agent disabled)",
    "ArgoCDPolicyReady": "ArgoCD policy not required (addon disabled)",
    "OLMSubscriptionReady": "OLM subscription not required (addon disabled)",
}


@dataclass(frozen=True, slots=True)
class GitOpsPlan:
    """``actions`` in order; ``error`` of the last GitOpsCluster that failed; ``recheck``: when to look again."""

    actions: tuple[Action, ...]
    status: tuple[SetStatus, ...]
    error: str = ""
    recheck: timedelta = timedelta(minutes=5)


class _Failure(Exception):
    """Why one GitOpsCluster stops: the condition that is False, and when to try again."""

    def __init__(self, kind: str, reason: str, error: str, minutes: int, said: str = "", message: str = "") -> None:
        super().__init__(error)
        self.kind, self.reason, self.recheck = kind, reason, timedelta(minutes=minutes)
        self.said = said or error
        self.message = message or self.said


@dataclass
class _Pass:
    """One GitOpsCluster while it is planned."""

    obj: Obj
    get: Get
    listed: List
    now: datetime
    conditions: list[Obj]
    actions: list[Action] = field(default_factory=list)
    claimed: set[tuple[str, str]] = field(default_factory=set)

    def say(self, kind: str, message: str, status: str = "True", reason: str = "Success") -> None:
        self.conditions = with_condition(self.conditions, condition(kind, status, reason, message), self.now)


def plan_gitops(objs: Iterable[Obj], get: Get, listed: List, now: datetime) -> GitOpsPlan:
    """Plan all GitOpsClusters. ``get`` and ``listed`` read a complete cache: what they don't know is gone."""
    actions: list[Action] = []
    status: list[SetStatus] = []
    claimed: set[tuple[str, str]] = set()
    error, recheck = "", timedelta(minutes=5)
    for obj in objs:
        one = _Pass(obj, get, listed, now, list((obj.get("status") or {}).get("conditions") or ()))
        found = _plan_one(one)
        if found is not None:
            error, recheck = str(found), found.recheck
        phase = {"phase": "failed" if found else "successful"}
        message = found.message if found else _done(one)
        new = {**phase, "message": message, "lastUpdateTime": format_time(now), "conditions": one.conditions}
        old = obj.get("status") or {}
        if {**old, "lastUpdateTime": ""} != {**new, "lastUpdateTime": ""}:
            status += set_status(obj, new, "what became of its clusters")
        actions += one.actions
        claimed |= one.claimed
    return GitOpsPlan((*actions, *_orphans(get, listed, claimed)), tuple(status), error, recheck)


def left_alone(obj: Obj, now: datetime) -> tuple[SetStatus, ...]:
    """Say in a condition what is not supported (decision 44); what else the status has stays."""
    old: Obj = obj.get("status") or {}
    conditions = with_condition(
        old.get("conditions") or (), condition("Ready", "False", "VersionNotSupported", NOT_SUPPORTED), now
    )
    new = {**old, "conditions": conditions}
    return set_status(obj, new, "its version is not supported") if new != old else ()


def _plan_one(one: _Pass) -> _Failure | None:
    for kind in (*_STARTED, "ClustersRegistered"):
        if find_condition(one.conditions, kind) is None:
            one.say(kind, "Reconciliation in progress", "Unknown", "Reconciling")
    if _asks_for_policy(one.obj):
        one.say("PolicyTemplateReady", NO_POLICIES, "False", "PolicyTemplateCreationFailed")
    else:
        one.say("PolicyTemplateReady", "Policy template created successfully")
    try:
        _check_namespace(one)
        one.say("ArgoServerVerified", "ArgoCD server pod found in the specified namespace")
        _set_resources(one)
        one.say("ApplicationSetResourcesReady", "ApplicationSet ConfigMaps and RBAC resources created successfully")
        clusters = _clusters(one)
        _register(one, clusters)
    except _Failure as failure:
        one.say(failure.kind, failure.said, "False", failure.reason)
        _ready(one)
        return failure
    one.say("PlacementResolved", f"Successfully resolved {len(clusters)} managed clusters from placement")
    one.say("ClustersRegistered", f"Successfully registered {len(clusters)} managed clusters to ArgoCD")
    for kind, message in _NOT_REQUIRED.items():
        one.say(kind, message, reason="NotRequired")
    _ready(one)
    return None


def _asks_for_policy(obj: Obj) -> bool:
    """Return whether a policy is wanted, as upstream decides; else its condition is True and there is none."""
    spec: Obj = obj.get("spec") or {}
    placed = (spec.get("placementRef") or {}).get("kind") == "Placement"
    return bool(spec.get("createPolicyTemplate") and placed and spec.get("managedServiceAccountRef"))


def _ready(one: _Pass) -> None:
    failed = [each["type"] for each in one.conditions if each["type"] != "Ready" and each["status"] == "False"]
    if failed:
        message = f"One or more components have failed: {', '.join(failed)}"
        one.say("Ready", message, "False", "ClusterRegistrationFailed")
    elif all(is_true(one.conditions, kind) for kind in _NEEDED):
        one.say("Ready", "GitOpsCluster is ready and all components are functioning correctly")
    else:
        one.say("Ready", "GitOpsCluster components are still being processed", "Unknown", "Reconciling")


def _namespace(one: _Pass) -> str:
    server = (one.obj.get("spec") or {}).get("argoServer") or {}
    return str(server.get("argoNamespace") or namespace_of(one.obj))


def _done(one: _Pass) -> str:
    names = " ".join(name_of(each) for each in _clusters(one))
    names = names if len(names) <= _MAX_MESSAGE else f"{names[:_MAX_MESSAGE]}..."
    return f"Added managed clusters [{names}] to gitops namespace {_namespace(one)}"


def _check_namespace(one: _Pass) -> None:
    """Credentials of clusters may go into another namespace only where an administrator has labelled it."""
    namespace = _namespace(one)
    if namespace != namespace_of(one.obj):
        found, why = one.get("Namespace", "", namespace), ""
        if found is None:
            why = f'unable to verify target argoNamespace "{namespace}": namespaces "{namespace}" not found'
        elif labels_of(found).get(ALLOWED) != "true":
            why = (
                f'cross-namespace argoNamespace "{namespace}" is not permitted: '
                f"target Namespace must carry label {ALLOWED}=true"
            )
        if why:
            raise _Failure("ArgoServerVerified", "InvalidConfiguration", why, 1)
    wanted = {"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"}
    skipped = (one.obj["metadata"].get("annotations") or {}).get("skipArgoNamespaceVerify") == "true"
    if not skipped and not any(wanted.items() <= labels_of(each).items() for each in one.listed("Service", namespace)):
        message = "invalid gitops namespace because argo server pod was not found"
        said = "ArgoCD server pod was not found in the specified namespace"
        error = f"{message}, will try again"
        raise _Failure("ArgoServerVerified", "ArgoServerNotFound", error, 1, said, message)


def _set_resources(one: _Pass) -> None:
    """What an ApplicationSet controller needs to read decisions: two ConfigMaps, and a right to list."""
    namespace = _namespace(one)
    rules, decisions = (APPS, "placementrules"), ("cluster.open-cluster-management.io", "placementdecisions")
    role = f"{namespace}{_ROLE}"
    rbac = "rbac.authorization.k8s.io"
    granted = [{"apiGroups": [group], "resources": [kind], "verbs": ["list"]} for group, kind in (rules, decisions)]
    subject = {"kind": "ServiceAccount", "name": _account(one, namespace), "namespace": namespace}
    contents: list[tuple[str, str, str, Obj]] = [
        ("v1", "ConfigMap", "acm-placementrule", {"data": _duck(f"{APPS}/v1", rules[1])}),
        ("v1", "ConfigMap", "acm-placement", {"data": _duck(f"{decisions[0]}/v1beta1", decisions[1])}),
        (f"{rbac}/v1", "Role", role, {"rules": granted}),
        (
            f"{rbac}/v1",
            "RoleBinding",
            role,
            {"roleRef": {"apiGroup": rbac, "kind": "Role", "name": role}, "subjects": [subject]},
        ),
    ]
    for version, kind, name, content in contents:
        if one.get(kind, namespace, name) is None:
            metadata = {"name": name, "namespace": namespace}
            made = {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
            one.actions.append(Create(made, "generators of ApplicationSets read decisions with it"))


def _duck(version: str, kind: str) -> dict[str, str]:
    return {"apiVersion": version, "kind": kind, "statusListKey": "decisions", "matchKey": "clusterName"}


def _account(one: _Pass, namespace: str) -> str:
    for part in ("argocd-applicationset", "argocd"):
        for each in one.listed("ServiceAccount", namespace):
            labelled = labels_of(each).get("app.kubernetes.io/part-of") == part
            if labelled and name_of(each).endswith("-applicationset-controller"):
                return name_of(each)
    return "openshift-gitops-applicationset-controller"


def _clusters(one: _Pass) -> list[Obj]:
    namespace, reference = namespace_of(one.obj), (one.obj.get("spec") or {}).get("placementRef") or {}
    versions = [f"cluster.open-cluster-management.io/{version}" for version in ("v1alpha1", "v1beta1")]
    if reference.get("kind") != "Placement" or str(reference.get("apiVersion")).lower() not in versions:
        raise _Failure("PlacementResolved", "PlacementNotFound", "invalid placement reference", 3)
    name, found = str(reference.get("name") or ""), []
    if one.get("Placement", namespace, name) is None:
        raise _missing("placements", name)
    for decision in one.listed("PlacementDecision", namespace):
        if labels_of(decision).get(PLACEMENT_LABEL) == name:
            for each in (decision.get("status") or {}).get("decisions") or ():
                cluster = one.get("ManagedCluster", "", each["clusterName"])
                if cluster is None:
                    raise _missing("managedclusters", each["clusterName"])
                found.append(cluster)
    return found


def _missing(plural: str, name: str) -> _Failure:
    error = f'{plural}.cluster.open-cluster-management.io "{name}" not found'
    return _Failure("PlacementResolved", "PlacementNotFound", error, 3)


def _register(one: _Pass, clusters: Iterable[Obj]) -> None:
    """Write the Secret of each cluster; one that fails doesn't stop the others, and its former Secret stays."""
    namespace, errors = _namespace(one), []
    there = [each for each in one.listed("Secret", namespace) if secrets.is_cluster_secret(each)]
    foreign = {secrets.field_of(each, "name") for each in there if secrets.OURS not in labels_of(each)}
    for cluster in clusters:
        name = name_of(cluster)
        wanted: Obj | str = f"found existing non-ACM ArgoCD clusters secrets for cluster: {name}"
        if name not in foreign:
            wanted = _wanted(one, namespace, cluster)
        if isinstance(wanted, str):
            errors.append(wanted)
            one.claimed |= {(namespace, each) for each in secrets.imported_names(name)}
            continue
        live = one.get("Secret", namespace, name_of(wanted))
        reason = f"cluster {name} is in the Placement"
        one.actions.append(Create(wanted, reason) if live is None else Replace(secrets.updated(live, wanted), reason))
        one.claimed.add((namespace, name_of(wanted)))
        one.actions += _replaced(one, there, wanted, name)
    if errors:
        why = "Failed to register managed clusters with ArgoCD. Please verify the managed cluster credentials and "
        said = f"{why}network connectivity: " + "\n".join(errors)
        raise _Failure("ClustersRegistered", "ClusterRegistrationFailed", "\n".join(errors), 3, said[:_MAX_MESSAGE])


def _wanted(one: _Pass, namespace: str, cluster: Obj) -> Obj | str:
    """The Secret, or why there is none."""
    spec, name = one.obj["spec"], name_of(cluster)
    if spec.get("createBlankClusterSecrets"):
        return secrets.blank_secret(namespace, cluster, str(spec.get("managedServiceAccountRef") or ""))
    choices = secrets.imported_names(name)
    imported = next((found for each in choices if (found := one.get("Secret", name, each))), None)
    if imported is None:
        why = f'legacy secret not found for managed cluster {name}: secrets "{choices[1]}" not found'
        return f"all options exhausted for managed cluster {name}: {why}"
    server, why = secrets.field_of(imported, "server"), ""
    if not server:
        server, why = secrets.address_of(cluster), secrets.token_problem(imported)
        why = why or ("" if server else f"no client configs found for managed cluster: {name}")
    if why:
        return f"all options exhausted for managed cluster {name}: {why}"
    return secrets.imported_secret(namespace, cluster, imported, server)


def _replaced(one: _Pass, there: Iterable[Obj], new: Obj, cluster: str) -> list[Action]:
    """Delete former Secrets of the cluster. They lose their label first, so that generators don't see a cluster go."""
    apps = one.listed("Application", namespace_of(new))
    used = {((each.get("spec") or {}).get("destination") or {}).get("server") for each in apps}
    actions: list[Action] = []
    for old in there:
        labels, server = labels_of(old), secrets.field_of(old, "server")
        ours = labels.get(secrets.OURS) == "true" and labels.get(secrets.CLUSTER_NAME) == cluster
        other = name_of(old) != name_of(new) and secrets.AGENT_NAME not in labels
        if ours and other and (server == secrets.field_of(new, "server") or server not in used):
            reason = f"{name_of(new)} replaces it"
            body = {"metadata": {"labels": {SECRET_TYPE: None}}}
            actions.append(Patch(_SECRET, namespace_of(old), name_of(old), body, reason))
            actions.append(Delete.of(old, reason))
            one.claimed.add((namespace_of(old), name_of(old)))
    return actions


def _orphans(get: Get, listed: List, claimed: set[tuple[str, str]]) -> list[Action]:
    actions: list[Action] = []
    for one in listed("Secret", ""):
        ours = secrets.is_cluster_secret(one) and labels_of(one).get(secrets.OURS) == "true"
        if not ours or (namespace_of(one), name_of(one)) in claimed:
            continue
        cluster = labels_of(one).get(secrets.CLUSTER_NAME) or secrets.field_of(one, "name")
        if cluster and get("ManagedCluster", "", cluster) is None:
            actions.append(Delete.of(one, f"cluster {cluster} is gone"))
    return actions
