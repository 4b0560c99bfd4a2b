"""Applications and AppProjects (reference clustergroup §8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syncline.clustergroup.facts import Facts
from syncline.clustergroup.printing import Printer, first, is_empty, printed
from syncline.kube.gotemplate.fmt import sprint
from syncline.kube.objects import Obj

REF = "$patternref"
"""How a source names the files of the pattern's own repository."""
WHAT = "clusterGroup.applications"
_PLAIN_GLOBALS = ("repoURL", "originURL", "targetRevision")
_QUOTED, _BY_HAND, _OR_EMPTY, _HUB = "quoted", "by hand", "or empty", "or that of the hub"
_GLOBALS = (
    *((name, "") for name in _PLAIN_GLOBALS),
    ("namespace", "$ARGOCD_APP_NAMESPACE"),
    *((name, "") for name in ("pattern", "clusterDomain", "localClusterName")),
    *((name, _BY_HAND) for name in ("clusterVersion", "clusterPlatform")),
    ("hubClusterDomain", ""),
    ("multiSourceSupport", _QUOTED),
    *((name, "") for name in ("multiSourceRepoUrl", "multiSourceTargetRevision")),
    ("localClusterDomain", _HUB),
    ("privateRepo", _QUOTED),
    ("experimentalCapabilities", _OR_EMPTY),
    ("deletePattern", ""),
    ("gitOpsSubNamespace", _OR_EMPTY),
    ("vpArgoNamespace", ""),
)
"""Global values that every chart gets as parameters, in order, and how each is printed."""
_EXTRA_FIELDS = (
    ("extraHubClusterDomainFields", "hubClusterDomain"),
    ("extraLocalClusterDomainFields", "localClusterDomain"),
    ("extraRepoURLFields", "$ARGOCD_APP_SOURCE_REPO_URL"),
    ("extraTargetRevisionFields", "$ARGOCD_APP_SOURCE_TARGET_REVISION"),
    ("extraNamespaceFields", "$ARGOCD_APP_NAMESPACE"),
    ("extraPatternNameFields", "pattern"),
)


def applications(facts: Facts) -> list[Obj]:
    """Return an Application for each entry that is not disabled; none while the pattern deletes its children."""
    if facts.shared.get("deletePattern") == "DeleteChildApps":
        return []
    out = facts.printer("plumbing/applications")
    live = [one for one in facts.applications if not is_empty(one) and is_empty(out.field(one, "disabled", WHAT))]
    return [_application(out, facts, one) for one in live]


def _application(out: Printer, facts: Facts, one: Obj) -> Obj:
    namespace = out.plain(facts.argo_namespace)
    destination = first(one.get("namespace"), facts.argo_namespace)
    spec: Obj = {
        "destination": {"name": out.plain(facts.group.get("targetCluster")), "namespace": out.plain(destination)},
        "project": out.plain(first(one.get("argoProject"), one.get("project"), "default")),
    }
    if is_empty(one.get("chartVersion")):
        spec["source"] = _source(out, facts, one)
    else:
        spec["sources"] = _sources(out, facts, one)
    if not is_empty(one.get("ignoreDifferences")):
        spec["ignoreDifferences"] = one["ignoreDifferences"]
    spec["syncPolicy"] = _sync_policy(facts, one)
    metadata: Obj = {
        "name": out.plain(one.get("name")),
        "namespace": namespace,
        "labels": {"validatedpatterns.io/pattern": out.plain(facts.shared.get("pattern"))},
        **out.annotations(one.get("annotations")),
        "finalizers": ["resources-finalizer.argocd.argoproj.io/foreground"],
    }
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def _what(out: Printer, one: Obj) -> Obj:
    return {key: out.plain(one.get(key)) for key in (("chart",) if not is_empty(one.get("chart")) else ("path",))}


def _source(out: Printer, facts: Facts, one: Obj) -> Obj:
    shared = facts.shared
    source: Obj = {
        "repoURL": out.plain(first(one.get("repoURL"), shared.get("repoURL"))),
        "targetRevision": out.plain(first(one.get("targetRevision"), shared.get("targetRevision"))),
        **_what(out, one),
    }
    if not is_empty(one.get("plugin")):
        return {**source, "plugin": one["plugin"]}
    return source if not is_empty(one.get("kustomize")) else {**source, "helm": _helm(out, facts, one, several=False)}


def _sources(out: Printer, facts: Facts, one: Obj) -> list[Obj]:
    shared = facts.shared
    chart: Obj = {
        "repoURL": out.plain(first(one.get("repoURL"), shared.get("multiSourceRepoUrl"))),
        **_what(out, one),
        "targetRevision": out.plain(one["chartVersion"]),
    }
    if is_empty(one.get("plugin")):
        chart["helm"] = _helm(out, facts, one, several=True)
    else:
        chart["plugin"] = one["plugin"]
    values = {key: out.plain(shared.get(key)) for key in ("repoURL", "targetRevision")}
    return [{**values, "ref": "patternref"}, chart]


