"""Which reports of status cannot change what an Application shows: :class:`Reports`.

A Deployment reports many counts on its way from one state to the next, and a budget reports after each pod. Their
Application shows the health that follows from that, so a report that leaves it as it was wakes no reconcile.
"""

from __future__ import annotations

from collections.abc import Iterable

from syncline.apply.annotations import COMPARE_OPTIONS
from syncline.apply.health.check import health_of
from syncline.gitops.application.observing.observe import AppObserved
from syncline.kube.objects import Obj, ObjectRef, annotations_of, gvk_of

GROUPS = frozenset(("", "apps", "autoscaling", "batch", "networking.k8s.io", "policy"))
"""Groups whose objects count by their health alone; others hold settings, too."""
COUNTED = frozenset(("resourceVersion", "managedFields"))
"""Metadata that each write changes."""


class Reports:
    """Remembers the Applications that show of reports no more than health: one reference for each."""

    def __init__(self) -> None:
        self._plain: set[ObjectRef] = set()

    def note(self, ref: ObjectRef, observed: AppObserved | None) -> None:
        """Record an Application as it is observed now; None: it is gone."""
        if observed is not None and _shows_health_alone(observed):
            self._plain.add(ref)
        else:
            self._plain.discard(ref)

    def matters(self, old: Obj | None, new: Obj | None, applications: Iterable[ObjectRef]) -> bool:
        """Return whether a change of an object can change what its Applications show or do."""
        if old is None or new is None or gvk_of(new).group not in GROUPS:
            return True
        if not self._plain.issuperset(applications) or not _reports(old, new):
            return True
        return health_of(old) != health_of(new)


def _shows_health_alone(observed: AppObserved) -> bool:
    """Return whether nothing waits for a status, and no comparison or script reads one."""
    view, system = observed.view, observed.system
    if view.operation is not None or view.terminating or view.spec.get("ignoreDifferences"):
        return False
    if COMPARE_OPTIONS in annotations_of(view.obj) or observed.asks_server or observed.predictions:
        return False
    overrides = system.settings.overrides
    every = overrides.get("*/*")
    if every is None or "/status" not in every.ignore.json_pointers or system.settings.health or system.answers.known:
        return False
    return not any(one.ignore.jq_expressions or one.ignore.managers for one in overrides.values())


def _reports(old: Obj, new: Obj) -> bool:
    """Return whether only the status differs, and what each write changes."""
    if old.get("status") == new.get("status") or old.keys() - {"status"} != new.keys() - {"status"}:
        return False
    if any(old[key] is not new[key] and old[key] != new[key] for key in new.keys() - {"status", "metadata"}):
        return False
    one, other = old["metadata"], new["metadata"]
    return all(one.get(key) == other.get(key) for key in (one.keys() | other.keys()) - COUNTED)
