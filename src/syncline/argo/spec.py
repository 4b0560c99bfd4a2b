"""Normalizes and validates ``spec`` of an Application.

Pure. Specs are compared in the form of ``argo/typed.py``. Rules: ``NormalizeApplicationSpec`` and
``ValidatePermissions`` of Argo CD (reference argocd-app §§1.4, 1.8).
"""

from __future__ import annotations

from typing import Any

from syncline.argo.clusters import HERE, IN_CLUSTER_NAME, IN_CLUSTER_SERVER, Cluster, destination_of, own_clusters
from syncline.argo.conditions import Condition
from syncline.argo.hydrator import dry_source, hydrator_problems, sync_source
from syncline.argo.project import permits_app_namespace, permits_destination, permits_source
from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.sources.errors import SourceError
from syncline.sources.remote.address import parse_address

__all__ = ["IN_CLUSTER_NAME", "IN_CLUSTER_SERVER", "normalize_source", "validate_spec"]

TOOL_BLOCKS = ("helm", "kustomize", "directory")
KEPT_WHEN_EMPTY = (*TOOL_BLOCKS, "plugin", "automated", "retry", "managedNamespaceMetadata", "destination", "project")
"""Blocks whose presence has a meaning (pointers upstream), so empty ones stay."""
KEPT_BELOW: dict[str, Any] = {"automated": False, "drySource": "", "syncSource": ""}
"""Blocks whose fields are written even with this value."""


def _pruned(value: Any, kept: Any = None) -> Any:
    """Return the value without what Go's ``omitempty`` omits: empty strings, lists and maps, false, zero, null."""
    if isinstance(value, dict):
        fields = {key: _pruned(item, KEPT_BELOW.get(key, kept)) for key, item in value.items()}
        return {k: v for k, v in fields.items() if (k in KEPT_WHEN_EMPTY and v is not None) or _says(v, kept)}
    if isinstance(value, list):
        return [_pruned(item, kept) for item in value]
    return value


def _says(value: Any, kept: Any) -> bool:
    return value not in (None, "", [], {}, 0) or (kept is not None and value == kept and type(value) is type(kept))


def normalize_source(source: Obj) -> Obj:
    """Return one source without empty tool blocks."""
    kept: Obj = _pruned(source)
    return {key: value for key, value in kept.items() if key not in TOOL_BLOCKS or value}


def validate_spec(
    app: Obj, project: Obj | None, *, control_namespace: str, clusters: tuple[Cluster, ...] = (HERE,)
) -> list[Condition]:
    """Return every problem that prevents a comparison, as ``InvalidSpecError`` conditions."""
    destination = destination_of(app, clusters)
    found = [*_source_problems(app), *([destination] if isinstance(destination, str) else [])]
    name = str(dig(app, "spec", "project") or "default")
    if project is None:
        found.append(f"Application referencing project {name} which does not exist")
    else:
        cluster = HERE if isinstance(destination, str) else destination
        own = own_clusters(clusters, name)
        found += _project_problems(app, project, control_namespace, cluster, own)
    return [Condition("InvalidSpecError", message) for message in found]


def _hydrator(app: Obj) -> Obj | None:
    found = dig(app, "spec", "sourceHydrator")
    return found if isinstance(found, dict) else None


def _sources(app: Obj) -> list[Obj]:
    several = dig(app, "spec", "sources")
    single = dig(app, "spec", "source")
    return list(several) if several else ([single] if isinstance(single, dict) else [])


def _source_problems(app: Obj) -> list[str]:
    hydrator = _hydrator(app)
    if hydrator is not None:
        return hydrator_problems(hydrator)
    several = bool(dig(app, "spec", "sources"))
    problems: list[str] = []
    sources = _sources(app)
    if not sources:
        return ["spec.source.repoURL and either spec.source.path or spec.source.chart are required"]
    for source in sources:
        choices = [source.get("path"), source.get("chart"), *([source.get("ref")] if several else [])]
        if not source.get("repoURL") or not any(choices):
            problems.append("spec.source.repoURL and either spec.source.path or spec.source.chart are required")
        elif source.get("chart") and not source.get("targetRevision"):
            problems.append("spec.source.targetRevision is required if the manifest source is a helm chart")
    refs = [source["ref"] for source in sources if source.get("ref")]
    if len(refs) != len(set(refs)):
        problems.append("invalid sources: multiple sources had the same `ref` key")
    return problems


def _repositories(app: Obj) -> list[tuple[str, str]]:
    """Return the URLs that the project must permit, each with its name in messages."""
    hydrator = _hydrator(app)
    if hydrator is None:
        return [("application", str(one["repoURL"])) for one in _sources(app) if one.get("repoURL")]
    dry, synced = str(dry_source(hydrator)["repoURL"]), str(sync_source(hydrator)["repoURL"])
    listed = [("application", dry), *([("sync source", synced)] if synced != dry else [])]
    return [(what, repo) for what, repo in listed if repo]


def _no_address(repo: str) -> str:
    """Return why a URL has no normal form; empty if it has one."""
    try:
        parse_address(repo)
    except SourceError as error:
        return f"application repo: {error}"
    return ""


def _project_problems(
    app: Obj, project: Obj, control_namespace: str, cluster: Cluster, own: list[dict[str, str]]
) -> list[str]:
    problems: list[str] = []
    project_name = name_of(project)
    namespace = namespace_of(app)
    if not permits_app_namespace(project, namespace, control_namespace):
        problems.append(
            f"application '{name_of(app)}' in namespace '{namespace}' is not permitted to use project '{project_name}'"
        )
    for what, repo in _repositories(app):
        why = _no_address(repo)
        if why:
            problems.append(why)
        elif not permits_source(project, repo):
            problems.append(f"{what} repo {repo} is not permitted in project '{project_name}'")
    destination = dig(app, "spec", "destination", default={})
    server = str(destination.get("server") or "").rstrip("/") or cluster.server
    target = str(destination.get("namespace") or "")
    if not permits_destination(project, server, cluster.name, target, own):
        problems.append(
            f"application destination server '{server}' and namespace '{target}' do not match any of the allowed "
            f"destinations in project '{project_name}'"
        )
    return problems
