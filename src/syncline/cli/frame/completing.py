"""Shell completion of names: Applications, clusters, Placements, pools, nodes and so on.

While a shell completes, the group replaces an argument's type by :class:`Names`; nothing is imported before. Each
completion is one request to the kubeconfig's cluster, bounded in time and number; if it fails, nothing is completed and
no error is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from syncline.cli.access.connection import Connection
    from syncline.kube.objects import GVK

LIMIT_S = 2.0
"""Seconds that a shell waits at most."""
APPLICATIONS, SETS, PROJECTS, CLUSTERS, CONTEXTS = "applications", "applicationsets", "projects", "clusters", "contexts"
REPOSITORIES, CREDENTIALS, NODES, POOLS = "repositories", "credentials", "nodes", "pools"
CONFIGS, NAMESPACES = "machineconfigs", "namespaces"
MANAGED, PLACEMENTS, WORKS, ROLLOUTS = "managedclusters", "placements", "manifestworks", "rollouts"
POLICIES = "policies"
TARGETS = "targets"
"""Applications, and ApplicationSets as ``appset/NAME``."""
KINDS = {
    "app": {"name": APPLICATIONS, "names": APPLICATIONS},
    "appset": {"name": SETS, "names": SETS},
    "proj": {"name": PROJECTS, "names": PROJECTS, "project": PROJECTS},
    "cluster": {"wanted": CLUSTERS, "name": MANAGED, "names": MANAGED},
    "fleet": {"names": MANAGED},
    "placement": {"name": PLACEMENTS},
    "work": {"name": WORKS},
    "policy": {"name": POLICIES, "cluster": MANAGED},
    "rollout": {"name": ROLLOUTS, "cluster": MANAGED},
    "repo": {"url": REPOSITORIES, "urls": REPOSITORIES},
    "repocreds": {"urls": CREDENTIALS},
    "pool": {"name": POOLS, "names": POOLS},
    "node": {"name": NODES},
    "mc": {"name": CONFIGS, "names": POOLS, "pool_name": POOLS},
    "plan": {"target": TARGETS},
    "explain": {"words": TARGETS},
    "report": {"name": SETS},
    "context": {"name": CONTEXTS},
}
"""Group → argument → the kind of its names."""
OPTIONS = {
    "context": CONTEXTS,
    "app_namespace": NAMESPACES,
    "namespace": NAMESPACES,
    "dest_namespace": NAMESPACES,
    "dest_name": CLUSTERS,
    "project": PROJECTS,
    "projects": PROJECTS,
    "pool": POOLS,
    "clusters": MANAGED,
}
"""Option of any command → the kind of its names."""
NEW = {("app", "create"): None, ("proj", "create"): None, ("repo", "add"): None, ("node", "add"): None} | {
    ("cluster", "add"): CONTEXTS
}
"""Commands whose argument is a new name, or of another kind than in their group."""


class Names(click.types.StringParamType):
    """A parameter type: the name of an object in the cluster."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = in_time(lambda: names_for(self.kind, ctx.params), LIMIT_S)
        return [CompletionItem(name) for name in sorted(set(found)) if name.startswith(incomplete) and _plain(name)]


def complete_names(words: Sequence[str], command: click.Command) -> None:
    """Make the parameters of ``command`` (named by ``words``) complete names."""
    arguments = KINDS.get(words[0], {}) if words else {}
    for param in command.params:
        name = param.name or ""
        if isinstance(param, click.Argument):
            kind = NEW[key] if (key := tuple(words[:2])) in NEW else arguments.get(name)
        else:
            kind = OPTIONS.get(name)
        if kind and isinstance(param.type, click.types.StringParamType):
            param.type = Names(kind)


def in_time(ask: Callable[[], Iterable[str]], limit_s: float) -> list[str]:
    """Return the result of ``ask``, or [] if it fails or takes longer than ``limit_s`` seconds."""
    found: list[str] = []

    def run() -> None:
        try:
            found.extend(ask())
        except Exception:  # a completion never reports errors; the command does
            return

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(limit_s)
    return [] if asking.is_alive() else found


def names_for(kind: str, given: dict[str, object]) -> list[str]:
    """Return the names of a kind; ``given``: the parameters of the command line so far."""
    from syncline.cli.access.connection import Connection, default_kubeconfig
    from syncline.kube.transport.kubeconfig import named_contexts

    kubeconfig, context = (str(given.get(key) or "") or None for key in ("kubeconfig", "context"))
    if kind == CONTEXTS:
        return [one.name for one in named_contexts(kubeconfig or default_kubeconfig())]
    with Connection(kubeconfig, context) as link:
        usual = link.namespace if kind in (PLACEMENTS, WORKS, ROLLOUTS) else "argocd"
        return _listed(link, kind, str(given.get("app_namespace") or given.get("namespace") or usual))


def _listed(link: Connection, kind: str, namespace: str) -> list[str]:
    from syncline.cli.access.declared import declared, plain_fields
    from syncline.cli.frame.suggesting import MAX_NAMES
    from syncline.kube import client
    from syncline.kube.objects import name_of

    if kind == TARGETS:
        sets = (f"appset/{name}" for name in _listed(link, SETS, namespace))
        return [*_listed(link, APPLICATIONS, namespace), *sets]
    if kind == CLUSTERS:
        return ["in-cluster", *(plain_fields(one).get("name", "") for one in declared(link, namespace, "cluster"))]
    if kind in (REPOSITORIES, CREDENTIALS):
        label = "repository" if kind == REPOSITORIES else "repo-creds"
        return [plain_fields(one).get("url", "") for one in declared(link, namespace, label)]
    info = link.resource(_kind(kind))
    listed = link.ask(client.list_(info, namespace if info.namespaced else "", limit=MAX_NAMES))
    return [name_of(one) for one in listed.get("items") or []]


def _kind(kind: str) -> GVK:
    from syncline.kube.kinds.applicationset import APPLICATION_SET
    from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
    from syncline.kube.kinds.fleetrollouts import ROLLOUT
    from syncline.kube.kinds.governance import POLICY
    from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG, MACHINE_CONFIG_POOL
    from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER, PLACEMENT
    from syncline.kube.kinds.manifestworks import MANIFEST_WORK
    from syncline.kube.objects import GVK

    return {
        APPLICATIONS: APPLICATION,
        SETS: APPLICATION_SET,
        PROJECTS: APP_PROJECT,
        POOLS: MACHINE_CONFIG_POOL,
        CONFIGS: MACHINE_CONFIG,
        MANAGED: MANAGED_CLUSTER,
        PLACEMENTS: PLACEMENT,
        WORKS: MANIFEST_WORK,
        ROLLOUTS: ROLLOUT,
        POLICIES: POLICY,
        NODES: GVK("", "v1", "Node"),
        NAMESPACES: GVK("", "v1", "Namespace"),
    }[kind]


def _plain(name: str) -> bool:
    """Return whether a shell can insert the name as one word."""
    return bool(name) and name.isprintable() and not any(letter.isspace() for letter in name)
