"""What is shown of an Application, field by field."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.base.clock import parse_time
from syncline.kube.objects import Obj, dig
from syncline.sources.errors import mask_credentials


def short_revision(revision: str) -> str:
    """Shorten a commit to seven characters; names stay."""
    return revision[:7] if len(revision) == 40 and all(c in "0123456789abcdef" for c in revision) else revision


def sources_of(app: Obj) -> list[Obj]:
    """Return the sources of an Application, or of a template of one."""
    several = dig(app, "spec", "sources", default=[])
    single = dig(app, "spec", "source")
    return several or ([single] if single else [])


def repo_of(source: Obj) -> str:
    """Return the repository URL with credentials masked."""
    return mask_credentials(str(source.get("repoURL") or ""))


def policy_text(app: Obj) -> str:
    """Return ``Manual``, ``Auto`` or ``Auto-Prune``."""
    automated = dig(app, "spec", "syncPolicy", "automated")
    if automated is None or automated.get("enabled") is False:
        return "Manual"
    return "Auto-Prune" if automated.get("prune") else "Auto"


def conditions_text(app: Obj) -> str:
    """Return the types of conditions, with their number if there are several of one."""
    counts: dict[str, int] = {}
    for condition in dig(app, "status", "conditions", default=[]):
        counts[condition["type"]] = counts.get(condition["type"], 0) + 1
    return ",".join(f"{name}({count})" if count > 1 else name for name, count in counts.items())


def sync_text(app: Obj) -> str:
    """Return ``Synced to HEAD (abc1234)``."""
    sync = dig(app, "status", "sync", default={})
    code = str(sync.get("status") or "Unknown")
    revision = short_revision(str(sync.get("revision") or ",".join(sync.get("revisions") or [])))
    target = ((sources_of(app) or [{}])[0].get("targetRevision")) or "HEAD"
    if not revision:
        return code
    word = {"Synced": "to", "OutOfSync": "from"}.get(code, "at")
    return f"{code} {word} {target} ({revision})"


def health_text(app: Obj) -> str:
    """Return the health with its message."""
    health = dig(app, "status", "health", default={})
    message = f" ({health['message']})" if health.get("message") else ""
    return f"{health.get('status') or 'Unknown'}{message}"


def duration_text(state: Any) -> str:
    """Return how long an operation took, ``12s``; empty while it runs."""
    try:
        begun: datetime = parse_time(state["startedAt"])
        ended: datetime = parse_time(state["finishedAt"])
    except (KeyError, ValueError):
        return ""
    return f"{int((ended - begun).total_seconds())}s"
