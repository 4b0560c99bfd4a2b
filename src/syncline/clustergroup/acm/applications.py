"""The policies that bring a managed cluster its group: an Application with the clusterGroup chart (§12)."""

from __future__ import annotations

from typing import Any, Final

from syncline.clustergroup.acm import onspoke
from syncline.clustergroup.acm.bundles import EXACTLY, Content, Names, bundle, placed
from syncline.clustergroup.acm.defaults import RETRIES
from syncline.clustergroup.acm.facts import GROUPS, Facts
from syncline.clustergroup.objects.applications import REF
from syncline.clustergroup.objects.rights import binding
from syncline.clustergroup.printing import Printer, first, is_empty, printed
from syncline.kube.gotemplate.fmt import sprintf
from syncline.kube.gotemplate.strconv import quote
from syncline.kube.objects import Obj

_NAMES: Final = Names("{}-clustergroup-policy", "{}-clustergroup-config", "{}-placement-binding", "{}-placement")
_QUOTED, _PHASE = "quoted", "phase of the deletion"
_GLOBALS: Final = (
    ("repoURL", ""),
    ("originURL", ""),
    ("targetRevision", ""),
    ("namespace", "$ARGOCD_APP_NAMESPACE"),
    ("pattern", ""),
    ("hubClusterDomain", ""),
    ("localClusterDomain", onspoke.APPS_DOMAIN),
    ("clusterDomain", onspoke.DOMAIN),
    ("clusterVersion", onspoke.VERSION),
    ("localClusterName", onspoke.NAME),
    ("clusterPlatform", onspoke.PLATFORM),
    ("multiSourceSupport", _QUOTED),
    ("multiSourceRepoUrl", ""),
    ("multiSourceTargetRevision", ""),
    ("privateRepo", _QUOTED),
    ("experimentalCapabilities", ""),
    ("deletePattern", _PHASE),
    ("gitOpsSubNamespace", ""),
    ("vpArgoNamespace", ""),
)
"""Global values that the group's chart gets as parameters, in order: printed, or looked up on the cluster."""
_IGNORED: Final[list[Obj]] = [
    {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]},
    {"group": "route.openshift.io", "kind": "Route", "jsonPointers": ["/status"]},
]


def policies(facts: Facts) -> list[Obj]:
    """Return the policies of all groups; none while the clusters' applications are deleted with them."""
    out, made = facts.printer("policies/application-policies"), []
    for group in facts.groups(out):
        if facts.deletes(out, "DeleteSpoke"):
            continue
        children = facts.deletes(out, "DeleteChildApps", "DeleteSpokeChildApps")
        content = Content(
            [(EXACTLY, _admins(out, facts)), (EXACTLY, _application(out, facts, group))],
            more={"pruneObjectBehavior": "DeleteIfCreated"} if children else {},
        )
        made += bundle(out, _NAMES, group.get("name"), content, placed(out, group))
    return made


def _admins(out: Printer, facts: Facts) -> Obj:
    namespace = printed(facts.argo_namespace)
    where = out.plain(namespace)
    who = [(out.plain(f"{namespace}-argocd-{part}"), where) for part in ("application-controller", "server")]
    return binding({"name": out.plain(f"{namespace}-cluster-admin-rolebinding")}, "ClusterRole", "cluster-admin", who)


def _application(out: Printer, facts: Facts, group: Obj) -> Obj:
    shared, name = facts.shared, group.get("name")
    several = not is_empty(shared.get("multiSourceSupport"))
    own = sprintf("%s-%s", shared.get("pattern"), name)
    namespace = own if is_empty(shared.get("singleArgoCD")) else facts.argo_namespace
    pattern = out.plain(shared.get("pattern"))
    metadata: Obj = {
        "name": out.plain(f"{printed(shared.get('pattern'))}-{printed(name)}"),
        "namespace": out.plain(facts.argo_namespace),
        "annotations": {
            "notice.argocd.argoproj.io/severity": "info",
            "notice.argocd.argoproj.io/content": "App of Apps",
        },
        "labels": {"validatedpatterns.io/pattern": pattern},
        "finalizers": ["resources-finalizer.argocd.argoproj.io/foreground"],
    }
    spec: Obj = {
        "project": "default",
        **({"sources": _sources(out, facts, group)} if several else {"source": _source(out, facts, group)}),
        "destination": {"server": "https://kubernetes.default.svc", "namespace": out.plain(namespace)},
        "info": [{"name": "VP", "value": "https://validatedpatterns.io APP OF APPS"}],
        "syncPolicy": _sync_policy(out, facts),
        "ignoreDifferences": _IGNORED,
    }
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def _sync_policy(out: Printer, facts: Facts) -> Obj:
    options = facts.shared.get("options")
    limit = first(out.field(options, "applicationRetryLimit", "global.options"), float(RETRIES))
    retry: Obj = {"limit": out.plain(limit)}
    backoff = out.field(options, "applicationRetryBackoff", "global.options")
    if not is_empty(backoff):
        retry["backoff"] = {
            "duration": out.quoted(out.field(backoff, "duration", "global.options.applicationRetryBackoff")),
            "factor": out.plain(backoff.get("factor")),
            "maxDuration": out.quoted(backoff.get("maxDuration")),
        }
    return {"automated": {"prune": not facts.deletes(out, "none"), "selfHeal": True}, "retry": retry}


