"""The policies that bring a managed cluster the GitOps operator and an Argo CD (§12)."""

from __future__ import annotations

from typing import Any, Final

from syncline.clustergroup.acm import onspoke
from syncline.clustergroup.acm.bundles import AT_LEAST, EXACTLY, STANDARDS, Content, Names, for_groups
from syncline.clustergroup.acm.checks import CHECKS
from syncline.clustergroup.acm.defaults import CATALOGUE, CHANNEL
from syncline.clustergroup.acm.facts import Facts
from syncline.clustergroup.objects.argocd import BUNDLE, GATHER, ICON, resources, trusted
from syncline.clustergroup.printing import Printer, first, is_empty, printed
from syncline.kube.objects import Obj

_OPERATOR: Final = Names("{}-gitops-policy", "{}-gitops-config", "{}-gitops-placement-binding", "{}-gitops-placement")
_INSTANCE: Final = Names(*(f"{one}-argocd" for one in _OPERATOR))
_SUBSCRIPTION: Final = "openshift-gitops-operator"
_EVERYWHERE: Final = "openshift-operators"
_SMALL: Final = resources(("500m", "256Mi"), ("250m", "128Mi"))
_OFF: Final = {"enabled": False}
_HIDDEN: Final[Obj] = {"ingress": _OFF, "route": _OFF}
_POLICY: Final = "\n".join(f"g, {who}, role:admin" for who in ("system:cluster-admins", "cluster-admins", "admin"))
_EXCLUDED: Final = "- apiGroups:\n  - tekton.dev\n  clusters:\n  - '*'\n  kinds:\n  - TaskRun\n  - PipelineRun"


def policies(facts: Facts) -> list[Obj]:
    """Return both policies of all groups: the operator with what Argo CD needs to start, then Argo CD."""
    out = facts.printer("policies/ocp-gitops-policy")
    groups = facts.groups(out)
    made: list[Obj] = []
    if not groups:
        return made
    operator = Content(_operator(out, facts), annotations=STANDARDS)
    instance = Content(_instance(out, facts), annotations=STANDARDS)
    first_ones = for_groups(facts, out, _OPERATOR, operator)
    second_ones = for_groups(facts, out, _INSTANCE, instance)
    for at in range(0, len(first_ones), 3):  # a policy, its binding and its placement
        made += (*first_ones[at : at + 3], *second_ones[at : at + 3])
    return made


def _operator(out: Printer, facts: Facts) -> list[tuple[str, Obj]]:
    given = facts.shared.get("gitOpsSubNamespace")
    env: list[Obj] = [{"name": "ARGOCD_CLUSTER_CONFIG_NAMESPACES", "value": "*"}]
    if facts.own_argo(out):
        env.append({"name": "DISABLE_DEFAULT_ARGOCD_INSTANCE", "value": "true"})
    subscription: Obj = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": _SUBSCRIPTION, "namespace": out.plain(first(given, _EVERYWHERE))},
        "spec": {
            "channel": out.plain(_chosen(out, facts, "channel", "channel", CHANNEL)),
            "installPlanApproval": "Automatic",
            "name": _SUBSCRIPTION,
            "source": out.plain(_chosen(out, facts, "source", "operatorSource", CATALOGUE)),
            "sourceNamespace": "openshift-marketplace",
            "config": {"env": env},
        },
    }
    where = out.plain(facts.argo_namespace)
    made = [(EXACTLY, subscription), (AT_LEAST, _namespace(where)), (AT_LEAST, trusted(where, {}))]
    if is_empty(given) or out.same(given, _EVERYWHERE, "global.gitOpsSubNamespace"):
        return made
    namespace = out.plain(given)
    group: Obj = {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": out.plain(f"{printed(given)}-operator-group"), "namespace": namespace},
        "spec": None,
    }
    return [*made, (EXACTLY, _namespace(namespace)), (EXACTLY, group)]


