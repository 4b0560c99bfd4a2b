"""The health of an application: the worst health of its resources.

Called by the comparison with its pairs. Pure. Rules: Argo CD ``controller/health.go`` (reference argocd-app §4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from syncline.apply.annotations import is_hook, is_ignored, is_skipped
from syncline.apply.health import Health, HealthStatus, worst
from syncline.gitops.sync.model import Pair
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, name_of, namespace_of, ref_of

IGNORE_HEALTH_CHECK = "argocd.argoproj.io/ignore-healthcheck"
MAX_NAMED = 3
"""Resources that a message names."""
SILENT_CHILD = (HealthStatus.MISSING, HealthStatus.UNKNOWN)


@dataclass(frozen=True)
class ApplicationHealth:
    status: HealthStatus
    message: str = ""
    errors: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of a pair to its application's health."""

    pair: Pair
    health: Health | None
    takes_part: bool
    counts: bool
    """False for a missing object, and for a child Application that is missing or unknown."""


def part_of(app: Obj, pair: Pair, check: Callable[[Obj], Health | None]) -> Part:
    """Return the contribution of a pair; ``check`` returns the health of one live object."""
    left_out = _left_out(pair)
    health = None if left_out else _health(app, pair, check)
    if health is None or pair.live is None:
        return Part(pair, health, not left_out, counts=False)
    child = ref_of(pair.live).group_kind == APPLICATION.group_kind
    return Part(pair, health, not left_out, counts=not (child and health.status in SILENT_CHILD))


def application_health(parts: Sequence[Part]) -> ApplicationHealth:
    """Return the worst health of all parts, in the order of the pairs."""
    counted = [(part.pair, part.health) for part in parts if part.counts and part.health is not None]
    status = worst(health.status for _, health in counted)
    taking_part = [part.pair for part in parts if part.takes_part]
    if taking_part and all(pair.live is None for pair in taking_part):
        return ApplicationHealth(HealthStatus.MISSING)
    errors = tuple(
        f'failed to get resource health for "{ref_of(part.pair.obj).kind}" with name "{name_of(part.pair.obj)}" '
        f'in namespace "{namespace_of(part.pair.obj)}": {part.health.why}'
        for part in parts
        if part.health is not None and part.health.failed
    )
    guilty = [pair for pair, health in counted if health.status is status]
    return ApplicationHealth(status, _message(status, guilty), errors[:1])


def _left_out(pair: Pair) -> bool:
    if pair.target is not None and is_skipped(pair.target):
        return True
    return pair.live is not None and (is_hook(pair.live) or is_ignored(pair.live))


def _health(app: Obj, pair: Pair, check: Callable[[Obj], Health | None]) -> Health | None:
    if pair.live is None:
        return Health(HealthStatus.MISSING)
    if annotations_of(pair.live).get(IGNORE_HEALTH_CHECK) == "true":
        return None
    if _is_itself(app, pair.live):
        return None
    return check(pair.live)


def _is_itself(app: Obj, live: Obj) -> bool:
    ref = ref_of(live)
    same = (ref.namespace, ref.name) == (namespace_of(app), name_of(app))
    return ref.group_kind == APPLICATION.group_kind and same


def _message(status: HealthStatus, guilty: list[Pair]) -> str:
    if status is HealthStatus.HEALTHY or not guilty:
        return ""
    named = [_named(pair.obj) for pair in guilty]
    rest = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    return f"Caused by {', '.join(named[:MAX_NAMED])}{rest}"


def _named(obj: Obj) -> str:
    ref = ref_of(obj)
    kind = f"{ref.group}/{ref.kind}" if ref.group else ref.kind
    return f"{kind}:{ref.namespace}/{ref.name}" if ref.namespace else f"{kind}:{ref.name}"
