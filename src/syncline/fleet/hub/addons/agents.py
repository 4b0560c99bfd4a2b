"""What an add-on's manager wants on one cluster, as data: :class:`Agent`. Templates and functions of users make it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from syncline.fleet.addons import ConfigKind, default_groups, default_user
from syncline.fleet.hub.addons.works import owner_of_work
from syncline.kube.kinds.addonversions import CLIENT_SIGNER
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.objects import Obj, dig, name_of, namespace_of, owner_references

RBAC: Final = "rbac.authorization.k8s.io"


class Health(Enum):
    """Who says whether the add-on runs."""

    WORKLOADS = "Customized"
    """Its works, by what they report of Deployments and DaemonSets."""
    LEASE = "Lease"
    """The agent on the cluster, by the lease that the add-on renews."""


@dataclass(frozen=True, slots=True)
class Permission:
    """A role that the agent has on the hub, in one namespace. ``owned``: the binding goes with the add-on."""

    namespace: str
    kind: str
    role: str
    owned: bool = False


@dataclass(frozen=True, slots=True)
class Agent:
    """``problem``: why there are no manifests; ``waits``: what must come first, so that nothing is written yet."""

    manifests: tuple[Obj, ...] = ()
    configs: tuple[Obj, ...] = ()
    """``manifestConfigs`` of the works: how manifests are applied, and what is reported of them."""
    registrations: tuple[Obj, ...] | None = None
    """As in ``status.registrations``; None: the agent has no access to the hub."""
    permissions: tuple[Permission, ...] = ()
    namespace: str = ""
    """Where it runs on the cluster; empty: where the add-on says."""
    supported: tuple[ConfigKind, ...] = ()
    health: Health = Health.WORKLOADS
    problem: str = ""
    waits: str = ""


def client_registration(addon: Obj, agent: str) -> Obj:
    """Return the registration of an agent as a client of the hub's API, under the names of the add-on."""
    cluster, name = namespace_of(addon), name_of(addon)
    subject = {"user": default_user(cluster, name, agent), "groups": default_groups(cluster, name)}
    return {"signerName": CLIENT_SIGNER, "subject": subject}


def bindings(addon: Obj, agent: Agent, registrations: Iterable[Obj]) -> list[Obj] | None:
    """Return the RoleBindings of an agent; None while it is not known who it is."""
    if not agent.permissions:
        return []
    client = next((one for one in registrations if one.get("signerName") == CLIENT_SIGNER), {})
    user, groups = dig(client, "subject", "user"), dig(client, "subject", "groups") or ()
    who = [("User", user)] if user else []
    who += [("Group", one) for one in groups if one != "system:authenticated"]
    if not who:
        return None
    subjects = [{"kind": kind, "apiGroup": RBAC, "name": name} for kind, name in who]
    return [_binding(addon, one, subjects) for one in agent.permissions]


def _binding(addon: Obj, permission: Permission, subjects: list[Obj]) -> Obj:
    name = f"open-cluster-management:{name_of(addon)}:{permission.kind.lower()}:agent"
    owner = {key: value for key, value in owner_of_work(addon).items() if key in ("apiVersion", "kind", "name", "uid")}
    labels = {ADDON_NAME: name_of(addon), "open-cluster-management.io/addon-template-name": ""}
    metadata: Obj = {"name": name, "namespace": permission.namespace, "labels": labels}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata | ({"ownerReferences": [owner]} if permission.owned else {}),
        "roleRef": {"apiGroup": RBAC, "kind": permission.kind, "name": permission.role},
        "subjects": subjects,
    }


def owned_by_parent(addon: Obj) -> bool:
    """Return whether the add-on has its ClusterManagementAddOn as owner."""
    return any(one.get("kind") == "ClusterManagementAddOn" for one in owner_references(addon))
