"""Enforce ResourceQuotas of a namespace (plug-in ResourceQuota).

The chain calls it last. Granted usage is written to the quota's status at once, so that the next request sees it; the
quota controller corrects the counts when objects are deleted.
"""

from __future__ import annotations

from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.admission.usage import Amounts, amounts, in_scope, missing_amounts, usage_of
from syncline.cluster.storage.store import Store, Stored
from syncline.kube.objects import Obj, dig, name_of

QUOTAS = "/resourcequotas"


def check(store: Store, attempt: Attempt, new: Obj, old: Obj | None) -> None:
    """Raise Forbidden for the first exceeded quota; otherwise record the usage."""
    if not attempt.namespace or not store.count(QUOTAS, attempt.namespace):
        return
    storage = attempt.resource.storage
    if storage == QUOTAS:
        return
    wanted = _increase(storage, new, old)
    grants: list[tuple[Stored, Amounts]] = []
    for stored in store.list(QUOTAS, attempt.namespace):
        quota = stored.obj
        hard = amounts(dig(quota, "status", "hard"))
        if not hard or not in_scope(quota, storage, new):
            continue
        if storage == "/pods" and old is None:
            _require_amounts(attempt, quota, hard, new)
        asked = {name: value for name, value in wanted.items() if name in hard}
        if asked:
            _require_room(attempt, quota, hard, asked)
            grants.append((stored, asked))
    if not attempt.dry_run:
        for stored, asked in grants:
            _note(store, stored, asked)


def _increase(storage: str, new: Obj, old: Obj | None) -> Amounts:
    """Return what the write uses more than before; the controller counts what it releases."""
    after = usage_of(storage, new)
    if old is None:
        return after
    before = usage_of(storage, old)
    return {
        name: value - before[name] if name in before else value
        for name, value in after.items()
        if name not in before or value > before[name]
    }


def _require_amounts(attempt: Attempt, quota: Obj, hard: Amounts, pod: Obj) -> None:
    missing = missing_amounts(pod, hard)
    if missing:
        listed = "; ".join(f"{resource} for: {','.join(containers)}" for resource, containers in missing)
        raise forbid(attempt, f"failed quota: {name_of(quota)}: must specify {listed}")


def _require_room(attempt: Attempt, quota: Obj, hard: Amounts, asked: Amounts) -> None:
    used = amounts(dig(quota, "status", "used"))
    zero = next(iter(asked.values())) - next(iter(asked.values()))
    over = sorted(name for name, value in asked.items() if used.get(name, zero) + value > hard[name])
    if over:
        requested = ",".join(f"{name}={asked[name]}" for name in over)
        taken = ",".join(f"{name}={used.get(name, 0)}" for name in over)
        limited = ",".join(f"{name}={hard[name]}" for name in over)
        why = f"exceeded quota: {name_of(quota)}, requested: {requested}, used: {taken}, limited: {limited}"
        raise forbid(attempt, why)


def _note(store: Store, stored: Stored, asked: Amounts) -> None:
    quota = stored.obj
    used = dict(dig(quota, "status", "used", default={}))
    before = amounts(used)
    for name, value in asked.items():
        used[name] = str(before[name] + value if name in before else value)
    store.put(stored.key, {**quota, "status": {**quota["status"], "used": used}}, expect=stored.revision)
