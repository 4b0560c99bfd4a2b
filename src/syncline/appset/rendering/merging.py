"""Merges as upstream's library ``mergo`` does: :func:`filled` for templates, :func:`overridden` for parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.appset.rendering.goforms import GoError
from syncline.argo.gotypes import is_empty
from syncline.kube.gotemplate.values import StringMap
from syncline.kube.objects import Obj

WHOLE = frozenset({"valuesObject"})
"""Fields that upstream keeps as text, so they are not merged."""


def filled(own: Any, base: Any) -> Any:
    """Return ``own`` with what it lacks, or has empty (false, zero), from ``base``; lists are not merged."""
    if isinstance(own, dict) and isinstance(base, dict):
        made: Obj = dict(own)
        for key, item in base.items():
            mine = made.get(key)
            if key in WHOLE:
                made[key] = item if mine is None else mine
            else:
                made[key] = filled(mine, item)
        return made
    return base if own is None or is_empty(own) else own


def overridden(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with every value of ``other``, also empty ones; maps are merged, lists replaced.

    Raises :class:`GoError` where Go cannot: a map of texts cannot take a value of any type.
    """
    if type(base) is StringMap and type(other) is not StringMap and other:
        raise GoError(
            "cannot merge a map of any values over a map of texts (values of a generator); give the keys other names"
        )
    made = type(base)(base) if isinstance(base, dict) else dict(base)
    for key, item in other.items():
        mine = made.get(key)
        if isinstance(mine, dict) and isinstance(item, dict) and (mine or type(mine) is StringMap):
            made[key] = overridden(mine, item)
        else:
            made[key] = item
    return made
