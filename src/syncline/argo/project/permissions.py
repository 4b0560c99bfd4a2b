"""The rules of an AppProject: sources, destinations, kinds, namespaces of applications; pure.

Called by spec validation, by the comparison (live objects that are not permitted are not ours) and by every reconcile
of a sync, always with the *current* project. Rules: ``app_project_types.go`` and ``validateSyncPermissions`` of Argo CD
(reference argocd-app §2.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from syncline.kube.objects import Obj, ResourceInfo, dig, gvk_of, name_of, namespace_of
from syncline.kube.text.glob import GlobError, ListStyle, glob_matches, list_matches, path_match, rule_matches
from syncline.sources.errors import SourceError
from syncline.sources.remote.address import address_pattern, parse_address


def _list(project: Obj, field: str) -> list[Any]:
    found = dig(project, "spec", field, default=[])
    return found if isinstance(found, list) else []


def permits_source(project: Obj, repo_url: str) -> bool:
    """Return whether the project permits a repository. Both sides are normalized; a matching deny entry wins, one that
    does not match permits. A URL without normal form is never permitted."""
    forms, aliases, whole = _forms(repo_url)
    permitted = False
    for pattern in _list(project, "sourceRepos"):
        denied = str(pattern).startswith("!")
        bare = address_pattern(str(pattern).removeprefix("!"))
        if denied:
            if any(glob_matches(bare, form, separators="/") for form in forms):
                return False
            if aliases and any(_denies_alias(bare, form) for form in aliases):
                return False
            permitted = permitted or bool(forms)
            continue
        bare = "" if _is_no_address(bare) else bare
        if forms and (bare == whole or any(rule_matches(bare, form, separators="/") for form in forms)):
            permitted = True
    return permitted


_ADDRESS = re.compile(r"(?P<scheme>[^/]*?)://(?P<place>[^/?#]*)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_PLACE = re.compile(r"[^{}\[\]^|\\`\s]*?(?::\d*)?|(?:[^@]*@)?\[[0-9a-f:.]*\](?::\d*)?")


def _is_no_address(pattern: str) -> bool:
    """Return whether Go's URL parser rejects the pattern: wildcards in scheme or port, alternatives or ranges in the
    host. As upstream, such a pattern permits nothing; a deny pattern is still applied."""
    found = _ADDRESS.match(pattern)
    if found is None:
        return False
    port = found["place"].rpartition("@")[2].rpartition(":")[2] if ":" in found["place"] else ""
    wild = bool(port.strip("0123456789")) and not found["place"].endswith("]")
    return wild or not _SCHEME.fullmatch(found["scheme"]) or not _PLACE.fullmatch(found["place"])


def _forms(repo_url: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return the spellings that a pattern may match, those that only a deny pattern may match, and the URL with its
    query; all empty without a normal form."""
    if not repo_url:
        return ("",), (), ""
    try:
        address = parse_address(repo_url)
    except SourceError:
        return (), (), ""
    return address.forms, address.aliases, address.with_query


def _denies_alias(pattern: str, form: str) -> bool:
    """Match a deny pattern against an alias; for ssh the user is ignored, as the repository is the same."""
    scheme, found, rest = pattern.partition("ssh://")
    bare = f"ssh://{rest.rpartition('@')[2]}" if found and not scheme else pattern
    return glob_matches(bare, form, separators="/")


def permits_destination(
    project: Obj,
    server: str,
    cluster_name: str,
    namespace: str,
    project_clusters: Sequence[Mapping[str, str]] = (),
) -> bool:
    """Return whether an application may deploy to a namespace of a cluster."""
    answers = [_answer(item, server, cluster_name, namespace) for item in _list(project, "destinations")]
    if False in answers or True not in answers:
        return False
    if not dig(project, "spec", "permitOnlyProjectScopedClusters"):
        return True
    return any(_is_cluster(cluster, server, cluster_name) for cluster in project_clusters)


def _is_cluster(cluster: Mapping[str, str], server: str, name: str) -> bool:
    return cluster.get("server") == server or (cluster.get("name") or "") == name


def _part(item: Obj, field: str) -> str:
    return str(item.get(field) or "")


