"""Adds to a project its scoped repositories and clusters, whose Secrets name it; pure.

Called once per observation, before any permission check. Rules: ``GetAppProjectByName`` of Argo CD (reference
argocd-app §2.2): a repository of the project is one of its sources, a cluster of it one of its destinations, in the
namespaces that its Secret lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncline.argo.clusters import SECRET_TYPE, Cluster, secret_text
from syncline.kube.objects import Obj, dig, labels_of, name_of

_MEANINGFUL = frozenset("*?[]{}!\\")
"""Pattern characters: a URL with one of them is skipped, as it would permit more than itself."""


def with_scoped(project: Obj, secrets: Iterable[Obj], clusters: Iterable[Cluster]) -> Obj:
    """Add the scoped entries; without any, return the same object. ``secrets``: those of the control namespace."""
    name = name_of(project)
    repositories = [url for url in _repositories(secrets, name) if not _MEANINGFUL & set(url)]
    destinations = [
        {"server": cluster.server, "namespace": namespace}
        for cluster in clusters
        if cluster.project == name
        for namespace in cluster.namespaces or ("*",)
    ]
    if not repositories and not destinations:
        return project
    spec = dict(dig(project, "spec", default={}) or {})
    spec["sourceRepos"] = [*(spec.get("sourceRepos") or []), *repositories]
    spec["destinations"] = [*(spec.get("destinations") or []), *destinations]
    return project | {"spec": spec}


def _repositories(secrets: Iterable[Obj], project: str) -> Iterator[str]:
    for secret in secrets:
        if labels_of(secret).get(SECRET_TYPE) == "repository" and project:
            data = dig(secret, "data", default={}) or {}
            url = secret_text(data.get("url"))
            if url and secret_text(data.get("project")) == project:
                yield url
