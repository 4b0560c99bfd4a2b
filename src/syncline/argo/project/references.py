"""The rule which objects a project's Applications may reference: see, wait for and hold; pure.

Checked before any read of the cluster, so the result is the same whether the object exists or not. Called for each
reference in a repository, an Application or an operation to an object outside its own manifests: conditions, other
Applications, pools, status rows. An object is judged by project and destination like the Application's own; Secrets are
always refused (DECISIONS 37, 38, 58).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from syncline.argo.clusters import HERE, Cluster
from syncline.argo.project.permissions import kind_refusal, permits_app_namespace, permits_destination
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, name_of
from syncline.kube.text.glob import glob_matches

POOLS = "syncline.dev/pools"
"""Annotation of an AppProject: pools that its Applications may hold and resume; names or globs, by comma."""
MAX_POOL_PATTERNS = 100
DEFAULT_PROJECT = "default"
SECRETS = ("secret", "secrets", "secretlist")
CORE = ("", "core", "v1")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?|")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?|")
_NAME = re.compile(r"(?!\.{1,2}$)[^/%\s\x00-\x1f\x7f]{1,253}")
_PARTS = (("group", _GROUP), ("kind", _KIND), ("namespace", _NAMESPACE), ("name", _NAME))


def _unknown(_kind: GroupKind) -> bool | None:
    return None


@dataclass(frozen=True)
class Reach:
    """The reach of a project at a destination. ``project`` None: it does not exist, and nothing is permitted."""

    project: Obj | None
    cluster: Cluster = HERE
    project_clusters: tuple[Mapping[str, str], ...] = ()
    namespaced: Callable[[GroupKind], bool | None] = _unknown
    """Scope of a kind at the destination; None: the kind is not served there, so it has no objects."""

    def refuses(self, ref: ObjectRef) -> str:
        """Return why an Application may not see or wait for this object; empty if it may."""
        for (part, pattern), found in zip(_PARTS, ref, strict=True):
            if not pattern.fullmatch(found):
                return f"found {part} {found[:80]!r}, which no object can have"
        if ref.kind.lower() in SECRETS and ref.group.lower() in CORE:
            return (
                f"{_refused(self.project, ref)}: Secrets are refused in every project; "
                "wait for what makes it (an ExternalSecret, a Certificate)"
            )
        return self.refuses_own(ref)

    def refuses_own(self, ref: ObjectRef) -> str:
        """Return why this object cannot be one of the Application's own; empty if it can."""
        if self.project is None:
            return "its project does not exist"
        scope = self.namespaced(ref.group_kind)
        namespaced = bool(ref.namespace) if scope is None else scope
        rule = kind_refusal(self.project, ref.group, ref.kind, ref.name, namespaced=namespaced)
        if not rule and namespaced:
            rule = self._namespace_rule(ref.namespace)
        elif not rule and self.cluster.namespaces and not self.cluster.cluster_resources:
            rule = f"clusterResources of the Secret of cluster {self.cluster.name} is not true"
        return f"{_refused(self.project, ref)}: {rule}" if rule else ""

    def _namespace_rule(self, namespace: str) -> str:
        cluster = self.cluster
        if not permits_destination(self.project or {}, cluster.server, cluster.name, namespace, self.project_clusters):
            return f"spec.destinations does not permit namespace {namespace!r} of cluster {cluster.name}"
        if cluster.namespaces and namespace not in cluster.namespaces:
            return f"namespaces of the Secret of cluster {cluster.name} does not list {namespace!r}"
        return ""

    def sees_application(self, other: Obj, ref: ObjectRef) -> bool:
        """Return whether ``other`` is in the same project, or could be an object of ours (an app of apps)."""
        if self.project is None:
            return False
        same = str(dig(other, "spec", "project") or DEFAULT_PROJECT) == name_of(self.project)
        return same or not self.refuses(ref)

    def of_applications(self, home: Cluster, app_namespace: str, control_namespace: str) -> Reach:
        """Return the project's reach among local Applications; empty if this one may not use the project."""
        allowed = self.project is not None and permits_app_namespace(self.project, app_namespace, control_namespace)
        return Reach(self.project if allowed else None, home, self.project_clusters, _namespaced)

    def holds(self, pool: str) -> bool:
        """Return whether its Applications may hold and resume this pool."""
        return not self.refuses_hold(pool)

    def refuses_hold(self, pool: str) -> str:
        """Return why its Applications may not hold this pool; empty if they may."""
        if self.project is None:
            return "its project does not exist"
        text = annotations_of(self.project).get(POOLS)
        if text is None and name_of(self.project) == DEFAULT_PROJECT:
            return ""
        patterns = [part.strip() for part in (text or "").split(",")][:MAX_POOL_PATTERNS]
        if any(glob_matches(pattern, pool) for pattern in patterns if pattern):
            return ""
        found = "is not set" if text is None else "does not name it"
        return f"project {name_of(self.project)} may not hold pool {pool}: its annotation {POOLS} {found}"


def _namespaced(_kind: GroupKind) -> bool:
    return True


def _refused(project: Obj | None, ref: ObjectRef) -> str:
    where = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
    kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
    name = name_of(project) if project is not None else ""
    return f"project {name} does not permit {kind} {where}"
