"""A repository that is a Validated Pattern: values of cluster groups, and no Applications. Pure."""

from __future__ import annotations

from posixpath import basename

from syncline.kube.objects import Obj, dig
from syncline.kube.yaml.loading import YamlError, load
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.scenario import ScenarioError

PATTERN = "Pattern"
NAMESPACE = "openshift-operators"
CHART = "https://rehearsed.example/clustergroup.git"
CHART_FILES = Files({"Chart.yaml": b"apiVersion: v2\nname: clustergroup\nversion: 0.9.55\n"})
"""Stands for the chart of cluster groups, which is rendered without it (docs/patterns.md)."""
GLOBAL = "values-global.yaml"
ASSUMED = "global: {{pattern: {name}, singleArgoCD: true, secretStore: {{backend: none}}}}\n"

RBAC = "rbac.authorization.k8s.io"
BASIC_USER: tuple[Obj, ...] = (
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "basic-user"},
        "rules": [{"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["get", "list"]}],
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "basic-users"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "basic-user"},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}],
    },
)
"""What OpenShift lets every account see, as far as Jobs of patterns need it."""


def pattern_of(files: Files, name: str, repository: str) -> Obj | None:
    """Return the Pattern that a person would make of the repository; None if it is none. Raises ScenarioError (usage)
    if its group is not clear."""
    groups = {
        str(group["name"]): group
        for path in files.content
        if "/" not in path and basename(path).startswith("values-") and path.endswith(".yaml")
        if isinstance(group := dig(_values(files, path), "clusterGroup"), dict) and group.get("name")
    }
    if not groups:
        return None
    chosen = dig(_values(files, GLOBAL), "main", "clusterGroupName") if GLOBAL in files.content else None
    hubs = [group for group, value in groups.items() if value.get("isHubCluster")] or sorted(groups)
    if chosen is None and len(hubs) > 1:
        said = f"{name}: found the cluster groups {', '.join(sorted(groups))}; say in {GLOBAL}: main.clusterGroupName"
        raise ScenarioError(said, usage=True)
    spec: Obj = {
        "clusterGroupName": str(chosen or hubs[0]),
        "gitSpec": {"targetRepo": repository, "targetRevision": "main"},
        "multiSourceConfig": {"clusterGroupGitRepoUrl": CHART, "clusterGroupChartGitRevision": "main"},
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": "gitops.hybrid-cloud-patterns.io/v1alpha1",
        "kind": PATTERN,
        "metadata": metadata,
        "spec": spec,
    }


def completed(files: Files, name: str) -> Files:
    """Return the files with the global values that every pattern has; if they are missing, without a secret store."""
    return files if GLOBAL in files.content else files.changed({GLOBAL: ASSUMED.format(name=name)})


def _values(files: Files, path: str) -> object:
    try:
        return load(files.content[path], file=path)
    except YamlError:
        return None
