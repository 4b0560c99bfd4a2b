"""Formats AppProjects. Objects in, text out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from syncline.argo.project import WindowError, read_windows
from syncline.cli.frame.output import table
from syncline.kube.objects import Obj, dig, name_of

HEADERS = (
    "NAME",
    "DESCRIPTION",
    "DESTINATIONS",
    "SOURCES",
    "CLUSTER-RESOURCE-WHITELIST",
    "NAMESPACE-RESOURCE-BLACKLIST",
    "SIGNATURE-KEYS",
    "ORPHANED-RESOURCES",
    "DESTINATION-SERVICE-ACCOUNTS",
)
WINDOW_HEADERS = (
    "ID",
    "STATUS",
    "KIND",
    "SCHEDULE",
    "DURATION",
    "APPLICATIONS",
    "NAMESPACES",
    "CLUSTERS",
    "MANUALSYNC",
    "SYNCOVERRUN",
    "TIMEZONE",
    "USEANDOPERATOR",
)
LABEL_WIDTH = 31
"""Width of the labels of ``proj get``."""


def project_rows(projects: Iterable[Obj]) -> str:
    """Return the table of ``proj list``: a single entry is shown, several are counted."""
    rows = []
    for project in projects:
        spec = dig(project, "spec", default={})
        rows.append(
            (
                name_of(project),
                str(spec.get("description") or " "),
                _few([_destination(one) for one in spec.get("destinations") or []], "destinations"),
                _few([str(one) for one in spec.get("sourceRepos") or []], "repos"),
                _few(_kinds(spec.get("clusterResourceWhitelist")), "resources"),
                _few(_kinds(spec.get("namespaceResourceBlacklist")), "resources"),
                f"{len(spec['signatureKeys'])} key(s)" if spec.get("signatureKeys") else "<none>",
                _orphaned(spec),
                _few([_account(one) for one in spec.get("destinationServiceAccounts") or []], "accounts"),
            )
        )
    return table(HEADERS, rows)


def describe_project(project: Obj) -> str:
    """Return the text of ``proj get``, one line per entry."""
    spec = dig(project, "spec", default={})
    lists = (
        ("Destinations", [_destination(one) for one in spec.get("destinations") or []]),
        ("Repositories", [str(one) for one in spec.get("sourceRepos") or []]),
        ("Source Namespaces", [str(one) for one in spec.get("sourceNamespaces") or []]),
        ("Allowed Cluster Resources", _kinds(spec.get("clusterResourceWhitelist"))),
        ("Denied Cluster Resources", _kinds(spec.get("clusterResourceBlacklist"))),
        ("Allowed Namespaced Resources", _allowed(spec)),
        ("Denied Namespaced Resources", _kinds(spec.get("namespaceResourceBlacklist"))),
        ("Signature keys", [str(one.get("keyID")) for one in spec.get("signatureKeys") or []]),
        ("Destination Service Accounts", [_account(one) for one in spec.get("destinationServiceAccounts") or []]),
    )
    lines = [_line("Name", name_of(project)), _line("Description", str(spec.get("description") or ""))]
    for label, entries in lists:
        lines += [_line(label if index == 0 else "", text) for index, text in enumerate(entries or ["<none>"])]
    lines.append(_line("Orphaned Resources", _orphaned(spec)))
    return "\n".join(lines)


def window_rows(entries: list[Obj], now: datetime) -> str:
    """Return the table of ``proj windows list``; the ID counts from 0."""
    return table(WINDOW_HEADERS, [_window(index, entry, now) for index, entry in enumerate(entries)])


def _window(index: int, entry: Obj, now: datetime) -> tuple[str, ...]:
    return (
        str(index),
        _state(entry, now),
        str(entry.get("kind") or ""),
        str(entry.get("schedule") or ""),
        str(entry.get("duration") or ""),
        *(",".join(entry.get(key) or []) or "-" for key in ("applications", "namespaces", "clusters")),
        _switch(entry.get("manualSync")),
        _switch(entry.get("syncOverrun")),
        str(entry.get("timeZone") or "UTC"),
        _switch(entry.get("andOperator")),
    )


def _state(entry: Obj, now: datetime) -> str:
    try:
        return "Active" if read_windows([entry])[0].is_active(now) else "Inactive"
    except WindowError:
        return "Unreadable"


def _switch(value: Any) -> str:
    return "Enabled" if value else "Disabled"


def _line(label: str, value: str) -> str:
    return f"{label + ':' if label else '':<{LABEL_WIDTH}}{value}".rstrip()


def _few(texts: list[str], what: str) -> str:
    if not texts:
        return "<none>"
    return texts[0] if len(texts) == 1 else f"{len(texts)} {what}"


def _destination(entry: Obj) -> str:
    return f"{entry.get('server') or entry.get('name') or ''},{entry.get('namespace') or ''}"


def _kinds(entries: list[Obj] | None) -> list[str]:
    """Return ``group/kind`` entries, with a leading slash for the core group; a name follows after another slash."""
    texts = []
    for one in entries or []:
        name = f"/{one['name']}" if one.get("name") else ""
        texts.append(f"{one.get('group') or ''}/{one.get('kind') or ''}{name}")
    return texts


def _allowed(spec: Obj) -> list[str]:
    """Return the allowed kinds: all without a list, none with an empty one."""
    listed = spec.get("namespaceResourceWhitelist")
    return ["*/*"] if listed is None else _kinds(listed)


def _account(entry: Obj) -> str:
    parts = (entry.get("server"), entry.get("namespace"), entry.get("defaultServiceAccount"))
    return ",".join(str(part or "") for part in parts)


def _orphaned(spec: Obj) -> str:
    watched = spec.get("orphanedResources")
    if watched is None:
        return "disabled"
    ignored = f", {len(watched['ignore'])} ignored" if watched.get("ignore") else ""
    return f"enabled (warn={str(bool(watched.get('warn'))).lower()}{ignored})"
