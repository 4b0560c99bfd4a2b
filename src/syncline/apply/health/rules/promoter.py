"""GitOps Promoter: common checks of all its kinds (deleted, observed, ready), and commit details of three."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.apply.health.reading import Pattern, at, conditions, shown, words
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj, finalizers

SHORT_SHA = 7
CANNOT_RECONCILE = "ReconciliationError"


def promoter(obj: Obj, settings: Settings) -> Health | None:
    """Return the result of the common checks. ``waiting``: message while conditions are missing; default by name."""
    name = settings["name"]
    if at(obj, "metadata.deletionTimestamp"):
        return Health(HealthStatus.PROGRESSING, _being_deleted(obj, settings))
    if not isinstance(obj.get("status"), dict):
        return Health(HealthStatus.PROGRESSING, settings["begin"])
    wanted = Pattern.parse(settings.get("conditions", "Ready"))
    found = [item for item in conditions(obj) if wanted.fits(item)]
    for item in found:
        trouble = _trouble(obj, item, settings)
        if trouble is not None:
            return trouble
    if found:
        return None
    return Health(HealthStatus.PROGRESSING, settings.get("waiting", f"{name} Ready condition is missing"))


def _being_deleted(obj: Obj, settings: Settings) -> str:
    """Return the message of a terminating object: for each known finalizer its wait and the risk of removing it."""
    known = settings.get("finalizers")
    if known is None:
        return f"{settings['name']} is being deleted"
    listed = [f"{one}: {known[one]}" for one in finalizers(obj) if one in known]
    return " ".join([f"{settings['name']} is being deleted.", *listed])


def _trouble(obj: Obj, item: Obj, settings: Settings) -> Health | None:
    observed, generation = item.get("observedGeneration"), at(obj, "metadata.generation")
    name = settings["name"]
    spoken = name if " " not in name or name.startswith("Argo") else name[0].lower() + name[1:]
    if observed is not None and generation is not None and observed != generation:
        return Health(HealthStatus.PROGRESSING, f"Waiting for {spoken} spec update to be observed")
    reason, message = item.get("reason"), item.get("message")
    reason = "Unknown" if reason is None else reason
    if item.get("status") == "False":
        why = "Unknown error" if message is None else message
        if reason == CANNOT_RECONCILE:
            return Health(HealthStatus.DEGRADED, f"{settings['failed']}: {why}")
        return Health(HealthStatus.DEGRADED, f"{settings.get('not ready', settings['failed'])} ({reason}): {why}")
    if item.get("status") == "Unknown" and "unknown" in settings:
        why = "Unknown" if message is None else message
        return Health(HealthStatus.PROGRESSING, f"{settings['unknown']} ({reason}): {why}")
    return None


def applications(obj: Obj, settings: Settings) -> Health:
    selected = at(obj, "status.applicationsSelected")
    if not selected:
        return Health(HealthStatus.DEGRADED, "Argo CD commit status has no applications configured")
    count = f"is healthy and is tracking {len(selected)} applications"
    return Health(HealthStatus.HEALTHY, f"Argo CD commit status {count}")


def environments(obj: Obj, settings: Settings) -> Health:
    """Return the health by the gates of all branches: failed ones win over pending ones."""
    listed = at(obj, "status.environments")
    if not listed:
        return Health(HealthStatus.HEALTHY, settings["none"])
    failed = [one.get("branch") or "?" for one in listed if one.get("phase") == "failure"]
    passed = sum(one.get("phase") == "success" for one in listed)
    pending = [one.get("branch") or "?" for one in listed if one.get("phase") not in ("failure", "success")]
    if failed:
        return Health(HealthStatus.DEGRADED, f"{settings['failed']} for branch(es): {words(failed)}")
    if pending:
        return Health(HealthStatus.PROGRESSING, f"{settings['pending']} for branch(es): {words(pending)}")
    return Health(HealthStatus.HEALTHY, f"{settings['passed']} for {passed} environment(s)")


def transfer(obj: Obj, settings: Settings) -> Health:
    """ChangeTransferPolicy: active and proposed commit, and the checks in between."""
    status = at(obj, "status")
    active, proposed = at(status, "active.dry.sha"), at(status, "proposed.dry.sha")
    for name, sha in (("active", active), ("proposed", proposed)):
        if not sha:
            return Health(HealthStatus.PROGRESSING, f"The {name} commit DRY SHA is missing or empty.")
    if proposed != active:
        way = f"Promotion in progress from '{_short(active)}' to '{_short(proposed)}'"
        return Health(HealthStatus.PROGRESSING, f"{way}: {_checks(at(status, 'proposed.commitStatuses'))}")
    checks = at(status, "active.commitStatuses")
    if _keys(checks, "pending") or _keys(checks, "failure"):
        why = "Environment is up-to-date, but there are non-successful active commit statuses"
        return Health(HealthStatus.HEALTHY, f"{why}: {_checks(checks)}")
    return Health(HealthStatus.HEALTHY, f"Environment is up-to-date on commit {_short(active)}.")


def _keys(checks: object, phase: str) -> list[object]:
    listed = checks if isinstance(checks, list) else []
    return [one.get("key") for one in listed if one.get("phase") == phase]


def _checks(checks: object) -> str:
    pending, passed, failed = (_keys(checks, phase) for phase in ("pending", "success", "failure"))
    text = f"{len(pending)} pending, {len(passed)} successful, {len(failed)} failed. "
    if pending:
        text += f"Pending commit statuses: {words(pending)}. "
    if failed:
        text += f"Failed commit statuses: {words(failed)}. "
    return text


def _short(sha: object) -> str:
    return sha[:SHORT_SHA] if isinstance(sha, str) else ""


def strategy(obj: Obj, settings: Settings) -> Health:
    """PromotionStrategy: the first environment that differs from the others decides."""
    listed = at(obj, "status.environments")
    if not listed:
        return Health(HealthStatus.DEGRADED, "Promotion strategy has no environments configured")
    return _hydrating(listed) or _promoting(listed) or _promoted(listed)


def _proposed(environment: Obj) -> str:
    """Return the commit that the hydrator has processed: from its note, else from the proposed branch."""
    return at(environment, "proposed.note.drySha") or at(environment, "proposed.dry.sha") or ""


def _hydrating(listed: list[Obj]) -> Health | None:
    for one in listed:
        where = f"missing or empty in environment '{shown(one.get('branch'), 'branch')}'."
        if not at(one, "active.dry.sha"):
            return Health(HealthStatus.PROGRESSING, f"The active commit DRY SHA is {where}")
        if not _proposed(one):
            return Health(HealthStatus.PROGRESSING, f"The proposed commit DRY SHA is {where}")
    if any(_proposed(one) != _proposed(listed[0]) for one in listed):
        why = (
            "Not all environments have the same proposed commit SHA. "
            "This likely means the hydrator has not run for all environments yet."
        )
        return Health(HealthStatus.PROGRESSING, why)
    return None


def _promoting(listed: list[Obj]) -> Health | None:
    for one in listed:
        active, proposed = at(one, "active.dry.sha"), at(one, "proposed.dry.sha")
        if proposed != active:
            way = f"for environment '{one['branch']}' from '{_short(active)}' to '{_short(proposed)}'"
            checks = _checks(at(one, "proposed.commitStatuses"))
            done = f"Hydrator has processed dry commit '{_short(_proposed(one))}'. "
            return Health(HealthStatus.PROGRESSING, f"Promotion in progress {way}: {checks}{done}")
    return None


def _promoted(listed: list[Obj]) -> Health:
    noted = list(_with_open_checks(listed))
    if noted:
        why = "Environments are up-to-date, but some environments have non-successful commit statuses"
        return Health(HealthStatus.HEALTHY, f"{why}: {words(noted)}.")
    where = f"All environments are up-to-date on commit '{_short(at(listed[0], 'active.dry.sha'))}'."
    done = f"Hydrator has processed dry commit '{_short(_proposed(listed[0]))}'."
    return Health(HealthStatus.HEALTHY, f"{where} {done}")


def _with_open_checks(listed: list[Obj]) -> Iterable[str]:
    for one in listed:
        checks = at(one, "active.commitStatuses")
        failed, pending = len(_keys(checks, "failure")), len(_keys(checks, "pending"))
        if failed or pending:
            yield f"{one['branch']} ({failed} failed, {pending} pending)"


RULES: dict[str, Rule] = {
    "promoter": promoter,
    "promoter applications": applications,
    "promoter environments": environments,
    "promoter strategy": strategy,
    "promoter transfer": transfer,
}