def _answer(item: Obj, server: str, name: str, namespace: str) -> bool | None:
    """Return the result of one entry: True permits, False denies by a negated pattern (whatever the other entries say),
    None neither. A cluster without a name matches every denial by name."""
    item_server, item_name, item_namespace = (_part(item, field) for field in ("server", "name", "namespace"))
    by_name = bool(name) and rule_matches(item_name, name)
    by_server = bool(server) and rule_matches(item_server, server)
    inside = rule_matches(item_namespace, namespace)
    if (by_name or by_server) and inside:
        return True
    refused = _is_denial(item_name) and not by_name
    refused = refused or (_is_denial(item_server) and not by_server and inside)
    return False if refused or (_is_denial(item_namespace) and not inside and by_server) else None


def _is_denial(pattern: str) -> bool:
    return pattern.startswith("!")


def _path_matches(pattern: str, text: str) -> bool:
    try:
        return path_match(pattern, text)
    except GlobError:  # a pattern that does not compile never matches, as upstream
        return False


def _listed(entries: Sequence[Any], group: str, kind: str, name: str | None) -> bool:
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        same = _path_matches(_part(entry, "group"), group) and _path_matches(_part(entry, "kind"), kind)
        wanted = _part(entry, "name")
        if same and (name is None or not wanted or _path_matches(wanted, name)):
            return True
    return False


def permits_kind(project: Obj, group: str, kind: str, name: str, *, namespaced: bool) -> bool:
    """Return whether a kind is permitted: namespaced ones by default, cluster-scoped ones if listed; blacklists win."""
    return not kind_refusal(project, group, kind, name, namespaced=namespaced)


def kind_refusal(project: Obj, group: str, kind: str, name: str, *, namespaced: bool) -> str:
    """Return which list of the project refuses a kind; empty if none does."""
    scope, named = ("namespace", None) if namespaced else ("cluster", name)
    whitelist = dig(project, "spec", f"{scope}ResourceWhitelist")
    anything = namespaced and whitelist is None
    if not anything and not _listed(whitelist if isinstance(whitelist, list) else (), group, kind, named):
        return f"spec.{scope}ResourceWhitelist does not list {kind}"
    if _listed(_list(project, f"{scope}ResourceBlacklist"), group, kind, named):
        return f"spec.{scope}ResourceBlacklist lists {kind}"
    return ""


def permits_resource(
    project: Obj,
    group: str,
    kind: str,
    name: str,
    namespace: str,
    server: str,
    cluster_name: str,
    project_clusters: Sequence[Mapping[str, str]] = (),
) -> bool:
    """Return whether kind and namespace of a live object are permitted; an empty namespace means cluster-scoped."""
    if not permits_kind(project, group, kind, name, namespaced=bool(namespace)):
        return False
    return not namespace or permits_destination(project, server, cluster_name, namespace, project_clusters)


def sync_permission(
    project: Obj,
    obj: Obj,
    info: ResourceInfo | None,
    destination: Mapping[str, Any],
    project_clusters: Sequence[Mapping[str, str]] = (),
) -> str:
    """Return upstream's message why this object may not be synced; empty if it may. ``info`` None: the cluster does not
    know the kind."""
    gvk, name = gvk_of(obj), name_of(project)
    if info is None:
        return f"failed to get API resource info for {gvk.group}/{gvk.kind}: unable to verify permissions"
    if not permits_kind(project, gvk.group, gvk.kind, name_of(obj), namespaced=info.namespaced):
        return f"resource {gvk.group}:{gvk.kind} is not permitted in project {name}"
    if info.namespaced:
        namespace = namespace_of(obj) or str(destination.get("namespace") or "")
        server = str(destination.get("server") or "").rstrip("/") or "https://kubernetes.default.svc"
        cluster = str(destination.get("name") or "") or "in-cluster"
        if not permits_destination(project, server, cluster, namespace, project_clusters):
            return f"namespace {namespace} is not permitted in project '{name}'"
    return ""


def permits_app_namespace(project: Obj, namespace: str, control_namespace: str) -> bool:
    """Return whether Applications of a namespace may use the project; ``sourceNamespaces`` lists further namespaces."""
    if namespace in ("", control_namespace):
        return True
    return list_matches([str(p) for p in _list(project, "sourceNamespaces")], namespace, ListStyle.REGEXP)
