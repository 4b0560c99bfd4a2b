"""Which of a work's ``manifestConfigs`` are in force for a manifest: :func:`config_of`.

Rules: ``FindManifestConfiguration`` of upstream (reference ocm-pull-model §6.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.kube.objects import Obj

_FIRST: Final = ("conditionRules", "feedbackRules", "updateStrategy")
_PARTS: Final = ("group", "resource", "name", "namespace")


def config_of(resource: Obj, configs: Iterable[Obj]) -> Obj | None:
    """Return the options of a manifest, None without any. ``resource``: its ``resourceMeta``.

    The first entry that gives rules or a strategy wins, for each of them; ``feedbackScrapeType`` is that of the last
    entry. A name or namespace may contain ``*``.
    """
    found: Obj = {}
    scrape = None
    for config in configs:
        if _matches(resource, config.get("resourceIdentifier") or {}):
            found = {**{name: config[name] for name in _FIRST if config.get(name)}, **found}
            scrape = config.get("feedbackScrapeType")
    if not found:
        return None
    identifier = {name: resource[name] for name in _PARTS if resource.get(name)}
    return {"resourceIdentifier": identifier, **found, **({"feedbackScrapeType": scrape} if scrape else {})}


def _matches(resource: Obj, wanted: Obj) -> bool:
    same = all((resource.get(name) or "") == (wanted.get(name) or "") for name in ("group", "resource"))
    return same and all(_like(resource.get(name) or "", wanted.get(name) or "") for name in ("namespace", "name"))


def _like(text: str, pattern: str) -> bool:
    """Return whether the text has the pieces between the stars in order, the outer ones at its ends."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in rest[:-1]:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(text) - at >= len(rest[-1]) and text.endswith(rest[-1])
