"""The parent Application of a Pattern: it renders the cluster group. Pure.

Facts: validatedpatterns/patterns-operator 1bf5a2c3, ``argo.go`` (``newArgoApplication``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from syncline.control.plan import Replace
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj
from syncline.patterns.installing.checkout import Checkout
from syncline.patterns.installing.config import Places
from syncline.patterns.installing.pattern import LABEL, Pattern
from syncline.patterns.installing.sharedfiles import FilesRefused, shared_files

FOREGROUND: Final = "resources-finalizer.argocd.argoproj.io/foreground"
REF: Final = "patternref"
CHART: Final = "clustergroup"
RETRIES: Final = 20
DELETE_PATTERN: Final = "global.deletePattern"
CHILDREN_OF_HUB: Final = "DeleteHubChildApps"


def parent_application(pattern: Pattern, checkout: Checkout, places: Places) -> Obj:
    """Return the Application. ``checkout``: of the pattern's repository at its revision."""
    spec: Obj = {"destination": {"name": "in-cluster", "namespace": pattern.namespace}, "project": "default"}
    if pattern.multi_source:
        spec["sources"] = _sources(pattern, checkout, places)
    else:
        spec["source"] = _present(
            repoURL=pattern.git("targetRepo"),
            path="common/clustergroup",
            targetRevision=pattern.git("targetRevision"),
            helm=_helm(pattern, checkout, places, ""),
        )
    if policy := sync_policy(pattern):
        spec["syncPolicy"] = policy
    metadata = {
        "name": pattern.application_name,
        "namespace": places.argo_namespace,
        "labels": {LABEL: pattern.name},
        "finalizers": [FOREGROUND],
    }
    return {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "metadata": metadata, "spec": spec}


def value_files(pattern: Pattern, checkout: Checkout, prefix: str) -> list[str]:
    """Return the layers of values, later ones win; an unknown platform or version leaves its place empty."""
    group, version = pattern.group, pattern.status("clusterVersion")
    platform, cluster = pattern.status("clusterPlatform"), pattern.status("clusterName")
    folder = f"{prefix}/variants/{group}" if checkout.has_variants else prefix
    layers = (
        group,
        platform,
        f"{platform}-{version}",
        f"{platform}-{group}",
        f"{version}-{group}",
        cluster,
    )
    extra = [f"{prefix}/{one.removeprefix('/')}" for one in pattern.extra_files]
    return [f"{prefix}/values-global.yaml", *(f"{folder}/values-{one}.yaml" for one in layers), *extra]


def parameters(pattern: Pattern, checkout: Checkout, places: Places) -> list[Obj]:
    """Return the parameters of the chart, in order."""
    domain = pattern.status("appClusterDomain")
    listed = [
        ("global.pattern", pattern.name),
        ("global.namespace", pattern.namespace),
        ("global.repoURL", pattern.git("targetRepo")),
        ("global.originURL", pattern.git("originRepo")),
        ("global.targetRevision", pattern.git("targetRevision")),
        ("global.hubClusterDomain", domain),
        ("global.localClusterDomain", domain),
        ("global.clusterDomain", pattern.status("clusterDomain")),
        ("global.clusterVersion", pattern.status("clusterVersion")),
        ("global.clusterPlatform", pattern.status("clusterPlatform")),
        ("global.localClusterName", pattern.status("clusterName")),
        ("global.privateRepo", _said(bool(pattern.git("tokenSecret")))),
        ("global.multiSourceSupport", _said(pattern.multi_source)),
        ("global.multiSourceRepoUrl", pattern.text("multiSourceConfig", "helmRepoUrl")),
        ("global.experimentalCapabilities", pattern.text("experimentalCapabilities")),
        ("global.gitOpsSubNamespace", places.subscription_namespace),
        ("global.vpArgoNamespace", places.argo_namespace),
        ("global.multiSourceTargetRevision", _chart_version(pattern, checkout)),
    ]
    if checkout.has_variants:
        listed.append(("global.vpNewFolderDir", "true"))
    for name, value in pattern.extra_parameters:
        if all(name != known for known, _ in listed):  # one of a built-in's name changes nothing, as upstream
            listed.append((name, value))
    found = [_present(name=name, value=value) for name, value in listed]
    if pattern.deleting:
        phase = pattern.status("deletionPhase")
        value = "DeleteChildApps" if phase == CHILDREN_OF_HUB else phase
        found.append(_present(name=DELETE_PATTERN, value=value, forceString=True))
    return found


