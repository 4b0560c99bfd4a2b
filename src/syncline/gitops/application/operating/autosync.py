"""Decides whether a comparison starts an automated sync, and which; pure.

Rules: ``autoSync``, ``alreadyAttemptedSync`` and ``selfHealRemainingBackoff`` of Argo CD's application controller
(reference argocd-sync §5, behaviours 77-81).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.argo.conditions import Condition
from syncline.argo.spec import normalize_source
from syncline.base.clock import parse_time
from syncline.kube.objects import Obj, dig, is_terminating

DEFAULT_RETRIES = 5
"""Attempts of an automated sync without a retry policy."""


@dataclass(frozen=True, slots=True)
class SelfHealBackoff:
    """Waits between self-heal attempts: 0, then ``duration_s`` · ``factor``^(n-1), at most ``cap_s``."""

    duration_s: float = 2
    factor: float = 3
    cap_s: float = 300

    def wait_s(self, attempts: int) -> float:
        if attempts <= 0:
            return 0
        if attempts == 1 or not self.factor:
            return float(self.duration_s)
        grown = self.duration_s * self.factor ** min(attempts - 1, 64)
        return float(min(grown, self.cap_s) if self.cap_s > 0 else grown)


@dataclass(frozen=True, slots=True)
class AutoSync:
    """The ``operation`` to write or ``why`` none; ``condition``: a SyncError; ``requeue_after_s``: until self-heal."""

    why: str
    operation: Obj | None = None
    condition: Condition | None = None
    requeue_after_s: float | None = None


def decide(
    app: Obj,
    status: str,
    revisions: Sequence[str],
    resources: Sequence[Obj],
    now: datetime,
    *,
    compare_revisions: bool = True,
    backoff: SelfHealBackoff | None = None,
    self_heal_timeout_s: float = 0,
) -> AutoSync:
    """Decide after a comparison. ``backoff`` None: wait ``self_heal_timeout_s`` after the last operation."""
    automated = dig(app, "spec", "syncPolicy", "automated")
    refused = _gate(app, automated, status, resources)
    if refused:
        return AutoSync(refused)
    desired = _printed(revisions)
    operation = _operation(app, automated, revisions)
    attempted, phase, last = _already_attempted(app, revisions, compare_revisions)
    state = dig(app, "status", "operationState", default={})
    if attempted and phase != "Succeeded":
        message = f"Failed last sync attempt to {_printed(last)}: {state.get('message') or ''}"
        return AutoSync("the last attempt at this revision failed", condition=Condition("SyncError", message))
    if attempted:
        if not automated.get("selfHeal"):
            return AutoSync("this revision was synced already and selfHeal is off")
        wait = _heal_wait(state, now, backoff, self_heal_timeout_s)
        if wait > 0:
            return AutoSync(f"heals in {wait:g} s", requeue_after_s=wait)
        operation = _healing(operation, state, resources)
    if automated.get("prune") and not automated.get("allowEmpty") and all(r.get("requiresPruning") for r in resources):
        message = f"Skipping sync attempt to {desired}: auto-sync will wipe out all resources"
        return AutoSync("it would delete everything", condition=Condition("SyncError", message))
    return AutoSync(f"automated sync to {desired}", operation=operation)


def _gate(app: Obj, automated: Obj | None, status: str, resources: Sequence[Obj]) -> str:
    if automated is None or automated.get("enabled") is False:
        return "not automated"
    if app.get("operation") is not None:
        return "another operation is in progress"
    if is_terminating(app):
        return "deletion in progress"
    if status != "OutOfSync":
        return f"status is {status}"
    changed = [r for r in resources if r.get("status") != "Synced"]
    if not automated.get("prune") and all(r.get("requiresPruning") for r in changed):
        return "only pruning is needed, and prune is off"
    return ""


def _printed(revisions: Sequence[str]) -> str:
    """Return revisions in the form of a Go list, as upstream prints them."""
    return "[" + " ".join(revisions) + "]"


def _multi(app: Obj) -> bool:
    return bool(dig(app, "spec", "sources"))


def _operation(app: Obj, automated: Obj, revisions: Sequence[str]) -> Obj:
    policy = dig(app, "spec", "syncPolicy", default={})
    sync: Obj = {}
    if _multi(app):
        sync |= {"revisions": list(revisions), "sources": dig(app, "spec", "sources")}
    else:
        sync |= {"revision": revisions[0] if revisions else "", "source": dig(app, "spec", "source")}
    if automated.get("prune"):
        sync["prune"] = True
    if policy.get("syncOptions"):
        sync["syncOptions"] = list(policy["syncOptions"])
    retry = policy.get("retry")
    return {
        "initiatedBy": {"automated": True},
        "retry": {"limit": DEFAULT_RETRIES} if retry is None else retry,
        "sync": sync,
    }


def _already_attempted(app: Obj, revisions: Sequence[str], compare_revisions: bool) -> tuple[bool, str, list[str]]:
    """Return whether the last operation had these revisions and sources, its phase, and its revisions."""
    state = dig(app, "status", "operationState")
    if state is None:
        return False, "", []
    phase = str(state.get("phase") or "")
    result = state.get("syncResult")
    if result is None:
        return phase in ("Succeeded", "Failed", "Error"), phase, []
    if _multi(app):
        tried, sources = list(result.get("revisions") or []), list(result.get("sources") or [])
        wanted = list(dig(app, "spec", "sources", default=[]))
    else:
        tried, sources = [result.get("revision") or ""], [result.get("source") or {}]
        wanted = [dig(app, "spec", "source", default={})]
    if compare_revisions and tried != list(revisions):
        return False, phase, tried
    same = [normalize_source(s) for s in sources] == [normalize_source(s) for s in wanted]
    return same, phase, tried


def _heal_wait(state: Obj, now: datetime, backoff: SelfHealBackoff | None, timeout_s: float) -> float:
    attempts = int(dig(state, "operation", "sync", "autoHealAttemptsCount", default=0))
    wait = timeout_s if backoff is None else backoff.wait_s(attempts)
    finished = state.get("finishedAt")
    return wait - (now - parse_time(finished)).total_seconds() if finished else wait


def _healing(operation: Obj, state: Obj, resources: Sequence[Obj]) -> Obj:
    """Return a partial operation for the resources that are out of sync: no hooks, no history."""
    attempts = int(dig(state, "operation", "sync", "autoHealAttemptsCount", default=0))
    selected = [
        {"group": r.get("group") or "", "kind": r.get("kind") or "", "name": r.get("name") or ""}
        for r in resources
        if r.get("status") != "Synced"
    ]
    sync = operation["sync"] | {"autoHealAttemptsCount": attempts + 1, "resources": selected}
    return operation | {"sync": sync}
