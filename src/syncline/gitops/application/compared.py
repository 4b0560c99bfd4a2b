"""The last comparison of each Application, so that a reconcile costs what changed and not what exists.

A comparison is a pure function. Its result is cached with all its inputs and is reused while they are equal: manifests,
live objects, project, the Application's spec and request, settings. Where only live objects changed, the next
comparison reuses the results for the others (``ComparisonInput.before``). A comparison that depends on more (health
scripts, dry runs by the API server) is made each time. The cache holds one result per Application, two while an
operation uses other manifests than the last render, and is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from syncline.gitops.comparison.compare import Comparison, ComparisonInput
from syncline.kube.objects import Obj, ObjectRef, dig, ref_of

MAX_KEPT = 10_000
"""Cached Applications, more than one process works on. An entry costs little: references to objects that exist anyway,
and its rows."""


@dataclass(frozen=True, slots=True)
class _Kept:
    targets: tuple[Obj, ...]
    settings: tuple[Any, ...]
    live: tuple[tuple[ObjectRef, Obj], ...]
    comparison: Comparison


class Comparisons:
    """The cache of comparisons, one per process; it evicts the least recently used."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._limit = limit
        self._kept: OrderedDict[ObjectRef, tuple[_Kept, ...]] = OrderedDict()

    def of(
        self, given: ComparisonInput, more: tuple[Any, ...], make: Callable[[ComparisonInput], Comparison]
    ) -> Comparison:
        """Return the cached comparison of ``given``, or make one. ``more``: further inputs of health and schemas."""
        ref, settings, live = ref_of(given.app), (*_settings(given), *more), tuple(given.live.items())
        known = self._kept.pop(ref, ())
        last = next((one for one in known if one.targets is given.targets or one.targets == given.targets), None)
        others = tuple(one for one in known if one is not last)[: 1 if given.app.get("operation") else 0]
        if last is not None and last.settings == settings:
            given = replace(given, targets=last.targets, before=last.comparison)
        whole = last is not None and given.before is not None and not given.fresh and last.live == live
        made = last.comparison if last is not None and whole else make(given)
        self._kept[ref] = (_Kept(given.targets, settings, live, made), *others)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return made


def _settings(given: ComparisonInput) -> tuple[Any, ...]:
    """Return every input of a comparison but manifests and live objects; equal inputs give equal comparisons."""
    app = given.app
    return (
        app.get("spec"),
        app.get("operation"),
        dig(app, "status", "operationState", "syncResult", "managedNamespaceMetadata"),
        dig(app, "status", "operationState", "syncResult") is None,
        given.project,
        given.kinds,
        given.tracking,
        given.control_namespace,
        given.overrides,
        given.excluded,
        given.diff.ignore_aggregated_roles,
        given.project_clusters,
        given.server,
        given.cluster_name,
        given.destination,
        given.fresh,
    )
