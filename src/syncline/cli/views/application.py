"""Formats an Application: rows, header, operation block. Values in, text out; no requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from syncline.argo.project import WindowError, can_sync, matching_windows, read_windows
from syncline.cli.frame.output import table
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import Obj, ObjectRef, dig, meta, namespace_of, owner_references
from syncline.views.applications import (
    conditions_text,
    duration_text,
    health_text,
    policy_text,
    repo_of,
    short_revision,
    sources_of,
    sync_text,
)

RESOURCE_HEADERS = ("GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE")
LIST_HEADERS = ("NAME", "CLUSTER", "NAMESPACE", "PROJECT", "STATUS", "HEALTH", "SYNCPOLICY", "CONDITIONS")
WIDE_HEADERS = ("REPO", "PATH", "TARGET")
LABEL_WIDTH = 20
"""Width of the labels of ``app get``, as argocd prints them."""


def app_rows(apps: list[Obj], *, wide: bool) -> str:
    """Return the table of ``app list``."""
    rows = []
    for app in apps:
        destination = dig(app, "spec", "destination", default={})
        row = [
            f"{meta(app).get('namespace')}/{meta(app).get('name')}",
            destination.get("name") or destination.get("server") or "",
            destination.get("namespace") or "",
            dig(app, "spec", "project", default="default"),
            dig(app, "status", "sync", "status", default="Unknown"),
            dig(app, "status", "health", "status", default="Unknown"),
            policy_text(app),
            conditions_text(app),
        ]
        if wide:
            source = (sources_of(app) or [{}])[0]
            row += [repo_of(source), source.get("path") or "", source.get("targetRevision") or "HEAD"]
        rows.append(row)
    return table([*LIST_HEADERS, *(WIDE_HEADERS if wide else ())], rows)


def resource_rows(app: Obj) -> list[tuple[str, ...]]:
    """Return the rows of the last operation, then those of other resources.

    A hook or pruned row shows its phase as STATUS and its result code as HEALTH (behaviour 97).
    """
    rows: dict[tuple[str, ...], list[str]] = {}
    for resource in dig(app, "status", "resources", default=[]):
        key = tuple(str(resource.get(part) or "") for part in ("group", "kind", "namespace", "name"))
        health = dig(resource, "health", "status", default="")
        rows[key] = [*key, str(resource.get("status") or ""), health, "", ""]
    ordered: list[tuple[str, ...]] = []
    for result in dig(app, "status", "operationState", "syncResult", "resources", default=[]):
        key = tuple(str(result.get(part) or "") for part in ("group", "kind", "namespace", "name"))
        message = str(result.get("message") or "")
        known = rows.pop(key, None) or rows.pop((*key[:2], "", key[3]), None)
        if result.get("hookType") or result.get("status") == "Pruned" or known is None:
            phase, code = str(result.get("hookPhase") or ""), str(result.get("status") or "")
            ordered.append((*key, phase, code, str(result.get("hookType") or ""), message))
        else:
            ordered.append((*known[:6], "", message))
    return ordered + [tuple(row) for row in rows.values()]


def line_of(label: str, value: str) -> str:
    """Return a line of ``app get``: a label and a value."""
    return f"{label + ':':<{LABEL_WIDTH}}{value}"


def source_lines(app: Obj) -> list[str]:
    """Return the lines of the sources of an Application, or of a template of one."""
    lines = []
    for index, source in enumerate(sources_of(app)):
        lines += ["Source:"] if index == 0 else []
        lines += [
            line_of("- Repo", repo_of(source)),
            line_of("  Target", str(source.get("targetRevision") or "")),
            line_of("  Path", str(source.get("path") or source.get("chart") or "")),
        ]
    return lines


def set_ref_of(app: Obj) -> ObjectRef | None:
    """Return the ApplicationSet that controls an Application; None if none does."""
    owner = next((one for one in owner_references(app) if one.get("controller")), {})
    found = owner.get("kind") == APPLICATION_SET.kind and owner.get("name")
    return ObjectRef(*APPLICATION_SET.group_kind, namespace_of(app), str(found)) if found else None


def set_text(app: Obj) -> str:
    """Return ``NAMESPACE/NAME`` of the ApplicationSet that controls an Application; empty if none does."""
    ref = set_ref_of(app)
    return f"{ref.namespace}/{ref.name}" if ref is not None else ""


def describe_app(app: Obj, windows: Sequence[str] = (), *, resources: bool = True, made_by: str = "") -> str:
    """Return the text of ``app get``; ``windows``: from :func:`windows_lines`; ``made_by``: its set and row, where they
    are known."""
    destination = dig(app, "spec", "destination", default={})
    lines = [
        line_of("Name", f"{meta(app).get('namespace')}/{meta(app).get('name')}"),
        *([line_of("ApplicationSet", made_by)] if (made_by := made_by or set_text(app)) else []),
        line_of("Project", dig(app, "spec", "project", default="default")),
        line_of("Server", str(destination.get("server") or destination.get("name") or "")),
        line_of("Namespace", str(destination.get("namespace") or "")),
    ]
    lines += source_lines(app)
    lines += windows
    automated = policy_text(app)
    lines.append(
        line_of("Sync Policy", {"Auto": "Automated", "Auto-Prune": "Automated (Prune)"}.get(automated, "Manual"))
    )
    lines += [line_of("Sync Status", sync_text(app)), line_of("Health Status", health_text(app))]
    conditions = dig(app, "status", "conditions", default=[])
    if conditions:
        rows = [(c.get("type"), c.get("message"), c.get("lastTransitionTime") or "") for c in conditions]
        lines += ["", table(("CONDITION", "MESSAGE", "LAST TRANSITION"), rows)]
    block = operation_block(app)
    if block:
        lines += ["", block]
    rows_ = resource_rows(app) if resources else []
    if rows_:
        lines += ["", table(RESOURCE_HEADERS, [[cell or " " for cell in row] for row in rows_])]
    return "\n".join(lines)


def parameter_rows(source: Obj) -> str:
    """Return the Helm parameters of a source; long values are cut."""
    parameters = dig(source, "helm", "parameters", default=[])
    return table(("NAME", "VALUE"), [(str(one.get("name")), str(one.get("value"))[:80]) for one in parameters])


def windows_lines(project: Obj | None, app: Obj, now: datetime) -> list[str]:
    """Return the state of the project's windows for this Application now, in argocd's words. Invalid windows are
    reported, as is an unreadable project (None)."""
    if project is None:
        return [line_of("SyncWindow", "Unknown")]
    entries = matching_windows(dig(project, "spec", "syncWindows", default=[]), app)
    try:
        mine = list(zip(entries, read_windows(entries), strict=True))
    except WindowError as error:
        return [line_of("SyncWindow", f"Sync Denied ({error})")]
    windows = [window for _, window in mine]
    if can_sync(windows, now, manual=False):
        state = "Sync Allowed"
    else:
        state = "Manual Allowed" if can_sync(windows, now, manual=True) else "Sync Denied"
    lines = [line_of("SyncWindow", state)]
    if mine:
        texts = [":".join(str(entry.get(key) or "") for key in ("kind", "schedule", "duration")) for entry, _ in mine]
        lines.append(line_of("Assigned Windows", ",".join(texts)))
    return lines


def history_text(app: Obj, *, ids_only: bool = False) -> str:
    """Return the table of ``app history``: one per repository, oldest deployment first."""
    entries = dig(app, "status", "history", default=[])
    if ids_only:
        return "\n".join(str(entry.get("id")) for entry in entries)
    by_repo: dict[str, list[tuple[str, str, str]]] = {}
    for entry in entries:
        sources = entry.get("sources") or [entry.get("source") or {}]
        revisions = entry.get("revisions") or [entry.get("revision") or ""]
        for source, revision in zip(sources, revisions):
            where = str(source.get("chart") or "")
            repo = f"{repo_of(source)}{'/' + where if where else ''}"
            row = (str(entry.get("id")), str(entry.get("deployedAt") or ""), _deployed(source, str(revision)))
            by_repo.setdefault(repo, []).append(row)
    blocks = [f"SOURCE  {repo}\n{table(('ID', 'DATE', 'REVISION'), rows)}" for repo, rows in by_repo.items()]
    return "\n\n".join(blocks)


def _deployed(source: Obj, revision: str) -> str:
    target, short = str(source.get("targetRevision") or ""), short_revision(revision)
    return short if target in ("", revision) else f"{target} ({short})"


def operation_block(app: Obj) -> str:
    """Return the result of the last operation; empty if there was none."""
    state = dig(app, "status", "operationState")
    if not state:
        return ""
    result = state.get("syncResult") or {}
    revision = str(result.get("revision") or ",".join(result.get("revisions") or []))
    lines = [
        line_of("Operation", "Sync"),
        line_of("Sync Revision", revision),
        line_of("Phase", str(state.get("phase") or "")),
    ]
    lines.append(line_of("Start", str(state.get("startedAt") or "")))
    if state.get("finishedAt"):
        lines.append(line_of("Finished", str(state["finishedAt"])))
        lines.append(line_of("Duration", duration_text(state)))
    lines.append(line_of("Message", str(state.get("message") or "")))
    return "\n".join(lines)
