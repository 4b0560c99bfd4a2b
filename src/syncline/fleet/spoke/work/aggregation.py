"""The conditions of a ManifestWork, as those of its manifests make them; pure.

Rules: ``pkg/work/spoke/conditions/helpers.go`` of upstream (reference ocm-pull-model §6.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from syncline.fleet.conditions import condition
from syncline.kube.objects import Obj

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
_FROM_RULES: Final = "ConditionRule"
"""Reasons of conditions that condition rules make begin with this."""


def is_from_rule(one: Obj) -> bool:
    """Return whether a condition rule made the condition, of a manifest or of the work."""
    return str(one.get("reason") or "").startswith(_FROM_RULES)


def pruned(conditions: Iterable[Obj], generation: int) -> list[Obj]:
    """Return the conditions without those of rules of another generation: a rule is removed by a change of the work,
    so what this generation does not renew has no rule any more."""
    return [one for one in conditions if not is_from_rule(one) or one.get("observedGeneration") == generation]


def aggregate(generation: int, manifests: Sequence[Obj]) -> list[Obj]:
    """Return Available and the conditions of rules, without times and by type. ``manifests``: those of
    ``status.resourceStatus``."""
    counts: dict[str, Counter[str]] = {AVAILABLE: Counter()}
    messages: dict[str, str] = {}
    for one in (one for manifest in manifests for one in manifest.get("conditions") or ()):
        kind = str(one.get("type") or "")
        if kind == AVAILABLE or is_from_rule(one):
            counts.setdefault(kind, Counter())[str(one.get("status"))] += 1
            messages[kind] = str(one.get("message") or "") or messages.get(kind, "")
    return [
        _available(count, generation, len(manifests))
        if kind == AVAILABLE
        else _from_rules(kind, count, messages.get(kind, ""), generation)
        for kind, count in sorted(counts.items())
    ]


def _available(count: Counter[str], generation: int, total: int) -> Obj:
    rows = (
        (count["False"], "False", "ResourcesNotAvailable", f"{count['False']} of {total} resources are not available"),
        (
            count["Unknown"],
            "Unknown",
            "ResourcesStatusUnknown",
            f"{count['Unknown']} of {total} resources have unknown status",
        ),
        (not count["True"], "Unknown", "ResourcesStatusUnknown", "cannot get any available resource "),
        (True, "True", "ResourcesAvailable", "All resources are available"),
    )
    _, status, reason, message = next(row for row in rows if row[0])
    return condition(AVAILABLE, status, reason, message, generation)


def _from_rules(kind: str, count: Counter[str], message: str, generation: int) -> Obj:
    """One True makes Progressing True; any other condition is False as soon as one manifest says so."""
    first, last = ("True", "False") if kind == PROGRESSING else ("False", "True")
    status = first if count[first] else "Unknown" if count["Unknown"] or not count[last] else last
    total = sum(count[each] for each in ("True", "False", "Unknown"))
    if kind == PROGRESSING and not total:
        status = last
    text = message if total == 1 and message else f"Aggregated from {total} manifest conditions"
    return condition(kind, status, "ConditionRulesAggregated", text, generation)
