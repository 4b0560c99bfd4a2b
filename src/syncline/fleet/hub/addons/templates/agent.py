"""The agent that an AddOnTemplate describes, for one cluster: :func:`template_agent`; pure.

Rules: ``pkg/addon/templateagent`` of upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from syncline.fleet.addons import BUILT_IN, DEPLOYMENT_CONFIGS, TEMPLATES, config_kind
from syncline.fleet.hub.addons.agents import Agent, Permission, client_registration
from syncline.fleet.hub.addons.requests import Authority
from syncline.fleet.hub.addons.templates.decorating import Decoration, decorated, proxy_bundle
from syncline.fleet.hub.addons.templates.values import registries, substituted, variables
from syncline.kube.kinds.managedaddons import DEFAULT_NAMESPACE
from syncline.kube.objects import GroupKind, Obj, dig, gvk_of, name_of, namespace_of

HUB_NAMESPACE: Final = "open-cluster-management-hub"
AGENT: Final = "-agent"
"""What follows the name of an add-on in the name of its agent."""


def uses_template(addon: Obj, cluster_addon: Obj | None) -> bool:
    """Return whether the hub deploys an add-on by templates, as its ClusterManagementAddOn says; when that is gone, as
    the add-on says, whose hooks may still have to run. Both in v1alpha1."""
    supported = dig(cluster_addon, "spec", "supportedConfigs") or ()
    if cluster_addon is None:
        supported = dig(addon, "status", "configReferences") or ()
    return any(BUILT_IN.get(config_kind(one)) == TEMPLATES for one in supported)


def template_agent(cluster: Obj, addon: Obj, configs: Mapping[GroupKind, Obj | None]) -> Agent:
    """Return what the template of an add-on makes for a cluster. ``configs``: the desired template and deployment
    config; None: it is named and does not exist."""
    supported = tuple(BUILT_IN)
    template, at = configs.get(TEMPLATES), f"{namespace_of(addon)}/{name_of(addon)}"
    if template is None:
        named = TEMPLATES in configs
        why = (
            f"addon {name_of(addon)} template desired spec hash is empty"
            if named
            else f"addon {at} template not found in status"
        )
        return Agent(supported=supported, waits=why)
    config = configs.get(DEPLOYMENT_CONFIGS)
    if config is None and DEPLOYMENT_CONFIGS in configs:
        why = f"addon {name_of(addon)} deployment config desired spec hash is empty"
        return Agent(supported=supported, waits=why)
    spec = template.get("spec") or {}
    registrations = list(spec.get("registration") or ())
    manifests, problem = _manifests(cluster, addon, template, config or {})
    return Agent(
        manifests=manifests,
        configs=tuple(dig(spec, "agentSpec", "manifestConfigs") or ()),
        registrations=tuple(_registrations(addon, registrations)),
        permissions=tuple(_permissions(namespace_of(addon), registrations)),
        namespace=_namespace(template, config or {}),
        supported=supported,
        problem=problem,
    )


def _manifests(cluster: Obj, addon: Obj, template: Obj, config: Obj) -> tuple[tuple[Obj, ...], str]:
    values, environment = variables(cluster, template, config)
    try:
        how = Decoration(
            name_of(addon),
            environment,
            dig(template, "spec", "registration") or (),
            config.get("spec") or {},
            registries(cluster, config),
        )
        given = dig(template, "spec", "agentSpec", "workload", "manifests") or ()
        made = [decorated(substituted(one, values), how) for one in given]
        bundle = proxy_bundle(how)
    except ValueError as error:
        return (), str(error)
    return (*made, *((bundle,) if bundle else ())), ""


def _registrations(addon: Obj, given: Iterable[Obj]) -> Iterable[Obj]:
    own = client_registration(addon, name_of(addon) + AGENT)
    for one in given:
        if one.get("type") == "KubeClient":
            yield own
        elif one.get("customSigner"):
            signer = one["customSigner"]
            yield {"signerName": signer.get("signerName"), "subject": signer.get("subject") or own["subject"]}


def _permissions(cluster: str, given: Iterable[Obj]) -> Iterable[Permission]:
    for one in given:
        for each in dig(one, "kubeClient", "hubPermissions") or ():
            here, there = each.get("currentCluster") or {}, each.get("singleNamespace") or {}
            if each.get("type") == "CurrentCluster" and here:
                yield Permission(cluster, "ClusterRole", str(here.get("clusterRoleName")), owned=True)
            elif each.get("type") == "SingleNamespace" and there:
                role = there.get("roleRef") or {}
                yield Permission(str(there.get("namespace")), str(role.get("kind")), str(role.get("name")))


def _namespace(template: Obj, config: Obj) -> str:
    """Return the namespace of the agent: of the deployment config, else of the first Deployment or DaemonSet."""
    asked = dig(config, "spec", "agentInstallNamespace")
    if asked:
        return str(asked)
    manifests = dig(template, "spec", "agentSpec", "workload", "manifests") or ()
    for kind in ("Deployment", "DaemonSet"):
        for one in manifests:
            if gvk_of(one).group == "apps" and one.get("kind") == kind:
                return namespace_of(one)
    return DEFAULT_NAMESPACE


def authorities(configs: Mapping[GroupKind, Obj | None]) -> tuple[tuple[str, Authority], ...]:
    """Return the Secrets of the signers that a template names; without a namespace they are in the hub's own."""
    found = []
    for one in dig(configs.get(TEMPLATES), "spec", "registration") or ():
        signer = one.get("customSigner") or {}
        secret = signer.get("signingCA") or {}
        if one.get("type") == "CustomSigner" and secret.get("name"):
            at = Authority(str(secret.get("namespace") or HUB_NAMESPACE), str(secret["name"]))
            found.append((str(signer.get("signerName")), at))
    return tuple(found)
