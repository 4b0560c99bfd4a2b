"""The last comparison of each Application, so that a look that finds nothing new costs no comparison.

A comparison is a pure function. Its answer is kept beside all that it was made of, and holds while that is equal:
manifests, live objects, project, the Application's spec and request, settings. What depends on more (scripts that judge
health, questions to the API server) is compared each time. One answer for each Application; bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from syncline.gitops.compare import Comparison, ComparisonInput
from syncline.kube.objects import ObjectRef, dig, ref_of

__all__ = ["Comparisons"]

MAX_KEPT = 10_000
"""Applications, more than one process works on. What is kept of each are references to objects that are there anyway,
and its rows."""


class Comparisons:
    """One per process; the oldest unused fall out."""

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._limit = limit
        self._kept: OrderedDict[ObjectRef, tuple[tuple[Any, ...], Comparison]] = OrderedDict()

    def of(
        self, given: ComparisonInput, more: tuple[Any, ...], make: Callable[[ComparisonInput], Comparison]
    ) -> Comparison:
        """``more``: what health and schemas depend on beside ``given``."""
        ref, parts = ref_of(given.app), (*_parts(given), *more)
        kept = self._kept.get(ref)
        if kept is not None and kept[0] == parts:
            self._kept.move_to_end(ref)
            return kept[1]
        made = make(given)
        self._kept[ref] = parts, made
        self._kept.move_to_end(ref)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return made


def _parts(given: ComparisonInput) -> tuple[Any, ...]:
    """Equal parts, equal comparisons. Objects that are the same are equal at once; what changed differs soon, since the
    versions of live objects come first."""
    app = given.app
    live = tuple(given.live.items())
    return (
        tuple((ref, dig(obj, "metadata", "uid"), dig(obj, "metadata", "resourceVersion")) for ref, obj in live),
        live,
        given.targets,
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
    )