def _namespace(name: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _chosen(out: Printer, facts: Facts, key: str, former: str, default: str) -> Any:
    own = out.reach(facts.section("acm"), "spokeGitops", key)
    return first(own, None if not is_empty(own) else out.reach(facts.values, "main", "gitops", former), default)


def _instance(out: Printer, facts: Facts) -> list[tuple[str, Obj]]:
    namespace = out.plain(facts.argo_namespace)
    argocd: Obj = {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": namespace, "namespace": namespace},
        "spec": _spec(out, facts),
    }
    return [(EXACTLY, argocd), *([(EXACTLY, _link(out, facts))] if facts.own_argo(out) else [])]


def _link(out: Printer, facts: Facts) -> Obj:
    namespace = printed(facts.argo_namespace)
    return {
        "apiVersion": "console.openshift.io/v1",
        "kind": "ConsoleLink",
        "metadata": {"name": out.plain(f"{namespace}-gitops-link")},
        "spec": {
            "applicationMenu": {"section": "OpenShift GitOps", "imageURL": facts.release.picture or ICON},
            "href": out.single(f"https://{namespace}-server-{namespace}.{onspoke.APPS_DOMAIN}"),
            "location": "ApplicationMenu",
            "text": "Argo CD VP",
        },
    }


def _spec(out: Printer, facts: Facts) -> Obj:
    return {
        "applicationSet": {**resources(("2", "1Gi"), ("250m", "512Mi")), "webhookServer": _HIDDEN},
        "controller": {"processors": {}, **resources(("2", "2Gi"), ("250m", "1Gi")), "sharding": {}},
        "grafana": {**_OFF, **_HIDDEN, **_SMALL},
        "ha": {**_OFF, **_SMALL},
        "initialSSHKnownHosts": {},
        "monitoring": _OFF,
        "notifications": _OFF,
        "prometheus": {**_OFF, **_HIDDEN},
        "rbac": {"defaultPolicy": "role:readonly", "policy": _POLICY, "scopes": "[groups,email]"},
        "redis": _SMALL,
        "repo": _repo(),
        "resourceExclusions": _EXCLUDED,
        "resourceHealthChecks": [*CHECKS, *_more_checks(out, facts)],
        "server": {
            "autoscale": _OFF,
            "grpc": {"ingress": _OFF},
            "ingress": _OFF,
            **resources(("500m", "256Mi"), ("125m", "128Mi")),
            "route": {"enabled": True, **_tls(out, facts)},
            "service": {"type": ""},
        },
        "sso": {"dex": {"openShiftOAuth": True, **_SMALL}, "provider": "dex"},
        "tls": {"ca": {}},
    }


def _repo() -> Obj:
    gather = {
        "command": ["bash", "-c", GATHER],
        "image": "registry.redhat.io/ubi9/ubi-minimal:latest",
        "name": "fetch-ca",
        "resources": {},
        "volumeMounts": BUNDLE,
    }
    maps = (("kube-root-ca.crt", "kube-root-ca"), *((one, one) for one in ("trusted-ca-bundle", "trusted-hub-bundle")))
    return {
        "initContainers": [gather],
        **resources(("1", "1Gi"), ("250m", "256Mi")),
        "volumeMounts": [{"mountPath": "/etc/pki/tls/certs", "name": "ca-bundles"}],
        "volumes": [
            *({"configMap": {"name": given}, "name": name} for given, name in maps),
            {"emptyDir": {}, "name": "ca-bundles"},
        ],
    }


def _more_checks(out: Printer, facts: Facts) -> list[Obj]:
    what = "acm.extraResourceHealthChecks"
    return [
        {
            "group": out.plain(out.field(one, "group", what)),
            "kind": out.plain(one.get("kind")),
            "check": out.block(one.get("check"), f"{what}: check"),
        }
        for one in out.each(facts.section("acm").get("extraResourceHealthChecks"), what)
    ]


def _tls(out: Printer, facts: Facts) -> Obj:
    given = out.reach(facts.shared, "argocdServer", "route", "tls")
    if is_empty(given):
        return {}
    chosen = (("insecureEdgeTerminationPolicy", "Redirect"), ("termination", "reencrypt"))
    what = "global.argocdServer.route.tls"
    return {"tls": {key: out.plain(first(out.field(given, key, what), default)) for key, default in chosen}}
