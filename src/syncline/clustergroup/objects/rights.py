"""Accounts, roles and bindings: of Argo CD, of imperative jobs, and those of the dependency vp-rbac."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from syncline.clustergroup.defaults import RBAC
from syncline.clustergroup.facts import Facts
from syncline.clustergroup.printing import Printer, is_empty, printed
from syncline.kube.objects import Obj

GROUP: Final = "rbac.authorization.k8s.io"
READING: Final = ["get", "list", "watch"]
EVERYTHING: Final[list[Obj]] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
LOOKING: Final[list[Obj]] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": READING}]


def account(name: Any, namespace: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def role(kind: str, metadata: Obj, rules: Any) -> Obj:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def binding(metadata: Obj, kind: str, name: Any, accounts: Sequence[tuple[Any, Any]]) -> Obj:
    """Return a binding of a Role or ClusterRole to service accounts (name, namespace)."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if "namespace" in metadata else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": one, "namespace": where} for one, where in accounts],
    }


def argocd_rights(facts: Facts) -> list[Obj]:
    """Return who of Argo CD may do everything: that of the cluster, and the group's own."""
    out = facts.printer("plumbing/argocd-super-role")
    made = [_admins(out, printed(facts.shared.get("vpArgoNamespace")), None, ("application-controller", "server"))]
    if not facts.single:
        name = f"{printed(facts.group.get('name'))}-gitops"
        made.append(_admins(out, facts.own_namespace, name, ("application-controller", "server", "dex-server")))
    return made


def _admins(out: Printer, namespace: str, instance: str | None, parts: Sequence[str]) -> Obj:
    where = out.plain(namespace)
    accounts = [(out.plain(f"{instance or namespace}-argocd-{part}"), where) for part in parts]
    name = out.plain(f"{namespace}-cluster-admin-rolebinding")
    return binding({"name": name}, "ClusterRole", "cluster-admin", accounts)


def job_accounts(facts: Facts) -> list[Obj]:
    out, given = facts.printer("imperative/serviceaccount"), facts.imperative
    namespace = out.plain(given.get("namespace"))
    return [
        account(out.plain(given.get(name)), namespace) for create, name in _ACCOUNTS if not is_empty(given.get(create))
    ]


_ACCOUNTS: Final = (
    ("serviceAccountCreate", "serviceAccountName"),
    ("adminServiceAccountCreate", "adminServiceAccountName"),
)


def job_cluster_roles(facts: Facts) -> list[Obj]:
    out, given = facts.printer("imperative/clusterrole"), facts.imperative
    made = []
    if not is_empty(given.get("serviceAccountCreate")):
        own = given.get("clusterRoleYaml")
        rules = LOOKING if is_empty(own) else own
        made.append(role("ClusterRole", {"name": out.plain(given.get("clusterRoleName"))}, rules))
    if not is_empty(given.get("adminServiceAccountCreate")):
        made.append(role("ClusterRole", {"name": out.plain(given.get("adminClusterRoleName"))}, EVERYTHING))
    return made


def job_role(facts: Facts) -> list[Obj]:
    out, given = facts.printer("imperative/role"), facts.imperative
    metadata = {"name": out.plain(given.get("roleName")), "namespace": out.plain(given.get("namespace"))}
    own = given.get("roleYaml")
    return [role("Role", metadata, EVERYTHING if is_empty(own) else own)]


def job_bindings(facts: Facts) -> list[Obj]:
    out, given = facts.printer("imperative/rbac"), facts.imperative
    namespace = out.plain(given.get("namespace"))
    prefix = printed(given.get("namespace"))
    made = []
    if not is_empty(given.get("serviceAccountCreate")):
        who = [(out.plain(given.get("serviceAccountName")), namespace)]
        cluster, here = (out.plain(f"{prefix}-{one}") for one in ("cluster-rolebinding", "rolebinding"))
        made.append(binding({"name": cluster}, "ClusterRole", out.plain(given.get("clusterRoleName")), who))
        metadata = {"name": here, "namespace": namespace}
        made.append(binding(metadata, "Role", out.plain(given.get("roleName")), who))
    if not is_empty(given.get("adminServiceAccountCreate")):
        who = [(out.plain(given.get("adminServiceAccountName")), namespace)]
        name = out.plain(f"{prefix}-admin-clusterrolebinding")
        made.append(binding({"name": name}, "ClusterRole", out.plain(given.get("adminClusterRoleName")), who))
    return made


def vault_rights(facts: Facts) -> list[Obj]:
    """Return what lets the job that unseals run commands in the Vault's pod."""
    given = facts.imperative
    if not facts.unseals_vault or is_empty(given.get("serviceAccountCreate")):
        return []
    out = facts.printer("imperative/vault-exec-role")
    namespace = out.plain(given.get("vaultNamespace"))
    rules = [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"]}]
    who = [(out.plain(given.get("serviceAccountName")), out.plain(given.get("namespace")))]
    metadata = {"name": out.plain(f"{printed(given.get('namespace'))}-vault-exec-rolebinding"), "namespace": namespace}
    named = {"name": "vault-pod-exec", "namespace": namespace}
    return [role("Role", named, rules), binding(metadata, "Role", "vault-pod-exec", who)]


def _own(facts: Facts, key: str, part: str) -> list[tuple[Printer, str, Obj]]:
    """Return the live entries of a section of vp-rbac."""
    out = Printer(f"charts/vp-rbac/{part}", facts.values)
    section = facts.values.get(RBAC)
    given = section.get(key) if isinstance(section, dict) else None
    found = out.pairs(given, f"{RBAC}.{key}")
    return [(out, name, one) for name, one in found if is_empty(out.field(one, "disabled", f"{RBAC}.{key}"))]


def own_cluster_roles(facts: Facts) -> list[Obj]:
    found = _own(facts, "clusterRoles", "clusterroles")
    return [role("ClusterRole", {"name": out.plain(name)}, _rules(out, one)) for out, name, one in found]


def own_roles(facts: Facts) -> list[Obj]:
    return [
        role("Role", {"name": out.plain(name), "namespace": out.plain(one.get("namespace"))}, _rules(out, one))
        for out, name, one in _own(facts, "roles", "roles")
    ]


def _rules(out: Printer, one: Obj) -> list[Obj]:
    """Return rules, with everything and reading where they do not say what."""
    given = one.get("rules")
    if is_empty(given):
        return LOOKING
    base, what = LOOKING[0], f"{RBAC}: rules"
    optional = ("resourceNames", "nonResourceURLs")
    found = out.each(given, what)
    for rule in found:
        out.field(rule, "verbs", what)
    return [
        {**{key: rule.get(key, base[key]) for key in base}, **{key: rule[key] for key in optional if key in rule}}
        for rule in found
    ]


def own_accounts(facts: Facts) -> list[Obj]:
    made = []
    for out, name, one in _own(facts, "serviceAccounts", "serviceaccounts"):
        namespace, what = out.plain(one.get("namespace")), f"{RBAC}.serviceAccounts.{name}.roleBindings"
        made.append(account(out.plain(name), namespace))
        given, who = one.get("roleBindings"), [(out.plain(name), namespace)]
        for each in out.each(out.field(given, "roles", what), what):
            metadata = {"name": out.inside(f"{name}-{printed(each)}-rb"), "namespace": namespace}
            made.append(binding(metadata, "Role", out.quoted(each), who))
        for each in out.each(out.field(given, "clusterRoles", what), what):
            metadata = {"name": out.inside(f"{name}-{printed(each)}-crb")}
            made.append(binding(metadata, "ClusterRole", out.quoted(each), who))
    return made
