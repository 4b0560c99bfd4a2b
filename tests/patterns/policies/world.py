"""A hub with its policies and two clusters in virtual time."""

from __future__ import annotations

from typing import Any

from tests.fleet.world import Fleet, Wrap

from syncline.assembly.fleet.policies import policies_role, policy_objects
from syncline.base.entropy import Entropy
from syncline.control.virtual import LoopActor
from syncline.kube.objects import Obj

POLICY = "/apis/policy.open-cluster-management.io/v1/namespaces/{}/policies"
CONFIGURATION = "/apis/policy.open-cluster-management.io/v1/namespaces/{}/configurationpolicies"
BINDING = "/apis/policy.open-cluster-management.io/v1/namespaces/{}/placementbindings"
SETS = "/apis/policy.open-cluster-management.io/v1beta1/namespaces/{}/policysets"
PLACEMENTS = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/{}/placements"
SET_BINDINGS = "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/{}/managedclustersetbindings"
GROUP = "policy.open-cluster-management.io"


class Policies(Fleet):
    """The role ``policies`` runs beside the hub; namespace ``policies`` has the set ``global`` bound and a Placement
    ``all``."""

    def __init__(self, *names: str, wrap: Wrap | None = None, role: bool = True) -> None:
        super().__init__()
        self._policies: LoopActor | None = None
        if role:
            self.start_policies(wrap)
        self.space("policies")
        for name in names:
            self.add(name)
        self.time.settle()

    def start_policies(self, wrap: Wrap | None = None) -> None:
        """Start the role, with an empty memory if it ran before."""
        if self._policies is not None:
            self.time.actors.remove(self._policies)
        role = policies_role(objects=tuple(policy_objects()), entropy=Entropy("policies"), embedded=True)
        self._policies = self.start_role(role, wrap=wrap)

    def space(self, name: str, placement: str = "all", **spec: Any) -> None:
        """Make a namespace with the global set and a Placement."""
        if self.hub.absent(f"/api/v1/namespaces/{name}"):
            self.hub.send("POST", "/api/v1/namespaces", made("v1", "Namespace", name))
        if self.hub.absent(f"{SET_BINDINGS.format(name)}/global"):
            bound = made("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding", "global", name)
            self.hub.send("POST", SET_BINDINGS.format(name), {**bound, "spec": {"clusterSet": "global"}})
        one = made("cluster.open-cluster-management.io/v1beta1", "Placement", placement, name)
        self.hub.send("POST", PLACEMENTS.format(name), {**one, "spec": spec})

    def post(self, obj: Obj) -> Obj:
        """Create an object of the policies' group on the hub."""
        plural = {"Policy": POLICY, "PlacementBinding": BINDING, "PolicySet": SETS}[obj["kind"]]
        return self.hub.send("POST", plural.format(obj["metadata"]["namespace"]), obj)

    def bind(self, *names: str, placement: str = "all", kind: str = "Policy", **more: Any) -> None:
        self.post(binding(names[0], *names, placement=placement, kind=kind, **more))

    def root(self, name: str) -> Obj:
        return self.hub.get(f"{POLICY.format('policies')}/{name}")

    def copy(self, name: str, cluster: str) -> Obj:
        """Return the copy on the hub."""
        return self.hub.get(f"{POLICY.format(cluster)}/policies.{name}")

    def messages(self, name: str, cluster: str, at: int = 0) -> list[str]:
        """Return the history of a template, the last first."""
        return [one["message"] for one in self.copy(name, cluster)["status"]["details"][at]["history"]]

    def patch(self, name: str, **spec: Any) -> Obj:
        return self.hub.send("PATCH", f"{POLICY.format('policies')}/{name}", {"spec": spec})


def made(version: str, kind: str, name: str, namespace: str = "") -> Obj:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def binding(name: str, *subjects: str, placement: str = "all", kind: str = "Policy", **more: Any) -> Obj:
    reference = {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": placement}
    named = [{"apiGroup": GROUP, "kind": kind, "name": one} for one in subjects]
    one = made(f"{GROUP}/v1", "PlacementBinding", name, "policies")
    return {**one, "placementRef": reference, "subjects": named, **more}


def template(name: str, *objects: Obj, action: str = "enforce", kind: str = "musthave", **spec: Any) -> Obj:
    """Return a ConfigurationPolicy for ``objects``; those with an ``objectDefinition`` are templates themselves."""
    listed = [
        one if "objectDefinition" in one else {"complianceType": kind, "objectDefinition": one} for one in objects
    ]
    given = {"remediationAction": action, "severity": "low", **spec}
    if "object-templates-raw" not in given:
        given["object-templates"] = listed
    return {**made(f"{GROUP}/v1", "ConfigurationPolicy", name), "spec": given}


def policy(name: str, *templates: Obj, **spec: Any) -> Obj:
    """Return a policy; a template with an ``objectDefinition`` is an entry itself."""
    entries = [one if "objectDefinition" in one else {"objectDefinition": one} for one in templates]
    one = made(f"{GROUP}/v1", "Policy", name, "policies")
    return {**one, "spec": {"disabled": False, "policy-templates": entries, **spec}}


def namespace(name: str, **labels: str) -> Obj:
    one = made("v1", "Namespace", name)
    return {**one, "metadata": {**one["metadata"], "labels": labels}} if labels else one
