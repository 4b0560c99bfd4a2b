"""The policies that bring managed clusters the hub's certificate authorities and a private repository's credentials."""

from __future__ import annotations

from typing import Any, Final

from syncline.clustergroup.acm import onspoke
from syncline.clustergroup.acm.bundles import EXACTLY, Content, Names, bundle, hub_only, placed
from syncline.clustergroup.acm.facts import Facts
from syncline.clustergroup.printing import Printer, is_empty, printed
from syncline.kube.objects import Obj


def _named(start: str) -> Names:
    return Names(*(f"{start}-{part}" for part in ("policy", "config", "placement-binding", "placement")))


_GROUPS_ARGO: Final = _named("hub-argo-ca-{}")
_VAULT: Final = Names(
    "{}-acm-hub-ca-policy",
    "{}-acm-hub-ca-config-policy",
    "{}-acm-hub-ca-policy-placement-binding",
    "{}-acm-hub-ca-policy-placement",
)
_CLUSTERS_ARGO: Final = Names(
    "{}-hub-argo-ca-gitops-policy",
    "{}-hub-argo-ca-gitops-config",
    "{}-hub-argo-ca-gitops-policy-binding",
    "{}-hub-argo-ca-gitops-policy-placement",
)
_CREDENTIALS: Final = _named("private-{}")
_ON_HUB: Final = _named("vp-private-hub")._replace(config="private-hub-config")
_SECRET_READERS: Final = ("external-secrets", "golang-external-secrets")


def _bundle_map(namespace: Any) -> Obj:
    metadata = {"name": "trusted-hub-bundle", "namespace": namespace}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": onspoke.AUTHORITIES}


def authorities(facts: Facts) -> list[Obj]:
    """Return the policies of a hub: for the groups' Argo CDs, for the Vault's clients, for the clusters' Argo CDs."""
    out = facts.printer("policies/acm-hub-ca-policy")
    return [made for one in facts.groups(out) for made in _of_group(out, facts, one)] if facts.is_hub(out) else []


def _of_group(out: Printer, facts: Facts, group: Obj) -> list[Obj]:
    name, shared, made = group.get("name"), facts.shared, []
    if is_empty(shared.get("singleArgoCD")):
        own = out.plain(f"{printed(shared.get('pattern'))}-{printed(name)}")
        made += bundle(out, _GROUPS_ARGO, name, Content([(EXACTLY, _bundle_map(own))]), placed(out, group))
    store = shared.get("secretStore")
    backend = None if store is None else out.field(store, "backend", "global.secretStore")
    if not out.same(backend, "vault", "global.secretStore.backend"):
        return made
    secret: Obj = {
        "kind": "Secret",
        "apiVersion": "v1",
        "type": "Opaque",
        "metadata": {"name": "hub-ca", "namespace": onspoke.SECRETS_NAMESPACE},
        "data": onspoke.SECRET_AUTHORITIES,
    }
    vault = Content([(EXACTLY, secret), (EXACTLY, _bundle_map("imperative"))], include=_SECRET_READERS)
    made += bundle(out, _VAULT, name, vault, placed(out, group))
    argo = Content([(EXACTLY, _bundle_map(out.plain(facts.argo_namespace)))])
    return [*made, *bundle(out, _CLUSTERS_ARGO, name, argo, placed(out, group))]


def credentials(facts: Facts) -> list[Obj]:
    """Return the policies that copy a private repository's Secret: from the hub's Argo CD, and to each group's."""
    out, shared = facts.printer("policies/private-repo-policies"), facts.shared
    if is_empty(shared.get("privateRepo")):
        return []
    made: list[Obj] = []
    for group in facts.groups(out):
        own = f"{printed(shared.get('pattern'))}-{printed(group.get('name'))}"
        places = (facts.argo_namespace, own)
        copies = [(EXACTLY, _credentials(out.plain(one), onspoke.HUBS_CREDENTIALS)) for one in places]
        made += bundle(out, _CREDENTIALS, group.get("name"), Content(copies), placed(out, group))
    if facts.is_hub(out):
        source = f'{{{{copySecretData "{printed(facts.argo_namespace)}" "{onspoke.REPOSITORY}"}}}}'
        copy = _credentials(onspoke.HUB_NAMESPACE, out.single(source))
        made += bundle(out, _ON_HUB, "", Content([(EXACTLY, copy)]), hub_only())
    return made


def _credentials(namespace: Any, data: Any) -> Obj:
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    metadata = {"name": onspoke.REPOSITORY, "namespace": namespace, "labels": labels}
    return {"kind": "Secret", "apiVersion": "v1", "type": "Opaque", "metadata": metadata, "data": data}