def application_differs(wanted: Obj, live: Obj) -> bool:
    """Return whether the parent Application is to be changed: sources and sync policy count, as upstream compares."""
    here, there = wanted["spec"], live.get("spec") or {}
    return any(_compared(here, part) != _compared(there, part) for part in ("source", "sources", "syncPolicy"))


def replaced(live: Obj, wanted: Obj, why: str) -> Replace:
    return Replace({**live, "spec": wanted["spec"]}, why)


def _compared(spec: Obj, part: str) -> Any:
    found = spec.get(part)
    if part != "syncPolicy":
        return found or None
    policy = found or {}
    automated = policy.get("automated")
    retry = policy.get("retry")
    return (
        None if automated is None else tuple(bool(automated.get(one)) for one in ("prune", "selfHeal", "allowEmpty")),
        tuple(policy.get("syncOptions") or ()),
        None if retry is None else retry.get("limit"),
    )


def _sources(pattern: Pattern, checkout: Checkout, places: Places) -> list[Obj]:
    revision = pattern.git("targetRevision")
    values = _present(repoURL=pattern.git("targetRepo"), targetRevision=revision, ref=REF)
    helm = _helm(pattern, checkout, places, f"${REF}")
    repository = pattern.text("multiSourceConfig", "clusterGroupGitRepoUrl")
    if repository:
        branch = pattern.text("multiSourceConfig", "clusterGroupChartGitRevision")
        return [values, _present(repoURL=repository, path=".", targetRevision=branch, helm=helm)]
    charts, version = pattern.text("multiSourceConfig", "helmRepoUrl"), _chart_version(pattern, checkout)
    return [values, _present(repoURL=charts, chart=CHART, targetRevision=version, helm=helm)]


def _helm(pattern: Pattern, checkout: Checkout, places: Places, prefix: str) -> Obj:
    files = value_files(pattern, checkout, prefix)
    given = parameters(pattern, checkout, places)
    pairs = [(str(one["name"]), str(one.get("value", ""))) for one in given]
    with contextlib.suppress(FilesRefused):  # upstream logs it and goes on; ``problems`` says it
        files += shared_files(checkout, value_files(pattern, checkout, ""), pairs, prefix)
    nested = "".join(f"  {name}: {value}\n" for name, value in pattern.extra_parameters)
    return {
        "valueFiles": files,
        "parameters": given,
        "values": f"extraParametersNested:\n{nested}",
        "ignoreMissingValueFiles": True,
    }


def problems(pattern: Pattern, checkout: Checkout, places: Places) -> str:
    """Return why the Application is made without shared value files; empty if it is made with them."""
    pairs = [(str(one["name"]), str(one.get("value", ""))) for one in parameters(pattern, checkout, places)]
    try:
        shared_files(checkout, value_files(pattern, checkout, ""), pairs, "")
    except FilesRefused as refused:
        return str(refused)
    return ""


def sync_policy(pattern: Pattern) -> Obj | None:
    """Return the sync policy of what a Pattern makes."""
    if pattern.deleting:
        return {"automated": {"prune": True}, "syncOptions": ["Prune=true"]}
    if pattern.manual_sync:
        return None
    return {"automated": {"selfHeal": True}, "retry": {"limit": RETRIES}}


def _chart_version(pattern: Pattern, checkout: Checkout) -> str:
    said = pattern.text("multiSourceConfig", "clusterGroupChartVersion")
    return said or ("0.9.*" if checkout.is_slim else "0.8.*")


def _said(value: bool) -> str:
    return "true" if value else "false"


def _present(**fields: Any) -> Obj:
    """Return the fields that are not empty; ``repoURL`` always."""
    kept: Mapping[str, Any] = {key: value for key, value in fields.items() if value or key == "repoURL"}
    return dict(kept)
