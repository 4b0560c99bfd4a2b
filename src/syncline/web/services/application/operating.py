"""Starts and ends operations of Applications, and shows their sync windows: :class:`Operating`.

Rules: Argo CD ``server/application/application.go`` (Sync, Rollback, TerminateOperation, GetApplicationSyncWindows).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.argo.access.vocabulary import ENFORCES_ROLLBACK
from syncline.argo.application import AppView
from syncline.argo.project import SyncWindow, WindowError, can_sync, matching_windows, read_windows
from syncline.argo.requests.operations import (
    TERMINATES,
    asked_revisions,
    begins,
    check_idle,
    check_local,
    check_revisions,
    check_running,
    check_stays,
    others,
    replaces,
    rollback_operation,
    sync_operation,
    sync_options,
)
from syncline.gitops.application.observing.observe import LOCAL_UNSIGNED, signed_only
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.objects import Obj, dig, name_of, namespace_of, resource_version
from syncline.sources.errors import SourceError
from syncline.sources.git.mirrors import Freshness, moment
from syncline.web.access import Caller, require
from syncline.web.auditing import user_of
from syncline.web.services.application.checking import Checked, refusals, setting
from syncline.web.state import APPLICATIONS
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

COMMIT = re.compile(r"[0-9a-f]{40}")
SHOWN = ("kind", "schedule", "duration", "manualSync")
"""Fields of a sync window that are shown."""
OVERRIDE = "application.sync.requireOverridePrivilegeForRevisionSync"
NO_REPLACE = "sync with replace was disabled on the API Server level via the server configuration"


@dataclass(frozen=True, slots=True)
class Operating:
    """The methods of operations; see :meth:`handlers`."""

    checked: Checked

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        service = "/application.ApplicationService/"
        return {
            service + "Sync": self.sync,
            service + "Rollback": self.rollback,
            service + "TerminateOperation": self.terminate,
            service + "GetApplicationSyncWindows": self.windows,
        }

    async def sync(self, call: Call, asked: Obj) -> Obj:
        """Ask for a sync; the controller carries it out."""
        app = await self._find(call.caller, "get", asked)
        project = self.checked.project(app)
        self._check_windows(project, app)
        self._require(call.caller, "sync", app)
        if asked.get("manifests"):
            self._require(call.caller, "override", app)
        with refusals():
            check_local(app, asked)
            check_stays(app)
            wanted = asked_revisions(app, asked)
        if others(app, wanted) and setting(self.checked.parts.state.data("argocd-cm"), OVERRIDE):
            self._require(call.caller, "override", app)
        with refusals():
            check_revisions(app, () if asked.get("dryRun") else wanted)
        resolved = (
            [] if asked.get("manifests") else [await self._resolved(app, at, one) for at, one in enumerate(wanted)]
        )
        allowed = self.checked.parts.state.data("argocd-cmd-params-cm").get("server.sync.replace.allowed", "true")
        if replaces(sync_options(app, asked)) and allowed.lower() == "false":
            raise RpcError(Code.FAILED_PRECONDITION, NO_REPLACE)
        if asked.get("manifests") and signed_only(project, AppView(app).sources):
            raise RpcError(Code.FAILED_PRECONDITION, LOCAL_UNSIGNED)
        operation = sync_operation(app, asked, [sha for sha, _ in resolved], user_of(call.caller))
        found = await self._write(app, begins(operation), check_idle)
        part = "partial " if asked.get("resources") else ""
        to = "locally" if asked.get("manifests") else f"to {','.join(shown for _, shown in resolved)}"
        await self.checked.record(call.caller, found, "OperationStarted", f"initiated {part}sync {to}")
        return found

    async def rollback(self, call: Call, asked: Obj) -> Obj:
        """Ask for a sync to a deployment of the history."""
        enforced = setting(self.checked.parts.state.data("argocd-cm"), ENFORCES_ROLLBACK)
        app = await self._find(call.caller, "rollback" if enforced else "sync", asked)
        self.checked.project(app)
        deployment = int(asked.get("id") or 0)
        flags = {"prune": bool(asked.get("prune")), "dry_run": bool(asked.get("dryRun"))}
        with refusals():
            operation = rollback_operation(app, deployment, user_of(call.caller), **flags)
        found = await self._write(app, begins(operation), check_idle)
        await self.checked.record(call.caller, found, "OperationStarted", f"initiated rollback to {deployment}")
        return found

    async def terminate(self, call: Call, asked: Obj) -> Obj:
        """Ask for the end of the operation in progress."""
        app = await self._find(call.caller, "sync", asked)
        self.checked.project(app)
        found = await self._write(app, TERMINATES, check_running)
        await self.checked.record(call.caller, found, "ResourceUpdated", "terminated running operation")
        return {}

    async def windows(self, call: Call, asked: Obj) -> Obj:
        """Return the sync windows of an Application, and whether a person may sync it now."""
        app = await self._find(call.caller, "get", asked)
        entries = matching_windows(dig(self.checked.project(app), "spec", "syncWindows", default=[]) or [], app)
        now = self.checked.parts.clock.now()
        try:
            read = read_windows(entries)
        except WindowError as error:
            raise RpcError(Code.UNKNOWN, f"invalid sync windows: {error}") from None
        active = [entry for entry, window in zip(entries, read, strict=True) if window.is_active(now)]
        return {
            "activeWindows": _shown(active),
            "assignedWindows": _shown(entries),
            "canSync": can_sync(read, now, manual=True),
        }

    def _check_windows(self, project: Obj, app: Obj) -> None:
        entries = matching_windows(dig(project, "spec", "syncWindows", default=[]) or [], app)
        try:
            read: Sequence[SyncWindow] = read_windows(entries)
        except WindowError as error:
            raise RpcError(Code.PERMISSION_DENIED, f"cannot sync: invalid sync window: {error}") from None
        if not can_sync(read, self.checked.parts.clock.now(), manual=True):
            raise RpcError(Code.PERMISSION_DENIED, "cannot sync: blocked by sync window")

    def _require(self, caller: Caller, action: str, app: Obj) -> None:
        require(self.checked.parts.access, caller, "applications", action, self.checked.finder.right_of(app))

    async def _find(self, caller: Caller, action: str, asked: Obj) -> Obj:
        where = asked.get("appNamespace", ""), asked.get("name", "")
        return await self.checked.finder.permitted(caller, action, asked.get("project", ""), *where)

    async def _resolved(self, app: Obj, at: int, asked: str) -> tuple[str, str]:
        """Return what a revision names now, and how the event of the operation shows it. Raises :class:`RpcError`."""
        view = AppView(app)
        source = view.sources[at] if at < len(view.sources) else {}
        revision = asked or str(source.get("targetRevision") or "")
        if not source.get("chart") and COMMIT.fullmatch(revision):
            return revision, revision
        freshness = Freshness(self.checked.parts.clock.now(), wanted=moment())
        url = str(source.get("repoURL") or "")
        try:
            found = await self.checked.parts.content.ask(
                view.project, url, lambda reader: reader.sources.resolve(source, revision, view.project, freshness)
            )
        except SourceError as error:
            raise RpcError(Code.FAILED_PRECONDITION, f"error resolving repo revision: {error}") from None
        return found.sha, f"{revision or 'HEAD'} ({found.sha})"

    async def _write(self, app: Obj, patch: Obj, check: Callable[[Obj], None]) -> Obj:
        """Apply a merge patch once ``check`` permits it."""
        state, where = self.checked.parts.state, (namespace_of(app), name_of(app))

        async def write(known: Obj) -> Obj:
            with refusals():
                check(known)
            body = {**patch, "metadata": {"resourceVersion": resource_version(known)}}
            return await state.write(APPLICATIONS, client.patch, *where, PatchType.MERGE, body)

        return await self.checked.written(app, write)


def _shown(entries: Sequence[Mapping[str, Any]]) -> list[Obj]:
    empty = {"kind": "", "schedule": "", "duration": "", "manualSync": False}
    return [{field: entry.get(field) or empty[field] for field in SHOWN} for entry in entries]
