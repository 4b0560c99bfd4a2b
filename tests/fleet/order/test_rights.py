"""Who may write a FleetRollout: its status is the hub's alone; no role that is shipped for tenants writes its spec."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.assembly.test_deploy import DEPLOY, manifests
from tests.fleet.order.stage import ROLLOUTS, Stage

from syncline.assembly.fleet.agent import agent_user
from syncline.assembly.fleet.hub import HubSettings
from syncline.assembly.fleet.objects import foreign_hub_objects, spoke_objects
from syncline.assembly.fleet.pull import foreign_pull_objects
from syncline.cluster.access.rbac import Attributes, rules_of
from syncline.cluster.access.users import UserInfo
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.kube.client import Request
from syncline.kube.objects import Obj, name_of

WRITES = ("create", "update", "patch", "delete", "deletecollection")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MERGE = {"content-type": "application/merge-patch+json"}
OWNER = UserInfo("owner", ("system:authenticated",))


def writing(roles: list[Obj], subresource: str) -> set[str]:
    """Return the roles by which somebody may write the part of a FleetRollout; cluster-admin may do all."""
    asked = [Attributes(verb, "syncline.dev", "fleetrollouts", subresource, "argocd", "set") for verb in WRITES]
    found = {name_of(one) for one in roles for rule in rules_of(one) if any(map(rule.allows, asked))}
    return found - {"cluster-admin"}


@pytest.fixture(scope="module")
def shipped(stage: Stage) -> list[Obj]:
    """All roles of ``deploy/``, of what is installed on a foreign hub or cluster, and of our embedded hub."""
    files = [path.name for path in sorted(Path(DEPLOY).glob("*.yaml"))]
    objects = [one for name in files for one in manifests(name)]
    objects += [*foreign_hub_objects(), *spoke_objects(), *foreign_pull_objects(PullSettings())]
    hub = stage.fleet.hub
    objects += [
        {**one, "kind": kind} for kind in ("ClusterRole", "Role") for one in hub.get(f"{RBAC}/{kind.lower()}s")["items"]
    ]
    roles = [one for one in objects if one.get("kind") in ("ClusterRole", "Role")]
    assert len(roles) > 50 and HubSettings()
    return roles


BUILT_IN = {"system:controller:generic-garbage-collector", "system:controller:namespace-controller"}
"""They delete what lost its owner or its namespace, of any kind."""
OTHERS = {"syncline-applications"}
"""As Argo CD's controller has it, this one may do all: an administrator binds it, by a file of its own."""


def test_only_the_pull_role_of_the_hub_writes_the_status(shipped: list[Obj]) -> None:
    assert writing(shipped, "status") == {"syncline-pull", *BUILT_IN, *OTHERS}


def test_no_role_for_tenants_or_agents_writes_the_spec(shipped: list[Obj]) -> None:
    assert writing(shipped, "") == {"syncline-pull", *BUILT_IN, *OTHERS}


@pytest.fixture
def tenants(stage: Stage) -> Iterator[None]:
    """Users with the roles for people in the namespace of the Applications."""
    made = []
    for role in ("admin", "edit", "view"):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role}
        kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role}}
        path = f"{RBAC}/namespaces/argocd/rolebindings"
        stage.fleet.hub.send("POST", path, {**kind, "roleRef": reference, "subjects": [subject]})
        made.append(f"{path}/{role}")
    yield
    for path in made:
        stage.fleet.hub.send("DELETE", path)


def requests(name: str) -> list[Request]:
    of = {"kind": "ApplicationSet", "name": name}
    version = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetRollout"}
    permit = {"cluster": "c1", "application": f"{name}-c1", "permitted": "aa"}
    return [
        Request(
            "POST", ROLLOUTS, body={**version, "metadata": {"name": "mine"}, "spec": {"of": {**of, "name": "mine"}}}
        ),
        Request("PATCH", f"{ROLLOUTS}/{name}", headers=MERGE, body={"spec": {"skip": None, "stopped": None}}),
        Request("PATCH", f"{ROLLOUTS}/{name}/status", headers=MERGE, body={"status": {"clusters": [permit]}}),
        Request("DELETE", f"{ROLLOUTS}/{name}"),
        Request("DELETE", ROLLOUTS),
    ]


@pytest.mark.parametrize("who", ["admin", "edit", "view", "an agent"])
def test_a_tenant_or_an_agent_that_writes_a_roll_out_is_refused(stage: Stage, tenants: None, who: str) -> None:
    version = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetRollout", "metadata": {"name": "guarded"}}
    of = {"of": {"kind": "ApplicationSet", "name": "guarded"}}
    stage.fleet.hub.send("POST", ROLLOUTS, {**version, "spec": of})
    user = agent_user("c1", "agent1") if who == "an agent" else UserInfo(who, ("system:authenticated",))
    transport = stage.fleet.hub.core.transport(user)
    answers = [transport.send(one) for one in requests("guarded")]
    stage.fleet.hub.send("DELETE", f"{ROLLOUTS}/guarded")
    assert [one.status for one in answers] == [403] * 5


def test_who_may_write_the_spec_may_not_write_the_status(stage: Stage) -> None:
    """As docs/pull-model.md grants it to people who steer."""
    rules = [
        {"apiGroups": ["syncline.dev"], "resources": ["fleetrollouts"], "verbs": ["get", "update", "create", "patch"]}
    ]
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "steer"}}
    base = f"{RBAC}/namespaces/argocd"
    hub = stage.fleet.hub
    hub.send("POST", f"{base}/roles", {**kind, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "steer"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OWNER.name}
    hub.send(
        "POST", f"{base}/rolebindings", {**kind, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]}
    )
    transport = hub.core.transport(OWNER)
    made, spec, status, *_ = (transport.send(one).status for one in requests("mine"))
    for path in (f"{base}/roles/steer", f"{base}/rolebindings/steer", f"{ROLLOUTS}/mine"):
        hub.send("DELETE", path)
    assert (made, spec, status) == (201, 200, 403)