def _helm(out: Printer, facts: Facts, one: Obj, *, several: bool) -> Obj:
    nested = _nested(out, facts)
    indent = "  " if several else "    "
    text = "".join(f'{indent}{name}: "{_escaped(value)}"\n' for name, value in nested)
    made: Obj = {
        "ignoreMissingValueFiles": True,
        "values": f"extraParametersNested:\n{text}",
        "valueFiles": list(_value_files(out, facts, one, several=several)),
        "parameters": list(_parameters(out, facts, one, nested)),
    }
    if not is_empty(one.get("fileParameters")):
        made["fileParameters"] = [
            {key: out.plain(out.field(each, key, f"{WHAT}: fileParameters")) for key in ("name", "path")}
            for each in out.each(one["fileParameters"], WHAT)
        ]
    return made


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _nested(out: Printer, facts: Facts) -> list[tuple[str, str]]:
    """Return the parameters that every child gets, as ``%s`` prints their values."""
    found = out.pairs(facts.values.get("extraParametersNested"), "extraParametersNested")
    return [(name, value if isinstance(value, str) else _verb_s(value)) for name, value in found]


def _verb_s(value: Any) -> str:
    kind = {bool: "bool", float: "float64"}.get(type(value))
    return f"%!s({kind}={printed(value)})" if kind else "%!s(<nil>)" if value is None else printed(value)


def _value_files(out: Printer, facts: Facts, one: Obj, *, several: bool) -> Iterator[Any]:
    shared, group = facts.shared, printed(facts.group.get("name"))
    platform, version, local = (
        None if is_empty(shared.get(key)) else printed(shared[key])
        for key in ("clusterPlatform", "clusterVersion", "localClusterName")
    )
    layers = (
        "global",
        group,
        platform,
        f"{platform}-{version}" if platform and version else None,
        f"{platform}-{group}" if platform else None,
        f"{version}-{group}" if version else None,
        local,
    )
    before = REF if several else ""
    for layer in layers:
        if layer is not None:
            yield out.inside(f"{before}/values-{layer}.yaml")
    for each in out.each(shared.get("extraValueFiles"), "global.extraValueFiles"):
        if several:
            yield out.inside(f"{REF}/{printed(each)}")
        else:
            yield out.quoted(each)
    more = (
        *out.each(facts.group.get("sharedValueFiles"), "clusterGroup.sharedValueFiles"),
        *out.each(one.get("extraValueFiles"), f"{WHAT}: extraValueFiles"),
    )
    for each in more:
        name = out.template(each, "value file")
        yield name if not several or name.startswith(f"{REF}/") else f"{REF}{name}"


def _parameters(out: Printer, facts: Facts, one: Obj, nested: list[tuple[str, str]]) -> Iterator[Obj]:
    shared = facts.shared
    for name, form in _GLOBALS:
        yield {"name": f"global.{name}", "value": _global(out, shared, name, form)}
    for key, source in _EXTRA_FIELDS:
        value = source if source.startswith("$") else out.plain(shared.get(source))
        for name in out.each(one.get(key), f"{WHAT}: {key}"):
            yield {"name": out.plain(name), "value": value}
    for name, text in nested:
        yield {"name": out.plain(name), "value": text}
    for each in out.each(one.get("overrides"), f"{WHAT}: overrides"):
        value = sprint(out.field(each, "value", WHAT))
        made = {"name": out.plain(each.get("name")), "value": out.template(value, "override")}
        yield {**made, "forceString": True} if not is_empty(each.get("forceString")) else made


def _global(out: Printer, shared: Obj, name: str, form: str) -> Any:
    value = shared.get(name)
    match form:
        case "by hand":
            return out.inside(value)
        case "quoted":
            return out.quoted(value)
        case "or empty":
            return out.plain(first(value, ""))
        case "or that of the hub":
            return out.plain(first(value, shared.get("hubClusterDomain")))
    return form or out.plain(value)


def _sync_policy(facts: Facts, one: Obj) -> Any:
    chosen = first(one.get("syncPolicy"), facts.options.get("syncPolicy"))
    word = chosen.lower() if isinstance(chosen, str) else ""
    if word == "manual":
        return None
    if word == "automatic" or chosen is None:
        limit = first(facts.options.get("applicationRetryLimit"), 20)
        return {"automated": {}, "retry": {"limit": limit}}
    return one.get("syncPolicy")


def projects(facts: Facts) -> list[Obj]:
    """Return the AppProjects; ``projects`` is the former name of ``argoProjects`` and wins."""
    out, group = facts.printer("plumbing/argoProjects"), facts.group
    given = first(group.get("projects"), group.get("argoProjects"))
    if isinstance(given, dict):
        namespace = facts.shared.get("vpArgoNamespace") if facts.plumbing else facts.argo_namespace
        return [_project(out, name, namespace, one) for name, one in out.pairs(given, "argoProjects")]
    return [_project(out, one, facts.argo_namespace, one) for one in out.each(given, "argoProjects")]


def _project(out: Printer, name: Any, namespace: Any, described: Any) -> Obj:
    everything = [{"group": "*", "kind": "*"}]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": out.plain(name), "namespace": out.plain(namespace)},
        "spec": {
            "description": out.inside(f"Pattern {printed(described)}"),
            "destinations": [{"namespace": "*", "server": "*"}],
            "clusterResourceWhitelist": everything,
            "namespaceResourceWhitelist": everything,
            "sourceRepos": ["*"],
        },
        "status": {},
    }