def _repository(out: Printer, facts: Facts, group: Obj) -> Obj:
    keys = ("repoURL", "targetRevision")
    return {key: out.plain(first(group.get(key), facts.shared.get(key))) for key in keys}


def _source(out: Printer, facts: Facts, group: Obj) -> Obj:
    path = out.plain(first(group.get("path"), "common/clustergroup"))
    return {**_repository(out, facts, group), "path": path, "helm": _helm(out, facts, group, "")}


def _sources(out: Printer, facts: Facts, group: Obj) -> list[Obj]:
    shared, config = facts.shared, out.reach(facts.values, "main", "multiSourceConfig")
    given = {} if is_empty(config) else config
    url = out.field(given, "clusterGroupGitRepoUrl", "main.multiSourceConfig")
    revision = given.get("clusterGroupChartGitRevision")
    chart: Obj = {
        "repoURL": out.plain(first(url, shared.get("multiSourceRepoUrl"))),
        "targetRevision": out.plain(first(revision, shared.get("multiSourceTargetRevision"))),
        **({"path": "."} if "clusterGroupGitRepoUrl" in given else {"chart": "clustergroup"}),
        "helm": _helm(out, facts, group, REF),
    }
    return [{**_repository(out, facts, group), "ref": REF[1:]}, chart]


def _helm(out: Printer, facts: Facts, group: Obj, before: str) -> Obj:
    """``before``: what value files begin with."""
    found = out.pairs(facts.values.get("extraParametersNested"), "extraParametersNested")
    nested = [(name, sprintf("%s", value)) for name, value in found]
    text = "".join(f"  {name}: {quote(value)}\n" for name, value in nested)
    more = out.each(group.get("extraValueFiles"), f"{GROUPS}: extraValueFiles")
    made: Obj = {
        "ignoreMissingValueFiles": True,
        "values": f"extraParametersNested:\n{text}",
        "valueFiles": [*_value_files(out, group.get("name"), before), *(out.quoted(one) for one in more)],
        "parameters": _parameters(out, facts, group, nested),
    }
    if not is_empty(files := group.get("fileParameters")):
        made["fileParameters"] = [
            {"name": out.plain(out.field(one, "name", GROUPS)), "path": out.plain(one.get("path"))}
            for one in out.each(files, f"{GROUPS}: fileParameters")
        ]
    return made


def _value_files(out: Printer, name: Any, before: str) -> list[Any]:
    group, platform, version = printed(name), onspoke.PLATFORM, onspoke.VERSION
    return [
        f"{before}/values-global.yaml",
        out.inside(f"{before}/values-{group}.yaml"),
        f"{before}/values-{platform}.yaml",
        f"{before}/values-{platform}-{version}.yaml",
        out.single(f"{before}/values-{platform}-{group}.yaml"),
        out.single(f"{before}/values-{version}-{group}.yaml"),
        f"{before}/values-{onspoke.NAME}.yaml",
    ]


def _parameters(out: Printer, facts: Facts, group: Obj, nested: list[tuple[str, str]]) -> list[Obj]:
    made = [{"name": f"global.{name}", "value": _global(out, facts, name, form)} for name, form in _GLOBALS]
    made.append({"name": "clusterGroup.name", "value": out.plain(group.get("name"))})
    made += ({"name": out.plain(name), "value": value} for name, value in nested)
    for one in out.each(group.get("helmOverrides"), f"{GROUPS}: helmOverrides"):
        name = out.plain(out.field(one, "name", f"{GROUPS}: helmOverrides"))
        made.append({"name": name, "value": out.quoted(one.get("value"))})
    return made


def _global(out: Printer, facts: Facts, name: str, form: str) -> Any:
    value = facts.shared.get(name)
    if form == _PHASE:
        return "DeleteChildApps" if facts.deletes(out, "DeleteSpokeChildApps") else out.plain(value)
    return out.quoted(value) if form == _QUOTED else form or out.plain(value)
