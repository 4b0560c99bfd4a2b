"""Gateway API: gateways, routes and their policies (gateway-api.sigs.k8s.io, conditions)."""

from __future__ import annotations

from syncline.apply.health.reading import at, conditions, first, shown
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj


def _judged(found: list[Obj], prefix: str, thing: str) -> Health | None:
    """Return the first problem in the conditions: refused references, not accepted, not programmed yet."""
    for kind in ("ResolvedRefs", "Accepted"):
        refused = first(found, f"{kind}=False")
        if refused is not None:
            why = _said(refused, f"Failed condition: {kind}")
            return Health(HealthStatus.DEGRADED, prefix + why)
    waiting = first(found, "Programmed=!True")
    if waiting is None:
        return None
    return Health(HealthStatus.PROGRESSING, prefix + _said(waiting, f"{thing} is still being programmed"))


def _said(condition: Obj, otherwise: str) -> str:
    message = condition.get("message")
    return otherwise if message is None else shown(message, "message")


def gateway(obj: Obj, settings: Settings) -> Health:
    """Return the health by the gateway's own conditions, then by those of each listener."""
    own = at(obj, "status.conditions")
    listeners = at(obj, "status.listeners")
    listeners = listeners if isinstance(listeners, list) else []
    trouble = _judged(conditions(obj), "", "Gateway")
    for listener in listeners:
        trouble = trouble or _judged(conditions(listener, "conditions"), "Listener: ", "Listener")
    if trouble is not None:
        return trouble
    if own is not None or listeners:
        return Health(HealthStatus.HEALTHY, "Gateway is healthy")
    return Health(HealthStatus.PROGRESSING, "Waiting for Gateway status")


def route(obj: Obj, settings: Settings) -> Health:
    """Return the health by all parents' conditions. ``generation: observed``: skip parents that have not seen this
    generation."""
    kind = shown(obj.get("kind"), "kind")
    parents = at(obj, "status.parents")
    counted = [parent for parent in parents if _counts(obj, parent, settings)] if isinstance(parents, list) else []
    for parent in counted:
        name = at(parent, "parentRef.name") or ""
        trouble = _judged(conditions(parent, "conditions"), f"Parent {name}: ", "Route")
        if trouble is not None:
            return trouble
    if any(conditions(parent, "conditions") for parent in counted):
        return Health(HealthStatus.HEALTHY, f"{kind} is healthy")
    return Health(HealthStatus.PROGRESSING, f"Waiting for {kind} status")


def _counts(obj: Obj, parent: Obj, settings: Settings) -> bool:
    if settings.get("generation") != "observed":
        return True
    generation = at(obj, "metadata.generation")
    observed = [item.get("observedGeneration") for item in conditions(parent, "conditions")]
    return generation is None or (bool(observed) and all(one in (None, generation) for one in observed))


def policy_ancestors(obj: Obj, settings: Settings) -> Health:
    """Return the health by all ancestors' conditions. ``only``: suffix of the kinds that have a status.

    ``generation: stated``: a condition without observedGeneration counts as not observed. ``acceptance: required``: an
    ancestor without an acceptance condition has not accepted.
    """
    kind = shown(obj.get("kind"), "kind")
    if not kind.endswith(settings.get("only", "")):
        return Health(HealthStatus.HEALTHY, f"{kind} is healthy")
    listed = at(obj, "status.ancestors")
    ancestors = listed if isinstance(listed, list) else []
    late = next((one for one in ancestors if not _observed(obj, one, settings)), None)
    if late is not None:
        return Health(HealthStatus.PROGRESSING, f"Waiting for Ancestor {_name(late)} to update {kind} status")
    health = Health(HealthStatus.PROGRESSING, f"Waiting for {kind} status")
    for ancestor in ancestors:
        found = conditions(ancestor, "conditions")
        refused = first(found, "Accepted|ResolvedRefs=!True")
        if refused is not None:
            why = shown(refused.get("message"), "message")
            return Health(HealthStatus.DEGRADED, f"Ancestor {_name(ancestor)}: {why}")
        if first(found, "Accepted") is not None:
            health = Health(HealthStatus.HEALTHY, f"{kind} is healthy")
        elif settings.get("acceptance") == "required":
            health = Health(HealthStatus.DEGRADED, f"Ancestor {_name(ancestor)}: {kind} is not accepted")
    return health


def _name(ancestor: Obj) -> str:
    return str(at(ancestor, "ancestorRef.name") or "")


def _observed(obj: Obj, ancestor: Obj, settings: Settings) -> bool:
    generation = at(obj, "metadata.generation")
    if generation is None:
        return True
    fits = (generation,) if settings.get("generation") == "stated" else (None, generation)
    return all(item.get("observedGeneration") in fits for item in conditions(ancestor, "conditions"))


RULES: dict[str, Rule] = {"gateway": gateway, "gateway route": route, "policy ancestors": policy_ancestors}
