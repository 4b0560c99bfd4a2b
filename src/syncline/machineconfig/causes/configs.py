"""Explains how far a machine config has reached the machines of its pools; pure."""

from __future__ import annotations

from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of
from syncline.kube.selectors import SelectorError, label_selector_from
from syncline.machineconfig.causes.overview import Diagnosis, Overview, cause_of, written_at
from syncline.machineconfig.causes.pools import pool_cause
from syncline.machineconfig.causes.rendering import rendering_cause
from syncline.machineconfig.names import CURRENT, POOL, ROLE
from syncline.machineconfig.pools.nodestate import target_of

APPLIED = "applied"
"""State of a machine config that all machines of its pools have."""


def config_cause(over: Overview, config: Obj) -> Diagnosis:
    """Return how far a machine config has reached the machines of its pools."""
    mine = [pool for pool in over.pools if _selects(pool, config)]
    owners = dig(config, "metadata", "ownerReferences", default=[])
    if not mine and any(owner.get("kind") == POOL.kind for owner in owners):
        return _rendered(over, config)
    if not mine:
        fix = f"label it: kubectl label machineconfig {name_of(config)} {ROLE}=worker"
        return Diagnosis(cause_of(config, "Unused", "no pool selects it", next_action=fix), blocked=True)
    lines = [_in_pool(over, config, pool) for pool in mine]
    waiting = [each for each in lines if each.cause.state != APPLIED]
    state = APPLIED if not waiting else "on its way"
    text = "; ".join(f"{name_of(pool)}: {each.cause.message}" for pool, each in zip(mine, lines, strict=True))
    because = tuple(cause for each in waiting for cause in each.cause.because)
    since = min((cause.since for cause in because if cause.since is not None), default=None)
    written = written_at(config)
    if since is not None and written is not None:
        since = max(since, written)  # its pools may have been updating for longer
    return Diagnosis(
        cause_of(config, state, text, since, because=because), blocked=any(each.blocked for each in waiting)
    )


def _rendered(over: Overview, config: Obj) -> Diagnosis:
    target = [name_of(pool) for pool in over.pools if target_of(pool) == name_of(config)]
    at = sum(annotations_of(node).get(CURRENT) == name_of(config) for node in over.nodes)
    text = f"{at} nodes are at it" + (f"; pool {', '.join(target)} moves to it" if target else "; no pool wants it now")
    return Diagnosis(cause_of(config, "rendered", text), blocked=False)


def _in_pool(over: Overview, config: Obj, pool: Obj) -> Diagnosis:
    above = pool_cause(over, pool)
    if name_of(config) not in _sources(pool, "spec"):
        text = "not rendered yet" if not _sources(pool, "spec") else "not in what is rendered"
        why = rendering_cause(over, pool) or above
        return Diagnosis(cause_of(config, "not rendered", text, because=(why.cause,)), why.blocked)
    if above.cause.state == "Updated":
        return Diagnosis(cause_of(config, APPLIED, f"rendered in {target_of(pool)}, on all nodes"), blocked=False)
    report = cause_of(config, "on its way", f"rendered in {target_of(pool)}", because=(above.cause,))
    return Diagnosis(report, above.blocked)


def _sources(pool: Obj, part: str) -> list[str]:
    return [str(each.get("name")) for each in dig(pool, part, "configuration", "source", default=[])]


def _selects(pool: Obj, config: Obj) -> bool:
    try:
        selector = label_selector_from(dig(pool, "spec", "machineConfigSelector"))
    except SelectorError:
        return False
    return not selector.empty and selector.matches(labels_of(config))
