"""What the API server of a hub asks and refuses: webhook configurations, and policies for agents; pure.

The webhooks are upstream's, with its names, so that refusals read the same. The policies keep an agent in its own
namespace whatever RBAC grants it by mistake, and from requests for certificates of others.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from syncline.fleet.hub.admitting import (
    BOOTSTRAP_GROUP,
    BOOTSTRAP_USER,
    MUTATE_CLUSTER,
    VALIDATE_BINDING,
    VALIDATE_CLUSTER,
    VALIDATE_REQUEST,
    VALIDATE_WORK,
)
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.hub.registration.requests import CLUSTERS_GROUP, SIGNER
from syncline.kube.kinds.applicationqueries import QUERIES, QUERY
from syncline.kube.kinds.governance import GROUP as GOVERNANCE
from syncline.kube.kinds.managedaddons import GROUP as ADDONS
from syncline.kube.kinds.managedclusters import GROUP as CLUSTERS
from syncline.kube.kinds.manifestworks import GROUP as WORKS
from syncline.kube.objects import GroupKind, Obj

ADMISSION: Final = "admissionregistration.k8s.io"
MUTATING: Final = GroupKind(ADMISSION, "MutatingWebhookConfiguration")
VALIDATING: Final = GroupKind(ADMISSION, "ValidatingWebhookConfiguration")
POLICIES: Final = GroupKind(ADMISSION, "ValidatingAdmissionPolicy")
POLICY_BINDINGS: Final = GroupKind(ADMISSION, "ValidatingAdmissionPolicyBinding")
KEPT_KINDS: Final = (POLICIES, POLICY_BINDINGS, VALIDATING, MUTATING)
TIMEOUT_S: Final = 10
_OF_AGENT: Final = "request.userInfo.groups.filter(group, group.matches('^(system:)?open-cluster-management:[^:]+$'))"
"""The groups of an agent: of all, and of its cluster. Those of add-ons have more parts."""
_IS_AGENT: Final = f"{_OF_AGENT}.size() > 0"
_JOINS: Final = (
    f"request.userInfo.username == '{BOOTSTRAP_USER}' || "
    f"request.userInfo.groups.exists(group, group == '{BOOTSTRAP_GROUP}')"
)
_WRITES: Final = ("CREATE", "UPDATE", "DELETE")
_CSRS: Final = ("certificates.k8s.io", "certificatesigningrequests")


@dataclass(frozen=True, slots=True)
class Reach:
    """How an API server reaches the webhooks: a URL without path, or the name, namespace and port of a Service.
    ``ca_pem``: who signs their certificate; empty: the embedded API asks in process."""

    url: str = ""
    service: tuple[str, str, int] | None = None
    ca_pem: str = ""

    def client(self, path: str) -> Obj:
        """Return the ``clientConfig`` of the webhook at a path."""
        trust = {"caBundle": base64.b64encode(self.ca_pem.encode()).decode()} if self.ca_pem else {}
        if self.service is None:
            return {"url": self.url + path, **trust}
        name, namespace, port = self.service
        return {"service": {"name": name, "namespace": namespace, "path": path, "port": port}, **trust}


def _webhook(
    kind: GroupKind, name: str, reach: Reach, path: str, group: str, version: str, resource: str, **fields: object
) -> Obj:
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resource],
        "scope": "*",
    }
    hook: Obj = {
        "name": name,
        "admissionReviewVersions": ["v1beta1", "v1"],
        "clientConfig": reach.client(path),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "rules": [rule],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        **fields,
    }
    return _object(kind, name, webhooks=[hook])


def _object(kind: GroupKind, name: str, **fields: object) -> Obj:
    return {"apiVersion": f"{kind.group}/v1", "kind": kind.kind, "metadata": {"name": name}, **fields}


def webhooks(reach: Reach) -> tuple[Obj, ...]:
    """Return the configurations of all webhooks."""
    cluster, request = (CLUSTERS, "*", "managedclusters"), (_CSRS[0], "v1", _CSRS[1])
    named = "admission.cluster.open-cluster-management.io"
    works = "manifestworkvalidators.admission.work.open-cluster-management.io"
    only = [{"name": "agents-and-those-that-join", "expression": f"{_IS_AGENT} || {_JOINS}"}]
    return (
        _webhook(
            MUTATING, f"managedclustermutators.{named}", reach, MUTATE_CLUSTER, *cluster, reinvocationPolicy="Never"
        ),
        _webhook(VALIDATING, f"managedclustervalidators.{named}", reach, VALIDATE_CLUSTER, *cluster),
        _webhook(
            VALIDATING,
            f"managedclustersetbindingvalidators.{named}",
            reach,
            VALIDATE_BINDING,
            *(CLUSTERS, "v1beta2", "managedclustersetbindings"),
        ),
        _webhook(VALIDATING, works, reach, VALIDATE_WORK, WORKS, "*", "manifestworks"),
        _webhook(
            VALIDATING, "agentrequests.admission.syncline.dev", reach, VALIDATE_REQUEST, *request, matchConditions=only
        ),
    )


def _policy(name: str, condition: str, rules: Iterable[Obj], checks: Iterable[tuple[str, str]]) -> tuple[Obj, Obj]:
    """Return a policy and its binding; ``checks``: what must hold, and the expression of the refusal."""
    spec = {
        "failurePolicy": "Fail",
        "matchConditions": [{"name": "is-concerned", "expression": condition}],
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": list(rules),
        },
        "variables": [{"name": "clusters", "expression": _CLUSTERS}, {"name": "cluster", "expression": _CLUSTER}],
        "validations": [
            {"expression": holds, "messageExpression": refusal, "reason": "Forbidden"} for holds, refusal in checks
        ],
    }
    binding = _object(POLICY_BINDINGS, name, spec={"policyName": name, "validationActions": ["Deny"]})
    return _object(POLICIES, name, spec=spec), binding


def _rule(group: str, operations: Iterable[str], *resources: str) -> Obj:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": list(resources),
        "scope": "*",
    }


_CLUSTERS: Final = (
    f"{_OF_AGENT}.filter(group, group != '{CLUSTERS_GROUP}').map(group, group.substring(group.lastIndexOf(':') + 1))"
)
_CLUSTER: Final = (
    "variables.clusters.size() > 0 && variables.clusters.all(one, one == variables.clusters[0])"
    " ? variables.clusters[0] : ''"
)
"""The cluster of an agent, by its groups; empty, which is the name of nothing, if they name none or several."""


def policies() -> tuple[Obj, ...]:
    """Return the policies that confine agents, each with its binding."""
    kept = [
        _rule(WORKS, _WRITES, "manifestworks", "manifestworks/status", "manifestworkreplicasets"),
        _rule(ADDONS, _WRITES, "managedclusteraddons", "managedclusteraddons/status"),
        _rule(CLUSTERS, _WRITES, "addonplacementscores", "addonplacementscores/status"),
        _rule(CLUSTERS, _WRITES, "managedclusters", "managedclusters/status"),
        _rule("coordination.k8s.io", _WRITES, "leases"),
        _rule(GOVERNANCE, _WRITES, "policies", "policies/status"),
        _rule(QUERY.group, _WRITES, "applicationreports", QUERIES, f"{QUERIES}/status"),
    ]
    who = "'agent ' + request.userInfo.username + ' of cluster ' + variables.cluster"
    what = "request.resource.resource"
    own = f"{what} == 'managedclusters' ? request.name == variables.cluster : request.namespace == variables.cluster"
    elsewhere = f"{who} + ' may not write ' + {what} + ' of other clusters'"
    unchanged = (
        f"{what} != 'manifestworks' || request.operation != 'UPDATE' || "
        "(has(request.subResource) && request.subResource != '') || object.spec == oldObject.spec"
    )
    label, signer = f"object.metadata.labels['{CLUSTER_NAME}']", "object.spec.signerName"
    labelled = f"has(object.metadata.labels) && '{CLUSTER_NAME}' in object.metadata.labels"
    created = [_rule(_CSRS[0], ("CREATE",), _CSRS[1])]
    return (
        *_policy(
            "agents-of-clusters.syncline.dev",
            _IS_AGENT,
            kept,
            ((own, elsewhere), (unchanged, f"{who} + ' may not change what a ManifestWork says'")),
        ),
        *_policy(
            "requests-of-agents.syncline.dev",
            _IS_AGENT,
            created,
            (
                (
                    f"{labelled} && {label} == variables.cluster",
                    f"{who} + ' may request certificates for its cluster only: label {CLUSTER_NAME}'",
                ),
                (
                    f"{signer} == '{SIGNER}' || !{signer}.matches('^[^/]*kubernetes[.]io/')",
                    f"{who} + ' may not request certificates of signer ' + {signer}",
                ),
            ),
        ),
        *_policy(
            "requests-of-agents-that-join.syncline.dev",
            _JOINS,
            created,
            (
                (labelled, f"'a request of an agent that joins names its cluster in the label {CLUSTER_NAME}'"),
                (
                    f"{signer} == '{SIGNER}'",
                    f"'an agent that joins may not request certificates of signer ' + {signer}",
                ),
            ),
        ),
        *question_policy(),
    )


def question_policy() -> tuple[Obj, Obj]:
    """Return the policy of questions about pulled Applications: who asks is who is logged in, and may read the
    Application on the hub; for logs, as in Argo CD, that is a right of its own. Nothing may keep a question from being
    deleted. The role of the pull model installs it, too: it may run beside another hub's controllers."""
    app, who = "object.spec.application", "request.userInfo.username"
    check = f"authorizer.group('argoproj.io').resource('applications'){{}}.namespace({app}.namespace).name({app}.name)"
    allowed = check + ".check('get').allowed()"
    logs = allowed.format(".subresource('logs')")
    cannot = f"'user ' + {who} + ' may not get {{}} ' + {app}.name + ' in namespace ' + {app}.namespace"
    return _policy(
        "questions-about-applications.syncline.dev",
        "true",
        [_rule(QUERY.group, ("CREATE",), QUERIES)],
        (
            (f"object.spec.askedBy == {who}", f"'spec.askedBy must be the name of your user: ' + {who}"),
            (allowed.format(""), cannot.format("applications")),
            ("!has(object.metadata.finalizers)", "'a question has no finalizers: it expires'"),
            (f"object.spec.ask != 'logs' || {logs}", cannot.format("applications/logs")),
        ),
    )
