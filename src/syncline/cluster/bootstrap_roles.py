"""The default RBAC roles and bindings as data.

Read by ``bootstrap`` only. Names and rules are those that Kubernetes documents under "Default roles and role bindings";
the roles of its single controllers are left out, since ours run inside the API server's process.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.cluster.rbac import Rule

__all__ = ["CLUSTER_ROLES", "CLUSTER_ROLE_BINDINGS", "ROLES", "ROLE_BINDINGS", "Binding", "Role"]

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
CORE = ""
APPS = "apps"
RBAC = "rbac.authorization.k8s.io"
COORDINATION = "coordination.k8s.io"
CERTIFICATES = "certificates.k8s.io"
EVENTS = ("", "events.k8s.io")
AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
"""Label prefix: a role with ``<prefix>view: "true"`` is part of the role ``view``."""


@dataclass(frozen=True, slots=True)
class Role:
    """``namespace`` empty: a ClusterRole. ``selects`` and ``part_of`` name the aggregate it gathers or belongs to."""

    name: str
    rules: tuple[Rule, ...] = ()
    namespace: str = ""
    selects: str = ""
    part_of: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    """``subjects`` are ``Kind name``; a service account's name is ``namespace/name``. ``cluster_role``: what kind of
    role is bound."""

    name: str
    role: str
    subjects: tuple[str, ...] = ()
    namespace: str = ""
    cluster_role: bool = True


def rule(verbs: str, group: str | tuple[str, ...], resources: str, names: str = "") -> Rule:
    """Words are separated by spaces."""
    groups = group if isinstance(group, tuple) else (group,)
    return Rule(tuple(verbs.split()), groups, tuple(resources.split()), tuple(names.split()))


def paths(urls: str) -> Rule:
    return Rule(("get",), non_resource_urls=tuple(urls.split()))


_EVENTS = rule("create patch update", EVENTS, "events")
_REVIEWS = (
    rule("create", "authentication.k8s.io", "tokenreviews"),
    rule("create", "authorization.k8s.io", "subjectaccessreviews"),
)
_HEALTH = "/healthz /livez /readyz /version /version/"

_WORKLOADS = "daemonsets deployments deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale"

_VIEW = (
    rule(
        READ,
        CORE,
        "bindings configmaps endpoints events limitranges namespaces namespaces/status persistentvolumeclaims "
        "persistentvolumeclaims/status pods pods/log pods/status replicationcontrollers replicationcontrollers/scale "
        "replicationcontrollers/status resourcequotas resourcequotas/status serviceaccounts services services/status",
    ),
    rule(READ, "discovery.k8s.io", "endpointslices"),
    rule(
        READ,
        APPS,
        f"controllerrevisions daemonsets/status deployments/status replicasets/status statefulsets/status {_WORKLOADS}",
    ),
    rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    rule(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    rule(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
)

_EDIT = (
    rule(READ, CORE, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    rule("impersonate", CORE, "serviceaccounts"),
    rule(WRITE, CORE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
    rule("create", CORE, "pods/eviction"),
    rule(
        WRITE,
        CORE,
        "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
        "serviceaccounts services services/proxy",
    ),
    rule("create", CORE, "serviceaccounts/token"),
    rule(WRITE, APPS, f"deployments/rollback {_WORKLOADS}"),
    rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE, "batch", "cronjobs jobs"),
    rule(WRITE, "policy", "poddisruptionbudgets"),
    rule(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    rule(f"{READ} {WRITE}", COORDINATION, "leases"),
)

_ADMIN = (
    rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    rule(f"{READ} {WRITE}", RBAC, "rolebindings roles"),
)

_NODE = (
    *_REVIEWS,
    rule(READ, CORE, "services"),
    rule("create get list watch", CORE, "nodes"),
    rule("patch update", CORE, "nodes nodes/status"),
    _EVENTS,
    rule("create delete get list watch", CORE, "pods"),
    rule("patch update", CORE, "pods/status"),
    rule("create", CORE, "pods/eviction serviceaccounts/token"),
    rule(READ, CORE, "configmaps secrets"),
    rule("get", CORE, "persistentvolumeclaims persistentvolumes"),
    rule("create get list watch", CERTIFICATES, "certificatesigningrequests"),
    rule("create delete get patch update", COORDINATION, "leases"),
    rule(READ, "node.k8s.io", "runtimeclasses"),
    rule("create delete get patch update", "storage.k8s.io", "csinodes"),
    rule("get", "storage.k8s.io", "volumeattachments"),
    rule(READ, "storage.k8s.io", "csidrivers"),
)

_CONTROLLER_MANAGER = (
    _EVENTS,
    rule("create", COORDINATION, "leases"),
    rule("get update", COORDINATION, "leases", "kube-controller-manager"),
    rule("create", CORE, "secrets serviceaccounts serviceaccounts/token"),
    rule("delete", CORE, "secrets"),
    rule("get", CORE, "configmaps namespaces secrets serviceaccounts"),
    rule("update", CORE, "secrets serviceaccounts"),
    *_REVIEWS,
    rule("list watch", "*", "*"),
)

_SCHEDULER = (
    _EVENTS,
    rule("create", COORDINATION, "leases"),
    rule("get list update watch", COORDINATION, "leases", "kube-scheduler"),
    rule(READ, CORE, "nodes"),
    rule("delete get list watch", CORE, "pods"),
    rule("create", CORE, "bindings pods/binding"),
    rule("patch update", CORE, "pods/status"),
    rule(READ, CORE, "namespaces persistentvolumeclaims persistentvolumes replicationcontrollers services"),
    rule(READ, APPS, "replicasets statefulsets"),
    rule(READ, "policy", "poddisruptionbudgets"),
    rule(READ, "storage.k8s.io", "csidrivers csinodes csistoragecapacities storageclasses volumeattachments"),
    *_REVIEWS,
)


def _approver(name: str, resource: str, names: str = "", verbs: str = "create") -> Role:
    return Role(f"system:certificates.k8s.io:{name}", (rule(verbs, CERTIFICATES, resource, names),))


CLUSTER_ROLES = (
    Role("cluster-admin", (rule("*", "*", "*"), Rule(("*",), non_resource_urls=("*",)))),
    Role("admin", selects="admin"),
    Role("edit", selects="edit", part_of="admin"),
    Role("view", selects="view", part_of="edit"),
    Role("system:aggregate-to-admin", _ADMIN, part_of="admin"),
    Role("system:aggregate-to-edit", _EDIT, part_of="edit"),
    Role("system:aggregate-to-view", _VIEW, part_of="view"),
    Role(
        "system:basic-user",
        (
            rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
            rule("create", "authentication.k8s.io", "selfsubjectreviews"),
        ),
    ),
    Role("system:discovery", (paths(f"/api /api/* /apis /apis/* /openapi /openapi/* {_HEALTH}"),)),
    Role("system:public-info-viewer", (paths(_HEALTH),)),
    Role(
        "system:monitoring",
        (paths("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),),
    ),
    Role("system:service-account-issuer-discovery", (paths("/.well-known/openid-configuration /openid/v1/jwks"),)),
    Role("system:auth-delegator", _REVIEWS),
    Role("system:kube-aggregator", (rule(READ, CORE, "endpoints services"),)),
    Role("system:kube-controller-manager", _CONTROLLER_MANAGER),
    Role("system:kube-dns", (rule("list watch", CORE, "endpoints services"),)),
    Role("system:kube-scheduler", _SCHEDULER),
    Role("system:volume-scheduler", (rule("get list patch update watch", CORE, "persistentvolumes"),)),
    Role("system:node", _NODE),
    Role("system:node-bootstrapper", (rule("create get list watch", CERTIFICATES, "certificatesigningrequests"),)),
    Role("system:node-problem-detector", (rule("get", CORE, "nodes"), rule("patch", CORE, "nodes/status"), _EVENTS)),
    Role(
        "system:node-proxier",
        (
            rule("list watch", CORE, "endpoints services"),
            rule("get list watch", CORE, "nodes"),
            _EVENTS,
            rule("list watch", "discovery.k8s.io", "endpointslices"),
        ),
    ),
    _approver("certificatesigningrequests:nodeclient", "certificatesigningrequests/nodeclient"),
    _approver("certificatesigningrequests:selfnodeclient", "certificatesigningrequests/selfnodeclient"),
    _approver("kube-apiserver-client-approver", "signers", "kubernetes.io/kube-apiserver-client", "approve"),
    _approver(
        "kube-apiserver-client-kubelet-approver", "signers", "kubernetes.io/kube-apiserver-client-kubelet", "approve"
    ),
    _approver("kubelet-serving-approver", "signers", "kubernetes.io/kubelet-serving", "approve"),
    _approver("legacy-unknown-approver", "signers", "kubernetes.io/legacy-unknown", "approve"),
)

CLUSTER_ROLE_BINDINGS = (
    Binding("cluster-admin", "cluster-admin", ("Group system:masters",)),
    Binding("system:basic-user", "system:basic-user", ("Group system:authenticated",)),
    Binding("system:discovery", "system:discovery", ("Group system:authenticated",)),
    Binding(
        "system:kube-controller-manager", "system:kube-controller-manager", ("User system:kube-controller-manager",)
    ),
    Binding("system:kube-dns", "system:kube-dns", ("ServiceAccount kube-system/kube-dns",)),
    Binding("system:kube-scheduler", "system:kube-scheduler", ("User system:kube-scheduler",)),
    Binding("system:monitoring", "system:monitoring", ("Group system:monitoring",)),
    Binding("system:node", "system:node"),
    Binding("system:node-proxier", "system:node-proxier", ("User system:kube-proxy",)),
    Binding(
        "system:public-info-viewer",
        "system:public-info-viewer",
        ("Group system:authenticated", "Group system:unauthenticated"),
    ),
    Binding(
        "system:service-account-issuer-discovery",
        "system:service-account-issuer-discovery",
        ("Group system:serviceaccounts",),
    ),
    Binding("system:volume-scheduler", "system:volume-scheduler", ("User system:kube-scheduler",)),
)


def _leader(component: str) -> Role:
    rules = (rule("watch", CORE, "configmaps"), rule("get update", CORE, "configmaps", component))
    return Role(f"system::leader-locking-{component}", rules, "kube-system")


ROLES = (
    Role(
        "extension-apiserver-authentication-reader",
        (rule(READ, CORE, "configmaps", "extension-apiserver-authentication"),),
        "kube-system",
    ),
    _leader("kube-controller-manager"),
    _leader("kube-scheduler"),
)

ROLE_BINDINGS = (
    Binding(
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        ("User system:kube-controller-manager", "User system:kube-scheduler"),
        "kube-system",
        cluster_role=False,
    ),
    *(
        Binding(
            f"system::leader-locking-{component}",
            f"system::leader-locking-{component}",
            (f"User system:{component}", f"ServiceAccount kube-system/{component}"),
            "kube-system",
            cluster_role=False,
        )
        for component in ("kube-controller-manager", "kube-scheduler")
    ),
)
