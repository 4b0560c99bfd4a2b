"""The Git server inside the cluster, and the repository that a Pattern wants there; pure.

Upstream's operator calls the server to copy ``gitSpec.originRepo`` into it, and writes its address into the Pattern.
Here a person pushes it: :func:`left_open` says where.
"""

from __future__ import annotations

from typing import Final

from syncline.kube.objects import dig
from syncline.patterns.installing.pattern import Pattern

NAMESPACE, SECRET, APPLICATION = "vp-gitea", "gitea-admin-secret", "gitea-in-cluster"
ADMINISTRATOR: Final = "gitea_admin"
ROUTE: Final = "gitea-route"


def wants_git_server(pattern: Pattern) -> bool:
    """Return whether a Pattern asks for a Git server: by its field, or because it names nothing but its origin."""
    return bool(pattern.git("originRepo")) and (_asked(pattern) or not pattern.git("targetRepo"))


def address(pattern: Pattern) -> str:
    """Return the URL of the server."""
    return f"https://{ROUTE}-{NAMESPACE}.{pattern.status('appClusterDomain') or 'DOMAIN'}"


def left_open(pattern: Pattern) -> str:
    """Return what a person has to do for the server's repository; empty if nothing."""
    if _asked(pattern) and not pattern.git("originRepo"):
        return "gitSpec.inClusterGitServer: gitSpec.originRepo names no repository for the Git server"
    target = pattern.git("targetRepo")
    if not wants_git_server(pattern) or target.startswith(f"{address(pattern)}/"):
        return ""
    name = pattern.git("originRepo").removesuffix("/").removesuffix(".git").rpartition("/")[2]
    where = f"{address(pattern)}/{ADMINISTRATOR}/{name} (login: Secret {NAMESPACE}/{SECRET})"
    named = f"name it in gitSpec.targetRepo in place of {target}" if target else "name it in gitSpec.targetRepo"
    return f"gitSpec.originRepo is not copied into the Git server of the cluster: push it to {where} and {named}"


def _asked(pattern: Pattern) -> bool:
    return dig(pattern.obj, "spec", "gitSpec", "inClusterGitServer") is True
