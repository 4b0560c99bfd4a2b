"""Operations that people ask for: whether a sync, a rollback or an end may begin, and what it writes; pure.

Rules: Argo CD ``server/application/application.go`` (Sync, Rollback, TerminateOperation) and ``util/argo``
(SetAppOperation). A request to sync is given in the form of upstream's ``ApplicationSyncRequest``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syncline.argo.application import AppView
from syncline.argo.requests.refused import INVALID, UNKNOWN, Refused
from syncline.kube.objects import Obj, dig, is_terminating

COPIED = (("prune", "prune"), ("dryRun", "dryRun"), ("strategy", "syncStrategy"), ("resources", "resources"))
"""Fields of a request that an operation has too, by their name in each."""


def is_automated(app: Obj) -> bool:
    """Return whether the controller syncs this Application by itself."""
    automated = dig(app, "spec", "syncPolicy", "automated")
    return isinstance(automated, dict) and automated.get("enabled") is not False


def check_idle(app: Obj) -> None:
    """Raise :class:`Refused` if an operation is asked for or runs."""
    if app.get("operation"):
        raise Refused("another operation is already in progress")


def check_running(app: Obj) -> None:
    """Raise :class:`Refused` unless an operation runs."""
    if not app.get("operation") or not dig(app, "status", "operationState"):
        raise Refused("Unable to terminate operation. No operation is in progress", INVALID)


def check_local(app: Obj, asked: Obj) -> None:
    """Raise :class:`Refused` if manifests of the caller's own may not be synced."""
    if asked.get("manifests") and is_automated(app) and not asked.get("dryRun"):
        raise Refused("cannot use local sync when Automatic Sync Policy is enabled unless for dry run")


def check_stays(app: Obj) -> None:
    """Raise :class:`Refused` if the Application is being deleted."""
    if is_terminating(app):
        raise Refused("application is deleting")


def asked_revisions(app: Obj, asked: Obj) -> tuple[str, ...]:
    """Return the revision that a request names for each source, empty where it names none. Raises :class:`Refused`."""
    view = AppView(app)
    if not view.multi_source:
        return (str(asked.get("revision") or ""),)
    positions, revisions = list(asked.get("sourcePositions") or ()), list(asked.get("revisions") or ())
    found = [""] * len(view.sources)
    for at, position in enumerate(positions):
        if not 1 <= int(position) <= len(found) or at >= len(revisions):
            raise Refused("source position is out of range", UNKNOWN)
        found[int(position) - 1] = str(revisions[at])
    return tuple(found)


def others(app: Obj, revisions: Sequence[str]) -> list[int]:
    """Return the positions, from 0, of the sources for which a request names another revision than the spec."""
    wanted = AppView(app).revisions_wanted
    pairs = zip(revisions, wanted, strict=False)
    return [at for at, (asked, stays) in enumerate(pairs) if asked and asked != (stays or "HEAD")]


def check_revisions(app: Obj, revisions: Sequence[str]) -> None:
    """Raise :class:`Refused` if the controller would at once sync back from a revision to that of the spec."""
    view = AppView(app)
    for at in others(app, revisions) if is_automated(app) else ():
        what = f"source {view.sources[at].get('repoURL')} to" if view.multi_source else "to"
        stays = view.revisions_wanted[at]
        raise Refused(f"Cannot sync {what} {revisions[at]}: auto-sync currently set to {stays}")


def sync_options(app: Obj, asked: Obj) -> list[str]:
    """Return the sync options of a request, else those of the spec."""
    given = asked.get("syncOptions")
    return list((given.get("items") or ()) if given is not None else AppView(app).sync_options)


def replaces(options: Sequence[str]) -> bool:
    """Return whether a sync with these options replaces objects instead of changing them."""
    return "Replace=true" in options


def sync_operation(app: Obj, asked: Obj, revisions: Sequence[str], user: str) -> Obj:
    """Return the operation of a request; ``revisions``: one per source, empty for those of the spec."""
    view = AppView(app)
    sync: Obj = {field: asked[name] for name, field in COPIED if asked.get(name) not in (None, False, [])}
    if asked.get("manifests"):
        sync["manifests"] = list(asked["manifests"])
    options = sync_options(app, asked)
    if options:
        sync["syncOptions"] = options
    if view.multi_source:
        sync["sources"] = list(view.sources)
        sync |= {"revisions": list(revisions)} if any(revisions) else {}
    else:
        sync |= {"source": dict(view.sources[0])} if view.sources else {}
        sync |= {"revision": revisions[0]} if revisions and revisions[0] else {}
    operation: Obj = {"initiatedBy": initiated_by(user), "sync": sync}
    if asked.get("infos"):
        operation["info"] = list(asked["infos"])
    retry = asked.get("retryStrategy") or view.policy.get("retry")
    return operation | ({"retry": retry} if retry is not None else {})


def initiated_by(user: str) -> Obj:
    """Return who began an operation."""
    return {"username": user} if user else {}


def rollback_operation(app: Obj, deployment: int, user: str, *, prune: bool = False, dry_run: bool = False) -> Obj:
    """Return the operation that syncs to a deployment of the history, without hooks. Raises :class:`Refused`."""
    check_stays(app)
    if is_automated(app):
        raise Refused("rollback cannot be initiated when auto-sync is enabled")
    history: list[Obj] = dig(app, "status", "history", default=[]) or []
    entry: Any = next((one for one in history if one.get("id", 0) == deployment), None)
    if entry is None:
        view = AppView(app)
        qualified = f"{view.namespace}/{view.name}" if view.namespace else view.name
        raise Refused(f"application {qualified} does not have deployment with id {deployment}", INVALID)
    kept = {field: entry[field] for field in ("source", "sources", "revision", "revisions") if entry.get(field)}
    if not kept.get("source") and not kept.get("sources"):
        raise Refused("cannot rollback to revision deployed with Argo CD v0.11 or lower. sync to revision instead.")
    sync: Obj = {**kept, "syncStrategy": {"apply": {}}}
    sync |= {field: True for field, given in (("prune", prune), ("dryRun", dry_run)) if given}
    options = list(AppView(app).sync_options)
    return {"initiatedBy": initiated_by(user), "sync": sync | ({"syncOptions": options} if options else {})}


def begins(operation: Obj) -> Obj:
    """Return the merge patch that asks for an operation: the state of the last one goes."""
    return {"operation": operation, "status": {"operationState": None}}


TERMINATES: Obj = {"status": {"operationState": {"phase": "Terminating"}}}
"""The merge patch that ends the operation in progress."""
