"""Reads and validates ``spec.sourceHydrator``: its sources and its output branch and folder; pure.

Rules: Argo CD ``SourceHydrator`` and ``validateSourceHydrator``; names of branches: ``git check-ref-format``.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from syncline.kube.objects import Obj
from syncline.sources.errors import SourceError
from syncline.sources.remote.address import parse_address

DRY_FIELDS = ("repoURL", "path", "targetRevision", "helm", "kustomize", "directory", "plugin")
MAX_BRANCH = 200
MAX_FOLDER = 500
_BAD_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|^[-/]|[/.]$|^@$|(?:^|/)\.|\.lock(?:/|$)")
_BAD_FOLDER = re.compile(r"[\x00-\x1f\x7f\\]")
GENERATED = ("manifest.yaml", "README.md", "hydrator.metadata")
"""Generated files in a folder; no other Application's folder may have one of these paths."""


AUTHOR, EMAIL = "Argo CD", "argo-cd@example.com"


@dataclass(frozen=True, slots=True)
class HydrationSettings:
    """Hydration settings of ``argocd-cm``; empty templates mean the defaults."""

    message: str = ""
    readme: str = ""
    author: str = AUTHOR
    email: str = EMAIL


@dataclass(frozen=True, slots=True, order=True)
class GroupKey:
    """Applications with equal keys are hydrated together into one commit."""

    dry_url: str
    dry_revision: str
    url: str
    branch: str

    @property
    def destination(self) -> tuple[str, str]:
        return self.url, self.branch


def _part(hydrator: Obj, name: str) -> Obj:
    found = hydrator.get(name)
    return found if isinstance(found, dict) else {}


def dry_source(hydrator: Obj) -> Obj:
    """Return the dry source in the form of an Application's ``source``."""
    dry = _part(hydrator, "drySource")
    return {"repoURL": "", **{field: dry[field] for field in DRY_FIELDS if field in dry}}


def sync_source(hydrator: Obj) -> Obj:
    """Return the sync source in the form of an Application's ``source``."""
    sync = _part(hydrator, "syncSource")
    return {
        "repoURL": str(sync.get("repoURL") or dry_source(hydrator)["repoURL"]),
        "path": str(sync.get("path") or ""),
        "targetRevision": str(sync.get("targetBranch") or ""),
    }


def target_branch(hydrator: Obj) -> str:
    """Return the branch to push to: the staging branch if set, else the sync branch."""
    staged = hydrator.get("hydrateTo")
    chosen = staged if isinstance(staged, dict) else _part(hydrator, "syncSource")
    return str(chosen.get("targetBranch") or "")


def _key(url: str) -> str:
    try:
        return parse_address(url).key
    except SourceError:
        return url


def group_key(hydrator: Obj) -> GroupKey:
    dry = dry_source(hydrator)
    revision = str(dry.get("targetRevision") or "HEAD")
    url = _key(sync_source(hydrator)["repoURL"])
    return GroupKey(_key(str(dry["repoURL"])), revision, url, target_branch(hydrator))


def clean_folder(path: str) -> str:
    """Normalize ``a//b/./c/`` to ``a/b/c``; empty for the root."""
    folder = posixpath.normpath(path.strip("/") or ".")
    return "" if folder == "." else folder


# -- what is wrong --------------------------------------------------------------------------------------------------


def hydrator_problems(hydrator: Obj) -> list[str]:
    """Return the errors of a hydrator that prevent a comparison, in upstream's words."""
    staged = hydrator.get("hydrateTo")
    required = {
        "spec.sourceHydrator.drySource.repoURL is required": dry_source(hydrator)["repoURL"],
        "spec.sourceHydrator.syncSource.targetBranch is required": sync_source(hydrator)["targetRevision"],
        "when spec.sourceHydrator.hydrateTo is set, spec.sourceHydrator.hydrateTo.targetBranch is required": (
            not isinstance(staged, dict) or staged.get("targetBranch")
        ),
    }
    return [text for text, found in required.items() if not found]


def branch_problem(branch: str, field: str) -> str:
    """Return why a branch name is invalid; empty if it is valid."""
    if branch == "HEAD" or branch.startswith("refs/"):
        return f"{field}: found {branch!r}, must be the name of a branch without refs/heads/"
    if len(branch) > MAX_BRANCH or _BAD_BRANCH.search(branch):
        return f"{field}: found {branch[:80]!r}, which no branch can be called"
    return ""


def folder_problem(hydrator: Obj) -> str:
    """Return why the folder of the sync source must not be written; empty if it may."""
    path = str(sync_source(hydrator)["path"])
    folder = clean_folder(path)
    if not folder:
        return (
            f'app is configured to hydrate to the repository root (branch "{target_branch(hydrator)}", path "{path}") '
            "which is not allowed"
        )
    field = "spec.sourceHydrator.syncSource.path"
    parts = folder.split("/")
    if ".." in parts or len(folder) > MAX_FOLDER or _BAD_FOLDER.search(folder):
        return f"{field}: found {path[:80]!r}, must be a folder of the repository"
    hidden = next((part for part in parts if part.startswith(".")), "")
    if hidden:
        return f"{field}: found {path[:80]!r}; folders such as {hidden} steer Git hosts, choose one without a dot"
    return ""
